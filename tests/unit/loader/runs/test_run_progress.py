"""Tests the progress that a run shows while it works."""

from __future__ import annotations

import json
from typing import Any

from prometheus_client import REGISTRY

from skidway.loader.planning.plan import Planned, Slice
from skidway.loader.runs.run_progress import COMPACT, LOAD, Figures, RunProgress
from skidway.loader.slices.slice_load import NOT_ANNOUNCED
from skidway.loader.state import layout
from skidway.loader.state.run_notes import OwnNote
from support.clock import ManualClock
from support.loading import TOPIC, Record
from support.memory_loading import AGENT, MemoryLoading


def sample(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def steps(loading: MemoryLoading) -> list[tuple[Any, ...]]:
    """Returns the progress that the runs have shown, as tuples of load, records and slices."""
    return [
        (each.load, each.records, each.records_total, each.slices, each.slices_total)
        for each in loading.shown
    ]


def test_a_run_shows_how_much_of_the_topic_it_has_taken() -> None:
    """Whenever a slice ends, a run shows how many of the topic's records all loads of the run have
    finished so far, and how many records the run has to load in total. It also shows the rate, the
    time left and the number of committed rows."""
    loading = MemoryLoading()
    loading.write(250)
    loading.slice_s = 2.0
    loading.run(slice_records=50, max_offsets_per_load=150)
    assert steps(loading) == [
        (1, 0, 250, 0, 3), (1, 50, 250, 1, 3), (1, 100, 250, 2, 3), (1, 150, 250, 3, 3),
        (2, 150, 250, 0, 2), (2, 150, 250, 0, 2), (2, 200, 250, 1, 2), (2, 250, 250, 2, 2),
    ]  # fmt: skip
    assert {each.step for each in loading.shown} == {LOAD}
    begun, third, last = loading.shown[0], loading.shown[2], loading.shown[-1]
    assert (begun.records_per_second, begun.seconds_left) == (None, None)
    assert (third.records_per_second, third.seconds_left) == (25, 6)
    assert (last.records_per_second, last.seconds_left) == (25, 0)
    assert (last.loads, last.rows) == (1, 150)


def test_the_metrics_follow_the_run() -> None:
    """While the loader works, its metrics have the number of finished and expected records for each
    topic. They also have the numbers of loads and rows that the program has committed since its
    start."""
    loading, before = MemoryLoading(), sample("skidway_loader_rows_total")
    loads = sample("skidway_loader_loads_total")
    loading.write(60)
    loading.run(max_offsets_per_load=30)
    assert sample("skidway_loader_run_records", topic=TOPIC) == 60
    assert sample("skidway_loader_run_expected_records", topic=TOPIC) == 60
    assert sample("skidway_loader_rows_total") - before == 60
    assert sample("skidway_loader_loads_total") - loads == 2


def test_the_metrics_count_rejects_by_their_reason() -> None:
    """The metrics have the number of rejects of each topic and reason, so that an operator sees why
    records did not become rows. A reject counts when its load is committed."""
    loading, reason = MemoryLoading(), NOT_ANNOUNCED
    loading.append(*(Record(AGENT, 9, at * 10, 10) for at in range(3)))
    before = sample("skidway_loader_rejects_total", topic=TOPIC, reason=reason)
    found = loading.run(announce_wait_ms=0)
    assert found.reasons == {reason: 3}
    assert sample("skidway_loader_rejects_total", topic=TOPIC, reason=reason) - before == 3


def test_a_run_without_work_shows_nothing() -> None:
    """A run that has nothing to load shows no progress and writes no run note (the file from which
    `load status` reads a run's progress)."""
    loading = MemoryLoading()
    with OwnNote(loading.store, loading.clock, "web1") as loading.note:
        loading.run()
    assert loading.shown == []
    assert loading.store.names(layout.RUNS) == []


def test_slices_that_run_again_are_not_done() -> None:
    """All slices of a load run at once. If an earlier slice changes the marks (how far each log
    file is loaded) that a later slice has used, the later slice runs again. Until it ends again,
    its records count as not done. The other slices of the load still count as done."""
    shown: list[Figures] = []
    progress = RunProgress(ManualClock(), shown.append)
    slices = [Slice(0, first, first + 100) for first in range(0, 500, 100)]
    show = progress.load(TOPIC, 7, [Planned(0, 0, 0, 500)], slices)
    for done, of in ((0, 5), (5, 5), (0, 2), (1, 2), (2, 2)):
        show(done, of)
    assert [(each.records, each.slices) for each in shown] == [
        (0, 0), (500, 5), (300, 3), (400, 4), (500, 5),
    ]  # fmt: skip


def test_a_smaller_rest_is_progress_whoever_took_it() -> None:
    """If another loader loads a part of the topic during a run, this part counts as done. The total
    stays the same as at the start."""
    shown: list[Figures] = []
    progress = RunProgress(ManualClock(), shown.append)
    for load, first in ((3, 0), (4, 600)):
        whole = [Planned(0, first, first, 1000)]
        progress.load(TOPIC, load, whole, [Slice(0, first, 1000)])(0, 1)
    assert [(each.load, each.records, each.records_total) for each in shown] == [
        (3, 0, 1000), (4, 600, 1000), (4, 600, 1000),
    ]  # fmt: skip


def test_rewriting_shows_groups_of_files() -> None:
    """A step that rewrites files shows its progress in groups of files, not in records. The time
    left is calculated from the rate of the groups."""
    clock, shown = ManualClock(), list[Figures]()
    show = RunProgress(clock, shown.append).groups(TOPIC, COMPACT)
    for done in range(3):
        show(done, 8)
        clock.advance(10.0)
    last = shown[-1]
    assert (last.step, last.load, last.records, last.records_total) == (COMPACT, None, None, None)
    assert (last.slices, last.slices_total, last.seconds_left) == (2, 8, 60)


def test_the_note_has_the_figures_before_the_first_task_runs() -> None:
    """A run writes its note (the file with its progress) before Spark starts, so that `load status`
    also shows a run that waits for Spark. Until the first task runs, only this note has the run's
    progress: neither the terminal nor the log shows it."""
    loading, shown = MemoryLoading(), list[Figures]()
    with OwnNote(loading.store, loading.clock, "web1") as note:
        progress = RunProgress(loading.clock, shown.append, note)
        progress.load(TOPIC, 1, [Planned(0, 0, 0, 500)], [Slice(0, 0, 500)])
        (name,) = loading.store.names(layout.RUNS)
        work = json.loads(loading.store.read(f"{layout.RUNS}/{name}") or b"")["work"]
    assert shown == []
    assert (work["topic"], work["records"], work["records_total"]) == (TOPIC, 0, 500)

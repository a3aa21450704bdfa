"""A run writes the file `_SUCCESS` into the directory of each hour that the audit calls complete.
It deletes this file again if rows are added to the hour, or if the audit later says that the hour
lacks records. (To mark an hour means to write this file.)"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest

from skidway.errors import Unreachable
from skidway.kafka.source import Source
from skidway.loader.complete_hours import choice
from skidway.loader.complete_hours.collector import Answer
from skidway.loader.state import commit, folding, layout, operations, success_files
from skidway.loader.state.manifest import UNMARKED_MAX
from support.loading import START_MS, TOPIC
from support.memory_loading import MemoryLoading
from support.promises import promise

HOUR = layout.hour_text(START_MS // layout.HOUR_MS)
SUCCESS = layout.success(TOPIC, HOUR)


@dataclass
class Audit:
    """A fake collector of the audit. `complete_hours` are the hours that it calls complete. `heard`
    is the epoch and number of the newest message of the output that the collector has read. If
    `heard` is None, the collector has read every message. `judgements` are the collector's last
    judgements. After `answers_max` questions, it no longer answers."""

    loading: MemoryLoading
    complete_hours: set[str] = field(default_factory=set)
    heard: tuple[int, int] | None = None
    judgements: dict[str, Answer] = field(default_factory=dict)
    lacks: bool = False
    asked: list[str] = field(default_factory=list)
    answers_max: int | None = None

    def judged(self, _source: Source, _since: str, _until: str) -> dict[str, Answer]:
        return self.judgements

    def complete(self, _source: Source, hour: str, _output: str) -> Answer:
        self.asked.append(hour)
        if self.answers_max is not None and len(self.asked) > self.answers_max:
            raise Unreachable("the collector took 60 s to answer")
        deltas = [(each.sender.epoch, each.number) for each in self.loading.deltas()]
        complete = hour in self.complete_hours
        return Answer(complete, 1000, self.heard or max(deltas), self.lacks)


@pytest.fixture
def loading() -> Iterator[MemoryLoading]:
    """Yields a topic with three loads. All rows are in one hour, which is over. The collector calls
    no hour complete."""
    made = MemoryLoading()
    made.clock.set_time_ms(START_MS + 2 * layout.HOUR_MS)
    made.collector = Audit(made)
    for _ in range(3):
        made.write(20)
        made.run()
    with patch("skidway.loader.runs.hour_marking.PATIENCE_S", 0.0):
        yield made


def marked(loading: MemoryLoading) -> Any:
    data = loading.store.read(SUCCESS)
    return None if data is None else json.loads(data)


def with_mark(loading: MemoryLoading, hours: list[str]) -> list[str]:
    """Returns those of the given hours that have a `_SUCCESS`."""
    return [hour for hour in hours if loading.store.read(layout.success(TOPIC, hour)) is not None]


def parquets(loading: MemoryLoading) -> list[str]:
    return [each.path for each in loading.store.files(TOPIC) if each.path.endswith(".parquet")]


@promise("5 success file")
def test_an_hour_is_marked_when_the_audit_calls_it_complete(loading: MemoryLoading) -> None:
    """As long as the audit does not call an hour complete, the hour has no `_SUCCESS`. When the
    audit calls it complete, one load combines the hour's small files and writes the hour's
    `_SUCCESS`. Later runs change nothing."""
    loading.run()
    assert marked(loading) is None
    assert loading.manifest(3).unmarked == (HOUR,)
    loading.collector.complete_hours = {HOUR}
    outcome = loading.run()
    assert outcome.loads == [4]
    assert outcome.rows == 0
    assert marked(loading) == {
        "topic": TOPIC, "hour": HOUR, "rows": 60, "judged_ms": 1000, "accepted": []
    }  # fmt: skip
    assert len(parquets(loading)) == 1
    assert len(loading.rows()) == 60
    assert loading.manifest(4).unmarked == ()
    loading.collector.asked.clear()
    assert loading.run().loads == []
    assert HOUR not in loading.collector.asked
    assert marked(loading) is not None, "the next start keeps the mark"


@pytest.mark.parametrize("spoilt", [None, b"", b"zeros"])
def test_an_hour_whose_only_file_is_gone_is_not_marked(spoilt: bytes | None) -> None:
    """An hour with a single file needs no compaction (combination of its files), but the run still
    checks the file. If the file is gone, empty or not a Parquet file, the run reports the file and
    writes no `_SUCCESS` for the hour."""
    loading = MemoryLoading()
    loading.clock.set_time_ms(START_MS + 2 * layout.HOUR_MS)
    loading.collector = Audit(loading)
    loading.write(20)
    loading.run()
    (path,) = parquets(loading)
    length = loading.store.length(path) or 0
    loading.collector.complete_hours = {HOUR}
    loading.announce()
    loading.run()
    assert marked(loading) is not None, "with its file, the hour is complete"
    loading.store.delete(SUCCESS)
    loading.store.delete(path)
    if spoilt is not None:
        loading.store.put(path, bytes(length) if spoilt else b"")
    outcome = loading.run()
    assert path in str(outcome.problems[0])
    assert marked(loading) is None


def test_a_slow_collector_marks_what_it_has_answered(loading: MemoryLoading) -> None:
    """If the audit's collector answers only some of a run's questions about hours, the hours that
    it calls complete get their `_SUCCESS`, and the run reports the problem. Later runs ask about
    the other hours, so that these get their `_SUCCESS`, too, and the problem ends."""
    audit = loading.collector
    week = [layout.hour_text(layout.hour_number(HOUR) - back) for back in range(30)]
    audit.complete_hours, audit.answers_max = set(week), 5
    audit.asked.clear()
    outcome = loading.run()
    assert outcome.loads == [4]
    assert [str(each) for each in outcome.problems] == ["the collector took 60 s to answer"]
    assert marked(loading) is not None, "hours with rows are asked about first"
    assert len(with_mark(loading, week)) == 5
    for _ in range(10):
        audit.asked.clear()
        outcome = loading.run()
    assert not outcome.problems
    recent = choice.over(loading.clock.time_ms(), choice.RECENT_HOURS)
    assert with_mark(loading, recent) == [hour for hour in recent if hour in week]


def test_loads_that_only_mark_hours_are_folded(
    loading: MemoryLoading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a topic gets no more rows, later loads only write the `_SUCCESS` files of complete hours.
    Even then old manifests are deleted, so that their number does not grow without end."""
    often = partial(folding.fold, every=2)
    monkeypatch.setattr("skidway.loader.runs.old_manifests.folding.fold", often)
    for back in range(8):
        loading.collector.complete_hours |= {
            layout.hour_text(layout.hour_number(HOUR) - each) for each in range(back + 1)
        }
        loading.run(manifests_keep=2)
    names = loading.store.names(layout.state(TOPIC))
    assert 1 < len([name for name in names if layout.manifest_number(name)]) < 8


@promise("5 success file")
def test_an_hour_is_not_marked_before_the_audit_has_heard_of_all_rows(
    loading: MemoryLoading,
) -> None:
    """If the audit's collector has not read the newest message of the output, its answer does not
    count all rows of the output. If the collector has read a message that is not in the newest
    manifest, its answer counts other rows. In both cases no hour gets a `_SUCCESS`."""
    loading.collector.complete_hours = {HOUR}
    epoch = loading.manifest(3).epoch
    for heard in ((epoch, 2), (epoch, 4), (epoch + 1, 3), (0, 0)):
        loading.collector.heard = heard
        assert loading.run().loads == []
        assert marked(loading) is None
    loading.collector.heard = (epoch, 3)
    assert loading.run().loads == [4]


@promise("5 success file")
def test_rows_of_a_marked_hour_take_its_mark_first(loading: MemoryLoading) -> None:
    """A load that adds rows to an hour with a `_SUCCESS` first deletes this file. When the audit
    calls the hour complete again, the hour gets a `_SUCCESS` with the new number of rows."""
    loading.collector.complete_hours = {HOUR}
    loading.run()
    loading.collector.complete_hours = set()
    loading.write(5)
    loading.run()
    assert marked(loading) is None
    assert loading.manifest(5).unmarked == (HOUR,)
    loading.collector.complete_hours = {HOUR}
    loading.run()
    assert marked(loading)["rows"] == 65


@promise("5 success file")
def test_a_mark_goes_when_the_audit_takes_its_word_back(loading: MemoryLoading) -> None:
    """If the audit's collector says that an hour with a `_SUCCESS` lacks records, the next run
    deletes the `_SUCCESS`, even if no rows are added. The run keeps the `_SUCCESS` in three cases:
    if only an old judgement calls the hour incomplete, if the hour is incomplete for another reason
    than missing records, or if the collector has not read the counts of all rows."""
    audit = loading.collector
    audit.complete_hours = {HOUR}
    loading.run()
    audit.judgements = {HOUR: Answer(False, 1000)}
    assert loading.run().loads == [], "asked again, it calls the hour complete"
    audit.complete_hours = set()
    assert loading.run().loads == [], "it is not complete, but nothing of its own is lacking"
    audit.lacks, audit.heard = True, (0, 0)
    assert loading.run().loads == [], "it has not heard of all rows"
    assert marked(loading) is not None
    audit.heard = None
    assert loading.run().loads == [5]
    assert marked(loading) is None
    assert loading.manifest(5).unmarked == (HOUR,)
    assert loading.run().loads == []


@promise("5 success file")
def test_a_late_end_of_an_older_load_leaves_a_mark_in_place(loading: MemoryLoading) -> None:
    """A load with rows of an hour deletes the hour's `_SUCCESS`. But a slow loader may continue a
    load that other loaders have finished meanwhile. If they have already written the hour's
    `_SUCCESS`, the slow loader leaves the file there."""
    loading.collector.complete_hours = {HOUR}
    loading.run()
    for number in (1, 2, 3):
        operations.run(commit.finish(loading.manifest(number)), loading.store)
    assert marked(loading) is not None


@promise("5 success file")
def test_a_marked_hour_that_is_compacted_keeps_its_mark(loading: MemoryLoading) -> None:
    """A compaction combines files and changes no rows, so the hour keeps its `_SUCCESS`."""
    loading.collector.complete_hours = {HOUR}
    with patch("skidway.loader.runs.hour_marking.to_compact", lambda *_: []):
        loading.run()
    before = marked(loading)
    assert len(parquets(loading)) == 3
    assert loading.compact().loads == [5]
    assert len(parquets(loading)) == 1
    assert marked(loading) == before
    loading.run()
    assert marked(loading) == before


def test_hours_without_rows_are_marked_for_a_day(loading: MemoryLoading) -> None:
    """An hour without rows gets a `_SUCCESS`, too, if it ended recently, because a job that waits
    for this file must not wait forever. Older hours without rows get none."""
    hours = [layout.hour_text(START_MS // layout.HOUR_MS - back) for back in (1, 100)]
    loading.collector.complete_hours = set(hours)
    loading.run()
    assert with_mark(loading, hours) == hours[:1]
    assert loading.run().loads == []


def test_a_mark_that_somebody_deleted_comes_back(loading: MemoryLoading) -> None:
    """If somebody deleted the `_SUCCESS` of a recent hour, a run notices this, and writes the file
    again."""
    loading.collector.complete_hours = {HOUR}
    loading.run()
    loading.store.delete(SUCCESS)
    loading.run()
    assert marked(loading)["rows"] == 60


def test_wrong_event_times_push_out_no_hour() -> None:
    """The manifest lists hours that have no `_SUCCESS` yet. The list keeps only the newest hours,
    and leaves out hours far in the future, because these come from wrong event times."""
    hours = [layout.hour_text(START_MS // layout.HOUR_MS + at) for at in range(-600, 100)]
    found = success_files.unmarked(hours[:300], hours[300:], START_MS, [hours[599]])
    assert len(found) == UNMARKED_MAX
    assert found[-1] == hours[602]
    assert hours[599] not in found


def test_a_damaged_file_keeps_its_hour_from_being_marked(loading: MemoryLoading) -> None:
    """If the files of an hour cannot be combined, because one file is damaged, the run reports the
    file and writes no `_SUCCESS` for the hour."""
    loading.collector.complete_hours = {HOUR}
    path = parquets(loading)[0]
    data = loading.store.read(path) or b""
    loading.store.put(path, data[:10] + bytes([data[10] ^ 1]) + data[11:])
    outcome = loading.run()
    assert "other bytes" in str(outcome.problems[0])
    assert marked(loading) is None


def test_large_hours_are_marked_load_by_load(loading: MemoryLoading) -> None:
    """If the files that are to be combined have more than `max.offsets.per.load` rows, the run
    marks the complete hours in several loads. Each load has at least one hour, even if this hour
    has more rows."""
    empty = layout.hour_text(START_MS // layout.HOUR_MS + 1)
    loading.collector.complete_hours = {HOUR, empty}
    assert loading.run(max_offsets_per_load=30).loads == [4, 5]
    assert marked(loading)["rows"] == 60
    assert loading.store.read(layout.success(TOPIC, empty)) is not None


def test_who_loses_a_race_marks_in_the_next_run(loading: MemoryLoading) -> None:
    """If another loader commits rows of an hour just after the audit called the hour complete, the
    audit's answer is out of date, and the hour gets no `_SUCCESS`. The next run writes the file."""
    loading.collector.complete_hours = {HOUR}
    first = [True]

    def other() -> None:
        if first:
            first.clear()
            loading.write(5)
            loading.collector, kept = None, loading.collector
            loading.run()
            loading.collector = kept

    assert loading.run_beside(other).loads == []
    assert marked(loading) is None
    loading.run()
    assert marked(loading)["rows"] == 65


def test_a_collector_that_is_away_is_a_problem_of_the_run(loading: MemoryLoading) -> None:
    """If the audit's collector does not answer, the rows are loaded nevertheless, and the run
    reports the problem."""

    def judged(*_: object) -> dict[str, Answer]:
        raise Unreachable("the audit's collector does not answer")

    loading.collector.judged = judged
    loading.write(5)
    outcome = loading.run()
    assert outcome.rows == 5
    assert [str(each) for each in outcome.problems] == ["the audit's collector does not answer"]

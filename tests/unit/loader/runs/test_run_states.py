"""Tests the state and the progress of runs that `load status` shows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from skidway.cli import main
from skidway.loader.runs.run_progress import LOAD, Figures
from skidway.loader.runs.run_states import (
    COLUMNS,
    KILLED,
    RUNNING,
    SILENT,
    SILENT_MS,
    TABLE,
    Row,
    run_states,
    table_row,
)  # fmt: skip
from skidway.loader.state import layout
from skidway.loader.state.process import Process
from skidway.loader.state.run_notes import RunNote
from support.clock import ManualClock
from support.memory_store import MemoryStore

HERE = Process.here("web1")
DEAD = replace(HERE, started=1)
AWAY = replace(HERE, host="loader2", boot="x")
WORK = Figures("logs", LOAD, 13, 8_000_000, 20_000_000, 400_000, 30, 20, 50, 2, 7_900_000)


class World:
    """An output with the note of one run (the file that shows the run's progress). The run last
    wrote the note `silent_ms` milliseconds ago."""

    def __init__(self, process: Process, silent_ms: int = 0) -> None:
        self.store, self.clock = MemoryStore(), ManualClock()
        said = self.clock.time_ms() - silent_ms
        self.note = RunNote("a" * 32, "0.1.0", said - 1000, said, 17, process, WORK.document())
        self.put(self.note)

    def put(self, note: RunNote) -> None:
        self.store.put(layout.run_note(note.id), note.to_json())

    def row(self) -> Row:
        (row,) = run_states(self.store, self.clock, self._never)
        return row

    def _never(self, _seconds: float) -> None:
        raise AssertionError("one look needs no wait")


def test_a_run_is_shown_with_its_figures() -> None:
    """For a running load, `load status` shows its host and process, its current step, its progress,
    its rate, the time left, its start, and when it last wrote its note."""
    row = World(HERE).row()
    assert tuple(row) == COLUMNS
    expected = {
        **WORK.document(), "host": HERE.host, "pid": HERE.pid, "state": RUNNING, "sentence": None,
        "since": "2023-11-14T22:13:19.000Z", "heard": "2023-11-14T22:13:20.000Z",
        "silent_seconds": 0,
    }  # fmt: skip
    assert row == expected
    shown = table_row(row)
    assert set(TABLE) <= set(shown)
    assert [shown[name] for name in ("records", "per_second", "left", "slices")] == [
        "8,000,000 of 20,000,000", 400_000, "30s", "20 of 50",
    ]  # fmt: skip


@pytest.mark.parametrize("silent_ms", [0, SILENT_MS * 10])
def test_a_killed_run_is_never_shown_as_running(silent_ms: int) -> None:
    """If the process of a run no longer exists, `load status` shows the run as killed, however
    recent its note is. The printed table then has neither a rate nor the time left for the run."""
    row = World(DEAD, silent_ms).row()
    assert row["state"] == KILLED
    assert f"the run of host {HERE.host}, pid {HERE.pid}, last heard at 2023" in row["sentence"]
    assert "is not running any more" in row["sentence"]
    shown = table_row(row)
    assert (shown["per_second"], shown["left"]) == (None, None)


def test_a_living_run_may_say_nothing_for_long() -> None:
    """If the process of a run exists, the run is shown as running, even if it has not written its
    note for a long time. The age of the note is shown."""
    row = World(HERE, SILENT_MS * 10).row()
    assert (row["state"], row["silent_seconds"]) == (RUNNING, SILENT_MS / 100)


@pytest.mark.parametrize(
    ("silent_ms", "state"),
    [(0, RUNNING), (SILENT_MS, RUNNING), (SILENT_MS + 1, SILENT), (-SILENT_MS - 1, SILENT)],
)
def test_a_run_of_another_host_is_silent_and_not_dead(silent_ms: int, state: str) -> None:
    """`load status` cannot check whether a process of another host still exists. So if the note of
    a run on another host is old, or has a time in the future, `load status` calls the run silent.
    The command also says that it had to compare the clocks of two hosts."""
    row = World(AWAY, silent_ms).row()
    assert row["state"] == state
    assert (row["sentence"] is None) == (state == RUNNING)
    if state == SILENT:
        what = "has said nothing for 2m by" if silent_ms > 0 else "has a clock that is 2m ahead"
        assert what in row["sentence"]


@pytest.mark.parametrize(("counts", "state"), [(0, SILENT), (1, RUNNING)])
def test_two_looks_need_no_clock(counts: int, state: str) -> None:
    """`load status` can read a run's note twice, with a pause in between. A run of another host is
    shown as running if the counter in its note has grown, whatever the clocks of the two hosts
    say."""
    for silent_ms in (0, SILENT_MS * 1000, -SILENT_MS * 1000):
        world, waits = World(AWAY, silent_ms), list[float]()

        def pause(seconds: float, world: World = world, waits: list[float] = waits) -> None:
            waits.append(seconds)
            world.put(replace(world.note, count=world.note.count + counts))

        (row,) = run_states(world.store, world.clock, pause, 30.0)
        assert (row["state"], waits) == (state, [30.0])
        assert state == RUNNING or "has said nothing for 30 s;" in row["sentence"]


def test_status_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`load status --json` lists the loaded partitions and the runs. Without `--json`, the command
    prints a table with a line for each run, and a sentence about each killed run. For a folder
    without runs no run is shown."""
    config = tmp_path / "loader.yml"
    config.write_text(
        "bootstrap.servers: x:1\nschema.registry.url: http://x\ntopics: ['.*']\n"
        f"output: {tmp_path}/out\n"
    )
    arguments = ["load", "status", "--config", str(config)]
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"partitions": [], "runs": []}
    path = tmp_path / "out" / layout.run_note("a" * 32)
    path.parent.mkdir(parents=True)
    path.write_bytes(World(DEAD).note.to_json())
    assert main([*arguments, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["runs"]
    assert (row["state"], row["records"]) == (KILLED, 8_000_000)
    assert main(arguments) == 0
    said = capsys.readouterr()
    assert "8,000,000 of 20,000,000" in said.out
    assert "is not running any more" in said.err
    assert main([*arguments, "--look", "5s"]) == 2

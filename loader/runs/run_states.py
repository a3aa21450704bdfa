"""Lists the runs that work on an output now, and the runs that were killed, with their states. Each
run keeps a note in the output (state/run_notes.py), and this module reads the notes.

A run that is killed cannot write into its note that it has ended. If the note's run is on this
machine, the kernel reports whether the run's process still runs. If the run is on another machine,
only the time of the note's last change is known, and the clocks of the two machines may differ. So
a run on another machine is called "running" or "silent", but never "killed". With `look_s`, this
module reads the notes twice, `look_s` seconds apart. A counter in each note then shows, without any
clock, whether the run still writes its note.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from skidway.cli.moments import shown
from skidway.clock import Clock
from skidway.loader.runs.progress_display import duration
from skidway.loader.state.run_notes import RunNote, read_notes
from skidway.loader.store import Store

RUNNING: Final = "running"
KILLED: Final = "killed"
SILENT: Final = "silent"
SILENT_MS: Final = 120_000
"""A run on another machine is called silent if its note (a file in the output) has not changed for
this time. While tasks run, a run writes its note every 10 s. At other times, for example while
Spark starts or a load is committed, the note may stay unchanged for longer."""

LEAST_LOOK_S: Final = 20.0
"""The least time between two readings of the runs' notes (each run keeps a file, its note, in the
output). A run that does tasks writes its note at least once in this time."""

COLUMNS: Final = (
    "host", "pid", "state", "topic", "step", "load", "records", "records_total",
    "records_per_second", "seconds_left", "slices", "slices_total", "loads", "rows", "since",
    "heard", "silent_seconds", "sentence",
)  # fmt: skip
"""The names of the fields of one run in JSON."""

_TELLS: Final = "`skidway load status --look 30s` tells whether it still runs"

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Look:
    """An earlier reading of the notes of all runs (each run keeps a file, its note, in the output).
    seconds: how long ago the notes were read. counts: the counter in each run's note."""

    seconds: float
    counts: Mapping[str, int]


def run_states(
    store: Store, clock: Clock, pause: Callable[[float], object], look_s: float | None = None
) -> list[Row]:
    """Returns one row per run, in the order in which the runs began. look_s: after how many seconds
    to read the runs' notes a second time; None to read the notes only once."""
    notes = read_notes(store)
    look: Look | None = None
    if look_s is not None and notes:
        look = Look(look_s, {each.id: each.count for each in notes})
        pause(look_s)
        notes = read_notes(store)
    return [_row(each, clock.time_ms(), look) for each in notes]


def table_row(row: Row) -> Row:
    """Returns the row with figures that people can read easily."""
    taken, total = row["records"], row["records_total"]
    rate, left = row["records_per_second"], row["seconds_left"]
    working = row["state"] == RUNNING
    return {
        **row,
        "records": None if total is None else f"{taken:,} of {total:,}",
        "slices": f"{row['slices']:,} of {row['slices_total']:,}",
        "per_second": rate if working else None,
        "left": duration(left) if working and left is not None else None,
    }


TABLE: Final = (
    "host", "pid", "state", "topic", "step", "load", "records", "per_second", "left", "slices",
    "since", "heard",
)  # fmt: skip


def _row(note: RunNote, now_ms: int, look: Look | None) -> Row:
    state = _state(note, now_ms, look)
    work = {name: note.work.get(name) for name in COLUMNS}
    return {
        **work,
        "host": note.process.host,
        "pid": note.process.pid,
        "state": state,
        "since": shown(note.since),
        "heard": shown(note.said),
        "silent_seconds": max(now_ms - note.said, 0) // 1000,
        "sentence": _sentence(note, state, now_ms, look),
    }


def _state(note: RunNote, now_ms: int, look: Look | None) -> str:
    alive = note.process.is_alive()
    if alive is not None:
        return RUNNING if alive else KILLED
    if look is not None:
        return RUNNING if look.counts.get(note.id) != note.count else SILENT
    return RUNNING if abs(now_ms - note.said) <= SILENT_MS else SILENT


def _sentence(note: RunNote, state: str, now_ms: int, look: Look | None) -> str | None:
    """Returns a sentence that says why the run is called killed or silent. Returns None if the run
    is running."""
    if state == RUNNING:
        return None
    run = f"the run of host {note.process.host}, pid {note.process.pid}, last heard at "
    run += shown(note.said)
    if state == KILLED:
        return f"{run}, is not running any more; the next run goes on after the last committed load"
    if look is not None:
        return f"{run}, has said nothing for {look.seconds:g} s; look on its host whether it runs"
    apart = duration(abs(now_ms - note.said) // 1000)
    if now_ms < note.said:
        return f"{run}, has a clock that is {apart} ahead of this one; {_TELLS}"
    return f"{run}, has said nothing for {apart} by the clocks of the two hosts; {_TELLS}"

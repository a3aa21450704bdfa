"""Writes and reads notes about the loader's runs that work on an output now. Each run has one small
file, its note.

    <root>/_skidway/_runs/<uuid>.note

    {"format": 1, "id": "32 hex digits", "program": "0.1.0", "since": ms since the epoch,
     "said": ms since the epoch, "count": 17,
     "process": {"host": "loader1", "pid": 4711, "boot": "...", "space": "...", "started": ticks},
     "work": {"topic": "dc1.hdfs-logs", "step": "load", ...}}

`_runs` is never the folder of a topic, because topics whose names begin with `_` are not loaded. A
run writes its note at most once in `WRITE_EVERY_S` seconds, and deletes the note when the run ends.
`work` says what the run is doing. `count` rises each time the run writes the note. `since` is when
the run began, and `said` is when the run last wrote the note, both by the clock of the run's host.

A run that was killed does not delete its note; a later run deletes the note (`sweep`). A note may
be deleted at any time, because a run that still works writes a new note. The clock of another host
may differ from the clock of this host. So `sweep` may delete the note of a run that still works on
the other host. This does no harm, because that run writes its note again.

No load depends on a note. If a run cannot write or delete a note, it logs a warning and continues.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from types import TracebackType
from typing import Any, Final
from uuid import uuid4

from skidway import log
from skidway.clock import Clock
from skidway.errors import SkidwayError
from skidway.loader.state import layout
from skidway.loader.state.process import Process
from skidway.loader.store import PARTIAL_SUFFIX, Store

FORMAT: Final = 1
WRITE_EVERY_S: Final = 10.0
FORGOTTEN_MS: Final = 600_000
"""If nobody can know here whether a run still works (for example, because it is on another host),
the run counts as dead when the time in its note differs from the present time by more than this
many milliseconds. Any run may then delete the note.
"""

_log = log.get(__name__)


@dataclass(frozen=True, slots=True)
class RunNote:
    """The note of a run. The docstring of this module explains every field."""

    id: str
    program: str
    since: int
    said: int
    count: int
    process: Process
    work: Mapping[str, Any]

    def to_json(self) -> bytes:
        """Returns the note as JSON."""
        return json.dumps({"format": FORMAT, **asdict(self)}).encode() + b"\n"

    @staticmethod
    def from_json(data: bytes) -> RunNote | None:
        """Returns the note that `data` contains, or None if `data` is not a note of this format."""
        try:
            content = json.loads(data)
            if content.pop("format") != FORMAT:
                return None
            process = Process(**content.pop("process"))
            return RunNote(**content, process=process)
        except (ValueError, TypeError, KeyError, AttributeError):
            return None


class OwnNote:
    """Writes the note of this run. The run must happen in a `with` block of this object."""

    def __init__(self, store: Store, clock: Clock, host: str) -> None:
        self._store, self._clock = store, clock
        self._id, self._process = uuid4().hex, Process.here(host)
        self._since, self._count = clock.time_ms(), 0
        self._next_s = 0.0

    def __enter__(self) -> OwnNote:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Deletes this run's note. If the run raised no error, also deletes the notes of runs that
        were killed."""
        try:
            if self._count:
                self._store.delete(layout.run_note(self._id))
            if error is None:
                sweep(self._store, self._clock.time_ms())
        except SkidwayError as failure:
            _log.warning("run_note_left", reason=str(failure))

    def say(self, work: Mapping[str, Any]) -> None:
        """Writes the note. Does nothing if the note was written less than `WRITE_EVERY_S` seconds
        ago. The first call also deletes the notes of runs that were killed."""
        now_s = self._clock.monotonic()
        if self._count and now_s < self._next_s:
            return
        self._next_s, is_first = now_s + WRITE_EVERY_S, not self._count
        self._count += 1
        try:
            if is_first:
                sweep(self._store, self._clock.time_ms())
            self._write(work)
        except SkidwayError as failure:
            _log.warning("run_note_not_written", reason=str(failure))

    def _write(self, work: Mapping[str, Any]) -> None:
        now_ms = self._clock.time_ms()
        note = RunNote(
            self._id, version("skidway"), self._since, now_ms, self._count, self._process, work
        )
        path = layout.run_note(self._id)
        writer = self._store.create(path + PARTIAL_SUFFIX)
        writer.write(note.to_json())
        writer.close()
        self._store.replace(path + PARTIAL_SUFFIX, path)


def read_notes(store: Store) -> list[RunNote]:
    """Returns the notes of all runs, in the order in which the runs began."""
    notes = (_read(store, name) for name in store.names(layout.RUNS) if not _is_partial(name))
    return sorted((x for x in notes if x is not None), key=lambda each: (each.since, each.id))


def sweep(store: Store, now_ms: int) -> None:
    """Deletes the notes of runs that were killed, the notes that these runs had only half written,
    and notes that cannot be read. Raises StoreFailed and StoreUnreachable."""
    names = store.names(layout.RUNS)
    living = {
        name
        for name in names
        if not _is_partial(name)
        and (note := _read(store, name)) is not None
        and not _is_dead(note, now_ms)
    }
    for name in names:
        if name.removesuffix(PARTIAL_SUFFIX) not in living:
            store.delete(f"{layout.RUNS}/{name}")


def _is_dead(note: RunNote, now_ms: int) -> bool:
    alive = note.process.is_alive()
    return not alive if alive is not None else abs(now_ms - note.said) > FORGOTTEN_MS


def _read(store: Store, name: str) -> RunNote | None:
    data = store.read(f"{layout.RUNS}/{name}")
    return None if data is None else RunNote.from_json(data)


def _is_partial(name: str) -> bool:
    return name.endswith(PARTIAL_SUFFIX)

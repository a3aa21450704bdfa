"""Watches the roster's file while a program runs, and reads the file again when it has changed. The
roster says which hosts must report.

If the file is missing, unreadable or has a mistake, it is called bad. If the file becomes bad, the
program continues with the last good roster, and logs the problem once after each change of the
file. `problem` describes the problem until the file is good again.
"""

from __future__ import annotations

from pathlib import Path

from skidway import log
from skidway.audit.judgement.roster import RosterEntry, read_file
from skidway.clock import Clock
from skidway.errors import ConfigurationRefused

LOOK_EVERY_S = 1.0

_log = log.get(__name__)

_Stamp = tuple[int, int, int, int]
"""The stamp of a file consists of device, inode, size and time of change, so a rewritten or
replaced file has another stamp."""


class RosterFile:
    """A roster's file. The file is read when the program starts, and again whenever it changes.
    Only one thread uses this object."""

    def __init__(self, path: Path, clock: Clock) -> None:
        """Raises ConfigurationRefused for a bad file, because a program does not start without a
        good roster."""
        self._path = path
        self._clock = clock
        self._stamp = _stamp(path)
        self.entries: tuple[RosterEntry, ...] = read_file(path)
        self.problem: str | None = None
        self._look_at = clock.monotonic() + LOOK_EVERY_S

    def look(self) -> bool:
        """Reads the file if it has changed. Returns whether the entries have changed. Looks at the
        file at most once in LOOK_EVERY_S seconds.
        """
        if self._clock.monotonic() < self._look_at:
            return False
        self._look_at = self._clock.monotonic() + LOOK_EVERY_S
        stamp = _stamp(self._path)
        if stamp == self._stamp:
            return False
        self._stamp = stamp  # before the read, so a change during the read is noticed
        try:
            entries = read_file(self._path)
        except ConfigurationRefused as error:
            self.problem = f"{error}; the roster read before holds"
            _log.error("roster_refused", reason=str(error))
            return False
        changed = entries != self.entries
        self.entries, self.problem = entries, None
        _log.info("roster_taken", path=str(self._path), hosts=len(entries))
        return changed


def _stamp(path: Path) -> _Stamp | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

"""Finds the known file that became a compressed generation (a rotated file), and continues to read
it in that generation.

A compressed file has another inode than the plain file, and the plain file is gone. The agent
recognises a known file in the compressed file by the known file's first bytes, by the bytes before
the read position, and by the file's time of change, which most compression programs copy from the
plain file. Once the agent has recognised the known file, it reads that file's bytes from the
compressed file. Positions count plain bytes, so every position is the same in both files, and
nothing is read twice. While the plain file is still there, compression is under way, and the agent
reads the plain file.
"""

from __future__ import annotations

import os
from typing import Final

from skidway.agent.files.births import Births
from skidway.agent.files.copies import origins
from skidway.agent.files.decompressed import is_decompressed
from skidway.agent.files.generations import copied_from
from skidway.agent.files.host import Host, shown
from skidway.agent.files.known import KnownFiles
from skidway.agent.files.likeness import has_bytes_of
from skidway.agent.files.same_file import Answer, compressed, is_time_of
from skidway.agent.files.sighting import Sighting
from skidway.agent.values.found import DAMAGED, UNMEASURED, Found, UnopenedFile
from skidway.agent.values.tracked import TrackedFile

DAMAGED_MS: Final = 60_000
"""If a file still cannot be decompressed this many milliseconds after its last change, the agent
treats it as permanently damaged.
"""


class Compression:
    """Owns no state. When a known file was compressed, changes its entry in `known`. Opens files
    through `births`, which lists a file that cannot be opened as unreadable.
    """

    def __init__(self, host: Host, known: KnownFiles, births: Births) -> None:
        self._host = host
        self._known = known
        self._births = births

    def is_going_on(self, path: str) -> bool:
        """Whether compression is still under way, because the plain file is still beside the
        compressed file.
        """
        plain = os.path.splitext(path)[0]
        return is_decompressed(path) and self._host.look(plain) is not None

    def adopt(self, sighting: Sighting, now_ms: int) -> Answer:
        """Looks for the known file that became this compressed file. SAME: the known file was
        found, and from now on the agent reads its bytes from the compressed file. UNKNOWN: the
        compressed file cannot be read yet; the agent lists it as unreadable, and tries again when
        it next searches for files. OTHER: nothing proves that the compressed file contains a known
        file.
        """
        found = sighting.found
        if not is_decompressed(found.real_path) or is_hopeless(found, now_ms):
            return Answer.OTHER
        gone = {each.file: each for base in sighting.bases for each in self._known.gone(base)}
        if not gone:
            return Answer.OTHER
        handle = self._births.open(sighting)
        if handle is None:
            return Answer.UNKNOWN
        size = handle.status().size
        handle.close()
        alike = _latest([x for x in gone.values() if self._holds(found.real_path, size, x)])
        for each in reversed(alike):
            is_same_time = each.changed_ns is not None and is_time_of(
                found.changed_ns, [each.changed_ns]
            )
            count = max(each.promised, each.birth.fingerprint.length)
            answer = compressed(is_same_time=is_same_time, is_only=len(alike) == 1, count=count)
            if answer is Answer.SAME:
                self._known.move(each, found)
                return answer
        return Answer.OTHER

    def _holds(self, path: str, size: int, gone: TrackedFile) -> bool:
        if size < max(gone.size, gone.promised, 1) or not gone.birth.fingerprint.length:
            return False
        try:
            return has_bytes_of(self._host, path, gone)
        except OSError:
            return False


def _latest(files: list[TrackedFile]) -> list[TrackedFile]:
    """Leaves out each file id that another of these ids continues: both have the same bytes, and
    only the later id says how many of them the agent has read."""
    continued = {each.birth.predecessor for each in files}
    return [each for each in files if each.file not in continued]


def is_hopeless(found: Found, now_ms: int) -> bool:
    """Whether a compressed file can never be read, because it is damaged and no longer changes."""
    return found.size == DAMAGED and now_ms - found.changed_ns // 1_000_000 >= DAMAGED_MS


def may_hold(file: UnopenedFile, gone: TrackedFile) -> bool:
    """Whether `file`, a compressed file that could not be opened yet, may contain the bytes of
    `gone`.
    """
    path = file.found.real_path
    if not is_decompressed(path) or file.found.size not in (UNMEASURED, DAMAGED):
        return False
    plain = {file.meant, os.path.splitext(path)[0], *copied_from(file.found.path)}
    return not origins(gone).isdisjoint(map(shown, plain))

"""A file that was found at a path, before the agent compares it with the known files."""

from __future__ import annotations

from typing import Final, NamedTuple

UNMEASURED: Final = -1
"""This number in `Found.size` says that the plain bytes of a compressed file are not counted
yet.
"""

DAMAGED: Final = -2
"""This number in `Found.size` says that a compressed file cannot be decompressed."""


INTEGER_MIN: Final = -(1 << 63)
INTEGER_MAX: Final = (1 << 63) - 1
"""The state stores signed numbers of 64 bits."""


def stored(number: int) -> int:
    """Returns the nearest number that the state can store. File systems have times far beyond it,
    and every user may give such a time to a file."""
    return min(max(number, INTEGER_MIN), INTEGER_MAX)


NOBODY: Final = -1
"""The owner of a file whose owner cannot be found out any more."""


class FileKey(NamedTuple):
    """Identifies a file by device and inode, whatever the file's name is. Device and inode numbers
    from 2^63 on become negative, because the state stores signed numbers of 64 bits.
    """

    device: int
    inode: int


class Found(NamedTuple):
    """A file to which a path leads.

    real_path: the path with all links followed; it differs from `path` if `path` leads through a
    link. changed_ns, born_ns: when the content last changed, and when the inode was made (as in the
    class `Status` of files/host). size: for a compressed file, the size of its plain bytes;
    UNMEASURED until the file was opened and measured, and DAMAGED if it cannot be decompressed.
    owner: the user to whom the file belongs. is_lent: whether a link of another user than root and
    the agent's is on the way to it, or may have been. Then a file to which no pattern leads is a
    generation of it only if it has the same owner, as if the link led to it as well.
    """

    path: str
    key: FileKey
    size: int
    changed_ns: int
    born_ns: int | None
    real_path: str
    owner: int = 0
    is_lent: bool = False

    @property
    def is_linked(self) -> bool:
        """Whether a link leads to the file."""
        return self.path != self.real_path


class UnopenedFile(NamedTuple):
    """A file that could not be opened yet, as the last search for files found it. base: the path
    that a rotated file had before the rotation; None if the file is not rotated. may_begin: whether
    the agent may begin a new file id for the file. skip: how many of the file's first bytes are
    skipped (see the class `Sighting` of files/sighting).
    """

    topic: str
    topic_id: str
    base: str | None
    found: Found
    may_begin: bool = True
    skip: int | None = None

    @property
    def meant(self) -> str:
        """The path at which a pattern finds the file; for a rotated file, its path before the
        rotation.
        """
        return self.base or self.found.path


class UnbegunFile(NamedTuple):
    """A file that the agent does not read yet, because it is empty or too old. base: the path that
    a rotated file had before the rotation; None if the file is not rotated.
    """

    found: Found
    base: str | None = None

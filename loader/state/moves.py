"""Lists the moves of a load's committed files from the staging directory to their final paths, and
decides what to do about one move. Does no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from skidway.loader.state.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Move:
    """A committed file that must be moved from `source` to `target`. length: how many bytes the
    file must have."""

    source: str
    target: str
    length: int


class Settle(Enum):
    """What the loader must do to move a committed file from the path `source` to the path `target`.
    This depends on which of the two files exist, and on their lengths.
    """

    DONE = auto()
    RENAME = auto()
    DELETE_SOURCE = auto()
    BOTH_GONE = auto()
    STOP = auto()


def moves(manifest: Manifest) -> list[Move]:
    """Returns the moves of the files that the manifest lists, in the manifest's order."""
    return [Move(file.staged, file.path, file.length) for file in manifest.files]


def settle(move: Move, source: int | None, target: int | None) -> Settle:
    """Returns what the loader must do about a move. source, target: the lengths of the two files in
    bytes now; None if the file does not exist."""
    if source is None and target is None:
        return Settle.BOTH_GONE
    if source is None:
        return Settle.DONE if target == move.length else Settle.STOP
    if source != move.length:
        return Settle.STOP
    if target is None:
        return Settle.RENAME
    return Settle.DELETE_SOURCE if target == source else Settle.STOP

"""The commit of a load, step by step: the decisions here, the operations in a store.

Every function that decides is a generator of operations (`Steps`): it yields what it wants done
and receives the answer. `operations.run` does them on a real store; tests/model interleaves two
loaders, stops them between any two operations and loses answers, over a store in memory.

    begin     read the newest manifest; finish the moves of every load that still has a staging
              directory, and of the newest one; delete staging directories whose load is decided
    (write    Spark's tasks write files into staging/<n>-<uuid>/, synced and closed)
    commit    check the lengths; create manifest n only if absent; when in doubt read it back and
              compare the uuid; finish the moves; delete the staging directory

Begin need not look at every manifest: the loader that committed n + 1 had finished all moves up to
n before it began, and a staging directory is deleted only after the last move of its load. So
unfinished moves exist only where a staging directory stands, or in the newest load. A file of an
older load that somebody deleted is no unfinished move. A recount names it
(audit/recount/recount.py): if begin looked at every file of every load, each start would cost more
than the one before.

A move is checked at its source first: a file that is moved meanwhile is then seen at its target,
whereas target first could miss it at both ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from skidway.errors import StateRefused
from skidway.loader.state import layout
from skidway.loader.state.manifest import Manifest
from skidway.loader.state.operations import (
    Create,
    Created,
    Delete,
    Length,
    Names,
    Read,
    Rename,
    Steps,
    Sync,
)

CREATE_ATTEMPTS: Final = 10
LOOKS_MAX: Final = 20
"""Looks at one move; each further one means that another loader was faster again."""


@dataclass(frozen=True, slots=True)
class Move:
    """A file of a committed load on its way into place. length: bytes that it must have."""

    source: str
    target: str
    length: int


class Settle(Enum):
    """What to do after a look at both ends of a move."""

    DONE = auto()
    RENAME = auto()
    DELETE_SOURCE = auto()
    BOTH_GONE = auto()
    STOP = auto()


def begin(topic: str) -> Steps[Manifest | None]:
    """Finishes what earlier loads left and returns the newest manifest, None before the first.

    Raises StateRefused if the manifests have holes or are all gone, or if a committed file is
    nowhere.
    """
    left: list[str] = yield Names(layout.stagings(topic))
    numbers = yield from committed(topic)
    if not numbers:
        numbers = yield from _first(topic)
    newest: Manifest | None = None
    for name, load, uuid in _decided(left, len(numbers)):
        manifest = yield from read(topic, load)
        if manifest.uuid == uuid and load < len(numbers):
            yield from finish(manifest)
        if load < len(numbers) or manifest.uuid != uuid:
            yield Delete(f"{layout.stagings(topic)}/{name}")
    if numbers:
        newest = yield from read(topic, numbers[-1])
        yield from finish(newest)
        yield Delete(newest.staging)
    return newest


def _first(topic: str) -> Steps[list[int]]:
    """Manifests of a topic that seemed to have none. Raises StateRefused when it has rows."""
    visible: list[str] = yield Names(topic)
    if not any(map(layout.is_day_folder, visible)):
        return []
    numbers = yield from committed(topic)  # rows come after their manifest: now it is there
    if not numbers:
        raise StateRefused(
            f"{topic} has rows, but no manifest under {layout.state(topic)}: a first load would "
            "double them; restore the manifests, or set the rows aside"
        )
    return numbers


def committed(topic: str) -> Steps[list[int]]:
    """Numbers of all manifests: 1, 2, 3 ... Raises StateRefused when one is missing."""
    names: list[str] = yield Names(layout.state(topic))
    numbers = [n for n in map(layout.manifest_number, names) if n is not None]
    for expected, number in enumerate(numbers, 1):
        if number != expected:
            raise StateRefused(
                f"the manifest {layout.manifest(topic, expected)} is missing although load "
                f"{numbers[-1]} is committed; restore it before loading on"
            )
    return numbers


def read(topic: str, load: int) -> Steps[Manifest]:
    """A manifest that must be there."""
    path = layout.manifest(topic, load)
    data: bytes | None = yield Read(path)
    if data is None:
        raise StateRefused(f"the manifest {path} vanished while it was read")
    return Manifest.from_json(data, path)


def commit(manifest: Manifest) -> Steps[bool]:
    """Commits a load whose files are staged. False: another loader took the number.

    Raises StateRefused when a staged file is not what its task wrote, before anything is visible.
    """
    wrong = yield from _wrong_length(manifest)
    taken = (yield from _winner(manifest)) if wrong else None
    if wrong and taken is None:
        raise StateRefused(wrong)
    yield Sync((manifest.staging,))
    mine = taken is None and (yield from _create(manifest))
    if mine:
        yield from finish(manifest)
    yield Delete(manifest.staging)
    return mine


def finish(manifest: Manifest) -> Steps[None]:
    """Brings every move of a committed load to its end; may run at any time, by anybody."""
    for move in moves(manifest):
        yield from _finish_move(manifest, move)


def moves(manifest: Manifest) -> list[Move]:
    """Moves of a load, in their order."""
    return [Move(file.staged, file.path, file.length) for file in manifest.files]


def settle(move: Move, source: int | None, target: int | None) -> Settle:
    """What to do about a move, from the lengths seen at both ends (None: not there)."""
    if source is None and target is None:
        return Settle.BOTH_GONE
    if source is None:
        return Settle.DONE if target == move.length else Settle.STOP
    if source != move.length:
        return Settle.STOP
    if target is None:
        return Settle.RENAME
    return Settle.DELETE_SOURCE if target == source else Settle.STOP


def _decided(names: Sequence[str], newest: int) -> list[tuple[str, int, str]]:
    """Staging directories of loads that have a manifest."""
    found = [(name, *parts) for name in names if (parts := layout.staging_of(name))]
    return [(name, load, uuid) for name, load, uuid in found if load <= newest]


def _wrong_length(manifest: Manifest) -> Steps[str]:
    for file in manifest.files:
        length: int | None = yield Length(file.staged)
        if length != file.length:
            return f"the staged file {file.staged} has {length} bytes instead of {file.length}"
    return ""


def _winner(manifest: Manifest) -> Steps[str | None]:
    """The uuid that has this load's number; None while none has."""
    data: bytes | None = yield Read(manifest.path)
    return None if data is None else Manifest.from_json(data, manifest.path).uuid


def _create(manifest: Manifest) -> Steps[bool]:
    for _ in range(CREATE_ATTEMPTS):
        created: Created = yield Create(manifest.path, manifest.to_json(), manifest.staging)
        if created is Created.YES:
            return True
        winner = yield from _winner(manifest)
        if winner is not None:
            return winner == manifest.uuid
    raise StateRefused(
        f"the manifest {manifest.path} could not be created in {CREATE_ATTEMPTS} attempts; "
        "the load is not committed and begins again at the next start"
    )


def _finish_move(manifest: Manifest, move: Move) -> Steps[None]:
    for _ in range(LOOKS_MAX):
        source: int | None = yield Length(move.source)
        target: int | None = yield Length(move.target)
        match settle(move, source, target):
            case Settle.DONE:
                return
            case Settle.RENAME:
                renamed: bool = yield Rename(move.source, move.target)
                if renamed:
                    return
            case Settle.DELETE_SOURCE:
                yield Delete(move.source)
                return
            case Settle.BOTH_GONE:
                raise StateRefused(
                    f"load {manifest.number} committed {move.target}, and it is neither there nor "
                    f"in {move.source}; rows are missing: restore the file before loading on"
                )
            case Settle.STOP:
                raise StateRefused(
                    f"load {manifest.number} committed {move.target} with {move.length} bytes; "
                    f"found {target} there and {source} in {move.source}"
                )
    raise StateRefused(f"{move.source} could not be moved to {move.target}")

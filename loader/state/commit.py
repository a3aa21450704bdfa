"""Does the commit of a load, step by step. This module decides which operations are needed, and
`operations` does them on the store.

Every function that decides is a generator of operations (`Steps`): it yields an operation and
receives the store's answer. `operations.run` does the operations on a real store. tests/model runs
two loaders on a store in memory: it interleaves their operations, stops the loaders between any two
operations, and drops answers of the store.

    begin     read the newest manifest; move into place the files that the newest load, and every
              load that still has a staging directory, have not moved yet; delete staging
              directories whose load number has a manifest
    (write    Spark's tasks write files into staging/<n>-<uuid>/, synced and closed)
    commit    check the lengths of the staged files; create the manifest of load n only if it does
              not exist; if it is unclear whether the manifest was created, read it and compare its
              uuid; delete the files that the load removes; move the staged files into place; delete
              the staging directory

`begin` need not look at every manifest. A loader begins load n + 1 only after it has finished all
moves up to load n. A staging directory is deleted only after the last move of its load. So only the
newest load, and loads with a staging directory, can have unfinished moves. If somebody deletes a
file of an older load, `begin` does not notice the loss, but a recount lists the file
(audit/recount/recount.py). If `begin` looked at every file of every load, each start would take
longer than the previous start.

Old manifests are deleted after a checkpoint (folding.py), when all moves of their loads are
finished. A loader may be stopped for so long that a checkpoint has meanwhile replaced the manifest
with the loader's load number. This loader has lost the race for the number, even if the store lets
the loader create the manifest (chain.py).

For each move, the loader looks first at the source, then at the target. If another loader moves the
file in between, this loader still finds the file at the target. If this loader looked first at the
target, it could miss the file at both places.

The load's number is part of the name of every file of rows, so no path is used twice. A file that a
load has removed never comes back, and any loader may delete it again at any time. In each
directory, a load first deletes the files that it removes, and then moves its own files into place.
So a reader that lists directories never sees a row twice, but it may miss rows between the two
steps.

The file `_SUCCESS`, which marks an hour as complete, always has the same path. A load that changes
rows of the hour first deletes this file. Suppose that a loader is stopped for long in the middle of
`finish`, and that another load meanwhile writes a new `_SUCCESS`. When the stopped loader
continues, it may delete this file. If the hour belongs to the last week, the next runs notice that
`_SUCCESS` is missing, and write it again. But the stopped loader cannot put an old `_SUCCESS` into
place, because the staged file is gone by then.

`load reload` replaces files that are gone or damaged. So when `begin` runs for `load reload`, it
raises no error if one of these files is gone or damaged.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Final

from skidway.errors import StateRefused
from skidway.loader.state import chain, layout
from skidway.loader.state.layout import NO_HOURS, Hours
from skidway.loader.state.live import KINDS, live
from skidway.loader.state.manifest import ROWS, Manifest
from skidway.loader.state.moves import Move, Settle, moves, settle
from skidway.loader.state.operations import (
    Create,
    Created,
    Delete,
    Length,
    Names,
    Read,
    Rename,
    Replace,
    Steps,
    Sync,
)

CREATE_ATTEMPTS: Final = 10
LOOKS_MAX: Final = 20
"""When the loader moves a file from the staging directory to its final path, it checks at most this
many times whether the file is at either of the two paths. It checks again only if another loader
has meanwhile changed something there."""


def begin(topic: str, given_up: Hours = NO_HOURS) -> Steps[Manifest | None]:
    """Moves into place all files of earlier loads that are still in staging directories. Returns
    the newest manifest, or None before the first load. given_up: the hours whose files the new
    load will replace (`load reload`). It is no error if these files are gone or damaged.

    Raises StateRefused in three cases: a manifest is missing or damaged; all manifests are gone
    although there are rows; or a committed file is neither at its source nor at its target, or does
    not have the committed length.
    """
    left: list[str] = yield Names(layout.stagings(topic))
    newest = yield from chain.newest_manifest(topic)
    if newest is None:
        newest = yield from _first(topic)
    if newest is None:
        return None
    for name, load, uuid in _decided(left, newest.number):
        manifest = newest
        if load < newest.number:
            try:
                manifest = yield from chain.read(topic, load)
            except chain.Folded:  # a checkpoint has replaced the manifest, so all moves are done
                yield Delete(f"{layout.stagings(topic)}/{name}")
                continue
        if manifest.uuid == uuid and load < newest.number:
            yield from finish(manifest, given_up)
        if load < newest.number or manifest.uuid != uuid:
            yield Delete(f"{layout.stagings(topic)}/{name}")
    yield from finish(newest, given_up)
    yield Delete(newest.staging)
    return newest


def _first(topic: str) -> Steps[Manifest | None]:
    """Looks again for the manifests of a topic that seemed to have none. Returns the newest
    manifest, or None if the topic has no rows either. Raises StateRefused if the topic has rows,
    but still no manifest."""
    visible: list[str] = yield Names(topic)
    if not any(map(layout.is_day_folder, visible)):
        return None
    # Another loader may have committed its first load just now.
    newest = yield from chain.newest_manifest(topic)
    if newest is None:
        raise StateRefused(
            f"{topic} has rows, but no manifest under {layout.state(topic)}: a first load would "
            "double them; restore the manifests, or set the rows aside"
        )
    return newest


def commit(manifest: Manifest) -> Steps[bool]:
    """Commits a load whose files are staged. Returns False if another loader has already committed
    this load number.

    Raises StateRefused in two cases: if a staged file does not have the length that its task wrote,
    although no other loader has committed this load number; or if the store does not create the
    manifest. In both cases, no staged file becomes visible.
    """
    wrong = yield from _wrong_length(manifest)
    lost = bool(wrong) and (yield from taken(manifest.topic, manifest.number))
    if wrong and not lost:
        raise StateRefused(wrong)
    yield Sync((manifest.staging,))
    mine = not lost and (yield from _create(manifest))
    if mine and (yield from chain.oldest_kept(manifest.topic)) > manifest.number:
        mine = False  # another load had this number long ago, and its manifest was deleted
    if mine:
        yield from finish(manifest)
    yield Delete(manifest.staging)
    return mine


def taken(topic: str, load: int) -> Steps[bool]:
    """Returns whether a load with this number is committed."""
    length: int | None = yield Length(layout.manifest(topic, load))
    return length is not None or (yield from chain.oldest_kept(topic)) > load


def is_lost(manifest: Manifest) -> Steps[bool]:
    """Returns whether another loader has committed the load number of this manifest."""
    winner = yield from _winner(manifest)
    if winner is not None and winner != manifest.uuid:
        return True
    return (yield from chain.oldest_kept(manifest.topic)) > manifest.number


def finish(manifest: Manifest, given_up: Hours = NO_HOURS) -> Steps[None]:
    """Deletes the files that a committed load removes, and moves into place those of the load's own
    files that are still in the staging directory. Any loader may do this, at any time.

    First moves the file that lists the columns, and then the files of rows, so that no reader of
    the directory finds a column that is not listed. Deletes the `_SUCCESS` of an hour before it
    moves the first file of the hour, and moves a new `_SUCCESS` into place after the last file. If
    the staged `_SUCCESS` is gone, another loader has already moved it.
    """
    if manifest.columns is not None:
        yield Replace(manifest.columns.staged, manifest.columns.path)
    removed, waiting = _by_folder(manifest.removed), moves(manifest)
    changed = {os.path.dirname(path): path for path in (yield from _unmarked(manifest))}
    targets = {os.path.dirname(move.target) for move in waiting}
    # The loop begins with the directories in which the load only deletes files. So when the load
    # has made its last move, nothing is left to delete.
    for folder in sorted({*removed, *changed}, key=lambda each: (each in targets, each)):
        if folder in changed:
            yield Delete(changed[folder])
        for path in removed.get(folder, ()):
            yield Delete(path)
        yield Sync((folder,))  # so that a power failure cannot bring deleted files back
        for move in waiting:
            if os.path.dirname(move.target) == folder:
                yield from _finish_move(manifest, move, given_up)
    for move in waiting:
        if os.path.dirname(move.target) not in {*removed, *changed}:
            yield from _finish_move(manifest, move, given_up)
    for each in manifest.success:
        yield Replace(each.staged, each.path)


def _decided(names: Sequence[str], newest: int) -> list[tuple[str, int, str]]:
    """Returns the staging directories whose load number has a manifest."""
    found = [(name, *parts) for name in names if (parts := layout.staging_of(name))]
    return [(name, load, uuid) for name, load, uuid in found if load <= newest]


def _wrong_length(manifest: Manifest) -> Steps[str]:
    for file in manifest.files:
        length: int | None = yield Length(file.staged)
        if length != file.length:
            return f"the staged file {file.staged} has {length} bytes instead of {file.length}"
    return ""


def _winner(manifest: Manifest) -> Steps[str | None]:
    """Returns the uuid of the load that was committed with the number of `manifest`; None if no
    load with this number is committed.
    """
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


def _finish_move(manifest: Manifest, move: Move, given_up: Hours) -> Steps[None]:
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
            case Settle.BOTH_GONE | Settle.STOP if source is None and given_up.covers(move.target):
                return
            case Settle.BOTH_GONE:
                if (yield from _is_removed(manifest, move.target)):
                    return
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


def _unmarked(manifest: Manifest) -> Steps[list[str]]:
    """Returns the `_SUCCESS` files that must be deleted before files are moved.

    For each hour, the load moves one file last. If this file is already moved, the load has
    finished its work in the hour's directory. If the directory then has a `_SUCCESS`, this load or
    a later load has put the file there, so the file must stay.
    """
    marked = {each.path: each.staged for each in manifest.success}
    rows = [each for each in manifest.files if each.kind == ROWS and layout.hour_of(each.path)]
    last = {layout.success(manifest.topic, layout.hour_of(x.path)): x.staged for x in rows} | marked
    paths = {*manifest.reopened} - marked.keys()
    for path, staged in last.items():
        left: int | None = yield Length(staged)
        if left is not None:
            paths.add(path)
    return sorted(paths)


def _by_folder(paths: Iterable[str]) -> dict[str, list[str]]:
    folders: dict[str, list[str]] = {}
    for path in paths:
        folders.setdefault(os.path.dirname(path), []).append(path)
    return folders


def _is_removed(manifest: Manifest, path: str) -> Steps[bool]:
    """Returns whether a later load has removed the file at `path`. Also returns True if a
    checkpoint has replaced the manifest, because then all moves of the manifest's load are done.
    """
    newest = yield from chain.newest_manifest(manifest.topic)
    if newest is None or newest.number <= manifest.number:
        return False
    if (yield from chain.oldest_kept(manifest.topic)) > manifest.number:
        return True
    return path not in (yield from live(newest, KINDS))

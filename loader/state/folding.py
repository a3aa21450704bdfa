"""Folds manifests: writes a checkpoint that replaces old manifests, and then deletes the old
manifests.

A checkpoint lists the files of the output after a load. After every `CHECKPOINT_EVERY` loads, a
loader writes a checkpoint of its newest load. If `keep` (the number of manifests to keep) is
smaller than `CHECKPOINT_EVERY`, the loader writes a checkpoint after every `keep` loads, but there
are at least `CHECKPOINT_EVERY_LEAST` loads between two checkpoints. The loader keeps at least the
newest `keep` manifests. It looks for the newest checkpoint that is older than all manifests that it
keeps, and deletes the manifests up to this checkpoint. So for each load whose manifest is kept, a
reader can still find the files that the output had after this load. A reload needs the tables
(tables.py) as they were after an old load. So a file of a table is kept as long as a kept manifest
lists it.

Two loaders may fold manifests at the same time, and may even fold the same manifests. If a load
fails to fold some manifests, a later load folds them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from uuid import uuid4

from skidway.loader.state import chain, checkpoint, layout
from skidway.loader.state.checkpoint import Checkpoint
from skidway.loader.state.live import KINDS, live
from skidway.loader.state.manifest import Manifest
from skidway.loader.state.operations import Create, Created, Delete, Names, Steps

CHECKPOINT_EVERY: Final = 100
CHECKPOINT_EVERY_LEAST: Final = 10
"""There are at least this many loads between two checkpoints, because a checkpoint lists all files
of the output and so may be large."""

DELETIONS_MAX: Final = 1000
"""One load deletes at most this many manifests. If somebody lowers `manifests.keep`, there may be
very many manifests that nobody needs any more."""


def fold(newest: Manifest, keep: int, every: int | None = None) -> Steps[bool]:
    """If a checkpoint is due, writes a checkpoint of the newest load, and then deletes the files
    that no reader needs any more. The caller must have moved all files of the newest load into
    place. keep: the least number of manifests that are kept. every: the number of loads from one
    checkpoint to the next; by default this number depends on `keep`. Returns whether it wrote a
    checkpoint.

    Raises Folded if other loaders have committed so many loads that a checkpoint has replaced the
    manifest of `newest`. Raises StateRefused if another manifest or a checkpoint that is needed is
    gone or damaged."""
    topic = newest.topic
    if every is None:
        every = min(CHECKPOINT_EVERY, max(CHECKPOINT_EVERY_LEAST, keep))
    known = yield from checkpoint.checkpoints(topic)
    if known and newest.number - known[-1].load < every:
        return False
    if newest.number < every:
        return False
    files = yield from live(newest, KINDS)
    due = Checkpoint(newest.number, _oldest(known, newest.number - keep))
    path = layout.checkpoint(topic, *due)
    scratch = layout.staging(topic, newest.number + 1, uuid4().hex)
    created: Created = yield Create(path, checkpoint.encode(topic, newest.number, files), scratch)
    yield Delete(scratch)
    yield from _delete(topic)
    return created is Created.YES


def _oldest(known: Iterable[Checkpoint], last: int) -> int:
    """Returns the number of the oldest manifest that must be kept. A checkpoint in `known` replaces
    all older manifests. Every manifest above `last` must be kept."""
    found = [1]
    for each in known:
        found.append(each.oldest)
        if each.load <= last:
            found.append(each.load + 1)
    return max(found)


def _delete(topic: str) -> Steps[None]:
    """Deletes the manifests, checkpoints and files of tables that nobody needs because a newer
    checkpoint replaces them."""
    known = yield from checkpoint.checkpoints(topic)
    oldest = max((each.oldest for each in known), default=1)
    begin = max((each.load for each in known if each.load < oldest), default=0)
    names: list[str] = yield Names(layout.state(topic))
    numbers = [each for each in map(layout.manifest_number, names) if each is not None]
    for number in sorted(each for each in numbers if each < oldest)[:DELETIONS_MAX]:
        yield Delete(layout.manifest(topic, number))
    for each in known:
        if each.load < begin:
            yield Delete(layout.checkpoint(topic, *each))
    if oldest > 1:
        kept = yield from chain.read(topic, oldest)
        yield from _delete_tables(kept)


def _delete_tables(kept: Manifest) -> Steps[None]:
    """Deletes files of the state's tables (tables.py) that are older than the oldest kept manifest
    `kept`, unless `kept` lists them. A manifest lists only new files and files that the manifest
    before it lists. So no manifest after `kept` lists a deleted file."""
    for table, paths in kept.side.items():
        folder = layout.tables(kept.topic, table)
        names: list[str] = yield Names(folder)
        for name in names:
            number = layout.table_number(name)
            if number is None or number >= kept.number or f"{folder}/{name}" in paths:
                continue
            yield Delete(f"{folder}/{name}")

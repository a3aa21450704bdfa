"""Finds the files of an output: the files that a manifest adds and that no later manifest
removes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from skidway.errors import StateRefused
from skidway.loader.state import chain, checkpoint
from skidway.loader.state.chain import LOOKS_MAX, Folded
from skidway.loader.state.checkpoint import Checkpoint
from skidway.loader.state.live_file import LiveFile, added
from skidway.loader.state.manifest import REJECTS, ROWS, Manifest
from skidway.loader.state.operations import Steps

KINDS = (ROWS, REJECTS)
"""The kinds of files that a checkpoint (checkpoint.py) lists. A checkpoint does not list the files
of the state's tables (tables.py), because each manifest lists all of them."""


def live(newest: Manifest, kinds: Collection[str] = (ROWS,)) -> Steps[Mapping[str, LiveFile]]:
    """Returns the files of these kinds, by path, that the output has after the newest manifest's
    load.

    Raises Folded if other loaders have meanwhile committed so many loads that a checkpoint has
    replaced the manifest `newest`. Raises StateRefused if a manifest is missing or damaged, or if a
    damaged checkpoint cannot be replaced."""
    for _ in range(LOOKS_MAX):
        try:
            found = yield from _live(newest)
        except Folded:
            if (yield from chain.oldest_kept(newest.topic)) > newest.number:
                raise
            continue  # another loader wrote a newer checkpoint, which is read now
        if found is not None:
            return {path: each for path, each in found.items() if each.file.kind in kinds}
    raise Folded(f"{newest.topic}: other loaders write checkpoints faster than they can be read")


def apply(found: dict[str, LiveFile], manifest: Manifest) -> None:
    """Changes `found` as the load of `manifest` changed the output: adds the load's files, and
    removes the files that the load removed."""
    for path in manifest.removed:
        found.pop(path, None)
    for file in manifest.files:
        if file.kind in KINDS:
            found[file.path] = added(manifest, file)


def _base(
    newest: Manifest, known: Sequence[Checkpoint], oldest: int
) -> Steps[tuple[dict[str, LiveFile] | None, int]]:
    """Returns the files of the newest usable checkpoint, and the number of the first load after
    this checkpoint. The files are None if the checkpoint was deleted meanwhile. If the newest
    checkpoint is damaged, an older one is used, provided that all manifests after the older
    checkpoint are kept. If there is no checkpoint to use, but all manifests are kept, returns no
    files and load 1. Raises StateRefused if a checkpoint is damaged, and neither an older
    checkpoint nor all manifests can replace it."""
    damaged: StateRefused | None = None
    for each in reversed(known):
        if each.load <= newest.number and (damaged is None or each.load + 1 >= oldest):
            try:
                return (yield from checkpoint.read(newest.topic, each)), each.load + 1
            except StateRefused as error:
                damaged = damaged or error
    if damaged is not None and oldest > 1:
        raise damaged
    return {}, 1


def _live(newest: Manifest) -> Steps[dict[str, LiveFile] | None]:
    """Returns the files that the output has after the newest load, by path. Returns None if another
    loader deleted the checkpoint before it was read."""
    known = yield from checkpoint.checkpoints(newest.topic)
    oldest = max((each.oldest for each in known), default=1)
    found, begin = yield from _base(newest, known, oldest)
    if found is None:
        return None
    if begin <= newest.number:
        for manifest in (yield from chain.read_all(newest.topic, begin, newest.number)):
            apply(found, manifest)
        apply(found, newest)
    return found

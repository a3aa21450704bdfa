"""Commits loads to a loader's output in memory. As in a real output, old manifests are replaced by
a checkpoint from time to time. Here a checkpoint is a file that lists the output's files up to one
load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from skidway.loader.state import checkpoint, layout, operations
from skidway.loader.state.checkpoint import Checkpoint
from skidway.loader.state.folding import fold
from skidway.loader.state.manifest import REJECTS, ROWS, DataFile, Manifest
from support.loading import WHOLE
from support.memory_store import MemoryStore

TOPIC = WHOLE.topic
KEEP, EVERY = 4, 2


def load(number: int, removed: Sequence[str] = ()) -> Manifest:
    """Returns the manifest of load number `number`. The load has a file of rows, a file of rejects
    and a file of marks (which say how far each log file is loaded). `removed` contains the paths of
    the files that the load removes from the output."""
    marks = layout.table(TOPIC, "marks", number)
    files = (
        DataFile(ROWS, f"{TOPIC}/rows-{number}", f"staged/{number}", 1, number, 0, 0),
        DataFile(REJECTS, f"rejects-{number}", f"staged/r{number}", 1, 1, 0, 0),
        DataFile("marks", marks, f"staged/m{number}", 1, 1, 0, 0),
    )
    first = (number - 1) // 3 * 3 + 1  # loads 1, 4, 7, ... write the marks of all files
    side = {"marks": tuple(layout.table(TOPIC, "marks", x) for x in range(first, number + 1))}
    return replace(
        WHOLE,
        number=number,
        files=files,
        removed=tuple(removed),
        side=side,
        columns=None,
        audit={"last": 9, "deltas": [], "bucket_ms": 60_000},
    )


def loaded(
    store: MemoryStore, manifest: Manifest, keep: int = KEEP, every: int = EVERY
) -> Manifest:
    """Commits a load whose files are all in their final places. If a checkpoint is due, writes it
    and deletes the old manifests. `keep` is the least number of manifests to keep. `every` is the
    number of loads between two checkpoints."""
    for file in manifest.files:
        store.put(file.path, b"x")
    store.put(manifest.path, manifest.to_json())
    operations.run(fold(manifest, keep, every), store)
    return manifest


def loads(store: MemoryStore, last: int) -> Manifest:
    for number in range(1, last + 1):
        newest = loaded(store, load(number, [f"{TOPIC}/rows-{number - 1}"] if number == 5 else ()))
    return newest


def manifests(store: MemoryStore) -> list[int]:
    names = map(layout.manifest_number, store.names(layout.state(TOPIC)))
    return [each for each in names if each is not None]


def checkpoints(store: MemoryStore) -> list[Checkpoint]:
    return operations.run(checkpoint.checkpoints(TOPIC), store)

"""Groups the batches of one fetch into runs, without I/O. The counter counts all batches of a run
together. If it counted each batch by itself, a batch of one record would cost as much as a batch of
hundreds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from skidway.audit.counter.continuity import Following, Step, at_batch
from skidway.kafka.batch import CorruptBatch, read_header
from skidway.kafka.columns import (
    TOGETHER_BYTES,
    HeaderColumns,
    UnpackedBatch,
    decode_headers,
    sound_batches,
    unpack,
)


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive batches of one partition. first, last: what to do with the first and the last
    batch (see Step); only `first` may have a gap. records: the records to count; None if no record
    must be counted."""

    first: Step
    last: Step
    records: HeaderColumns | None = None


def runs(following: Following, batches: Iterable[memoryview]) -> Iterator[Run]:
    """Yields the batches as runs, in order. If a batch stops the partition, its run is the last. If
    a batch is damaged, yields the run of the batches before it, and then raises CorruptBatch."""
    steps: list[Step] = []
    pending: list[UnpackedBatch] = []
    size = 0
    for raw in batches:
        try:
            step = at_batch(following, read_header(raw))
            batch = unpack(raw) if step.counts else None
        except CorruptBatch:
            yield from _together(steps, pending)
            raise
        if batch is None or step.gap is not None or size >= TOGETHER_BYTES:
            yield from _together(steps, pending)
            steps, pending, size = [], [], 0
        if batch is None:
            yield Run(step, step)
        else:
            steps.append(step)
            pending.append(batch)
            size += len(batch.payload)
        if step.stop:
            return
        following = step.following
    yield from _together(steps, pending)


def _together(steps: list[Step], batches: list[UnpackedBatch]) -> Iterator[Run]:
    """Yields the run of these batches. If there are no batches, yields nothing. If a batch is
    damaged, yields the run of the batches before it, and then raises CorruptBatch."""
    if not batches:
        return
    try:
        run, damage = Run(steps[0], steps[-1], decode_headers(batches)), None
    except CorruptBatch:
        count, damage = sound_batches(batches)
        if damage is None or count == 0:
            raise
        run = Run(steps[0], steps[count - 1], decode_headers(batches[:count]))
    yield run
    if damage is not None:
        raise damage

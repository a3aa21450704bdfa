"""Groups the batches of one fetch into runs, without I/O. The counter counts all batches of a run
together. If it counted each batch separately, a batch of one record would cost as much as a batch
of hundreds of records.

Only the first batch of a run needs the checks of module `continuity`, because every later batch of
the run begins where the batch before it ends. `unpack_run` decompresses the batches of a run
together. If the first batch fails a check of `unpack_run`, `unpack` decompresses this batch alone,
or raises an error that says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from skidway.audit.counter.continuity import Following, Step, at_batch, at_compacted, identity
from skidway.audit.counter.state import Position
from skidway.kafka.batch import CONTROL, TRANSACTIONAL, BatchHeader, CorruptBatch, read_header
from skidway.kafka.columns import (
    TOGETHER_BYTES,
    Bools,
    HeaderColumns,
    Taken,
    Workspace,
    decode_headers,
    decode_run,
    sound_batches,
    unpack,
    unpack_run,
)
from skidway.kafka.run_unpacking import Headers


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive batches of one partition. first, last: the `Step` of the first batch, and that of
    the last; only the first batch may come after a gap. records: the records to count; None if
    there are none. aborted: how many records of aborted transactions are left out."""

    first: Step
    last: Step
    records: HeaderColumns | None = None
    aborted: int = 0


class Runs:
    """Groups batches into runs. Only one thread uses this object."""

    def __init__(self) -> None:
        self._space = Workspace(2 * TOGETHER_BYTES)

    def of(self, following: Following, batches: Sequence[memoryview]) -> Iterator[Run]:
        """Yields the batches as runs, in order. following: how far the partition is counted. If the
        partition cannot be counted further, the last run says why (`Step.stop`). If a batch is
        damaged, yields the run of the batches before it, and then raises CorruptBatch."""
        ends = np.cumsum(np.array([len(raw) for raw in batches], np.int64))
        at, packed_bytes = 0, TOGETHER_BYTES
        while at < len(batches):
            header = read_header(batches[at])
            step = at_batch(following, header)
            if step.counts and not header.is_whole:
                decode_headers([unpack(batches[at])])  # raises CorruptBatch if it is damaged
                step = at_compacted(following, header)
            if not step.counts:
                yield Run(step, step)
                at += 1
            else:
                before = int(ends[at - 1]) if at else 0
                end = int(np.searchsorted(ends, before + packed_bytes, "right")) + 1
                taken = self._taken(batches[at:end])
                yield from _counted(step, taken, batches[at : at + max(len(taken.headers), 1)])
                packed_bytes = _packed_bytes(taken, packed_bytes)
                step = _last(step, taken)
                at += max(len(taken.headers), 1)
            if step.stop:
                return
            following = step.following

    def _taken(self, batches: Sequence[memoryview]) -> Taken:
        """Unpacks batches together, but none from which compaction has removed records. The first
        batch is whole."""
        taken = unpack_run(batches, TOGETHER_BYTES, self._space)
        whole = _whole_count(taken.headers)
        if whole < len(taken.headers):
            taken = unpack_run(batches[:whole], TOGETHER_BYTES, self._space)
        return taken


def _counted(step: Step, taken: Taken, batches: Sequence[memoryview]) -> Iterator[Run]:
    """Makes one run of the batches that `unpack_run` took (`taken`), or of the first batch alone if
    it took none, and yields this run. If a batch is damaged, yields a run of the batches before it,
    and then raises CorruptBatch."""
    if not len(taken.headers):
        yield Run(step, step, decode_headers([unpack(batches[0])]))
        return
    try:
        records = decode_run(taken.run)
    except CorruptBatch:
        alone = [unpack(raw) for raw in batches]
        count, damage = sound_batches(alone)
        if damage is None:
            raise
        if count:
            before = replace(taken, headers=taken.headers[:count])
            records = decode_headers(alone[:count])
            yield Run(step, _last(step, before), records, _aborted(before.headers))
        raise damage from None
    yield Run(step, _last(step, taken), records, _aborted(taken.headers))


def _last(step: Step, taken: Taken) -> Step:
    """Returns the `Step` of the last batch that `unpack_run` took. step: the `Step` of the first
    batch."""
    if len(taken.headers) < 2:
        return step
    last = BatchHeader._make(taken.headers[-1].item())
    return Step(Following(Position(last.last_offset + 1, identity(last))), counts=True)


def _whole_count(headers: Headers) -> int:
    """Returns how many batches come before the first one that lacks records."""
    is_control = headers["attributes"] & CONTROL != 0
    whole = is_control | _is_aborted(headers)
    whole |= headers["count"] == headers["last_offset_delta"] + 1
    return len(headers) if whole.all() else int(whole.argmin())


def _aborted(headers: Headers) -> int:
    return int((headers["last_offset_delta"][_is_aborted(headers)].astype(np.int64) + 1).sum())


def _is_aborted(headers: Headers) -> Bools:
    """Returns the same as `BatchHeader.is_aborted` for each batch."""
    kinds = headers["attributes"] & (TRANSACTIONAL | CONTROL)
    found: Bools = (headers["count"] == 0) & (kinds == TRANSACTIONAL)
    return found


def _packed_bytes(taken: Taken, tried: int) -> int:
    """Returns how many bytes of batches to pass to the next call of `unpack_run`: about as many as
    one call can unpack. If the caller passed more, `unpack_run` would check the remaining batches
    again in each call.
    """
    packed = int(taken.headers["length"].sum())
    unpacked = len(taken.run.payload)
    return min(TOGETHER_BYTES, packed * TOGETHER_BYTES // unpacked) if unpacked else tried

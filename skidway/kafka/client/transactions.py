"""What readers of committed records get in place of aborted transactions.

A broker that reads for such readers (isolation level READ_COMMITTED) returns no batch from the
first open transaction on. The end of what they may read is the *last stable offset*: where the
first open transaction begins, or the high watermark if none is open. Before this end, the broker
returns the batches of aborted transactions too, and lists these transactions. The reader must leave
out their records (KIP-98).

`committed` leaves the header of such a batch, without records, as Kafka's log cleaner does with a
batch whose records it has all removed. So no offset is missing between two batches, and every
reader knows how many records were aborted (`BatchHeader.is_aborted`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from skidway.kafka.batch import CorruptBatch, check, emptied, read_header


class OpenTransaction(NamedTuple):
    """Committed records of a partition can be read up to `offset` only, because a transaction is
    open there. since: when the broker first answered with this offset, in monotonic seconds."""

    offset: int
    since: float


def committed(
    batches: Sequence[memoryview], aborted: Sequence[tuple[int, int]] | None
) -> list[memoryview]:
    """Returns the batches, those of aborted transactions without their records.

    aborted: the aborted transactions that the broker listed, each as (producer id, first offset). A
    transaction ends at the next control batch of its producer. A damaged batch stays as it is,
    because its header may be wrong; whoever decodes it finds the damage.
    """
    if not aborted:
        return list(batches)
    begins = sorted(aborted, key=lambda each: each[1], reverse=True)
    producers: set[int] = set()
    found: list[memoryview] = []
    for raw in batches:
        header = read_header(raw)
        while begins and begins[-1][1] <= header.last_offset:
            producers.add(begins.pop()[0])
        if header.is_control:
            producers.discard(header.producer_id)
        elif header.is_transactional and header.producer_id in producers and _is_sound(raw):
            raw = memoryview(emptied(header))
        found.append(raw)
    return found


def _is_sound(raw: memoryview) -> bool:
    try:
        check(raw, 0, read_header(raw))
    except CorruptBatch:
        return False
    return True

"""Reads whole record batches of one partition, in order, with Skidway's own client."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from skidway.errors import Unreachable
from skidway.kafka.batch import BatchHeader, read_header
from skidway.kafka.client import Client, Fetcher
from skidway.kafka.types import TopicPartition

FETCH_BYTES: Final = 8 << 20
POLL_MS: Final = 500
FETCH_WAIT_MS: Final = 5
"""How long a broker holds a fetch for which it has no batch. When a caller has read all that it
wants, one more fetch is already on its way, and a broker answers the requests of a connection one
after the other (https://kafka.apache.org/protocol#protocol_network). So a long wait would delay
what the caller reads next: half a second for every partition without new records.
"""
SILENCE_MAX_S: Final = 60.0
"""At most this many seconds may pass without a batch from a broker. Callers read only offsets below
the high watermark, where the broker always has a batch. So if no batch comes for a longer time,
something is wrong with the broker.
"""


def batches(
    client: Client, tp: TopicPartition, first: int, *, max_bytes: int = FETCH_BYTES
) -> Iterator[memoryview]:
    """Yields batches without end. The first batch is the one that contains offset `first`. If no
    batch contains this offset, the first batch is the next batch after this offset.

    Raises Unreachable after `SILENCE_MAX_S` without a batch. Also raises the errors of the client.
    """
    fetcher = Fetcher(client, max_bytes=max_bytes, max_wait_ms=FETCH_WAIT_MS)
    fetcher.seek(tp, first)
    heard = time.monotonic()
    try:
        while True:
            for fetched in fetcher.poll(POLL_MS):
                for batch in fetched.batches:
                    yield batch
                    heard = time.monotonic()  # the caller's work is not a time of silence
            if time.monotonic() - heard > SILENCE_MAX_S:
                raise Unreachable(
                    f"{tp}: no batch at offset {fetcher.positions.get(tp, first)} for "
                    f"{SILENCE_MAX_S:.0f} s, although the watermark is above it"
                )
    finally:
        fetcher.remove(tp)


def header_at(client: Client, tp: TopicPartition, offset: int) -> BatchHeader:
    """Returns the header of the batch that contains `offset`. If no batch contains this offset,
    returns the header of the next batch. `offset` must be below the high watermark."""
    return read_header(next(batches(client, tp, offset, max_bytes=1)))

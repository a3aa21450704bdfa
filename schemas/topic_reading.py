"""Reads ranges of offsets of topics as columns, for commands that inspect records. Limits the
memory, and the time for which it waits for an answer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Final

from skidway.errors import Unreachable
from skidway.kafka.batch import BatchHeader, read_header
from skidway.kafka.client import Client, Fetcher
from skidway.kafka.columns import DecodedRecords, decode
from skidway.kafka.types import TopicPartition

SILENT_S: Final = 30.0
"""Reading ends with `Unreachable` after this many seconds without an answer."""
POLL_MS: Final = 500

MAX_BYTES: Final = 8 * 1024 * 1024
"""A response has at most this many bytes. Only a response with a single batch may be larger."""

Range = tuple[int, int]
"""The first offset of a range, and the offset after its last record."""


def read_ranges(
    client: Client, ranges: Mapping[TopicPartition, Range]
) -> Iterator[tuple[TopicPartition, DecodedRecords]]:
    """Yields every batch, except control batches, that has records of these ranges. A batch is
    yielded whole, so it may also have records outside the ranges. Raises `Unreachable` if nothing
    arrives for `SILENT_S` seconds."""
    for tp, header, raw in read_batches(client, ranges):
        if not header.is_control:
            yield tp, decode(raw)


def read_batches(
    client: Client, ranges: Mapping[TopicPartition, Range], max_bytes: int = MAX_BYTES
) -> Iterator[tuple[TopicPartition, BatchHeader, memoryview]]:
    """Yields every batch that has records of these ranges, with its header, but does not decode the
    records. max_bytes: a response with several batches has at most this many bytes. Raises
    `Unreachable` if nothing arrives for `SILENT_S` seconds."""
    fetcher = Fetcher(client, max_bytes=max_bytes)
    left = {tp: end for tp, (first, end) in ranges.items() if first < end}
    for tp in left:
        fetcher.seek(tp, ranges[tp][0])
    heard_at = time.monotonic()
    while left:
        for fetched in fetcher.poll(POLL_MS):
            for raw in fetched.batches:
                header = read_header(raw)
                if fetched.tp in left:
                    yield fetched.tp, header, raw
                if header.last_offset + 1 >= left.get(fetched.tp, 0):
                    left.pop(fetched.tp, None)
                    fetcher.remove(fetched.tp)
            heard_at = time.monotonic()
        if left and time.monotonic() - heard_at > SILENT_S:
            raise Unreachable(f"{next(iter(left))} gave nothing for {SILENT_S:g} s.")

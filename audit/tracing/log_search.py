"""Finds records in batches, by a point (a byte of a file) or by an offset. Does no I/O.

All records of an agent's batch come from this agent, and a producer id belongs to one producer
only. So the search for a point decompresses one batch of each producer. If this batch does not come
from the agent of the point, the search skips the producer's further batches (see the package's
docstring).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from skidway.audit.tracing.lines import LineRecord, Point
from skidway.kafka.batch import NO_PRODUCER_ID, BatchHeader
from skidway.kafka.columns import (
    HeaderColumns,
    UnpackedBatch,
    decode_batches,
    decode_headers,
    last_origin,
    unpack,
)
from skidway.kafka.origin import Origin

NOBODY: Final = -1
"""Stands for the agent id of a producer that is not an agent."""


class LogSearch:
    """Takes batches, and returns the records whose lines include a point."""

    def __init__(self, point: Point) -> None:
        self._point = point
        self._agents: dict[tuple[str, int], int] = {}

    def take(
        self, topic: str, partition: int, header: BatchHeader, raw: memoryview
    ) -> list[LineRecord]:
        """Returns the records of this batch whose lines include the point. Raises CorruptBatch."""
        producer = (topic, header.producer_id)
        known = self._agents.get(producer, self._point.agent)
        if header.is_control or known != self._point.agent:
            return []
        batch = unpack(raw)
        last = last_origin(batch)
        agent = NOBODY if last is None else last.agent
        if header.producer_id != NO_PRODUCER_ID:
            self._agents[producer] = agent
        return self._records(topic, partition, batch) if agent == self._point.agent else []

    def _records(self, topic: str, partition: int, batch: UnpackedBatch) -> list[LineRecord]:
        columns = decode_headers([batch])
        origins = columns.origins
        if origins is None:
            return []
        agent, file, byte = self._point
        end = origins.first + np.maximum(origins.length, 1)
        is_of_file = (origins.agent == agent) & (origins.file == file) & columns.has_origin
        rows = np.flatnonzero(is_of_file & (origins.first <= byte) & (byte < end))
        return _records_of(topic, partition, batch, columns, rows.tolist())


def record_at(batch: UnpackedBatch, topic: str, partition: int, offset: int) -> LineRecord | None:
    """The record at an offset; None if the batch does not have it."""
    columns = decode_headers([batch])
    rows = np.flatnonzero(columns.offsets == offset).tolist()
    return next(iter(_records_of(topic, partition, batch, columns, rows)), None)


def _records_of(
    topic: str, partition: int, batch: UnpackedBatch, columns: HeaderColumns, rows: list[int]
) -> list[LineRecord]:
    if not rows:
        return []
    values = decode_batches([batch]).values
    return [
        LineRecord(
            topic, partition, int(columns.offsets[row]), int(columns.timestamps[row]),
            _origin(columns, row), values[row].as_py(),
        )
        for row in rows
    ]  # fmt: skip


def _origin(columns: HeaderColumns, row: int) -> Origin | None:
    each = columns.origins
    if each is None or not columns.has_origin[row]:
        return None
    return Origin(*(int(part[row]) for part in (each.agent, each.file, each.first, each.length)))

"""Finds the records of certain agents in batches, by a text or by points (bytes of files). Does no
I/O.

All records of an agent's batch come from this agent, and a producer id belongs to one producer
only. So the search decompresses one batch of each producer. If this batch does not come from one of
the wanted agents, the search skips the producer's further batches (see the package's docstring).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skidway.audit.tracing.lines import LineRecord, Point
from skidway.kafka.batch import NO_PRODUCER_ID, BatchHeader
from skidway.kafka.columns import (
    Bools,
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
    """Takes batches, and returns the records of `agents` that match. A record matches if it has the
    text, and an event time in [since_ms, until_ms). It also matches if the bytes of its line
    include one of the points (bytes of log files), whatever its event time is. But a batch whose
    records are all older than `since_ms` is not searched.

    seen: how many records the decompressed batches had. skipped: how many records were skipped
    without reading them, because their producer is not one of `agents`. begun: for each file with a
    point, the least position at which a record with an event time in [since_ms, until_ms)
    begins."""

    def __init__(
        self,
        agents: Collection[int],
        *,
        text: bytes | None = None,
        points: Iterable[Point] = (),
        since_ms: int = 0,
        until_ms: int | None = None,
    ) -> None:
        self._wanted = frozenset(agents)
        self._text = text
        self._points: dict[tuple[int, int], list[int]] = {}
        for point in points:
            self._points.setdefault((point.agent, point.file), []).append(point.byte)
        self._since_ms, self._until_ms = since_ms, until_ms
        self._agents: dict[tuple[str, int], int] = {}
        self.seen = self.skipped = 0
        self.begun: dict[tuple[int, int], int] = {}

    def take(
        self, topic: str, partition: int, header: BatchHeader, raw: memoryview
    ) -> list[LineRecord]:
        """Returns the records of this batch that match the search (see the class). Raises
        CorruptBatch."""
        if header.is_control or header.max_timestamp < self._since_ms:
            return []
        producer = (topic, header.producer_id)
        known = self._agents.get(producer)
        if known is not None and known not in self._wanted:
            self.skipped += header.count
            return []
        batch = unpack(raw)
        last = last_origin(batch)
        agent = NOBODY if last is None else last.agent
        if header.producer_id != NO_PRODUCER_ID:
            self._agents[producer] = agent
        self.seen += batch.count
        return self._records(topic, partition, batch) if agent in self._wanted else []

    def _records(self, topic: str, partition: int, batch: UnpackedBatch) -> list[LineRecord]:
        has_text = self._text is not None and batch.payload.find(self._text) >= 0
        if not has_text and not self._points:
            return []
        columns = decode_headers([batch])
        is_meant = self._is_in_time(columns)
        chosen = self._has_point(columns, is_meant) if self._points else np.zeros_like(is_meant)
        if not has_text and not chosen.any():
            return []
        values = decode_batches([batch]).values
        if has_text:
            chosen |= is_meant & has_bytes(values, self._text or b"")
        return [
            _record(topic, partition, columns, values, int(row)) for row in np.flatnonzero(chosen)
        ]

    def _is_in_time(self, columns: HeaderColumns) -> Bools:
        times = columns.timestamps
        is_early = times < self._until_ms if self._until_ms is not None else True
        return np.asarray((times >= self._since_ms) & is_early & columns.has_origin)

    def _has_point(self, columns: HeaderColumns, is_meant: Bools) -> Bools:
        """Returns, for each record, whether its bytes include one of the points, whatever its event
        time is. is_meant: for each record, whether its event time is in [since_ms, until_ms). Also
        updates the attribute `begun` with the records for which `is_meant` is true."""
        chosen = np.zeros(len(columns.offsets), np.bool_)
        origins = columns.origins
        if origins is None:
            return chosen
        for (agent, file), bytes_ in self._points.items():
            is_of_file = (origins.agent == agent) & (origins.file == file) & columns.has_origin
            if not is_of_file.any():
                continue
            in_time = is_of_file & is_meant
            if in_time.any():
                begin = int(origins.first[in_time].min())
                self.begun[agent, file] = min(begin, self.begun.get((agent, file), begin))
            for byte in bytes_:
                end = origins.first + np.maximum(origins.length, 1)
                chosen |= is_of_file & (origins.first <= byte) & (byte < end)
        return chosen


def has_bytes(values: pa.BinaryArray, text: bytes) -> Bools:
    """For each value, whether it contains these bytes; false for a null."""
    found = pc.fill_null(pc.match_substring(values, text), False)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


class DecodedBatch:
    """The records of one batch, decoded once for several calls of `record_at`."""

    def __init__(self, batch: UnpackedBatch) -> None:
        self._columns = decode_headers([batch])
        self._values = decode_batches([batch]).values

    def record_at(self, topic: str, partition: int, offset: int) -> LineRecord | None:
        """The record at an offset; None if the batch does not have it."""
        rows = np.flatnonzero(self._columns.offsets == offset)
        if not len(rows):
            return None
        return _record(topic, partition, self._columns, self._values, int(rows[0]))


def _record(
    topic: str, partition: int, columns: HeaderColumns, values: pa.BinaryArray, row: int
) -> LineRecord:
    origin = None
    if columns.origins is not None and columns.has_origin[row]:
        each = columns.origins
        parts = (each.agent, each.file, each.first, each.length)
        origin = Origin(*(int(part[row]) for part in parts))
    return LineRecord(
        topic, partition, int(columns.offsets[row]), int(columns.timestamps[row]), origin,
        values[row].as_py(),
    )  # fmt: skip

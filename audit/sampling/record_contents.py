"""Finds the records of sampled lines in batches, and computes their content sums, without I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from skidway.audit.counts.content import content_sums
from skidway.audit.sampling.wanted import Found, Span
from skidway.kafka.batch import NO_PRODUCER_ID, BatchHeader
from skidway.kafka.columns import decode_batches, decode_headers, last_origin, unpack
from skidway.schemas import wire

Ids = Mapping[Span, int]
"""For each span (a range of bytes in a log file), the schema id of its records."""

NOBODY: Final = -1


class RecordContents:
    """Takes batches, and yields those records that were made from lines in one of the spans (ranges
    of bytes in log files). Remembers to which agent each producer id belongs. If a producer id
    belongs to an agent that has no span, or to a program that is not an agent, its further batches
    are skipped without decompressing them (see audit/tracing).
    """

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._wanted = {span.agent for span in ids}
        self._agents: dict[tuple[str, int], int] = {}

    def take(
        self, topic: str, partition: int, header: BatchHeader, raw: memoryview
    ) -> Iterator[tuple[Span, Found]]:
        """Yields those records of this batch that were made from sampled lines, each with the span
        in which its line begins. Raises CorruptBatch.
        """
        producer = topic, header.producer_id
        if header.is_control or self._agents.get(producer, NOBODY) not in {NOBODY, *self._wanted}:
            return
        batch = unpack(raw)
        if header.producer_id != NO_PRODUCER_ID:
            last = last_origin(batch)
            self._agents[producer] = NOBODY - 1 if last is None else last.agent
        origins = (columns := decode_headers([batch])).origins
        if origins is None:
            return
        for span, schema_id in self._ids.items():
            is_in = (origins.agent == span.agent) & (origins.file == span.file)
            is_in &= (span.begin <= origins.first) & (origins.first < span.end)
            rows = np.flatnonzero(is_in & columns.has_origin)
            if not len(rows):
                continue
            values = decode_batches([batch]).values.take(pa.array(rows))
            ids, datums = wire.split(values)
            times, lengths = columns.timestamps[rows], origins.length[rows]
            sums = content_sums(times, lengths, datums)
            for at, row in enumerate(rows.tolist()):
                content = sums[at] if int(ids[at]) == schema_id else b""
                yield (
                    span,
                    Found(
                        int(origins.first[row]),
                        int(lengths[at]),
                        int(times[at]),
                        partition,
                        int(columns.offsets[row]),
                        topic,
                        content,
                        datum=datums[at].as_py() or b"",
                    ),
                )

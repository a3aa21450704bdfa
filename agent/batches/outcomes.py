"""Counts, for each reading, the bytes that were delivered, rejected, or left out by rules."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skidway.agent.batches.filtered import Filtered
from skidway.agent.batches.records import Records
from skidway.agent.values.intents import Reading
from skidway.agent.values.tracked import ReadingOutcome
from skidway.audit.counts.counts import Counts
from skidway.kafka.source import Source


def outcomes(
    agent: int,
    readings: Sequence[Reading],
    streams: Sequence[tuple[Source, Records]],
    sources: tuple[Source, Source],
    bucket_ms: int,
    filtered: Filtered | None,
) -> list[ReadingOutcome]:
    """Makes one outcome for each reading: how many of its bytes were delivered, rejected, or left
    out. `Records.owner` (for each row, the index of its reading) is sorted, so the rows of each
    reading are adjacent."""
    outcomes = []
    for index in range(len(readings)):
        counts = Counts(bucket_ms)
        delivered = refused = 0
        for source, records in streams:
            begin, end = np.searchsorted(records.owner, [index, index + 1])
            if begin == end:
                continue
            rows = slice(int(begin), int(end))
            origins = records.origins(agent, rows)
            counts.add(source, records.times[rows], origins)
            if source == sources[1]:
                refused += int(origins.length.sum())
            else:
                delivered += int(origins.length.sum())
        left_out = 0
        if filtered is not None:
            begin, end = np.searchsorted(filtered.owner, [index, index + 1])
            left_out = filtered.of(int(begin), int(end)).count(counts, sources[0], agent)
        outcomes.append(ReadingOutcome(delivered, refused, counts, left_out))
    return outcomes

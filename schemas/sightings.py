"""Finds which schema ids occur in the newest records of topics, which agents wrote these records,
and the newest timestamp of the records with each id.

The 5 bytes before a key or a value say with which schema the key or value was written. A record of
one of our agents also says which agent wrote it. So an id that is found here is in use. An id that
is not found may be in use, too, for example by a program that has written nothing lately.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from skidway.kafka.client import EARLIEST, LATEST, Client
from skidway.kafka.columns import DecodedRecords
from skidway.kafka.types import TopicPartition
from skidway.schemas import wire
from skidway.schemas.topic_reading import Range, read_ranges

AGENTS_MAX: Final = 1000
"""When a `Sighting` (one schema id in the keys, or in the values, of one partition) has at least
this many agents, no further agents are added to it. So the `Sighting` may lack some agents that
write to the topic."""


@dataclass(slots=True)
class Sighting:
    """One schema id that was found in a partition. The fields describe the records that have the
    schema id `id` in their `part` ("key" or "value"). `newest_ms` is the newest event time of these
    records."""

    tp: TopicPartition
    part: str
    id: int
    records: int = 0
    newest_ms: int = 0
    last_offset: int = -1
    agents: set[int] = field(default_factory=set)


@dataclass(slots=True)
class Sightings:
    """The schema ids that were found, and how many records of how many partitions were searched."""

    found: dict[tuple[TopicPartition, str, int], Sighting] = field(default_factory=dict)
    partitions: int = 0
    records: int = 0

    def add(self, tp: TopicPartition, batch: DecodedRecords, looked_at: Range) -> None:
        """Counts the schema ids in those records of a batch that are within the range
        `looked_at`."""
        rows = (batch.offsets >= looked_at[0]) & (batch.offsets < looked_at[1])
        self.records += int(rows.sum())
        for part, column in (("key", batch.keys), ("value", batch.values)):
            self._add_part(tp, part, batch, rows, _ids(column))

    def _add_part(
        self, tp: TopicPartition, part: str, batch: DecodedRecords, rows: Any, ids: Any
    ) -> None:
        for schema_id in np.unique(ids[rows & (ids >= 0)]).tolist():
            mine = rows & (ids == schema_id)
            place = (tp, part, schema_id)
            seen = self.found.setdefault(place, Sighting(tp, part, schema_id))
            seen.records += int(mine.sum())
            seen.newest_ms = max(seen.newest_ms, int(batch.timestamps[mine].max()))
            seen.last_offset = max(seen.last_offset, int(batch.offsets[mine].max()))
            if batch.origins is not None and len(seen.agents) < AGENTS_MAX:
                agents = batch.origins.agent[mine & batch.has_origin]
                seen.agents.update(np.unique(agents).tolist())


def look(client: Client, partitions: Iterable[TopicPartition], records_max: int) -> Sightings:
    """Returns the schema ids that occur in the records within the last `records_max` offsets of
    each partition."""
    ranges = newest(client, partitions, records_max)
    made = Sightings(partitions=len(ranges))
    for tp, batch in read_ranges(client, ranges):
        made.add(tp, batch, ranges[tp])
    return made


def newest(
    client: Client, partitions: Iterable[TopicPartition], records_max: int
) -> Mapping[TopicPartition, Range]:
    """Returns the range of the last `records_max` offsets of each partition."""
    known = list(partitions)
    first = client.list_offsets(dict.fromkeys(known, EARLIEST))
    end = client.list_offsets(dict.fromkeys(known, LATEST))
    return {
        tp: (max(first[tp].offset, end[tp].offset - records_max), end[tp].offset) for tp in known
    }


def _ids(column: pa.BinaryArray) -> Any:
    ids, _ = wire.split(column)
    return ids

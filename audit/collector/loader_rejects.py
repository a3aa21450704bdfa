"""For a topic, reads one of the records that the loader rejected, as an example.

The loader reports each load in a note (a message to the audit that changes no verdict). The note
names one record that the load rejected: hour of event time, partition and offset. This module reads
the record from the topic itself. The record's text is shown only if an agent has sent the record,
because then the agent's rules (`shape`) have masked, hashed and removed fields before the record
was made. Nobody knows what other programs put into a record, so their records are never shown.

If the topic was deleted and made again, the offset may hold another record. If the hour of that
record differs from the hour in the note, there is no example.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from skidway.audit.topic.load_note import KIND, RejectedRecord, load_of
from skidway.audit.topic.notes import Note
from skidway.audit.tracing.logs import ONE_BATCH, SiteCluster, topic_here
from skidway.kafka.client import Client
from skidway.kafka.columns import DecodedRecords, decode
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition
from skidway.schemas.consuming.rejected_examples import RejectedExample, shown_text
from skidway.schemas.topic_reading import read_batches

BY_LOADER: Final = "rejected by the loader"
HOUR_MS: Final = 3_600_000


def newest(notes: Iterable[Note]) -> dict[Source, RejectedRecord]:
    """Returns for each topic the rejected record that the loader named in its newest note about a
    load with rejects."""
    found: dict[Source, RejectedRecord] = {}
    for note in sorted((x for x in notes if x.kind == KIND), key=lambda x: (x.time_ms, x.number)):
        load = load_of(note)
        if load is not None and load.rejected is not None:
            found[load.source] = load.rejected
    return found


def example(client: Client, source: Source, record: RejectedRecord) -> RejectedExample | None:
    """Reads the record that a loader named, and returns it with its text. Returns None if the
    brokers do not have the record any more, if no agent has sent it, or if its hour differs from
    the hour that the loader named. Raises Unreachable, KafkaError or CorruptBatch if the record
    cannot be read."""
    topic = topic_here(client, source)
    if topic is None or not _has_partition(client, topic, record.partition):
        return None
    tp, offset = TopicPartition(topic, record.partition), record.offset
    first, readable, _ = SiteCluster(client, source.cluster).span(tp)
    if not first <= offset < readable:
        return None
    for _, header, raw in read_batches(client, {tp: (offset, offset + 1)}, ONE_BATCH):
        if not header.is_control and header.base_offset <= offset <= header.last_offset:
            return _shown(tp, record, decode(raw))
    return None


def _has_partition(client: Client, topic: str, partition: int) -> bool:
    found = client.metadata([topic]).topics.get(topic)
    return found is not None and partition in {x.index for x in found.partitions}


def _shown(
    tp: TopicPartition, record: RejectedRecord, batch: DecodedRecords
) -> RejectedExample | None:
    for row in np.flatnonzero((batch.offsets == record.offset) & batch.has_origin).tolist():
        time_ms = int(batch.timestamps[row])
        if batch.origins is not None and time_ms - time_ms % HOUR_MS == record.hour_ms:
            first = int(batch.origins.first[row])
            text = shown_text(batch.values[row].as_py() or b"")
            return RejectedExample(tp, record.offset, time_ms, BY_LOADER, "", "", "", first, text)
    return None

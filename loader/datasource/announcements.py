"""Finds host and path of log files, in the announcements on the audit topic.

If a query wants hosts or paths, each Python worker reads the audit topic once from its first
message on, and later reads only new messages. The worker keeps in memory the host and path of every
log file whose announcement it has read: about 320 MB for a million files. The worker also fetches
the audit topic's other messages, but does not decode them.

An agent announces a file before it sends the file's first record. So if a worker reads the audit
topic after a range was planned, the worker knows the files of all records of the range. But if an
announcement has expired, or is not mirrored yet, host and path are null.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import pyarrow as pa

from skidway.audit.counts.marks import FileKey
from skidway.audit.topic import topic
from skidway.audit.topic.messages import TOPIC, MessageRefused, announcement_in
from skidway.clock import Clock
from skidway.kafka.client import Client, Fetcher
from skidway.kafka.connection import KafkaConnection
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition
from skidway.loader.datasource.subscription import id_in
from skidway.loader.reading.columns import Records
from skidway.loader.slices.locations import locate
from skidway.loader.state.tables import Location
from skidway.rare_lines import RareLines

CLUSTERS_MAX = 4
"""A worker keeps in memory the announcements of at most this many clusters."""

_unreadable = RareLines("announcement_unreadable")


class Announcements:
    """Knows host and path of the log files that are announced in one cluster, as far as this worker
    has read the announcements."""

    def __init__(self) -> None:
        self._files: dict[FileKey, Location] = {}
        self._hosts: dict[str, str] = {}
        self._positions: dict[tuple[TopicPartition, str], int] = {}

    def read_on(self, client: Client, sources: Iterable[Source], clock: Clock) -> None:
        """Reads, up to the present high watermarks, the audit topics on which the log files of
        these sources are announced. If an audit topic was deleted and created again, reads the
        topic from its start."""
        names = {TOPIC, *(f"{each.cluster}.{TOPIC}" for each in sources if each.cluster)}
        cluster = client.metadata(sorted(names))
        keys, ranges = {}, {}
        for tp, (first, end) in topic.bounds(client, names).items():
            keys[tp] = (tp, id_in(cluster, tp.topic))
            position = self._positions.get(keys[tp], 0)
            ranges[tp] = (max(position, first) if position <= end else first, end)
        for record in topic.read(client, Fetcher(client), ranges, clock):
            self._take(record.tp, record.offset, record.value)
        self._positions |= {keys[tp]: end for tp, (_, end) in ranges.items()}

    def columns(self, records: Records) -> tuple[pa.Array, pa.Array]:
        """Returns the columns `_host` and `_file` of these records."""
        located = locate(records.origins, self._files, frozenset(), patient=False)
        return located.columns(np.arange(len(records)))

    def _take(self, tp: TopicPartition, offset: int, value: bytes) -> None:
        try:
            message = announcement_in(value)
        except MessageRefused as error:
            _unreadable.tell(tp, topic=tp.topic, offset=offset, reason=str(error))
            return
        if message is not None:
            host = self._hosts.setdefault(message.host, message.host)
            self._files.setdefault((message.agent, message.file), (host, message.path))


@lru_cache(maxsize=CLUSTERS_MAX)
def announcements_of(_kafka: KafkaConnection) -> Announcements:
    """Returns the announcements that this process has read from this cluster."""
    return Announcements()

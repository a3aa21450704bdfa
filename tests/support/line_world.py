"""A site in memory, for tests that look for single lines. The site has two clusters, the audit's
ledger (the collector's store of messages), an output with Parquet files, and the log files of a
host. It uses no sockets and no threads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skidway.audit.evidence.ledger import Ledger
from skidway.audit.output.local import LocalOutput
from skidway.audit.topic.messages import Announcement, Delta, Message, encode
from skidway.audit.tracing.host_files import HostState
from skidway.audit.tracing.logs import BROKER, MIRROR, Ranges, SiteCluster
from skidway.audit.tracing.site import Site
from skidway.kafka import columns
from skidway.kafka.batch import BatchHeader, read_header, seal, stamp
from skidway.kafka.client import Client
from skidway.kafka.columns import Origins
from skidway.kafka.types import TopicPartition
from support.audit_senders import LOGS
from support.clock import ManualClock
from support.memory_kafka import MemoryClient, MemoryCluster

HOUR_MS = 3_600_000
NOW_MS = 100 * HOUR_MS
HOST, PATH = "web1", "/var/log/app.log"
AGENT, FILE, OTHER_AGENT = 7, 3, 8
NAMES = {"dc1": "logs", "offline": "dc1.logs"}


def batch(
    lines: Sequence[bytes], *, first: int = 0, agent: int = AGENT, file: int = FILE,
    time_ms: int = NOW_MS, producer_id: int = -1,
) -> bytearray:  # fmt: skip
    """Returns a record batch as an agent sends it. The lines of the batch follow each other in the
    log file, from byte `first` on."""
    lengths = np.array([len(line) + 1 for line in lines], np.int64)
    starts = first + np.cumsum(lengths) - lengths
    count = len(lines)
    origins = Origins(
        np.full(count, agent, np.int64), np.full(count, file, np.int64), starts, lengths
    )
    values = pa.array(list(lines), pa.binary())
    times = np.full(count, time_ms, np.int64)
    encoded = columns.encode(values, times, origins=origins)
    is_idempotent = producer_id >= 0
    return bytearray(seal(encoded, producer_id, 0 if is_idempotent else -1, -1))


class LineWorld:
    """The site. `host` gives access to the state of the agent on the site's host."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clusters = {name: MemoryCluster(name) for name in NAMES}
        for name, topic in NAMES.items():
            self.clusters[name].create(topic)
            self.clusters[name].create(f"{topic}.rejected")
        self.messages: list[Message] = []
        self.host: HostState | None = None
        self._loads: dict[str, int] = {}

    def announce(
        self, *, file: int = FILE, path: str = PATH, agent: int = AGENT,
        time_ms: int = NOW_MS - 1_000,
    ) -> None:  # fmt: skip
        self.messages.append(
            Announcement(
                time_ms, agent, file, HOST, path, 1, file, b"x" * 32, 1_024, LOGS,
                born_ns=file,
            )
        )  # fmt: skip

    def say(self, *deltas: Delta) -> None:
        self.messages += deltas

    def append(self, data: bytearray, *, only: str | None = None, suffix: str = "") -> int:
        """Appends a batch to the topic in dc1 and to its mirror, or only in the cluster `only`.
        `suffix` is added to the topic's name. Returns the batch's base offset."""
        base = -1
        for name, topic in NAMES.items():
            if only in (None, name):
                log = self.clusters[name].log(TopicPartition(topic + suffix, 0))
                here = bytearray(data)
                stamp(here, 0, log.end, 0)
                log.batches.append(here)
                base, log.end = log.end, log.end + read_header(here).count
        return base

    def load(
        self, *lines: tuple[int, bytes], offset: int, agent: int = AGENT, file: int = FILE,
        time_ms: int = NOW_MS, suffix: str = "",
    ) -> str:  # fmt: skip
        """Commits a load that wrote one Parquet file with these lines. Each line is given as the
        position of its first byte in the log file, and its text. Returns the path of the Parquet
        file."""
        topic = f"{NAMES['offline']}{suffix}"
        number = self._loads[topic] = self._loads.get(topic, 0) + 1
        hour = f"dt=1970-01-{1 + time_ms // (24 * HOUR_MS):02}/hour={time_ms // HOUR_MS % 24:02}"
        path = f"{topic}/{hour}/part-{number}-0-{offset}.parquet"
        count = len(lines)
        table = pa.table(
            {
                "message": [text.decode() for _, text in lines],
                "_agent": np.full(count, agent),
                "_file_id": np.full(count, file),
                "_offset": [first for first, _ in lines],
                "_length": [len(text) + 1 for _, text in lines],
                "_host": [HOST] * count,
                "_file": [PATH] * count,
                "_timestamp": pa.array([time_ms] * count).cast(pa.timestamp("ms", "UTC")),
                "_partition": pa.array([0] * count, pa.int32()),
                "_kafka_offset": list(range(offset, offset + count)),
            }
        )
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, self.root / path)
        named = {
            "path": path, "staged": path, "kind": "rows", "length": 1, "crc32c": 1, "rows": count,
            "checksum": 1,
        }  # fmt: skip
        manifest = {
            "format": 1, "number": number, "producer": "/out", "created": NOW_MS + 5_000,
            "source": {
                "cluster": "dc1", "cluster_id": "cid", "topic": f"logs{suffix}", "topic_id": "tid",
            },
            "partitions": [{"partition": 0, "first": offset, "end": offset + count}],
            "files": [named], "removed": [], "audit": {"bucket_ms": 60_000, "deltas": []},
        }  # fmt: skip
        state = self.root / "_skidway" / topic
        state.mkdir(parents=True, exist_ok=True)
        (state / f"{number:020}.json").write_text(json.dumps(manifest))
        return path

    def site(self, *, clusters: Sequence[str] = tuple(NAMES), tiers: Any = None) -> Site:
        ledger = Ledger()
        ledger.take([encode(message) for message in self.messages])
        output = LocalOutput(str(self.root)) if self._loads else None
        has = (BROKER, *([MIRROR] if len(clusters) > 1 else []), *(["hdfs"] if output else []))
        return Site(
            ledger.lines, [self.cluster(name) for name in clusters], output, tiers or has, self.host
        )

    def cluster(self, name: str) -> SiteCluster:
        topic = NAMES[name]
        topics = {("dc1", f"logs{x}"): f"{topic}{x}" for x in ("", ".rejected")}
        client = cast(Client, MemoryClient(self.clusters[name], ManualClock()))
        return SiteCluster(client, name, topics, self._read(name))

    def _read(self, name: str) -> Any:
        def read(
            _: Client, ranges: Ranges, max_bytes: int
        ) -> Iterator[tuple[TopicPartition, BatchHeader, memoryview]]:
            for tp, (first, end) in ranges.items():
                for data in self.clusters[name].log(tp).batches:
                    header = read_header(data)
                    if header.last_offset >= first and header.base_offset < end:
                        yield tp, header, memoryview(data)

        return read

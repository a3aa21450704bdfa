"""What the benchmarks of the loader share: Apache Kafka and the registry, topics of records, the
configuration of our loader, and programs whose costs are measured.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import yaml

from bench.agent import registry
from bench.machine import Family
from bench.sites import ApacheKafka, ZooKeeper, free_port, running
from skidway.kafka import columns
from skidway.kafka.client import Client, NewTopic, Producer
from skidway.kafka.codecs import ZSTD
from skidway.kafka.columns import Origins
from skidway.kafka.types import TopicPartition
from skidway.schemas.client import RegistryClient
from skidway.schemas.codec import Codec
from skidway.schemas.wire import add_prefix
from support import peers

PARTITIONS: Final = 4
AGENT, CLUSTER, AUDIT = 7, "bench", "_skidway_audit"
PEER: Final = "Spark 4.3 kafka source + from_avro"
WITHIN_S: Final = 600.0
SAMPLE_S: Final = 0.05
"""The pause between two samples of the CPU time and the memory of a measured program."""
_TIME: Final = {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}}
WIDE: Final[Mapping[str, Any]] = {
    "type": "record",
    "name": "Log",
    "fields": [
        _TIME,
        *({"name": name, "type": "string"} for name in ("host", "level", "logger", "message")),
        {"name": "status", "type": "int"},
        {"name": "bytes", "type": "long"},
    ],
}
"""A schema of 7 columns; a record has 169 bytes."""
NARROW: Final[Mapping[str, Any]] = {
    "type": "record",
    "name": "Line",
    "fields": [_TIME, {"name": "message", "type": "string"}],
}
"""A schema with two of the columns of WIDE."""
Ints = npt.NDArray[np.int64]


@contextlib.contextmanager
def site(folder: Path) -> Iterator[tuple[str, str]]:
    """Runs Apache Kafka and the registry, and yields their addresses."""
    (folder / "kafka").mkdir()
    zookeeper, kafka = ZooKeeper(folder), ApacheKafka(folder / "kafka", heap_mb=1024)
    kafka.format()
    with (
        running(zookeeper.program, zookeeper.ready),
        running(kafka.program, kafka.ready, within_s=120),
        registry(folder, zookeeper.address) as schemas,
    ):
        yield kafka.address, schemas


@dataclass(slots=True)
class Topic:
    """A topic of Apache Kafka with records of one schema."""

    address: str
    schemas: str
    schema: Mapping[str, Any] = field(default_factory=lambda: WIDE)
    partitions: int = PARTITIONS
    name: str = field(default_factory=lambda: f"bench-{time.time_ns()}")
    _schema_id: int = 0

    def send(self, batches: Iterable[tuple[int, Ints, Ints]]) -> None:
        """Sends batches of records. batches: the partition of each batch, and the numbers and
        event times of its records.
        Each record has an origin, which says from which agent, file and position its line comes."""
        if not self._schema_id:
            self._schema_id = self._create()
        codec = Codec(dict(self.schema))
        with Client(self.address) as client:
            producer = Producer(client)
            for partition, numbers, stamps in batches:
                rows = _records(numbers, stamps).select([x.name for x in codec.arrow_schema])
                full = np.ones(len(numbers), np.int64)
                origins = Origins(full * AGENT, full * (partition + 1), numbers * 170, full * 170)
                values = add_prefix(self._schema_id, codec.encode(rows))
                while not producer.has_room:
                    producer.poll(100)
                batch = columns.encode(values, stamps, origins=origins, codec=ZSTD)
                producer.send(TopicPartition(self.name, partition), batch, None)
                producer.poll(0)
            _flush(producer)

    def _create(self) -> int:
        """Creates the topic and registers its schema. Announces in the audit topic the files that
        the records' origins name, as an agent does before its first record. Returns the schema's
        id."""
        registered = RegistryClient(self.schemas).register(
            f"{self.name}-value", json.dumps(self.schema)
        )
        with Client(self.address) as client:
            client.create_topics(
                [
                    NewTopic(self.name, self.partitions, 1, {"retention.ms": "-1"}),
                    NewTopic(AUDIT, 1, 1),
                ]
            )
            producer = Producer(client)
            announce(client, producer, self.name)
            _flush(producer)
        return registered


def _records(i: Ints, stamps: Ints) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "ts": pa.array(stamps, pa.timestamp("ms", "UTC")),
            "host": pa.array([f"host-{k % 50:03d}" for k in i]),
            "level": pa.array([("INFO", "WARN")[k % 2] for k in i]),
            "logger": pa.array(["org.apache.hadoop.hdfs.server.datanode.DataNode"] * len(i)),
            "message": pa.array(
                [
                    f"Receiving block blk_{k * 7919} src: /10.0.{k % 250}.{k % 199}"
                    f":{40000 + k % 20000} size {k * 31}"
                    for k in i
                ]
            ),
            "status": pa.array(i % 600, pa.int32()),
            "bytes": pa.array(i * 31, pa.int64()),
        }
    )


def _flush(producer: Producer) -> None:
    if not producer.flush(120_000):
        raise RuntimeError("records could not be sent")


def announce(client: Client, producer: Producer, topic: str) -> None:
    """Announces in the audit topic the files that the origins of the topic's records name, as an
    agent does before its first record."""
    from skidway.audit.topic.messages import Announcement, encode
    from skidway.kafka.source import sources_of

    source = sources_of(client, [topic], CLUSTER)[topic]
    now_ms = int(time.time() * 1000)
    values = [
        encode(Announcement(now_ms, AGENT, file, "host", f"/log/{file}", 1, file, b"", 0, source))
        for file in range(1, PARTITIONS + 1)
    ]
    batch = columns.encode(pa.array(values, pa.binary()), np.full(len(values), now_ms))
    producer.send(TopicPartition(AUDIT, 0), batch, None)


def configuration(folder: Path, address: str, schemas: str, topic: str, **more: object) -> Path:
    """Writes the configuration of a loader with an empty output. Returns the path of the
    configuration. more: further settings, with `_` instead of the dots in their keys."""
    file = folder / f"loader-{time.time_ns()}.yml"
    settings = {
        "bootstrap.servers": address,
        "schema.registry.url": schemas,
        "topics": [topic],
        "output": str(file.with_suffix(".rows")),
        "cluster.name": CLUSTER,
        "spark.master": "local[2]",
        "metrics.listener": f"127.0.0.1:{free_port()}",
    }
    file.write_text(yaml.safe_dump(settings | {k.replace("_", "."): v for k, v in more.items()}))
    return file


def peer(folder: Path, topic: Topic, memory: str) -> list[str]:
    """The command that starts the peer: a program that loads ranges of offsets of the topic with
    Spark's own source. memory: the memory of Spark's driver, such as `3g`."""
    jars = ",".join(map(str, sorted(peers.jars("spark-kafka").glob("*.jar"))))
    script, output = Path(__file__).with_name("spark_source.py"), folder / f"spark-{time.time_ns()}"
    words = (json.dumps(topic.schema), topic.address, topic.name, str(topic.partitions))
    return [sys.executable, str(script), jars, memory, *words, str(output)]


@contextlib.contextmanager
def program(command: Sequence[str], folder: Path, *, answers: bool = False) -> Iterator[Family]:
    """Runs a program inside the `with` block, with a pipe as standard input, and yields the
    processes of the program. Ends them after the block. Raises RuntimeError if the program has
    failed by then.

    answers: whether the caller reads the program's standard output. Otherwise the output goes to a
    file, because a program that runs for long would block once the pipe is full."""
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    with tempfile.TemporaryFile(dir=folder) as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE if answers else errors,
            stderr=errors, env=environment, start_new_session=True,
        )  # fmt: skip
        family = Family(process)
        try:
            yield family
            if process.poll():
                errors.seek(0)
                raise RuntimeError(errors.read()[-3000:].decode(errors="replace"))
        finally:
            process.terminate()
            process.wait(WITHIN_S)
            family.kill()


def to_its_end(family: Family) -> float:
    """Waits until a program has ended. Returns the greatest memory that it used, in MiB."""
    most = 0.0
    while True:
        try:
            family.process.wait(SAMPLE_S)
        except subprocess.TimeoutExpired:
            family.cpu_seconds()  # stores the CPU time of each process that runs now
            most = max(most, family.resident_mb())
        else:
            return most


def ask_peer(family: Family, first: int, end: int) -> tuple[float, float]:
    """Tells the peer (the program with Spark's own source) to load the offsets [first, end) of each
    partition. Returns how many seconds the load took by the peer's clock, and the greatest memory
    that the peer used, in MiB."""
    stdin, stdout = family.process.stdin, family.process.stdout
    assert stdin is not None
    assert stdout is not None
    stdin.write(f"{first} {end}\n".encode())
    stdin.flush()
    most = 0.0
    while not select.select([stdout], [], [], SAMPLE_S)[0]:
        family.cpu_seconds()
        most = max(most, family.resident_mb())
    return float(stdout.readline()), most

"""Loads a topic into hourly zstd Parquet with `skidway load run`, and for comparison with Spark's
own Kafka source and from_avro.

Both sides read the same topic of Apache Kafka 4.1 and write to a local directory with local[2]. The
peer runs pyspark 4.1.1 in a separate environment, because the connector jars exist for that
version. Unlike Skidway, the peer neither removes duplicates nor counts the records. Rows per second
are measured over the load alone, after warm-up, so neither figure includes Spark's start-up.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import yaml

from bench.agent import registry
from bench.measure import Row, Table, in_turn
from bench.scale import scaled
from bench.sites import ApacheKafka, ZooKeeper, free_port, running, skidway
from skidway.kafka import columns
from skidway.kafka.batch import Codec as Compression
from skidway.kafka.client import Client, NewTopic, Producer
from skidway.kafka.columns import Origins
from skidway.kafka.types import TopicPartition
from skidway.schemas.client import RegistryClient
from skidway.schemas.codec import Codec
from skidway.schemas.wire import add_prefix

ROWS = scaled(2_000_000, 40_000)
PARTITIONS = 4
ROUNDS = scaled(3, 1)
AGENT, CLUSTER, AUDIT = 7, "bench", "_skidway_audit"
CACHE = Path(__file__).resolve().parents[1] / ".cache" / "peers" / "spark"
ARTIFACTS = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1",
    "org.apache.spark:spark-avro_2.13:4.1.1",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.1",
    "org.apache.commons:commons-pool2:2.12.1",
)
SCHEMA = {
    "type": "record",
    "name": "Log",
    "fields": [
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        *({"name": name, "type": "string"} for name in ("host", "level", "logger", "message")),
        {"name": "status", "type": "int"},
        {"name": "bytes", "type": "long"},
    ],
}
SPARK_ENVIRONMENT = {**os.environ, "PYSPARK_PYTHON": sys.executable}
CODEC, ZSTD = Codec(SCHEMA), Compression.ZSTD
Ints = npt.NDArray[np.int64]


def run() -> Table:
    """Measures rows per second of both sides in turn, on one topic."""
    provide_spark()
    table = Table("loader: 169-byte datums of 7 columns, 4 partitions, to hourly zstd Parquet")
    with tempfile.TemporaryDirectory(prefix="skidway-bench-") as name:
        folder = Path(name)
        with site(folder) as (address, schemas):
            topic = fill(address, schemas)
            found = in_turn(
                {
                    "skidway": lambda: load(folder, address, schemas, topic),
                    "spark": lambda: spark(folder, address, topic),
                },
                ROUNDS,
            )
    table.add(
        Row(
            "rows per second",
            "rows/s",
            found["skidway"],
            found["spark"],
            "Spark 4.1 kafka source + from_avro",
        )
    )
    return table


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


def fill(address: str, schemas: str) -> str:
    """Fills a new topic with ROWS records of SCHEMA. Their event times span three hours. Returns
    the topic's name."""
    topic, chunk = f"bench-{time.time_ns()}", 4_000
    schema_id = create(address, schemas, topic)
    with Client(address) as client:
        producer = Producer(client)
        for first in range(0, ROWS, chunk):
            i = np.arange(first, first + chunk)
            partition = (first // chunk) % PARTITIONS
            stamps = 1_700_000_000_000 + i * (3 * 3600 * 1000 // ROWS)
            send(producer, TopicPartition(topic, partition), i, stamps, schema_id)
        if not producer.flush(120_000):
            raise RuntimeError("the topic could not be filled")
    return topic


def create(address: str, schemas: str, topic: str) -> int:
    """Creates a topic with PARTITIONS partitions and registers its schema. Announces in the audit
    topic the files that the records' origins name, as an agent does before its first record.
    Returns the schema's id."""
    schema_id = RegistryClient(schemas).register(f"{topic}-value", json.dumps(SCHEMA))
    with Client(address) as client:
        client.create_topics(
            [NewTopic(topic, PARTITIONS, 1, {"retention.ms": "-1"}), NewTopic(AUDIT, 1, 1)]
        )
        producer = Producer(client)
        announce(client, producer, topic)
        if not producer.flush(120_000):
            raise RuntimeError("the files could not be announced")
    return schema_id


def send(producer: Producer, tp: TopicPartition, i: Ints, stamps: Ints, schema_id: int) -> None:
    """Sends one batch of records of SCHEMA with these numbers and event times. Each record has an
    origin, which says from which agent, file and position its line comes."""
    batch = pa.record_batch(
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
    full = np.ones(len(i), np.int64)
    origins = Origins(full * AGENT, full * (tp.partition + 1), i * 170, full * 170)
    values = add_prefix(schema_id, CODEC.encode(batch))
    while not producer.has_room:
        producer.poll(100)
    producer.send(tp, columns.encode(values, stamps, origins=origins, codec=ZSTD), None)
    producer.poll(0)


def announce(client: Client, producer: Producer, topic: str) -> None:
    """Announces in the audit topic the files that the origins name, as an agent does before its
    first record."""
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


def load(folder: Path, address: str, schemas: str, topic: str) -> float:
    """Rows per second of one `skidway load run` into an empty directory, from the summary that the
    program prints."""
    config = configuration(folder, address, schemas, topic)
    done = subprocess.run(
        skidway("load", "run", "--config", str(config), "--json"),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    return float(json.loads(done.stdout)["rows_per_second"])


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


def spark(folder: Path, address: str, topic: str) -> float:
    """Rows per second of Spark's own Kafka source. One Spark session makes two loads, and the
    second is measured."""
    python, output = CACHE / "venv" / "bin" / "python", folder / f"spark-{time.time_ns()}"
    done = subprocess.run(
        spark_command(python, CACHE / "jars", address, topic, str(output)),
        capture_output=True,
        text=True,
        check=False,
        env=SPARK_ENVIRONMENT,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    return float(done.stdout.split()[-1])


def spark_command(python: Path, jars: Path, *words: str) -> list[str]:
    """The command that runs spark_source.py with a Python that has pyspark. jars: the folder with
    the connector's jars. words: the script's arguments from ADDRESS on."""
    script = Path(__file__).with_name("spark_source.py")
    found = ",".join(map(str, sorted(jars.glob("*.jar"))))
    return [str(python), str(script), found, json.dumps(SCHEMA), *words]


def provide_spark() -> None:
    """Installs pyspark 4.1.1 in a separate environment, and its connector jars from Maven
    Central."""
    if (CACHE / ".complete").exists():
        return
    (CACHE / "jars").mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "venv", str(CACHE / "venv")], check=True)
    subprocess.run(
        [str(CACHE / "venv" / "bin" / "pip"), "install", "-q", "pyspark==4.1.1"], check=True
    )
    for artifact in ARTIFACTS:
        subprocess.run(
            ["mvn", "-q", "-B", "dependency:get", "-Dtransitive=false", f"-Dartifact={artifact}"],
            check=True,
        )
        subprocess.run(
            [
                "mvn",
                "-q",
                "-B",
                "dependency:copy",
                f"-Dartifact={artifact}",
                f"-DoutputDirectory={CACHE / 'jars'}",
            ],
            check=True,
        )
    (CACHE / ".complete").touch()

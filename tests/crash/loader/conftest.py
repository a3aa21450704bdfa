"""Fixtures for loads: a real broker, a real registry, and functions that send records as an agent
would."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from skidway.audit.judgement.policy import Policy
from skidway.audit.output import hadoop_client
from skidway.audit.output.hadoop_client import NO_SETTINGS, HadoopClient
from skidway.audit.topic import topic as audit_topic
from skidway.audit.topic.messages import TOPIC as AUDIT
from skidway.audit.topic.messages import Announcement, Delta, Tier, decode, encode
from skidway.clock import SystemClock
from skidway.kafka import columns
from skidway.kafka.client import Client, Fetcher, NewTopic, Producer
from skidway.kafka.columns import Origins
from skidway.kafka.source import sources_of
from skidway.kafka.types import TopicPartition
from skidway.loader.settings import LoaderSettings
from skidway.loader.spark.runner import SparkRunner
from skidway.loader.spark.session import begin, start
from skidway.loader.store import Store, StoreConnection
from skidway.schemas.client import RegistryClient
from skidway.schemas.codec import Codec
from skidway.schemas.wire import add_prefix
from support.brokers import SkidwayBroker
from support.fold import judge
from support.processes import Program, call_skidway, free_port, running, skidway
from support.proxy import LOADER, Fault, Intervention, Proxy, fetches
from support.registry import Registry
from support.zookeeper import ZooKeeper

SCHEMA = json.dumps(
    {"type": "record", "name": "Log", "fields": [{"name": "line", "type": "string"}]}
)
START_MS = 1_700_000_000_000
AGENT = 7
LENGTH = 20


class Cluster:
    """The addresses of a broker and a registry, and methods that send and read records there."""

    def __init__(self, broker: str, registry: str) -> None:
        self.broker, self.registry = broker, registry

    def topic(self, partitions: int = 2, schema: str = SCHEMA) -> str:
        """Creates a topic, registers its schema, and returns the topic's name."""
        name = f"logs-{uuid.uuid4().hex[:8]}"
        RegistryClient(self.registry).register(f"{name}-value", schema)
        with Client(self.broker) as client:
            assert client.create_topics([NewTopic(name, partitions, 1)]) == {name: None}
            audit_topic.ensure(client, time.sleep)
            while name not in sources_of(client, [name], "main"):
                client.pause(0.05)
        return name

    def announce(self, topic: str, file: int, path: str = "/var/log/app.log") -> None:
        """Publishes an announcement, which is a message that maps a file id of the simulated agent
        to a host and a path."""
        with Client(self.broker) as client:
            source = sources_of(client, [topic], "main")[topic]
            message = Announcement(START_MS, AGENT, file, "host", path, 1, file, b"", 0, source)
            self.publish(client, AUDIT, 0, pa.array([encode(message)], pa.binary()), None)

    def send(
        self, topic: str, partition: int, first_line: int, count: int, *, file: int | None = None
    ) -> None:
        """Sends `count` lines of a file, beginning with `first_line`. If `file` is not given, the
        lines of partition n belong to file n + 1."""
        lines = np.arange(first_line, first_line + count, dtype=np.int64)
        codec, schema_id = Codec(SCHEMA), RegistryClient(self.registry).latest(f"{topic}-value").id
        batch = pa.record_batch({"line": [f"line {number}" for number in lines.tolist()]})
        full = np.full(count, 1, np.int64)
        origins = Origins(
            full * AGENT, full * (partition + 1 if file is None else file), lines * LENGTH,
            full * LENGTH,
        )  # fmt: skip
        with Client(self.broker) as client:
            values = add_prefix(schema_id, codec.encode(batch))
            self.publish(client, topic, partition, values, origins, START_MS + lines * 1000)

    def send_version(
        self, topic: str, number: int, schema: dict[str, Any], row: dict[str, Any]
    ) -> None:
        """Registers `schema` as a version of the topic's schema. Encodes `row` with this version,
        and sends it to partition 0 as line `number` of file 1."""
        text = json.dumps(schema)
        codec = Codec(text)
        schema_id = RegistryClient(self.registry).register(f"{topic}-value", text)
        values = [_column(row[each.name], each.type) for each in codec.arrow_schema]
        batch = pa.RecordBatch.from_arrays(values, schema=codec.arrow_schema)
        one = np.ones(1, np.int64)
        origins = Origins(one * AGENT, one, one * number * LENGTH, one * LENGTH)
        with Client(self.broker) as client:
            self.publish(client, topic, 0, add_prefix(schema_id, codec.encode(batch)), origins)

    def publish(
        self, client: Client, topic: str, partition: int, values: pa.BinaryArray,
        origins: Origins | None, times: Any = None,
    ) -> None:  # fmt: skip
        """Sends values to a partition, with their origins and their times in milliseconds. If no
        times are given, each time is START_MS."""
        times = np.full(len(values), START_MS, np.int64) if times is None else times
        producer = Producer(client)
        for at in range(0, len(values), 500):
            cut = slice(at, at + 500)
            part = None
            if origins is not None:
                part = Origins(
                    origins.agent[cut], origins.file[cut], origins.first[cut], origins.length[cut]
                )
            encoded = columns.encode(values[cut], times[cut], origins=part)
            producer.send(TopicPartition(topic, partition), encoded, at)
        assert producer.flush(300_000)
        assert all(each.error is None for each in producer.poll(0))

    def delete(self, topic: str) -> None:
        with Client(self.broker) as client:
            assert client.delete_topics([topic]) == {topic: None}
            while topic in client.metadata().topics:
                client.pause(0.05)

    def deltas(self, producer: str) -> list[Delta]:
        """Returns the deltas (audit messages with counts) that the loads of one topic into one
        output have published, in the order of publication. `producer` is the text
        `<output>/<topic>`, by which these deltas name their sender."""
        with Client(self.broker) as client:
            ranges = audit_topic.bounds(client, [AUDIT])
            found = audit_topic.read(client, Fetcher(client), ranges, SystemClock())
            messages = [decode(value) for _, _, value, _ in found if producer.encode() in value]
        return [each for each in messages if isinstance(each, Delta)]


class SharedSpark:
    """Runs `skidway load` in this process, on one Spark that all runs share, because a start of
    Spark takes far longer than a small load. The runs share nothing else: each has its own client,
    store and state."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._session: Any = None

    def run(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Runs `skidway` with these arguments. Returns its output and its exit status."""
        with (
            patch("skidway.loader.runs.run.SparkRunner", self._runner),
            patch("skidway.loader.runs.compaction.SparkRunner", self._runner),
            patch("skidway.loader.runs.reload.SparkRunner", self._runner),
        ):
            return call_skidway(*arguments)

    def close(self) -> None:
        """Ends Spark, as the loader does."""
        if self._session is not None:
            with SparkRunner(None, lambda: False) as runner:  # type: ignore[arg-type]
                runner._session = self._session

    def _runner(self, settings: LoaderSettings, interrupted: Callable[[], bool]) -> SparkRunner:
        shared = self

        class Staying(SparkRunner):
            def _start(self) -> None:
                if shared._session is None:
                    process = begin(settings, shared._folder)
                    shared._session = start(settings, process, shared._folder)
                self._session = shared._session

            def __exit__(self, *_error: object) -> None:
                self._session = None

        return Staying(settings, interrupted)


ON_SPARK = {"spark.above.offsets": "0", "slice.records": "1000"}
HERE = {"spark.above.offsets": "1000000", "slice.records": "100"}
"""With the settings HERE, all tasks run in the loader's own process; with ON_SPARK, all tasks run
on Spark. HERE has smaller slices (ranges of offsets that one task reads), so that a load takes long
enough for a test to kill it."""


class Loading:
    """Runs `skidway load` for one topic and one output. `way` says where its tasks run: in the
    loader's own process (HERE) or, where a test is about that, on Spark (ON_SPARK)."""

    way = HERE
    hadoop: HadoopClient = NO_SETTINGS

    def __init__(
        self, cluster: Cluster, spark: SharedSpark, topic: str, output: str, folder: Path
    ) -> None:
        self.cluster, self.spark, self.topic = cluster, spark, topic
        self.output, self._folder = output, folder
        self._started = 0

    def beside(self, output: str) -> Loading:
        """Returns a Loading that loads the same topic into another output, in the same way."""
        other = Loading(self.cluster, self.spark, self.topic, output, self._folder)
        other.way, other.hadoop = self.way, self.hadoop
        return other

    def store(self) -> Store:
        """Opens the output."""
        return StoreConnection(self.output, self.hadoop).store()

    def hadoop_settings(self) -> dict[str, str]:
        """Returns the settings that say how the loader is known to Hadoop."""
        given = {
            hadoop_client.CONF_DIR: self.hadoop.conf_dir,
            hadoop_client.PRINCIPAL: self.hadoop.principal,
            hadoop_client.KEYTAB: self.hadoop.keytab,
        }
        return {key: value for key, value in given.items() if value is not None}

    def arguments(self, *more: str, verb: str = "run") -> list[str]:
        settings = {
            "bootstrap.servers": self.cluster.broker, "schema.registry.url": self.cluster.registry,
            "topics": self.topic, "output": self.output, "spark.master": "local[2]",
            "metrics.listener": "127.0.0.1:0", **self.way, **self.hadoop_settings(),
        }  # fmt: skip
        sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        return ["load", verb, "--json", *sets, *(w for each in more for w in ("--set", each))]

    def run(self, *more: str) -> subprocess.CompletedProcess[str]:
        """Runs `skidway load run` to its end, with the further settings `more` (KEY=VALUE). The run
        is in this process and, if it needs Spark, on the shared Spark."""
        return self.spark.run(self.arguments(*more))

    def loaded(self, *more: str) -> dict[str, Any]:
        """Runs `skidway load run` as `run` does, asserts that it succeeds, and returns the summary
        that it prints."""
        done = self.run(*more)
        assert done.returncode == 0, done.stderr[-4000:]
        return dict(json.loads(done.stdout))

    def start(self, *more: str, env: Mapping[str, str] | None = None) -> Program:
        """Starts `skidway load run` in a separate process, with the further settings `more`
        (KEY=VALUE), and does not wait for the end of the run. If the run needs Spark, it has its
        own Spark."""
        return self._begun(self.arguments(*more), env)

    def start_resident(self, *more: str) -> Program:
        """Starts a loader that begins a run every second, in a separate process. If its runs need
        Spark, it has its own Spark."""
        words = [each for each in self.arguments(*more) if each != "--json"]
        return self._begun([*words, "--every", "1s"])

    def start_verb(self, verb: str, *options: str) -> Program:
        """Starts the command `skidway load VERB` in a separate process, with the given options."""
        return self._begun([*self.arguments(verb=verb), *options])

    def _begun(self, arguments: Sequence[str], env: Mapping[str, str] | None = None) -> Program:
        self._started += 1
        log = self._folder / f"load-{self._started}.out"
        return Program(skidway(*arguments), log, env=env).start()

    def rows(self) -> list[dict[str, Any]]:
        """Returns all rows in a local output. Also reads Parquet files that no manifest lists."""
        folder = Path(self.output) / self.topic
        if not folder.exists():
            return []
        table = ds.dataset(folder, format="parquet", partitioning="hive").to_table()
        if not table.num_rows:  # before the first file there are no columns either
            return []
        order = [("_partition", "ascending"), ("_kafka_offset", "ascending")]
        return list(table.sort_by(order).to_pylist())

    def state(self, name: str) -> list[Path]:
        """Returns the files in the output's folder `_skidway/<topic>/` whose paths inside this
        folder match the pattern `name`."""
        return sorted((Path(self.output) / "_skidway" / self.topic).glob(name))


@contextlib.contextmanager
def serving(
    zookeeper: ZooKeeper, folder: Path, proxy_port: int | None = None
) -> Iterator[tuple[Cluster, int]]:
    """Starts a broker and a registry. Yields their addresses, and the port on which the broker
    listens. If `proxy_port` is given, the broker tells its clients to connect to this port, and not
    to the broker's own port."""
    chroot = f"{zookeeper.address}/{uuid.uuid4().hex}"
    broker = SkidwayBroker(folder, chroot, log_retention_check_interval_ms=200)
    address = f"127.0.0.1:{proxy_port or broker.port}"
    broker.settings["advertised.listeners"] = f"PLAINTEXT://{address}"
    registry = Registry(chroot, folder)
    try:
        broker.start()
        with running(registry.program, registry.ready):
            yield Cluster(address, registry.url), broker.port
    finally:
        broker.end()


@pytest.fixture(scope="session")
def cluster(
    zookeeper_server: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """One broker and one registry for all tests of the loader."""
    with serving(zookeeper_server, tmp_path_factory.mktemp("cluster")) as (made, _):
        yield made


@dataclass(frozen=True)
class BehindProxy:
    """A cluster whose clients reach the broker through a proxy. The proxy can delay the clients'
    requests."""

    cluster: Cluster
    proxy: Proxy

    def held(self, topic: str, *, first: int = 0, times: int | None = None) -> Intervention:
        """Makes the proxy delay the loader's fetches of a topic from the offset `first` on. If
        `times` is None, the proxy delays all these fetches. Otherwise it delays only the next
        `times` fetches. The delay ends when the test releases the returned intervention."""
        return self.proxy.inject(Fault.HOLD_REQUEST, fetches(topic, LOADER, first), times)


@pytest.fixture(scope="session")
def behind_proxy(
    zookeeper_server: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BehindProxy]:
    """A broker behind a proxy, and a registry, for all tests that need to stop a load while it
    reads."""
    port = free_port()
    with serving(zookeeper_server, tmp_path_factory.mktemp("proxied"), port) as (made, target):
        proxy = Proxy(port, target)
        proxy.start()
        yield BehindProxy(made, proxy)
        proxy.stop()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedSpark]:
    """The Spark that all loads share, except the loads that need their own Spark. The first load
    starts the shared Spark."""
    with patch.dict(os.environ):
        shared = SharedSpark(tmp_path_factory.mktemp("spark"))
        yield shared
        shared.close()


@pytest.fixture
def loading(cluster: Cluster, spark: SharedSpark, tmp_path: Path) -> Loading:
    """A load with a new topic, announcements of the files 1 and 2, and an empty output."""
    return loading_of(cluster, spark, tmp_path)


def loading_of(cluster: Cluster, spark: SharedSpark, folder: Path) -> Loading:
    """Creates a topic in this cluster, announces the files 1 and 2, and returns a load with an
    empty output."""
    topic = cluster.topic()
    for file in (1, 2):
        cluster.announce(topic, file)
    return Loading(cluster, spark, topic, str(folder / "out"), folder)


def spark_rows(loading: Loading, folder: Path) -> list[dict[str, Any]]:
    """Returns the rows that plain Spark reads from a directory, sorted by offset."""
    session = loading.spark._session
    session.catalog.clearCache()
    rows = session.read.parquet(str(folder)).orderBy("_kafka_offset").collect()
    return [row.asDict(recursive=True) for row in rows]


def _column(value: Any, arrow: pa.DataType) -> pa.Array:
    """Returns an Arrow column that contains only `value`. Arrow stores a union as a struct with one
    field for each type; in such a column, only the field for the value's type is set."""
    if pa.types.is_struct(arrow) and not isinstance(value, dict):
        fits = [each for each in arrow if _is_of(value, each.type)]
        value = {fits[0].name: value}
    return pa.array([value], arrow)


def _is_of(value: Any, arrow: pa.DataType) -> bool:
    kinds = {
        bool: pa.types.is_boolean, int: pa.types.is_integer, float: pa.types.is_floating,
        str: pa.types.is_string,
    }  # fmt: skip
    return bool(kinds[type(value)](arrow))


def identities(rows: Sequence[dict[str, Any]]) -> list[tuple[int, int]]:
    """Returns the pairs (file id, line number) of the rows, sorted."""
    return sorted((row["_file_id"], row["_offset"] // LENGTH) for row in rows)


def lines(count: int, files: Sequence[int] = (1, 2)) -> list[tuple[int, int]]:
    """Returns the pairs (file id, line number) of the first `count` lines of each file, sorted."""
    return sorted((file, number) for file in files for number in range(count))


def fill(loading: Loading, first: int, count: int) -> None:
    """Sends `count` lines of each of the files 1 and 2, beginning with line number `first`. Sends
    file 1 to partition 0, and file 2 to partition 1."""
    for partition in (0, 1):
        loading.cluster.send(loading.topic, partition, first, count)


def counted(loading: Loading) -> int:
    """Returns the number of records in the output, according to the counts that the loader has
    published."""
    deltas = loading.cluster.deltas(f"{loading.output}/{loading.topic}")
    found = judge(deltas, Policy(tiers=(Tier.HDFS,)), SystemClock().time_ms())
    return sum(bucket.count(Tier.HDFS) or 0 for bucket in found)


def hdfs_identities(loading: Loading) -> list[tuple[int, int]]:
    """Returns the sorted pairs (file id, line number) of all rows in an output on HDFS. Also reads
    Parquet files that no manifest lists."""
    store = loading.store()
    rows = [
        row
        for entry in store.files(loading.topic)
        if entry.path.endswith(".parquet")
        for row in pq.read_table(io.BytesIO(store.read(entry.path) or b"")).to_pylist()
    ]
    return identities(rows)

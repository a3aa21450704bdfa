"""With transactional producers on Apache Kafka, every reader of Skidway gets the records that
librdkafka returns to a consumer of committed records."""

from __future__ import annotations

import json
import random
import struct
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka import TopicPartition as StockPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql.streaming.datasource import ReadMaxRows

from skidway.agent.cluster.connection import ends_of
from skidway.agent.delivery.logs import FetchedLogs
from skidway.agent.delivery.read_back import Rows
from skidway.agent.program import connected
from skidway.audit.counter.counter import Counter
from skidway.audit.counter.state import CounterState
from skidway.audit.evidence.counted_until import CountedUntil
from skidway.audit.settings import CounterSettings
from skidway.audit.topic import messages, notes
from skidway.audit.topic.messages import Delta, Heartbeat
from skidway.audit.topic.transactions import Transactions, transactions_of
from skidway.clock import SystemClock
from skidway.kafka import columns
from skidway.kafka.batch import read_header
from skidway.kafka.client import LATEST, READ_UNCOMMITTED, Client, Fetcher, NewTopic
from skidway.kafka.client import Producer as OurProducer
from skidway.kafka.columns import decode
from skidway.kafka.connection import KafkaConnection
from skidway.kafka.types import TopicPartition
from skidway.loader.datasource.source import SkidwaySource
from skidway.schemas.client import RegistryClient
from support.kafka import ApacheKafka, topic_name
from support.processes import (
    Program,
    answers,
    call_skidway,
    eventually,
    free_port,
    running,
    skidway,
)
from support.registry import Registry
from support.zookeeper import ZooKeeper

pytestmark = [pytest.mark.java, pytest.mark.slow]

SCHEMA = json.dumps({"type": "record", "name": "E", "fields": [{"name": "n", "type": "int"}]})
OPEN_AT = 8
OPEN_MS = 600_000  # Kafka ends no transaction of a test by itself


class Log:
    """A topic with one partition on Apache Kafka, and the producers that send to it."""

    def __init__(self, kafka: str, registry: str, **configs: str) -> None:
        self.kafka, self.registry = kafka, registry
        self.topic = topic_name("transactions")
        self.tp = TopicPartition(self.topic, 0)
        self._schema_id = RegistryClient(registry).register(f"{self.topic}-value", SCHEMA)
        with Client(kafka) as client:
            topic = NewTopic(self.topic, 1, 1, {k.replace("_", "."): v for k, v in configs.items()})
            assert client.create_topics([topic]) == {self.topic: None}
        self.plain = Producer({"bootstrap.servers": kafka})

    def producer(self, **settings: object) -> Producer:
        """Returns a producer with a transactional id of its own."""
        own = {"transactional.id": uuid.uuid4().hex, "transaction.timeout.ms": OPEN_MS}
        made = Producer({"bootstrap.servers": self.kafka, **own, **settings})
        made.init_transactions(60)
        return made

    def send(self, producer: Producer, *numbers: int) -> int:
        """Sends numbers, and returns the offset of the first one."""
        found: list[int] = []
        for n in numbers:
            value = struct.pack(">bi", 0, self._schema_id) + bytes(_zigzag(n))
            told = lambda _, message: found.append(message.offset())  # noqa: E731
            producer.produce(self.topic, value, partition=0, on_delivery=told)
        assert producer.flush(60) == 0
        return min(found)

    def transaction(self, *numbers: int, commits: bool) -> None:
        """Sends numbers in a transaction, and commits or aborts it. No other transaction may be
        open."""
        producer = self.producer()
        producer.begin_transaction()
        self.send(producer, *numbers)
        producer.commit_transaction(60) if commits else producer.abort_transaction(60)
        self.settle()

    def settle(self, first_open: int | None = None) -> None:
        """Waits until Kafka has written the ends of all transactions to the log, except that of the
        transaction that is open at the offset `first_open`."""
        with Client(self.kafka) as client:
            latest = {self.tp: LATEST}

            def is_settled() -> bool:
                end = first_open
                if end is None:
                    end = client.list_offsets_now(latest, READ_UNCOMMITTED)[0][self.tp].offset
                return client.list_offsets(latest)[self.tp].offset == end

            eventually(is_settled, what="the transactions have ended")

    def delete_below(self, offset: int) -> int:
        """Deletes the records before an offset. Returns the offset."""
        admin = AdminClient({"bootstrap.servers": self.kafka})
        [done] = admin.delete_records([StockPartition(self.topic, 0, offset)]).values()
        assert done.result().low_watermark == offset
        return offset

    def seen(self, begin: int = 0) -> list[tuple[int, bytes]]:
        """Returns offset and value of each record that librdkafka gives to a reader of committed
        records."""
        settings = {"isolation.level": "read_committed", "enable.partition.eof": True}
        group = {"group.id": uuid.uuid4().hex, "bootstrap.servers": self.kafka}
        consumer = Consumer({**settings, **group})
        consumer.assign([StockPartition(self.topic, 0, begin)])
        found = []
        while True:
            message = consumer.poll(60)
            assert message is not None
            if message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF
                consumer.close()
                return found
            found.append((message.offset(), message.value()))

    def read(self, max_bytes: int = 1 << 20, begin: int = 0) -> list[tuple[int, bytes]]:
        """Returns offset and value of each record that our fetcher returns."""
        found: list[tuple[int, bytes]] = []
        with Client(self.kafka) as client:
            end = client.list_offsets({self.tp: LATEST})[self.tp].offset
            fetcher = Fetcher(client, max_bytes=max_bytes)
            fetcher.seek(self.tp, begin)
            at = None
            while fetcher.positions[self.tp] < end:
                for raw in [raw for part in fetcher.poll(1_000) for raw in part.batches]:
                    header, batch = read_header(raw), decode(raw)
                    assert at is None or header.base_offset == at
                    at = header.last_offset + 1
                    found += zip(batch.offsets.tolist(), batch.values.to_pylist(), strict=True)
            assert fetcher.positions[self.tp] == end
        return [each for each in found if each[0] >= begin]


@pytest.fixture(scope="module")
def registry(
    zookeeper_server: ZooKeeper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("registry")
    made = Registry(f"{zookeeper_server.address}/{folder.name}", folder)
    with running(made.program, made.ready):
        yield made.url


@pytest.fixture
def log(apache_kafka: ApacheKafka, registry: str) -> Log:
    return Log(apache_kafka.address, registry)


@pytest.fixture
def still_open(log: Log) -> Producer:
    """Sends 1, 2, 3 in a transaction that is aborted, 4 and 5 in one that is committed, 6 without
    one, 7 in one that stays open, and 8 without one. Returns the producer of 7."""
    log.transaction(1, 2, 3, commits=False)
    log.transaction(4, 5, commits=True)
    log.send(log.plain, 6)
    producer = log.producer()
    producer.begin_transaction()
    log.send(producer, 7)
    log.send(log.plain, 8)
    return producer


@pytest.mark.parametrize("max_bytes", [1, 300, 1 << 20])
def test_our_fetcher_reads_what_librdkafka_reads(log: Log, max_bytes: int) -> None:
    """However the transactions of several producers overlap, our fetcher returns the same records
    as librdkafka, in answers of every size and from every offset, even if the log begins within a
    transaction. No offset is missing between its batches, and its last offset is the last stable
    offset."""
    chance = random.Random(max_bytes)
    producers = [log.producer(**{"compression.type": codec}) for codec in ("none", "zstd", "lz4")]
    busy: dict[int, int] = {}
    for n in range(60):
        at = chance.randrange(4)
        if at == 3:
            log.send(log.plain, *range(n, n + chance.randrange(1, 4)))
        elif at in busy and chance.random() < 0.4:
            del busy[at]
            end = producers[at].commit_transaction if chance.random() < 0.5 else None
            (end or producers[at].abort_transaction)(60)
        else:
            if at not in busy:
                producers[at].begin_transaction()
            first = log.send(producers[at], *range(n, n + chance.randrange(1, 4)))
            busy.setdefault(at, first)
    log.settle(min(busy.values(), default=None))
    wanted = log.seen()
    assert log.read(max_bytes) == wanted
    for begin in (wanted[len(wanted) // 3][0], wanted[-1][0]):
        assert log.read(max_bytes, begin) == [each for each in wanted if each[0] >= begin]
    for at in busy:
        producers[at].abort_transaction(60)
    log.settle()
    assert log.read(max_bytes) == log.seen()
    begin = log.delete_below(chance.randrange(1, 100))
    assert log.read(max_bytes, begin) == log.seen(begin)


def test_consume_prints_committed_records(log: Log, still_open: Producer, zookeeper: str) -> None:
    """`skidway consume` prints the committed records before the first open transaction, and says
    where it is, also as a member of a group. When the transaction has ended, it prints the rest."""
    words = ["consume", "--bootstrap-server", log.kafka, "--topic", log.topic, "--timeout", "4"]
    words += ["--registry", log.registry, "--from-beginning"]
    group = ["--group", uuid.uuid4().hex, "--zookeeper", zookeeper]
    for more in ([], group):
        done = call_skidway(*words, *more)
        assert done.returncode == 0, done.stderr
        assert [json.loads(line) for line in done.stdout.splitlines()] == _rows(4, 5, 6)
        assert more or f"{log.tp} ends at offset 8 now: a transaction is open" in done.stderr
    still_open.commit_transaction(60)
    log.settle()
    done = call_skidway(*words)
    assert [json.loads(line) for line in done.stdout.splitlines()] == _rows(4, 5, 6, 7, 8)
    done = call_skidway(*words, *group)
    assert [json.loads(line) for line in done.stdout.splitlines()] == _rows(7, 8)


def test_loads_and_queries_have_the_committed_records(
    log: Log, still_open: Producer, tmp_path: Path
) -> None:
    """A load and a query of Spark's data source have the committed records before the first open
    transaction. When the transaction was aborted, the next load adds what stands behind it, and
    nothing twice."""
    for ends in (False, True):
        if ends:
            still_open.abort_transaction(60)
            log.transaction(9, commits=False)
            log.transaction(10, commits=True)
            log.transaction(11, 12, commits=False)
        wanted = _rows(4, 5, 6, *((8, 10) if ends else ()))
        done = _load(log, tmp_path / "rows")
        assert done["status"] == 0, done
        assert _loaded(log, tmp_path / "rows") == wanted
        assert _queried(log) == wanted
    assert _load(log, tmp_path / "rows")["status"] == 0
    assert _loaded(log, tmp_path / "rows") == wanted


def test_offsets_without_records_are_no_lost_data(log: Log, tmp_path: Path) -> None:
    """Offsets of aborted records and of markers of transactions have no record. No query, stream or
    load that begins with, ends with or consists of such offsets calls them lost data, and each has
    every committed record once."""
    log.transaction(1, commits=True)
    log.transaction(2, 3, commits=False)
    log.transaction(4, 5, commits=True)
    log.send(log.plain, 6)
    log.transaction(7, commits=False)
    wanted = _rows(1, 4, 5, 6)
    for most in (1, 2, 5):
        assert _queried(log, maxRecordsPerPartition=str(most)) == wanted
        assert _streamed(log, most) == wanted
    done = _load(log, tmp_path / "rows", "slice.records=1", "max.offsets.per.load=2")
    assert done["status"] == 0, done
    assert _loaded(log, tmp_path / "rows") == wanted


def test_the_counter_counts_committed_records(
    log: Log, still_open: Producer, tmp_path: Path
) -> None:
    """The counter counts the committed records before the first open transaction. It tells the
    audit where a transaction is open, and how many records were aborted. After a restart it goes
    on, although the last batches that it knows are of an aborted transaction."""
    counting = Counting(log, tmp_path)
    with counting:
        told = counting.until(lambda: counting.told().held is not None)
    assert (counting.counted(), told.aborted) == (3, 3)
    assert (told.held.partition, told.held.offset) == (0, 8)
    still_open.abort_transaction(60)
    log.transaction(9, 10, commits=False)
    with counting:
        told = counting.until(lambda: counting.told() == Transactions(6))
    assert (counting.counted(), counting.stopped) == (4, {})
    log.transaction(11, commits=True)
    with counting:
        counting.until(lambda: counting.counted() == 5)
    assert (counting.gaps, counting.stopped) == ([], {})


def test_a_counter_vouches_for_nothing_behind_the_first_open_transaction(
    log: Log, tmp_path: Path
) -> None:
    """Of several transactions that overlap, one stays open. From its first record on, no heartbeat
    of the counter says that it has counted up to a time after this record: not the heartbeat at
    once, not when the other transactions have ended, and not after a restart of the counter. When
    the transaction has ended, a heartbeat says it."""
    first, second = log.producer(), log.producer()
    counting = Counting(log, tmp_path)
    with counting:
        log.send(log.plain, 0)
        counting.until(lambda: counting.vouched_ms() > 0)
        first.begin_transaction()
        log.send(first, 1)
        second.begin_transaction()
        at = log.send(second, 2)
        sent_ms = time.time_ns() // 1_000_000
        log.send(log.plain, 3)
        seen = [counting.vouched_ms() for _ in range(20)]
        first.commit_transaction(60)
        log.settle(at)
        counting.until(lambda: counting.counted() == 2)
        seen += [counting.vouched_ms() for _ in range(20)]
    with counting:
        told = counting.until(lambda: counting.told().held is not None)
        seen += [counting.vouched_ms() for _ in range(20)]
        assert 0 < max(seen) <= sent_ms
        assert (told.held.offset, told.held.since_ms <= sent_ms) == (at, True)
        second.commit_transaction(60)
        counting.until(lambda: counting.vouched_ms() > sent_ms)
    assert counting.counted() == 4


@pytest.mark.parametrize("commits", [True, False])
def test_the_audit_names_an_open_transaction_and_what_became_of_it(
    log: Log, still_open: Producer, tmp_path: Path, commits: bool
) -> None:
    """While a transaction is open, a running collector does not call its bucket complete, although
    counter and loader have counted the same records, and names the transaction as the cause. When
    it has ended, the bucket is complete with the right counts. The collector says how many records
    were aborted, and a trace says it of one."""
    cluster = "commits" if commits else "aborts"  # each counter has a name of its own
    pages, where = f"127.0.0.1:{free_port()}", ["--set", f"bootstrap.servers={log.kafka}"]
    sets = _sets(log, tmp_path, {"heartbeat.interval.ms": "1000", "cluster.name": cluster})
    counter = Program(skidway("audit", "count", *sets), tmp_path / "count.out")
    settings = {
        "store.dir": tmp_path / "store", "tiers": "broker,hdfs", "lateness.ms": 0,
        "listener": pages, "metrics.listener": "127.0.0.1:0",
    }  # fmt: skip
    sets = [*where, *(x for each in settings.items() for x in ("--set", "=".join(map(str, each))))]
    collector = Program(skidway("audit", "run", *sets), tmp_path / "audit.out")

    def asked(more: str = "") -> dict[str, Any]:
        address = f"http://{pages}/buckets.json?topic={cluster}.{log.topic}{more}"
        with urllib.request.urlopen(address, timeout=60) as answer:
            return dict(json.load(answer))

    def verdicts() -> set[str]:
        return {each["verdict"] for each in asked()["buckets"]}

    def causes() -> dict[str, str]:
        starts = {each["bucket"] for each in asked()["buckets"]}
        said = (x for start in starts for x in asked(f"&bucket={start}")["explanations"])
        return {each["cause"]: each["words"] for each in said}

    def counts(tier: str) -> int:
        places = (place for bucket in asked()["buckets"] for place in bucket["places"])
        return sum(place["count"] for place in places if place["tier"] == tier)

    def load() -> None:
        assert (
            _load(log, tmp_path / "rows", "bucket.ms=2000", f"cluster.name={cluster}")["status"]
            == 0
        )

    with (
        running(counter, lambda: True),
        running(collector, lambda: answers(f"http://{pages}/buckets.json")),
    ):
        load()
        is_open = f"a transaction is open at offset {OPEN_AT}"
        eventually(lambda: is_open in causes().get("transaction open", ""), what="it is named")
        assert "complete" not in verdicts()
        still_open.commit_transaction(60) if commits else still_open.abort_transaction(60)
        log.settle()
        load()
        eventually(lambda: verdicts() == {"complete"}, what="the buckets are complete")
        assert counts("broker") == counts("hdfs") == (5 if commits else 4)
        words_of = f"{3 if commits else 4} records of aborted transactions of {cluster}.{log.topic}"
        eventually(lambda: words_of in asked()["sentence"], what="the aborted records are named")
    words = ["audit", "trace", "--bootstrap-server", log.kafka]
    words += ["--cluster", log.kafka, "--topic", log.topic, "--partition", "0", "--offset", "1"]
    done = call_skidway(*words)
    assert f"the record at offset 1 of {log.tp} was aborted" in done.stdout + done.stderr


def test_compare_says_which_records_it_could_not_compare(
    log: Log, still_open: Producer, tmp_path: Path
) -> None:
    """While a transaction is open, `skidway audit compare` says from which offset on it compared
    nothing, because lines that seem to be missing may be there. Afterwards it does not say so."""
    (tmp_path / "app.log").write_text("line\n")
    words = ["audit", "compare", "--bootstrap-server", log.kafka, "--topic", log.topic]
    words += ["--files", str(tmp_path / "app.log"), "--shape", "text"]
    unread = f"Not all records were compared: a transaction is open at offset {OPEN_AT} of {log.tp}"
    assert unread in call_skidway(*words).stdout
    still_open.abort_transaction(60)
    log.settle()
    done = call_skidway(*words)
    assert (done.returncode, "Not all records" in done.stdout) == (1, False), done.stderr


def test_trace_names_the_transaction_that_hides_a_record(log: Log, still_open: Producer) -> None:
    """Of a record behind an open transaction, `skidway audit trace` says where the transaction is
    open; of an offset behind the log's end, it says where the log ends. When the transaction has
    ended, it shows the record."""
    words = ["audit", "trace", "--bootstrap-server", log.kafka, "--cluster", log.kafka]
    words += ["--topic", log.topic, "--partition", "0", "--offset"]

    def said(offset: int) -> str:
        done = call_skidway(*words, str(offset))
        return done.stdout + done.stderr

    is_open = f"a transaction is open at offset {OPEN_AT} of {log.tp}"
    assert is_open in said(OPEN_AT)
    assert is_open in said(OPEN_AT + 1)
    assert f"the log of {log.tp} has the offsets 0 to {OPEN_AT + 1} only" in said(OPEN_AT + 2)
    still_open.commit_transaction(60)
    log.settle()
    assert f"{log.tp} at offset {OPEN_AT + 1}" in said(OPEN_AT + 1)


def test_an_agent_finds_its_records_behind_an_open_transaction(
    log: Log, still_open: Producer
) -> None:
    """An agent that reads its own records back finds those behind another producer's open
    transaction. Otherwise it would send them again, or declare them lost, after a restart."""
    one = np.ones(1, np.int64)
    batch = columns.encode(pa.array([b"line"]), one, origins=columns.Origins(*[one * 7] * 4))
    settings: Any = SimpleNamespace(kafka=KafkaConnection(log.kafka))
    with connected(settings) as (asking, sending):
        producer = OurProducer(sending)
        producer.send(log.tp, batch, 1)
        assert producer.flush(60_000)
        logs = FetchedLogs(sending, asking)
        logs.begin({log.tp: 0})
        found: list[Any] = []
        eventually(lambda: found.extend(logs.poll()) or logs.read_up() == {log.tp}, what="read")
        assert [rows.agent.tolist() for rows in found if isinstance(rows, Rows)] == [[7]]
        assert ends_of(asking, [log.tp]) == {log.tp: 11}
    still_open.abort_transaction(60)


def test_a_compacted_topic_is_refused_by_that_word(
    apache_kafka: ApacheKafka, registry: str, tmp_path: Path
) -> None:
    """Counter and loader refuse a compacted topic, and say that it is compacted."""
    compacted = Log(apache_kafka.address, registry, cleanup_policy="compact")
    compacted.send(compacted.plain, 1)
    done = _load(compacted, tmp_path / "rows")
    assert done["status"] == 1
    assert "it is compacted (cleanup.policy)" in json.dumps(done)
    with Counting(compacted, tmp_path) as counting:
        eventually(lambda: counting.health().get("compacted") == [compacted.topic], what="refused")
        assert counting.counted() == 0


class Counting:
    """The audit's counter of one topic, with its state, which stays when the counter ends."""

    def __init__(self, log: Log, folder: Path) -> None:
        self._log, self._folder = log, folder
        self.gaps: list[Any] = []
        self._deltas: list[Delta] = []
        self._told = Transactions(0)
        self.stopped: dict[str, str] = {}

    def __enter__(self) -> Counting:
        settings = CounterSettings(
            bootstrap_servers=self._log.kafka, cluster_name="dc1", state_dir=self._folder,
            topics=[self._log.topic], commit_interval_ms=100,
        )  # fmt: skip
        self._client = Client(self._log.kafka)
        self._state = CounterState(self._folder / "counter.db")
        fetcher, clock = Fetcher(self._client), SystemClock()
        self._counter = Counter(settings, self._client, fetcher, self._state, clock)
        return self

    def __exit__(self, *_error: object) -> None:
        self._counter.commit()
        self._read()
        self._state.close()
        self._client.close()

    def until(self, is_done: Callable[[], bool]) -> Transactions:
        eventually(lambda: self._turn() or is_done(), what="counted")
        return self._told

    def told(self) -> Transactions:
        return self._told

    def counted(self) -> int:
        return sum(count.count for delta in self._deltas for count in delta.counts)

    def health(self) -> dict[str, Any]:
        self._turn()
        return self._counter.health.detail

    def vouched_ms(self) -> int:
        """Returns up to when the counter now says that it has counted the topic."""
        self._turn()
        self._counter._beat_at = 0.0
        value = self._counter.heartbeat()
        assert value is not None
        said = messages.decode(value)
        assert isinstance(said, Heartbeat)
        [source] = self._counter.topics.values()
        return CountedUntil.of(said, None).until_ms(source)

    def _turn(self) -> None:
        self._counter.turn(100)
        value = self._counter.transactions_note()
        if value is not None:
            found = transactions_of(notes.decode(value))
            self._told = next(iter(found.values()), Transactions(0))
        self._read()

    def _read(self) -> None:
        found = [messages.decode(message) for _, message in self._state.pending(-1, 1_000)]
        self._deltas = [each for each in found if isinstance(each, Delta)]
        self.gaps = [gap for delta in self._deltas for gap in delta.gaps]
        self.stopped = self._counter.health.detail.get("stopped", {})


def _load(log: Log, output: Path, *more: str) -> dict[str, Any]:
    """Runs `skidway load run` in a process of its own, without Spark. more: KEY=VALUE."""
    settings = {
        "bootstrap.servers": log.kafka, "schema.registry.url": log.registry, "topics": log.topic,
        "output": str(output), "spark.above.offsets": "1000000", "metrics.listener": "127.0.0.1:0",
        "cluster.name": "dc1",
    }  # fmt: skip
    sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    done = call_skidway("load", "run", "--json", *sets, *(x for y in more for x in ("--set", y)))
    return {"status": done.returncode, "said": done.stdout, "errors": done.stderr}


def _sets(log: Log, folder: Path, more: dict[str, str]) -> list[str]:
    """Returns the settings of a counter process, with buckets of two seconds."""
    settings = {
        "bootstrap.servers": log.kafka, "topics": log.topic, "state.dir": str(folder),
        "cluster.name": "dc1", "bucket.ms": "2000", "commit.interval.ms": "100",
        "metrics.listener": "127.0.0.1:0", **more,
    }  # fmt: skip
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


def _loaded(log: Log, output: Path) -> list[dict[str, int]]:
    table = ds.dataset(output / log.topic, format="parquet", partitioning="hive").to_table()
    return table.sort_by("_kafka_offset").select(["n"]).to_pylist()


def _queried(log: Log, **options: str) -> list[dict[str, int]]:
    source = _source(log, **options)
    reader = source.reader(source.schema())
    batches = (batch for part in reader.partitions() for batch in reader.read(part))
    return [{"n": row["n"]} for batch in batches for row in batch.to_pylist()]


def _streamed(log: Log, most: int) -> list[dict[str, int]]:
    """Returns the rows of a stream whose batches have at most `most` offsets each."""
    source = _source(log, startingOffsets="earliest", maxOffsetsPerTrigger=str(most))
    reader = source.streamReader(source.schema())
    start, found = reader.initialOffset(), []
    while (end := reader.latestOffset(start, ReadMaxRows(most))) != start:
        parts = reader.partitions(start, end)
        found += [
            row["n"] for part in parts for batch in reader.read(part) for row in batch.to_pylist()
        ]
        start = end
    return _rows(*found)


def _source(log: Log, **options: str) -> SkidwaySource:
    return SkidwaySource(
        {
            "kafka.bootstrap.servers": log.kafka,
            "schema.registry.url": log.registry,
            "subscribe": log.topic,
            **options,
        }
    )


def _rows(*numbers: int) -> list[dict[str, int]]:
    return [{"n": n} for n in numbers]


def _zigzag(number: int) -> list[int]:
    """Returns the bytes of a number as an Avro int."""
    rest, found = number << 1, []
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    return [*found, rest]

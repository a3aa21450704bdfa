"""A mirror has the same bytes at the same offsets as its source cluster, even after outages and
restarts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer as StockConsumer
from confluent_kafka import Producer as StockProducer
from confluent_kafka import TopicPartition as StockPartition

from skidway.kafka.client import Client
from support.mirroring import SOURCE, Pair, mirror_sources, pair, refill
from support.processes import call_skidway, eventually, free_port, run_skidway


@pytest.fixture
def clusters(tmp_path: Path, zookeeper: str) -> Iterator[Pair]:
    yield from pair(tmp_path, zookeeper)


def test_every_byte_and_every_offset(clusters: Pair) -> None:
    """The mirror's log files are equal to the source's log files, in all partitions and for small
    and large batches."""
    clusters.source.create("logs", 2)
    clusters.source.produce("logs", 50)
    clusters.source.produce("logs", 20, 1, size=50_000)
    clusters.mirrored("logs")
    clusters.same("logs", 2)
    assert clusters.here.ends("dc1.logs") == {0: 150, 1: 60}


def test_topics_and_partitions_that_come_later(clusters: Pair) -> None:
    """The mirror finds new topics and partitions without a restart, and copies them from their
    first record on."""
    clusters.source.create("first")
    clusters.source.produce("first", 3)
    clusters.mirrored("first")
    clusters.source.create("second")
    clusters.source.produce("second", 3)
    with Client(clusters.source.address) as client:
        assert client.create_partitions({"first": 3}) == {"first": None}
    clusters.source.produce("first", 4, 2)
    for topic in ("first", "second"):
        clusters.mirrored(topic)
    clusters.same("first", 3)
    clusters.same("second")


def test_the_audit_topic_comes_whatever_the_patterns_say(tmp_path: Path, zookeeper: str) -> None:
    """The topic `_skidway_audit` is mirrored even if the configured patterns do not match it,
    because the audit needs the counts of all clusters in one place. Other internal topics are not
    mirrored."""
    for clusters in pair(tmp_path, zookeeper, patterns=["logs"]):
        for topic in ("_skidway_audit", "logs", "other", "__internal"):
            clusters.source.create(topic)
            clusters.source.produce(topic, 1)
        for topic in ("_skidway_audit", "logs"):
            clusters.mirrored(topic)
            clusters.same(topic)
        with Client(clusters.here.address) as client:
            assert sorted(client.metadata().topics) == ["dc1._skidway_audit", "dc1.logs"]


def test_a_source_that_has_a_name(tmp_path: Path, zookeeper: str) -> None:
    """If the source's address contains a host name, the mirror resolves this name. If the source is
    down at first, the mirror follows the source as soon as it is up."""
    named = Pair(tmp_path, zookeeper)
    port = named.source.port
    named.here.settings["mirror.sources"] = mirror_sources(f"localhost:{port}")
    try:
        named.here.start()
        eventually(lambda: named.here.mirror()["reachable"] is False, what="nobody is there")
        named.source.start()
        named.source.create("logs")
        named.source.produce("logs", 5)
        named.mirrored("logs")
        named.same("logs")
        assert named.here.program.stop() == 0
    finally:
        named.kill()


def test_a_source_that_is_down_for_a_while(clusters: Pair) -> None:
    """While the source is down, the mirror serves the records that it has, and reports the outage.
    When the source is up again, the mirror continues at the offset at which it stopped."""
    clusters.source.create("logs")
    clusters.source.produce("logs", 5)
    clusters.mirrored("logs")
    clusters.source.program.kill()
    eventually(lambda: clusters.here.mirror()["reachable"] is False, what="the outage is shown")
    assert clusters.source.address in clusters.here.mirror()["last_failure"]
    assert clusters.here.ends("dc1.logs") == {0: 15}
    status = call_skidway("mirror", "status", "--url", url(clusters))
    assert status.returncode == 3
    clusters.here.restart()  # the mirror starts while the source is down
    clusters.source.start()
    clusters.source.produce("logs", 5)
    clusters.mirrored("logs")
    clusters.same("logs")


def test_producers_are_refused_in_words(clusters: Pair) -> None:
    """If a client produces to a mirrored topic, the client gets an error, because the mirrored
    topic must contain exactly the records of the source."""
    clusters.source.create("logs")
    clusters.source.produce("logs", 2)
    clusters.mirrored("logs")
    told: list[str] = []
    producer = StockProducer({"bootstrap.servers": clusters.here.address, "linger.ms": 0})
    producer.produce(
        "dc1.logs", b"not from dc1", on_delivery=lambda error, _: told.append(error.name())
    )
    producer.flush(300)
    assert told == ["INVALID_REQUEST"]
    done = run_skidway(
        "produce", "--topic", "dc1.logs", "--bootstrap-server", clusters.here.address,
        "--timeout", "1", input_text="not from dc1\n",
    )  # fmt: skip
    assert done.returncode != 0
    assert "dc1.logs mirrors a topic of another cluster" in done.stderr
    clusters.same("logs")


def test_stock_consumers_read_a_mirror_at_the_sources_offsets(clusters: Pair) -> None:
    """A stock consumer finds each record at the same offset in the mirror as in the source."""
    producer = StockProducer({"bootstrap.servers": clusters.source.address})
    for number in range(100):
        producer.produce("lines", f"line {number}".encode(), partition=0)
    producer.flush(300)
    clusters.mirrored("lines")
    found = []
    for address, topic in (
        (clusters.source.address, "lines"),
        (clusters.here.address, "dc1.lines"),
    ):
        consumer = StockConsumer(
            {"bootstrap.servers": address, "group.id": "unused", "enable.auto.commit": False}
        )
        consumer.assign([StockPartition(topic, 0, 40)])
        records = eventually(lambda consumer=consumer: consumer.consume(60, 20))
        found.append([(each.offset(), each.value()) for each in records])  # type: ignore[attr-defined]
        consumer.close()
    assert found[0] == found[1]
    assert found[0][0] == (40, b"line 40")


def test_a_client_that_asks_early_is_not_in_the_mirrors_way(clusters: Pair) -> None:
    """If a client produces to the name of a mirrored topic before the mirror has created the topic,
    the broker does not create it automatically. An ordinary topic with this name would keep the
    mirror from creating its own."""
    producer = StockProducer(
        {"bootstrap.servers": clusters.here.address, "message.timeout.ms": 1500}
    )
    told: list[str] = []
    producer.produce("dc1.logs", b"early", on_delivery=lambda error, _: told.append(error.name()))
    producer.flush(300)
    assert len(told) == 1
    with Client(clusters.here.address) as client:
        assert "dc1.logs" not in client.metadata().topics
    clusters.source.create("logs")
    clusters.source.produce("logs", 2)
    clusters.mirrored("logs")
    clusters.same("logs")


def test_a_mirror_of_a_mirror_is_not_made(clusters: Pair) -> None:
    """A mirror does not copy topics that the source cluster itself mirrors. This holds for topics
    that the source cluster mirrors from a third cluster, and for topics that it mirrors from the
    mirror's own cluster."""
    elsewhere = {"mirror.source.cluster": "dc9", "mirror.source.topic": "logs"}
    clusters.source.create("dc9.logs", **{k.replace(".", "_"): v for k, v in elsewhere.items()})
    clusters.source.create("offline.logs")
    clusters.source.create("logs")
    clusters.mirrored("logs")
    with Client(clusters.here.address) as client:
        assert list(client.metadata().topics) == ["dc1.logs"]


def test_the_command_shows_what_there_is(clusters: Pair) -> None:
    """`mirror status` prints a table or JSON. It finds the broker by a URL or by the broker's
    settings. The broker's metrics show the same state as the command."""
    clusters.source.create("logs", 2)
    clusters.source.produce("logs", 4)
    clusters.mirrored("logs")
    done = call_skidway("mirror", "status", "--url", url(clusters))
    assert done.returncode == 0, done.stdout + done.stderr
    head, row = done.stdout.splitlines()
    assert head.split()[:4] == ["SOURCE", "REACHABLE", "PARTITIONS", "LAG"]
    assert row.split()[:4] == ["dc1", "yes", "2", "0"]
    listener = f"metrics.listener=127.0.0.1:{clusters.here.metrics_port}"
    [source] = json.loads(call_skidway("mirror", "status", "--json", "--set", listener).stdout)
    assert source["cluster"] == SOURCE
    assert source["records"] == 12
    assert clusters.here.metric('skidway_broker_mirror_records_total{source="dc1"}') == 12
    assert clusters.here.metric('skidway_broker_mirror_partitions{source="dc1"}') == 2
    assert clusters.here.metric('skidway_broker_mirror_stopped{source="dc1"}') == 0
    away = call_skidway("mirror", "status", "--url", f"http://127.0.0.1:{free_port()}")
    assert away.returncode == 3
    assert "is it running?" in away.stderr
    assert call_skidway("mirror", "status", "--url", "nonsense").returncode == 2


def url(clusters: Pair) -> str:
    return f"http://127.0.0.1:{clusters.here.metrics_port}"


def test_deleting_a_mirror_here_begins_it_again(clusters: Pair) -> None:
    """If the source's log no longer agrees with the mirror's log and an operator deletes the
    mirrored topic, the mirror creates the topic again and copies it from its beginning."""
    clusters.source.create("logs")
    clusters.source.produce("logs", 5)
    clusters.mirrored("logs")
    clusters.source.program.kill()
    refill(clusters.source, 10)
    clusters.source.start()
    reason = eventually(lambda: clusters.here.mirror()["stopped"].get("dc1.logs-0"))
    assert "diverged" in str(reason)
    clusters.here.delete("dc1.logs")
    clusters.mirrored("logs")
    clusters.same("logs")
    assert clusters.here.ends("dc1.logs") == {0: 30}
    assert clusters.here.health()["ok"] is True

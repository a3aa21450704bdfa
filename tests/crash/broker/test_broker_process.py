"""A real broker loses no acknowledged record, even if it is killed, lacks resources or finds
damaged files."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from skidway.broker.log import names
from skidway.kafka.batch import headers
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from skidway.kafka.protocol.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from skidway.kafka.protocol.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from skidway.kafka.protocol.metadata import MetadataRequest, MetadataResponse
from support.batches import batch, stored
from support.brokers import SkidwayBroker
from support.processes import eventually, run_skidway
from support.promises import promise
from support.raw_client import RawClient
from support.zookeeper import ZooKeeper


def create(broker: SkidwayBroker, topic: str, partitions: int = 1) -> None:
    with RawClient(broker.port) as client:
        request = CreateTopicsRequest(
            topics=(CreatableTopic(name=topic, num_partitions=partitions),)
        )
        answer = client.ask(request, 5, CreateTopicsResponse)
        assert isinstance(answer, CreateTopicsResponse)
        assert answer.topics[0].error_code == 0, answer


def read_values(broker: SkidwayBroker, topic: str, end: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": broker.address, "group.id": "unused", "enable.auto.commit": False}
    )
    found: list[bytes] = []
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while len(found) < end:
            messages = consumer.consume(min(5_000, end - len(found)), 60.0)
            assert messages, f"only {len(found)} of {end} records"
            for message in messages:
                assert message.error() is None
                assert message.offset() == len(found)
                found.append(message.value())
    finally:
        consumer.close()
    return found


@promise("3 producer ids")
@pytest.mark.quick
def test_killed_while_it_takes(own_broker: SkidwayBroker) -> None:
    """If the broker is killed with kill -9 while an idempotent producer sends, every acknowledged
    record is in the log exactly once."""
    broker = own_broker.start()
    create(broker, "logs")
    acknowledged: list[bytes] = []
    stop = threading.Event()

    def send() -> None:
        producer = Producer(
            {
                "bootstrap.servers": broker.address,
                "acks": -1,
                "enable.idempotence": True,
                "linger.ms": 1,
                "message.timeout.ms": 120_000,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )

        def delivered(error: KafkaError | None, message: object) -> None:
            if error is None:
                acknowledged.append(message.value())  # type: ignore[attr-defined]

        number = 0
        while not stop.is_set():
            if len(producer) < 1_000:
                producer.produce("logs", b"%d" % number, partition=0, on_delivery=delivered)
                number += 1
                producer.poll(0)
                if number % 10 == 0:
                    stop.wait(0.001)  # so many records are enough, and all are read afterwards
            else:
                producer.poll(0.1)
        producer.flush(300)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        for crash in range(1, 4):
            eventually(lambda crash=crash: len(acknowledged) > crash * 500)
            broker.crash()
        eventually(lambda: len(acknowledged) > 2_000)
    finally:
        stop.set()
        thread.join()
    assert len(set(acknowledged)) == len(acknowledged)
    with RawClient(broker.port) as client:
        end = client.fetch("logs", 0).high_watermark
    found = read_values(broker, "logs", end)
    assert len(set(found)) == len(found), "a record was stored twice"
    assert set(acknowledged) <= set(found), "an acknowledged record is lost"
    assert [int(each) for each in found] == sorted(int(each) for each in found)


@promise("3 producer ids", "4 duplicate")
@pytest.mark.quick
def test_a_duplicate_is_known_after_a_kill(own_broker: SkidwayBroker) -> None:
    """If a batch was acknowledged before the broker was killed with kill -9, and is then sent
    again, the broker answers with the batch's original offset."""
    broker = own_broker.start()
    create(broker, "logs")
    with RawClient(broker.port) as client:
        asked = client.ask(InitProducerIdRequest(), 4, InitProducerIdResponse)
        assert isinstance(asked, InitProducerIdResponse)
        first_id = asked.producer_id
        sent = [batch(b"v%d" % n, producer_id=first_id, epoch=0, sequence=n) for n in range(3)]
        assert [client.produce("logs", each).base_offset for each in sent] == [0, 1, 2]
    broker.crash()
    with RawClient(broker.port) as client:
        for acks in (1, -1):
            again = client.produce("logs", sent[1], acks=acks)
            assert (again.error_code, again.base_offset) == (0, 1)
        other = client.produce("logs", batch(b"x", producer_id=first_id, epoch=0, sequence=1))
        assert other.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert client.fetch("logs", 0).high_watermark == 3
        asked = client.ask(InitProducerIdRequest(), 4, InitProducerIdResponse)
        assert isinstance(asked, InitProducerIdResponse)
        assert asked.producer_id > first_id


def test_a_torn_tail_is_cut_and_the_epoch_rises(own_broker: SkidwayBroker) -> None:
    """If a crash has left an incomplete batch at the end of a log, the broker removes this batch
    when it starts, keeps the complete batches, and continues under a new leader epoch.
    """
    broker = own_broker.start()
    create(broker, "logs")
    with RawClient(broker.port) as client:
        client.produce("logs", batch(b"a"))
    broker.program.kill()
    path = broker.logs / "logs-0" / names.segment_file(0, names.LOG)
    whole = path.stat().st_size
    with path.open("ab") as file:
        file.write(bytes(batch(b"torn"))[:-1])
    broker.start()
    assert path.stat().st_size == whole
    assert "torn_tail_cut" in broker.program.output()
    with RawClient(broker.port) as client:
        assert client.produce("logs", batch(b"b")).base_offset == 1
        answer = client.ask(MetadataRequest(topics=None), 9, MetadataResponse)
        assert isinstance(answer, MetadataResponse)
        assert answer.topics[0].partitions[0].leader_epoch == 1
    assert [h.leader_epoch for _, h in headers(path.read_bytes())] == [0, 1]


def test_a_damaged_partition_is_stopped_by_name(own_broker: SkidwayBroker) -> None:
    """If a partition's log is damaged and good data follows the damage, the broker answers requests
    for this partition with an error. It serves all other partitions."""
    broker = own_broker.start()
    create(broker, "logs", 2)
    with RawClient(broker.port) as client:
        for partition in (0, 1):
            for _ in range(3):
                client.produce("logs", batch(b"x" * 50), partition=partition)
    broker.program.kill()
    path = broker.logs / "logs-0" / names.segment_file(0, names.LOG)
    data = bytearray(path.read_bytes())
    data[100] ^= 0xFF
    path.write_bytes(data)
    broker.program = type(broker.program)(broker.command(), broker.folder / "again.out")
    broker.program.start().wait_until(broker.up)
    health = broker.health()
    assert not health["ok"]
    assert str(path) in health["stopped_partitions"]["logs-0"]
    assert "position 0" in health["stopped_partitions"]["logs-0"]
    with RawClient(broker.port) as client:
        assert client.fetch("logs", 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert client.produce("logs", batch(b"y")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert client.produce("logs", batch(b"y"), partition=1).base_offset == 3
    assert path.read_bytes() == data


def test_a_missing_directory_is_not_begun_again(own_broker: SkidwayBroker) -> None:
    """If a partition's directory is missing, the broker does not serve this partition, and /health
    says what is missing. The broker does not replace the partition with an empty log that begins at
    offset 0."""
    broker = own_broker.start()
    create(broker, "logs")
    with RawClient(broker.port) as client:
        client.produce("logs", batch(b"x"))
    assert broker.program.stop() == 0
    shutil.rmtree(broker.logs / "logs-0")
    broker.program = type(broker.program)(broker.command(), broker.folder / "again.out")
    broker.program.start().wait_until(broker.up)
    assert "missing" in broker.health()["stopped_partitions"]["logs-0"]
    assert not (broker.logs / "logs-0").exists()


def test_a_full_disk_refuses_and_goes_on(own_broker: SkidwayBroker) -> None:
    """If a log file cannot grow, for example because the disk is full, the broker answers
    KAFKA_STORAGE_ERROR. When the file can grow again, the broker accepts batches."""
    broker = own_broker.start()
    create(broker, "logs")
    log = broker.logs / "logs-0" / names.segment_file(0, names.LOG)
    with RawClient(broker.port) as client:
        assert client.produce("logs", batch(b"x" * 5000)).base_offset == 0
        size = log.stat().st_size
        unlimited = resource.prlimit(broker.program.pid, resource.RLIMIT_FSIZE, (size + 1000, -1))
        for acks in (-1, 1):
            answer = client.produce("logs", batch(b"y" * 5000), acks=acks)
            assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert log.stat().st_size == size
        assert client.produce("logs", batch(b"s")).base_offset == 1
        resource.prlimit(broker.program.pid, resource.RLIMIT_FSIZE, unlimited)
        assert client.produce("logs", batch(b"y" * 5000)).base_offset == 2
    assert stored(broker.logs / "logs-0") == [(0, 1), (1, 1), (2, 1)]
    assert broker.ready()


def test_no_descriptors_left_is_survived(own_broker: SkidwayBroker) -> None:
    """If the broker has no file descriptor left, it serves the existing connections. When
    descriptors are free again, it accepts new connections."""
    broker = own_broker.start()
    create(broker, "logs")
    with RawClient(broker.port) as client, contextlib.ExitStack() as crowd:
        client.produce("logs", batch(b"x"))
        used = len(os.listdir(f"/proc/{broker.program.pid}/fd"))
        before = resource.prlimit(broker.program.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(broker.program.pid, resource.RLIMIT_NOFILE, (used + 5, before[1]))
        for _ in range(20):
            crowd.enter_context(RawClient(broker.port))
        assert client.produce("logs", batch(b"y")).base_offset == 1
        resource.prlimit(broker.program.pid, resource.RLIMIT_NOFILE, before)
        crowd.close()
    with RawClient(broker.port) as client:
        assert client.produce("logs", batch(b"z")).base_offset == 2


@pytest.fixture
def own_zookeeper(tmp_path: Path) -> Iterator[ZooKeeper]:
    folder = tmp_path / "zookeeper"
    folder.mkdir()
    server = ZooKeeper(folder)
    server.program.start().wait_until(server.ready)
    yield server
    if server.program.running:
        server.program.kill()


@pytest.fixture
def with_own_zookeeper(own_zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[SkidwayBroker]:
    """A broker whose ZooKeeper the test may stop. The broker's session times out after 4 s."""
    connect = f"{own_zookeeper.address}/dc1"
    broker = SkidwayBroker(tmp_path, connect, zookeeper_session_timeout_ms=4000)
    broker.start()
    yield broker
    if broker.program.running:
        broker.program.signal(signal.SIGCONT)
        broker.program.kill()


def test_produce_and_fetch_go_on_without_zookeeper(
    own_zookeeper: ZooKeeper, with_own_zookeeper: SkidwayBroker
) -> None:
    """While ZooKeeper is stopped, clients can still produce and fetch, and requests to create
    topics get a retriable error. When ZooKeeper runs again, everything works as before."""
    broker = with_own_zookeeper
    create(broker, "logs")
    own_zookeeper.program.stop()
    eventually(lambda: broker.health()["zookeeper"] == "away")
    with RawClient(broker.port) as client:
        assert client.produce("logs", batch(b"x")).base_offset == 0
        assert client.fetch("logs", 0).high_watermark == 1
        request = CreateTopicsRequest(topics=(CreatableTopic(name="more"),))
        answer = client.ask(request, 5, CreateTopicsResponse)
        assert isinstance(answer, CreateTopicsResponse)
        assert answer.topics[0].error_code == ErrorCode.REQUEST_TIMED_OUT
        own_zookeeper.program.start().wait_until(own_zookeeper.ready)
        eventually(lambda: broker.health()["zookeeper"] == "connected")
        assert client.produce("logs", batch(b"y")).base_offset == 1
    create(broker, "more")


def test_a_broker_whose_session_ended_registers_again(
    own_zookeeper: ZooKeeper, with_own_zookeeper: SkidwayBroker
) -> None:
    """If a broker's process was suspended for longer than its ZooKeeper session timeout, the broker
    registers again and continues to work."""
    broker = with_own_zookeeper
    create(broker, "logs")
    watcher = KazooClient(f"{own_zookeeper.address}/dc1")
    watcher.start()
    try:
        broker.program.signal(signal.SIGSTOP)
        eventually(lambda: watcher.exists("/brokers/ids/1") is None)
        broker.program.signal(signal.SIGCONT)
        eventually(lambda: watcher.exists("/brokers/ids/1") is not None)
        eventually(lambda: watcher.exists("/controller") is not None)
    finally:
        watcher.stop()
        watcher.close()
    assert "zookeeper_session_lost" in broker.program.output()
    create(broker, "more")
    with RawClient(broker.port) as client:
        assert client.produce("more", batch(b"x")).base_offset == 0


def test_a_broker_id_is_one_broker(own_broker: SkidwayBroker, tmp_path: Path) -> None:
    """A second broker with the same id refuses to start, and prints a sentence with the address of
    the first broker. The first broker continues to run."""
    broker = own_broker.start()
    zookeeper = str(broker.settings["zookeeper.connect"])
    other = SkidwayBroker(tmp_path / "other", zookeeper, zookeeper_session_timeout_ms=1000)
    status, line = refused(other.command())
    assert status == 1
    assert f"broker.id 1 is in use by the broker at {broker.address}" in line
    assert broker.ready()


def refused(command: list[str]) -> tuple[int, str]:
    done = run_skidway(*command[3:])
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    return done.returncode, lines[0]


def test_what_prevents_a_start_is_one_sentence(own_broker: SkidwayBroker, tmp_path: Path) -> None:
    """If the broker cannot start (for example because a port is in use or ZooKeeper does not
    answer), it prints one sentence with the reason and exits. The exit status depends on the kind
    of reason."""
    broker = own_broker.start()

    def other(**settings: object) -> list[str]:
        zookeeper = str(broker.settings["zookeeper.connect"])
        return SkidwayBroker(tmp_path / "other", zookeeper, **settings).command()

    status, line = refused(other(log_dirs=broker.logs))
    assert status == 65
    assert str(broker.logs) in line
    assert str(broker.program.pid) in line
    status, line = refused(other(listeners=f"PLAINTEXT://{broker.address}"))
    assert status == 1
    assert f"{broker.address}: address already in use" in line
    status, line = refused(
        other(zookeeper_connect="127.0.0.1:1", zookeeper_connection_timeout_ms=500)
    )
    assert status == 3
    assert "127.0.0.1:1" in line
    status, line = refused(other(log_dirs="/proc/skidway"))
    assert status == 1
    assert "/proc/skidway" in line
    status, line = refused(other(listeners="SSL://127.0.0.1:1"))
    assert status == 78
    status, line = refused([*other(), "--set", "log.segment.byte=1"])
    assert status == 78
    assert "log.segment.bytes" in line
    assert broker.program.stop() == 0
    broker.settings["broker.id"] = 2
    status, line = refused(broker.command())
    assert status == 65
    assert "belongs to broker 1" in line
    broker.settings |= {
        "broker.id": 1,
        "zookeeper.connect": f"{broker.settings['zookeeper.connect']}x",
    }
    status, line = refused(broker.command())
    assert status == 65
    assert "belongs to cluster" in line


def test_a_clean_stop_is_quick_to_start_from(own_broker: SkidwayBroker) -> None:
    """After SIGTERM the broker flushes all logs and exits. So its next start does not have to check
    and recover the logs."""
    broker = own_broker.start()
    create(broker, "logs")
    with RawClient(broker.port) as client:
        for number in range(10):
            client.send_produce("logs", batch(b"%d" % number), acks=1)
        for _ in range(10):
            client.produced()
    broker.restart()
    assert '"clean": true' in broker.program.output()
    assert "log_recovered" not in broker.program.output()
    with RawClient(broker.port) as client:
        assert client.fetch("logs", 0).high_watermark == 10


def test_a_topic_deleted_while_it_is_written(own_broker: SkidwayBroker) -> None:
    """When a topic is deleted, the broker answers all requests that wait for the topic, and removes
    the topic's files. The topic does not reappear after a restart."""
    broker = own_broker.start()
    create(broker, "logs", 3)
    with RawClient(broker.port) as client, RawClient(broker.port) as waiting:
        client.produce("logs", batch(b"x"))
        waiting.send_fetch("logs", 1, max_wait_ms=30_000)
        answer = client.ask(DeleteTopicsRequest(topic_names=("logs",)), 5, DeleteTopicsResponse)
        assert isinstance(answer, DeleteTopicsResponse)
        assert answer.responses[0].error_code == 0
        assert waiting.fetched().error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        code = client.produce("logs", batch(b"y")).error_code
        assert code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    eventually(lambda: not [each for each in broker.logs.iterdir() if each.is_dir()])
    broker.restart()
    create(broker, "logs")
    with RawClient(broker.port) as client:
        assert client.produce("logs", batch(b"new")).base_offset == 0


def test_a_directory_of_no_topic_is_set_aside(own_broker: SkidwayBroker) -> None:
    """If a log directory contains a partition of a topic that is not in ZooKeeper, the broker
    renames the partition's directory and never deletes it."""
    broker = own_broker.start()
    create(broker, "logs")
    with RawClient(broker.port) as client:
        client.produce("logs", batch(b"x"))
    assert broker.program.stop() == 0
    source = broker.logs / "logs-0"
    shutil.copytree(source, broker.logs / "strange-0")
    broker.start()
    aside = [each for each in broker.logs.iterdir() if each.name.startswith("strange-0.")]
    assert len(aside) == 1
    assert aside[0].name.endswith("-stray")
    assert stored(aside[0]) == [(0, 1)]


def test_admin_client_sees_one_stable_cluster(own_broker: SkidwayBroker) -> None:
    """After a restart of the broker, an admin client sees the same cluster id and the same
    controller as before, and the topic still has the same id."""
    broker = own_broker.start()
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.create_topics([NewTopic("logs", 1)])["logs"].result(300)
    before = admin.list_topics(timeout=60)
    note = (broker.logs / "logs-0" / names.PARTITION_METADATA).read_text()
    broker.restart()
    after = AdminClient({"bootstrap.servers": broker.address}).list_topics(timeout=60)
    assert (after.cluster_id, after.controller_id) == (before.cluster_id, before.controller_id)
    assert (broker.logs / "logs-0" / names.PARTITION_METADATA).read_text() == note

"""A real broker keeps its limits on connections, idle time and retention. The tests set these
limits so low that they are reached."""

from __future__ import annotations

import os

from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from support.batches import batch, sized
from support.brokers import SkidwayBroker
from support.processes import eventually
from support.raw_client import RawClient


def create(broker: SkidwayBroker, name: str) -> None:
    with RawClient(broker.port) as client:
        request = CreateTopicsRequest(topics=(CreatableTopic(name=name),))
        answer = client.ask(request, 5, CreateTopicsResponse)
        assert isinstance(answer, CreateTopicsResponse)
        assert answer.topics[0].error_code == 0


def test_idle_connections_are_closed_and_waiting_ones_are_not(own_broker: SkidwayBroker) -> None:
    """A connection that is silent for connections.max.idle.ms is closed. A connection with a
    waiting fetch stays open for longer than this time, and the fetch is answered."""
    own_broker.settings["connections.max.idle.ms"] = 500
    own_broker.start()
    create(own_broker, "logs")
    with RawClient(own_broker.port) as silent, RawClient(own_broker.port) as waiting:
        waiting.send_fetch("logs", 0, max_wait_ms=2000)
        assert silent.receive() == b""
        assert waiting.fetched().error_code == 0
    assert own_broker.metric('skidway_broker_connections_closed_total{reason="idle"}') >= 1


def test_connections_above_the_limit_are_closed(own_broker: SkidwayBroker) -> None:
    """When the number of open connections reaches max.connections, the broker closes new
    connections and keeps the existing ones."""
    own_broker.settings["max.connections"] = 2
    own_broker.start()
    create(own_broker, "logs")
    eventually(lambda: own_broker.metric("skidway_broker_connections ") == 0)
    with RawClient(own_broker.port) as first, RawClient(own_broker.port) as second:
        assert first.produce("logs", batch(b"x")).base_offset == 0
        assert second.produce("logs", batch(b"x")).base_offset == 1
        with RawClient(own_broker.port) as third:
            assert third.receive() == b""
        assert first.produce("logs", batch(b"x")).base_offset == 2


def test_retention_goes_by_append_time_and_moves_the_log_start(own_broker: SkidwayBroker) -> None:
    """log.retention.ms counts from the append time, not from the records' timestamps: records with
    a timestamp of 1970 stay. When log.retention.ms have passed since their append, the broker
    deletes them and raises the log start offset."""
    own_broker.settings |= {
        "log.segment.bytes": 2000,
        "log.retention.ms": 3_600_000,
        "log.retention.check.interval.ms": 100,
        "log.segment.delete.delay.ms": 0,
    }
    own_broker.start()
    create(own_broker, "logs")
    directory = own_broker.logs / "logs-0"
    with RawClient(own_broker.port) as client:
        for _ in range(10):
            client.produce("logs", batch(b"x" * 900, timestamps=[1000]))
        checks = own_broker.metric("skidway_broker_retention_checks_total")
        eventually(lambda: own_broker.metric("skidway_broker_retention_checks_total") >= checks + 3)
        assert client.fetch("logs", 0).log_start_offset == 0
    assert own_broker.program.stop() == 0
    for base in (0, 2):
        os.utime(directory / f"{base:020d}.log", (0, 0))
    own_broker.start()
    with RawClient(own_broker.port) as client:
        eventually(lambda: client.fetch("logs", 9).log_start_offset == 4)
        assert client.fetch("logs", 0).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert client.fetch("logs", 4).error_code == 0
    eventually(lambda: len(list(directory.glob("*.log*"))) == 3)


def test_a_log_keeps_its_size(own_broker: SkidwayBroker) -> None:
    """If a log exceeds retention.bytes, the broker removes the oldest records. All remaining
    records can be read."""
    own_broker.settings |= {
        "log.segment.bytes": 2000,
        "log.retention.bytes": 5000,
        "log.retention.check.interval.ms": 100,
    }
    own_broker.start()
    create(own_broker, "logs")
    with RawClient(own_broker.port) as client:
        for _ in range(30):
            client.produce("logs", sized(900))
        eventually(lambda: client.fetch("logs", 29).log_start_offset >= 20)
        start = client.fetch("logs", 29).log_start_offset
        for offset in range(start, 30):
            found = client.fetch("logs", offset)
            assert found.error_code in (0, ErrorCode.OFFSET_OUT_OF_RANGE)
            assert found.error_code == 0 or offset < found.log_start_offset

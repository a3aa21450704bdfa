"""A real broker keeps its limits on connections, idle time and retention. The tests set these
limits so low that they are reached."""

from __future__ import annotations

import os
import selectors
import socket
import threading
from pathlib import Path

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


def test_one_address_does_not_take_all_connections(own_broker: SkidwayBroker) -> None:
    """When one address has max.connections.per.ip connections, the broker closes its further
    connections; other addresses still connect."""
    own_broker.settings |= {"max.connections.per.ip": 2}
    own_broker.start()
    create(own_broker, "logs")
    eventually(lambda: own_broker.metric("skidway_broker_connections ") == 0)
    with RawClient(own_broker.port), RawClient(own_broker.port) as second:
        with RawClient(own_broker.port) as third:
            assert third.receive() == b""
        with RawClient(own_broker.port, source="127.0.0.2") as other:
            assert other.produce("logs", batch(b"x")).base_offset == 0
        assert second.produce("logs", batch(b"x")).base_offset == 1
    assert own_broker.program.output().count('"bound_reached"') == 1


HOLDERS = 300
QUEUED_BYTES = 32 << 20
FRAME_BYTES = 90 << 20


def hold(port: int, size_bytes: int) -> list[socket.socket]:
    """Opens connections, and sends on all of them together the first `size_bytes` bytes of a frame
    of FRAME_BYTES bytes, as long as the broker takes them."""
    opened = [socket.create_connection(("127.0.0.1", port), 60) for _ in range(HOLDERS)]
    with selectors.DefaultSelector() as selector:
        for sock in opened:
            sock.sendall(FRAME_BYTES.to_bytes(4, "big"))
            sock.setblocking(False)
            selector.register(sock, selectors.EVENT_WRITE, [size_bytes])
        while selector.get_map():
            for key, _ in selector.select():
                left = key.data
                try:
                    left[0] -= key.fileobj.send(bytes(min(left[0], 1 << 16)))  # type: ignore[union-attr]
                except BlockingIOError:
                    continue
                except OSError:
                    left[0] = 0  # the broker has closed the connection
                if not left[0]:
                    selector.unregister(key.fileobj)
    return opened


def test_unfinished_frames_do_not_take_the_memory(own_broker: SkidwayBroker) -> None:
    """300 connections send the beginnings of requests of 90 MB, ten times as much as
    queued.max.request.bytes, and end none. The broker's memory stays near this limit (freed memory
    stays with the process, so it is up to twice as much), and a producer of the same address is
    served on its connection all the time."""
    own_broker.settings |= {"queued.max.request.bytes": QUEUED_BYTES}
    own_broker.start()
    create(own_broker, "logs")
    before = peak_bytes(own_broker)
    opened: list[socket.socket] = []
    with RawClient(own_broker.port) as good:
        attack = threading.Thread(
            target=lambda: opened.extend(hold(own_broker.port, 10 * QUEUED_BYTES // HOLDERS))
        )
        attack.start()
        offset = 0
        while attack.is_alive() or offset < 50:
            assert good.produce("logs", sized(500_000)).base_offset == offset
            offset += 1
        attack.join()
        assert peak_bytes(own_broker) - before < 2.5 * QUEUED_BYTES
        assert own_broker.metric("skidway_broker_queued_request_bytes") <= QUEUED_BYTES
        assert own_broker.metric('skidway_broker_connections_closed_total{reason="memory"}') > 0
        for each in opened:
            each.close()
        eventually(lambda: own_broker.metric("skidway_broker_queued_request_bytes") == 0)
        assert good.produce("logs", batch(b"x")).base_offset == offset
    assert own_broker.program.output().count('"bound_reached"') == 1


def peak_bytes(broker: SkidwayBroker) -> int:
    """Returns the most memory that the broker has had so far (VmHWM)."""
    status = Path(f"/proc/{broker.program.pid}/status").read_text()
    return int(next(x.split()[1] for x in status.splitlines() if x.startswith("VmHWM"))) << 10

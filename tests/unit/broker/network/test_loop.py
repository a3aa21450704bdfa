from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skidway.broker.api import fetch as fetch_api
from skidway.broker.api import produce_run
from skidway.broker.log.partition_log import PartitionLog
from skidway.broker.network.connection import OUTBOX_BYTES_MAX
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol import fetch_request, fetch_response, produce
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.create_topics import CreatableTopic, CreateTopicsRequest
from skidway.kafka.protocol.frames import request_frame, response_body
from skidway.kafka.protocol.messages import encode
from skidway.kafka.types import TopicPartition
from support.batches import batch, sized
from support.broker_core import (
    QUEUED_BYTES_MAX,
    REQUEST_BYTES_MAX,
    BrokerCore,
    CoreClient,
    broker_core,
)

LOGS = TopicPartition("logs", 0)


class Mistake(Exception):
    """An exception that no code of the broker expects."""


def mistake(*_: object, **__: object) -> Any:
    raise Mistake


@pytest.fixture
def core(tmp_path: Path) -> Iterator[BrokerCore]:
    with broker_core(tmp_path) as made:
        client = made.connect()
        wanted = CreateTopicsRequest(topics=(CreatableTopic(name="logs", num_partitions=1),))
        assert client.ask(request_frame(wanted.API, 5, 1, "test", encode(wanted, 5)))
        client.close()
        yield made


def produce_frame(acks: int, data: bytes | bytearray | None = None) -> bytes:
    buffers = [produce.TopicBuffers("logs", 0, (bytes(data or batch(b"x")),))]
    return b"".join(bytes(each) for each in produce.write_request(1, "t", 7, acks, 1000, buffers))


def fetch_frame(offset: int, max_wait_ms: int = 0, version: int = 11) -> bytes:
    wanted = [fetch_request.FetchTarget("logs", 0, offset, 1 << 20)]
    return fetch_request.write_request(
        1, "t", version, fetch_request.Fetch(wanted, max_wait_ms, 1, 1 << 20)
    )


def with_unknown_field(frame: bytes, size_bytes: int) -> bytes:
    """Returns the request `frame`, which has a flexible version, with an unknown field of
    `size_bytes` bytes at its end, as a newer client may send it.

    The field's size is written as a varint of three bytes.
    """
    size = bytes([size_bytes & 127 | 128, size_bytes >> 7 & 127 | 128, size_bytes >> 14])
    content = frame[4:-1] + b"\1\7" + size + bytes(size_bytes)
    return len(content).to_bytes(4, "big") + content


def code_of(answer: bytes | None) -> int:
    assert answer is not None
    body = response_body(memoryview(answer), ApiKey.FETCH, 11)
    return fetch_response.parse_response(body, 11).partitions[0].error_code


def stored(client: CoreClient) -> bool:
    """Sends a batch to the broker, and returns whether the broker stores it. The broker does so
    only if its loop still works."""
    answer = client.ask(produce_frame(-1))
    assert answer is not None
    body = response_body(memoryview(answer), ApiKey.PRODUCE, 7)
    return produce.parse_response(body, 7).results[0].error_code == 0


def test_a_call_that_fails_is_alone(core: BrokerCore, caplog: pytest.LogCaptureFixture) -> None:
    """If a function that a timer calls, or a function that another thread has posted to the loop,
    raises an exception, the broker logs and counts the exception. The loop still calls the
    functions that are due after it."""
    called: list[str] = []
    core.loop.post(mistake)
    core.loop.post(lambda: called.append("posted"))
    core.loop.call_later(10, mistake)
    core.loop.call_later(10, lambda: called.append("timer"))
    core.advance(1)
    assert called == ["posted", "timer"]
    assert core.loop.traffic.failed_calls == 2
    logged = [each.exc_info for each in caplog.records if each.message == "call_failed"]
    assert [info and info[0] for info in logged] == [Mistake, Mistake]
    assert stored(core.connect())


def test_what_is_done_again_and_again_is_done_again_after_a_failure(core: BrokerCore) -> None:
    """A function that the loop calls at intervals (to delete old segments or to write checkpoint
    files, for example) is still called after it has raised an exception."""
    called: list[int] = []

    def unlucky_once() -> None:
        called.append(len(called))
        if len(called) == 1:
            raise Mistake

    core.loop.call_every(1000, unlucky_once)
    for _ in range(3):
        core.advance(1)
    assert called == [0, 1, 2]
    assert core.loop.traffic.failed_calls == 1


def test_a_parked_request_that_fails_is_alone(
    core: BrokerCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A parked request is a request that waits for records. If the broker's code raises an
    exception while it answers a parked request, the broker closes the connection of this request.
    It still answers other requests for the partition."""
    unlucky, lucky = core.connect(), core.connect()
    unlucky.send(fetch_frame(0, 30_000))
    core.advance(0)
    read_all = fetch_api._read_all
    monkeypatch.setattr(fetch_api, "_read_all", mistake)
    assert stored(core.connect())
    assert unlucky.answers() == []
    assert unlucky.is_closed
    assert core.broker.purgatory.failed == 1
    monkeypatch.setattr(fetch_api, "_read_all", read_all)
    assert code_of(lucky.ask(fetch_frame(0, 30_000))) == 0


def test_a_parked_request_that_fails_at_its_deadline_is_alone(
    core: BrokerCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A parked request is a request that waits for records until its deadline. If the broker's code
    raises an exception at the deadline, the broker closes the connection of this request, and
    continues."""
    unlucky = core.connect()
    unlucky.send(fetch_frame(0, 1000))
    core.advance(0)
    monkeypatch.setattr(fetch_api, "_read_all", mistake)
    core.advance(2)
    unlucky.answers()
    assert unlucky.is_closed
    assert core.closed_for("failed") == 1
    assert stored(core.connect())


def test_an_answer_that_fails_is_alone(core: BrokerCore, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the broker's code raises an exception while it makes an answer, the broker closes the
    connection that waits for this answer. The other connections get their answers."""
    unlucky, lucky = core.connect(), core.connect()
    for each in (unlucky, lucky):
        assert each.ask(produce_frame(1))  # now the broker knows the layout of such requests
    unlucky.send(produce_frame(1))
    lucky.send(produce_frame(-1))
    monkeypatch.setattr(produce_run, "_when_written", mistake)
    core.advance(0)
    assert unlucky.answers() == []
    assert unlucky.is_closed
    assert len(lucky.answers()) == 1
    assert core.broker.counts.answers_failed == 1


def test_a_flush_that_cannot_be_finished_stops_its_partition(
    core: BrokerCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the broker's code raises an exception after the fsync of a flush, the broker does not know
    what is on disk. So it stops the partition, and requests for the partition get
    KAFKA_STORAGE_ERROR. The broker itself continues."""
    monkeypatch.setattr(PartitionLog, "finish_flush", mistake)
    client = core.connect()
    answer = client.ask(produce_frame(-1))
    assert answer is not None
    body = response_body(memoryview(answer), ApiKey.PRODUCE, 7)
    refused = produce.parse_response(body, 7).results[0]
    assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "Mistake" in core.broker.logs.stopped[LOGS]
    assert core.broker.partitions.flushes.unfinished == 1
    assert code_of(client.ask(fetch_frame(0))) == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_turn_that_cannot_be_ended_ends_the_broker(
    core: BrokerCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the end of a turn the broker writes the logs. If the write raises an unexpected exception,
    the broker ends, because the logs' state is unknown."""
    monkeypatch.setattr(PartitionLog, "write", mistake)
    client = core.connect()
    client.send(produce_frame(1))
    with pytest.raises(Mistake):
        core.advance(0)
    assert client.answers() == []


def test_a_file_that_was_cut_stops_its_partition(core: BrokerCore) -> None:
    """If the broker finds, while it sends an answer, that a segment's file was truncated, it closes
    the connection and stops the partition. The next fetch gets KAFKA_STORAGE_ERROR."""
    client = core.connect()
    assert client.ask(produce_frame(-1, sized(100_000)))
    assert code_of(client.ask(fetch_frame(0))) == 0
    log = core.broker.logs.logs[LOGS]
    log.active.file_cut(50_000)
    assert client.ask(fetch_frame(0)) is None
    assert client.is_closed
    assert core.closed_for("unreadable") == 1
    assert "damaged at position 50000" in core.broker.logs.stopped[LOGS]
    assert code_of(core.connect().ask(fetch_frame(0))) == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_request_that_waits_lets_its_bytes_go(core: BrokerCore) -> None:
    """While a request is parked (waits for records), the broker does not keep the bytes of fields
    that it does not know. Otherwise one connection could fill the machine's memory with waiting
    requests of 100 MB each."""
    client = core.connect()
    client.send(with_unknown_field(fetch_frame(0, 30_000, version=12), 1000))  # fills all caches
    core.advance(0)
    tracemalloc.start()
    try:
        for _ in range(8):
            client.send(with_unknown_field(fetch_frame(0, 30_000, version=12), 900_000))
            core.advance(0)
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(core.broker.purgatory) == 9
    assert held_bytes < 900_000


def test_a_connection_that_is_full_behind_a_parked_request_wakes_nobody(core: BrokerCore) -> None:
    """If a connection has a parked request (a request that waits for records), the answers to its
    later requests wait until the parked request is answered. If these answers fill the connection,
    new bytes from its client do not wake the loop. The broker reads these bytes after it has sent
    the answers."""
    client = core.connect()
    client.send(fetch_frame(0, 30_000))
    core.advance(0)
    (connection,) = core.loop.connections.values()
    late = connection.reserve()
    core.loop.fill(connection, late, [OUTBOX_BYTES_MAX.to_bytes(4, "big"), bytes(OUTBOX_BYTES_MAX)])
    client.send(fetch_frame(0))
    core.turn()
    assert connection.descriptor not in dict(core.loop._epoll.poll(0))
    assert stored(core.connect())  # this answers the parked fetch
    answers = client.answers()
    while connection.is_busy or connection.inbound.pending_bytes or len(answers) < 3:
        core.turn()
        answers += client.answers()
    assert [len(each) == OUTBOX_BYTES_MAX for each in answers] == [False, True, False]
    assert code_of(answers[2]) == 0


def test_requests_share_their_memory(core: BrokerCore) -> None:
    """Requests that have arrived in part need at most queued.max.request.bytes of memory. When they
    need so much, further clients wait, and are served when there is room; nobody is closed."""
    start = (REQUEST_BYTES_MAX).to_bytes(4, "big") + bytes(REQUEST_BYTES_MAX // 2)
    fits = QUEUED_BYTES_MAX // REQUEST_BYTES_MAX
    holding = [core.connect() for _ in range(fits)]
    for each in holding:
        each.send(start)
        core.advance(0)
    assert core.loop.queued.held.total >= QUEUED_BYTES_MAX - REQUEST_BYTES_MAX
    late = [core.connect() for _ in range(3)]
    for each in late:
        each.send(fetch_frame(0))
        core.advance(0)
    assert core.loop.queued.held.total <= QUEUED_BYTES_MAX + REQUEST_BYTES_MAX
    assert late[0].answers() == []
    holding[5].close()
    core.advance(0)
    core.advance(0)
    assert [len(each.answers()) for each in late] == [1, 1, 1]
    assert core.closed_for("memory") == 0


def test_who_is_late_gives_way(core: BrokerCore) -> None:
    """While others wait for memory, a client that does not send its whole request in ten seconds is
    closed."""
    start = (REQUEST_BYTES_MAX).to_bytes(4, "big") + bytes(REQUEST_BYTES_MAX // 2)
    holding = [core.connect() for _ in range(QUEUED_BYTES_MAX // REQUEST_BYTES_MAX)]
    for each in holding:
        each.send(start)
        core.advance(0)
    good = core.connect()
    good.send(fetch_frame(0))
    core.advance(0)
    assert good.answers() == []
    for _ in range(12):
        core.advance(1000)
    assert len(good.answers()) == 1
    assert core.closed_for("memory") == len(holding)
    assert core.loop.queued.held.total == 0


def test_answers_that_nobody_reads_share_their_memory(core: BrokerCore) -> None:
    """Answers that clients do not read need at most queued.max.request.bytes of memory: above it,
    connections are closed, of the address with the most of it."""
    clients = [core.connect() for _ in range(10)]
    core.advance(0)
    for connection in list(core.loop.connections.values()):
        core.loop.fill(connection, connection.reserve(), [bytes(QUEUED_BYTES_MAX // 8)])
        core.turn()
    assert core.loop.unsent.total <= QUEUED_BYTES_MAX
    assert 0 < core.closed_for("memory") < len(clients)


def test_requests_that_wait_count_as_well(core: BrokerCore) -> None:
    """Requests that arrived as a whole, but wait because their client has too many unanswered
    requests, are part of the memory of queued.max.request.bytes. It is free again when they are
    handled."""
    client = core.connect()
    client.send(fetch_frame(0, max_wait_ms=1000) * 300)
    core.advance(0)
    assert core.loop.queued.held.total > 0
    for _ in range(4):
        core.advance(1)
    assert core.loop.queued.held.total == 0
    assert len(client.answers()) == 300

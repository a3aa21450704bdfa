"""A run is a sequence of similar Produce requests of one connection. The broker appends their
batches one by one and answers the requests together."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from skidway.broker.api.produce_run import Alike, handle_alike
from skidway.broker.api.produce_shape import learn
from skidway.broker.counts import Counts
from skidway.broker.log.timestamps import at_or_after
from skidway.broker.network.connection import Connection, Slot
from skidway.broker.network.transport import PlainTransport
from skidway.kafka.batch import check, headers, read_header, stamp_max_timestamp
from skidway.kafka.codecs import ZSTD
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol import produce
from skidway.kafka.protocol.frames import read_request_header
from skidway.kafka.protocol.pieces import Piece
from skidway.kafka.protocol.produce import ProduceResult, TopicBuffers
from support.batches import NOW_MS, PARTITION, batch
from support.hosting import World

VERSION = 7


class Socket:
    def fileno(self) -> int:
        return 99

    def recv_into(self, _buffer: memoryview) -> int:
        raise BlockingIOError

    def close(self) -> None:
        pass


class Answers:
    """A stand-in for the broker's loop. It keeps the answers that handlers give it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.given: list[bytes] = []
        self.dropped: list[str] = []

    def fill(self, connection: Connection, slot: Slot, pieces: Sequence[Piece]) -> None:
        connection.fill(slot, pieces)
        self.given.append(b"".join(bytes(each) for each in pieces if isinstance(each, bytes)))

    def drop(self, connection: Connection, reason: str) -> None:
        connection.close()
        self.dropped.append(reason)


class Broker:
    """A stand-in for those parts of the broker that the handler of runs (similar Produce requests)
    needs. It has one partition."""

    def __init__(self, directory: Path) -> None:
        self.world = World(directory)
        self.partitions = self.world.hosted
        self.purgatory = self.world.purgatory
        self.loop = Answers()
        self.login_ends_at = math.inf
        self.counts = Counts()
        self.access = SimpleNamespace(authorizer=SimpleNamespace(mode="off"))
        self.now_ms = NOW_MS
        self.stopping = False
        self.appended: list[Any] = []
        self.connection = Connection(
            PlainTransport(Socket()),  # type: ignore[arg-type]
            "test",
            "PLAINTEXT",
            request_bytes_max=1 << 20,
            requests_max=100,
        )

    def not_written(self, _partition: object) -> str | None:
        self.counts.count_refused("StorageFailed")
        return None

    def why_not_served(self, topic: str, partition: int) -> ErrorCode:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def learn(self, acks: int, timeout_ms: int = 1000) -> None:
        view = frame(0, batch(), acks, timeout_ms)
        _, body = read_request_header(view)
        shape = learn(view, VERSION, produce.parse_request(body, VERSION), self.world.replica)
        assert shape is not None
        alike = self.connection.memo = Alike(self.login_ends_at)
        alike.shapes.add(shape)

    def handle(self, number: int, data: bytearray, acks: int, timeout_ms: int = 1000) -> bool:
        return handle_alike(self, self.connection, frame(number, data, acks, timeout_ms))  # type: ignore[arg-type]

    def end_turn(self) -> None:
        self.partitions.write()
        appended, self.appended = self.appended, []
        for each in appended:
            each.answer_written(self)


def frame(number: int, data: bytearray, acks: int, timeout_ms: int = 1000) -> memoryview:
    pieces = produce.write_request(
        number, "c", VERSION, acks, timeout_ms, [TopicBuffers(*PARTITION, (bytes(data),))]
    )
    return memoryview(bytearray(b"".join(bytes(each) for each in pieces)))[4:]


def answer(number: int, base: int, code: int = 0, log_start: int = 0) -> bytes:
    result = ProduceResult(*PARTITION, code, base, -1, log_start)
    return bytes(produce.write_response(number, VERSION, [result]))


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    return Broker(tmp_path)


def test_a_turns_requests_are_answered_in_one_piece(broker: Broker) -> None:
    """In each turn of the loop, the broker writes all new batches to the partition's log. Then it
    passes the connection one piece of bytes, which contains the answers to all requests of these
    batches. The answers are in the order of the requests, each with its own correlation id and
    offset."""
    broker.learn(1)
    for number in range(3):
        assert broker.handle(number, batch(b"a", b"b"), 1)
    assert broker.loop.given == []
    broker.end_turn()
    assert broker.loop.given == [b"".join(answer(number, 2 * number) for number in range(3))]
    assert broker.counts.messages == 6
    assert not broker.connection.is_busy or broker.connection.has_output


def test_a_request_that_differs_ends_the_run(broker: Broker) -> None:
    """A run is a sequence of similar Produce requests of one connection. A request that is not
    similar to those of the run ends the run. The answer to this request comes after the answers of
    the run and before the answers of the next run."""
    broker.learn(1)
    assert broker.handle(0, batch(), 1)
    assert not broker.handle(1, batch(), 1, timeout_ms=7)
    between = broker.connection.reserve()
    assert broker.handle(2, batch(), 1)
    broker.end_turn()
    assert broker.loop.given == [answer(0, 0), answer(2, 1)]
    broker.connection.fill(between, [b"between"])
    sent = [bytes(each) for each in broker.connection._outbox if isinstance(each, bytes)]
    assert sent == [answer(0, 0), b"between", answer(2, 1)]


def test_the_broker_sets_a_largest_time_that_a_producer_did_not_set(broker: Broker) -> None:
    """Older versions of Sarama do not set the largest event time of a batch. The broker writes the
    present time in its place, without a look at the records, so that the records are found by their
    times. No time is too late for it."""
    broker.learn(1)
    early = [NOW_MS - 9, NOW_MS - 3, NOW_MS - 5]
    for number, times in enumerate((early, [NOW_MS - 1], [(1 << 63) - 1])):
        data = batch(*[b"a"] * len(times), timestamps=times, codec=ZSTD)
        stamp_max_timestamp(data, 0, read_header(data), -1)
        assert broker.handle(number, data, 1)
    broker.end_turn()
    log = broker.world.replica.log
    assert at_or_after(log, NOW_MS - 4, log.written) == (NOW_MS - 3, 1)
    assert at_or_after(log, NOW_MS - 2, log.written) == (NOW_MS - 1, 3)
    stored = bytearray(log.segments[0].path.read_bytes())
    found = [header for at, header in headers(stored) if check(stored, at, header) is None]
    assert [each.max_timestamp for each in found] == [NOW_MS, NOW_MS, (1 << 63) - 1]


def test_a_bad_batch_is_left_to_the_general_way(broker: Broker) -> None:
    """The handler of runs (sequences of similar Produce requests) leaves a bad batch to the general
    handler. The bad batch is not stored and not counted, and the good batches before and after it
    are stored."""
    broker.learn(1)
    bad = batch()
    bad[-1] ^= 1
    assert broker.handle(0, batch(), 1)
    assert not broker.handle(1, bad, 1)
    assert broker.handle(2, batch(), 1)
    broker.end_turn()
    assert broker.loop.given == [answer(0, 0), answer(2, 1)]
    assert broker.counts.batches == 2


def test_a_duplicate_is_left_to_the_general_way(broker: Broker) -> None:
    """The handler of runs (sequences of similar Produce requests) leaves a duplicate batch to the
    general handler. Only the general handler can give the right answer, which contains the first
    offset of the stored batch."""
    broker.learn(-1)
    sent = batch(producer_id=1, epoch=0, sequence=0)
    assert broker.handle(0, sent, -1)
    assert not broker.handle(1, sent, -1)
    assert broker.world.replica.log.log_end_offset == 1


def test_with_acks_all_a_run_waits_for_the_flush(broker: Broker) -> None:
    """With acks=all, a whole run (a sequence of similar Produce requests) is answered after one
    flush. A run that arrives in the next turn of the loop waits for another flush."""
    broker.learn(-1)
    broker.handle(0, batch(), -1)
    broker.handle(1, batch(), -1)
    broker.end_turn()
    broker.handle(2, batch(), -1)
    broker.end_turn()
    assert broker.loop.given == []
    broker.world.worker.finish()
    assert broker.loop.given == [answer(0, 0) + answer(1, 1)]
    broker.world.worker.finish()
    assert broker.loop.given[1:] == [answer(2, 2)]


def test_a_flush_of_its_first_batches_answers_no_run(broker: Broker) -> None:
    """A run (a sequence of similar Produce requests) with acks=all is answered when its last batch
    is flushed. If a new segment begins within the run, the first batches of the run may be flushed
    earlier than the others. This flush does not answer the run.
    """
    broker.learn(-1)
    broker.handle(0, batch(), -1)
    broker.world.replica.log.write()
    broker.partitions.flush_all(lambda: None)
    broker.handle(1, batch(), -1)
    broker.world.worker.finish()
    assert broker.world.replica.offset == 1
    broker.end_turn()
    assert broker.loop.given == []
    broker.world.worker.finish()
    assert broker.loop.given == [answer(0, 0) + answer(1, 1)]


def test_acks_all_times_out(broker: Broker) -> None:
    """With acks=all, each request of a run (a sequence of similar Produce requests) gets
    REQUEST_TIMED_OUT if there is no flush within the request's timeout."""
    broker.learn(-1, timeout_ms=500)
    broker.handle(0, batch(), -1, timeout_ms=500)
    broker.handle(1, batch(), -1, timeout_ms=500)
    broker.end_turn()
    broker.world.advance(1)
    late = ErrorCode.REQUEST_TIMED_OUT
    assert broker.loop.given == [answer(0, -1, late, -1) + answer(1, -1, late, -1)]
    broker.world.worker.finish()
    assert len(broker.loop.given) == 1


def test_a_partition_dropped_answers_who_waits(broker: Broker) -> None:
    """When the broker stops serving a partition, requests that wait for the partition's high
    watermark get NOT_LEADER_OR_FOLLOWER at once."""
    broker.learn(-1)
    broker.handle(0, batch(), -1)
    broker.end_turn()
    broker.partitions.drop(PARTITION)
    assert broker.loop.given == [answer(0, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)]


def test_acks_0_is_answered_by_nothing(broker: Broker) -> None:
    """With acks=0, no answer is sent. After the write, each request leaves the connection's queue
    of unanswered requests."""
    broker.learn(0)
    for number in range(3):
        broker.handle(number, batch(), 0)
    broker.end_turn()
    assert broker.loop.given == [b""]
    assert not broker.connection.is_busy
    assert broker.world.replica.log.written.offset == 3


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_a_write_that_failed_is_no_success(
    broker: Broker, acks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failed write, each request of a run (a sequence of similar Produce requests) gets
    KAFKA_STORAGE_ERROR. With acks=0 there is no answer, so the broker closes the connection."""
    broker.learn(acks)
    broker.handle(0, batch(), acks)
    broker.handle(1, batch(), acks)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwritev", full)
        broker.end_turn()
    failed = ErrorCode.KAFKA_STORAGE_ERROR
    if acks == 0:
        assert broker.loop.dropped == ["acks_0_refused"]
    else:
        assert broker.loop.given == [answer(0, -1, failed, -1) + answer(1, -1, failed, -1)]
    assert broker.world.replica.log.log_end_offset == 0


def test_a_client_that_has_gone_is_not_answered(broker: Broker) -> None:
    """When a client disconnects, its records stay in the log, and its requests no longer wait for a
    flush."""
    broker.learn(-1)
    broker.handle(0, batch(), -1)
    broker.connection.close()
    broker.end_turn()
    assert len(broker.purgatory) == 0
    assert broker.world.replica.log.written.offset == 1

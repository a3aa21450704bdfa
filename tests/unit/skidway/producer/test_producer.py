from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields
from multiprocessing import get_context
from typing import Any

import pytest

from skidway.errors import SkidwayError, Unreachable, UsageError
from skidway.kafka.errors import ErrorCode, error_for
from skidway.kafka.types import TopicPartition
from skidway.producer import BufferFull, Producer
from skidway.producer.directory import KnownTopic
from skidway.producer.sender import Outgoing
from skidway.producer.sending import Sending
from skidway.producer.settings import ProducerOptions, ProducerSettings
from support.processes import eventually

NOBODY = "127.0.0.1:1"


@pytest.mark.parametrize(
    "wrong",
    [
        {"acks": 2},
        {"acks": 0},
        {"compression_type": "brotli"},
        {"linger_ms": -1},
        {"max_in_flight_requests_per_connection": 6},
        {"linger": 5},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: Any) -> None:
    """Invalid or contradictory settings are refused with a usage error before the producer opens a
    connection."""
    with pytest.raises(UsageError):
        Producer(NOBODY, **wrong)
    with pytest.raises(UsageError):
        Producer("no address at all:", linger_ms=1)


def test_options_are_the_settings() -> None:
    """Every setting of a producer can be given as an option, and there are no other options."""
    assert {each.name for each in fields(ProducerSettings)} == set(ProducerOptions.__annotations__)
    assert ProducerSettings(acks=0, enable_idempotence=False).acks_number == 0
    assert ProducerSettings(acks=-1).acks_number == -1


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every topic known to the producer. No broker answers."""
    topic = KnownTopic(3, (0, 1, 2), 1_000, 0.0)
    monkeypatch.setattr("skidway.producer.directory.Directory.topic", lambda *_, **__: topic)


@pytest.mark.usefixtures("known")
def test_a_full_buffer_holds_senders_back() -> None:
    """If the buffer is full, a send raises BufferFull after max_block_ms. If messages are still in
    the buffer when the timeout of `close` is over, their futures fail, and `close` raises an error
    that says so."""
    producer = Producer(NOBODY, buffer_memory=1_000, max_block_ms=50)
    try:
        first = producer.send("t", bytes(800))
        with pytest.raises(BufferFull):
            producer.send("t", bytes(800))
        with pytest.raises(BufferFull):
            producer.send("t", [bytes(10), bytes(800)])
    finally:
        with pytest.raises(Unreachable, match="not acknowledged after 50 ms"):
            producer.close(50)
    assert isinstance(first.exception(0), SkidwayError)
    with pytest.raises(SkidwayError, match="closed"):
        producer.send("t", b"x")
    producer.close()


@pytest.mark.usefixtures("known")
def test_keys_belong_to_messages() -> None:
    """A send of several messages may have one key for all messages or a key for each message. Any
    other number of keys is refused. The future of a send without messages is done at once."""
    with Producer(NOBODY) as producer:
        with pytest.raises(UsageError, match="2 keys for 3 messages"):
            producer.send("t", [b"a", b"b", b"c"], key=[b"1", b"2"])
        assert producer.send("t", []).result(0) == []


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    "wrong",
    [
        {"timestamp_ms": 1 << 62},
        {"timestamp_ms": -2},
        {"timestamp_ms": "now"},
        {"timestamp_ms": 1.5},
        {"key": ["text"]},
        {"key": [[b"a"]]},
    ],
)
def test_a_send_that_makes_no_sense_is_refused_alone(wrong: Any) -> None:
    """A send with invalid arguments raises an exception in its caller, and does not disturb other
    sends."""
    producer = Producer(NOBODY)
    try:
        with pytest.raises(UsageError):
            producer.send("t", [b"x"], partition=0, **wrong)
        producer.send("t", b"y", timestamp_ms=-1)
        with pytest.raises(Unreachable, match="1 sends not acknowledged"):
            producer.flush(50)
    finally:
        with pytest.raises(Unreachable):
            producer.close(0)


@pytest.mark.usefixtures("known")
def test_what_a_flush_waited_for_is_looked_up_where_it_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If a flush or close does not finish in time, the producer's own thread looks up why batches
    are not delivered, because only this thread may read the state of the partitions. The error
    names the reason."""
    asked_on: set[str] = set()

    def troubles(_: Outgoing) -> dict[Any, Any]:
        asked_on.add(threading.current_thread().name)
        return {TopicPartition("t", 0): error_for(ErrorCode.NOT_ENOUGH_REPLICAS)}

    monkeypatch.setattr(Outgoing, "troubles", property(troubles))
    producer = Producer(NOBODY)
    producer.send("t", b"x")
    eventually(producer._sender.troubles)
    with pytest.raises(Unreachable, match="not acknowledged after 50 ms: NOT_ENOUGH_REPLICAS"):
        producer.flush(50)
    with pytest.raises(Unreachable, match="not acknowledged after 50 ms: NOT_ENOUGH_REPLICAS"):
        producer.close(50)
    assert asked_on == {"skidway-producer"}


@pytest.mark.usefixtures("known")
def test_when_its_thread_ends_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the producer's thread ends with an error, all futures fail, sends are refused, and close
    raises an error with the number of lost sends."""
    go = threading.Event()

    def broken(*_: object) -> None:
        go.wait(60)
        raise RuntimeError("broken")

    monkeypatch.setattr("skidway.producer.producer.Outgoing.turn", broken)
    producer = Producer(NOBODY)
    sent = producer.send("t", b"x")
    go.set()
    assert "broken" in str(sent.exception(10))
    with pytest.raises(SkidwayError, match="ended"):
        producer.send("t", b"y")
    with pytest.raises(SkidwayError, match="1 sends not delivered"):
        producer.close()
    producer.close()


@pytest.mark.usefixtures("known")
def test_a_flush_behind_the_end_touches_no_descriptor() -> None:
    """A flush after `close` does not write to the descriptor that wakes the producer's thread. This
    descriptor is closed, and its number may belong to another file by then."""
    producer = Producer(NOBODY)
    wake = producer._sender._wake
    producer.close()
    taken = os.eventfd(0, os.EFD_NONBLOCK)
    try:
        os.dup2(taken, wake)
        producer.flush()
        with pytest.raises(BlockingIOError):
            os.eventfd_read(wake)
    finally:
        os.close(taken)
        if taken != wake:
            os.close(wake)


class DeliversAtOnce:
    """A fake for the part of the producer that sends batches. It has no thread: each call of `wake`
    delivers the batches that are ready."""

    def __init__(self, _connect: Any, batches: Producer) -> None:
        self.batches = batches

    def wake(self) -> None:
        for batch in self.batches.ready():
            self.batches.delivered(batch, 0)

    def stop(self) -> None:
        pass


@pytest.mark.usefixtures("known")
def test_who_waits_for_room_does_not_wait_for_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the buffer is full of batches that wait for the end of `linger.ms`, and another send needs
    room, the producer sends these batches at once."""
    monkeypatch.setattr("skidway.producer.producer.Sender", DeliversAtOnce)
    hour_ms = 3_600_000
    with Producer(NOBODY, linger_ms=hour_ms, buffer_memory=1_000, max_block_ms=0) as producer:
        first = producer.send("t", bytes(800))
        second = producer.send("t", bytes(800))
        assert first.done()
        assert not second.done()
    assert second.done()


@pytest.mark.usefixtures("known")
def test_a_send_that_is_interrupted_is_waited_for_by_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If Ctrl-C interrupts a send that waits for room in the buffer, a later flush waits only for
    the other sends."""
    monkeypatch.setattr("skidway.producer.producer.Sender", DeliversAtOnce)

    def interrupted(*_: object) -> bool:
        raise KeyboardInterrupt

    with Producer(NOBODY, linger_ms=3_600_000, buffer_memory=1_000) as producer:
        producer.send("t", bytes(800))
        with monkeypatch.context() as patched:
            patched.setattr(producer._buffer, "_wait_for_room", interrupted)
            with pytest.raises(KeyboardInterrupt):
                producer.send("t", bytes(800))
        producer.flush(0)


@pytest.mark.usefixtures("known")
def test_memory_is_bounded_whatever_is_sent() -> None:
    """The bytes of messages that are not delivered yet never exceed buffer_memory, even if the
    messages of a single send have more bytes together."""
    producer = Producer(NOBODY, buffer_memory=20_000, max_block_ms=20, batch_size=1_000)
    held: list[int] = []
    refused = 0
    try:
        for size, count in ((10, 1), (500, 30), (3_000, 2), (1, 4_000), (19_000, 1), (10, 50)):
            try:
                producer.send("t", [bytes(size)] * count)
            except BufferFull:
                refused += 1
            held.append(producer._buffer.size_bytes)
    finally:
        with pytest.raises(Unreachable):
            producer.close(20)
    assert refused >= 3
    assert max(held) <= 20_000


def test_who_abandons_and_who_fails_a_part_end_it_once() -> None:
    """The messages of one send are called a set. The future of a set is completed exactly once,
    even if two threads report failed messages of the set while a third thread lets all remaining
    messages of the set fail."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(300):
            sending, start = Sending(0, 10, single=False), threading.Barrier(3)
            ended: list[object] = []
            sending.future.add_done_callback(ended.append)

            def part(sending: Sending = sending, start: threading.Barrier = start) -> None:
                start.wait()
                sending.failed(4, SkidwayError("no room"))

            def rest(sending: Sending = sending, start: threading.Barrier = start) -> None:
                start.wait()
                sending.abandon(SkidwayError("over"))

            threads = [threading.Thread(target=each) for each in (part, rest, part)]
            for each in threads:
                each.start()
            for each in threads:
                each.join()
            assert (len(ended), sending._left) == (1, 0)
            assert isinstance(sending.future.exception(0), SkidwayError)
    finally:
        sys.setswitchinterval(interval)


FORK = get_context("fork")


def _send_unclosed(written: int) -> None:
    """Sends one message, which waits for `linger_ms`, with a producer that nobody closes. Writes a
    byte to the pipe when the message is delivered."""
    future = Producer(NOBODY, linger_ms=3_600_000).send("t", b"x")
    future.add_done_callback(lambda _: os.write(written, b"1") and None)


def _in_process(written: int) -> None:
    child = FORK.Process(target=_send_unclosed, args=(written,))
    child.start()
    child.join()


def _in_failing_process(written: int) -> None:
    def fail() -> None:
        _send_unclosed(written)
        sys.exit(1)

    child = FORK.Process(target=fail)
    child.start()
    child.join()


def _in_pool(written: int) -> None:
    with FORK.Pool(1) as pool:
        pool.apply(_send_unclosed, (written,))
        pool.close()
        pool.join()


def _in_executor(written: int) -> None:
    with ProcessPoolExecutor(1, FORK) as pool:
        pool.submit(_send_unclosed, written).result()


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("run", [_in_process, _in_failing_process, _in_pool, _in_executor])
def test_an_unclosed_producer_of_a_child_is_flushed(
    monkeypatch: pytest.MonkeyPatch, run: Callable[[int], None]
) -> None:
    """What a child of multiprocessing has sent is delivered before the child ends, even if it never
    closes its producer."""
    monkeypatch.setattr("skidway.producer.producer.Sender", DeliversAtOnce)
    read, written = os.pipe()
    try:
        run(written)
    finally:
        os.close(written)
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read() == b"1"

"""Our Kafka client works in the event loop of another program, as in a broker's mirror. A mirror
copies the topics of another cluster, which is called the mirror's source."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator

import pytest

from skidway.kafka.batch import CorruptBatch, EncodedBatch, check, read_header, seal
from skidway.kafka.client.cluster import cluster_of
from skidway.kafka.client.following import LoopClient, Turn
from skidway.kafka.client.metadata import metadata_call
from skidway.kafka.client.session import Disconnected
from skidway.kafka.codecs import NONE
from skidway.kafka.errors import ErrorCode, OffsetOutOfRange
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.types import TopicPartition
from support.processes import free_port
from support.scripted_broker import HangUp, ScriptedBroker, Silence, scripted

LOGS = TopicPartition("logs", 0)


class Loop:
    """A small epoll loop with one client, like the broker's loop."""

    def __init__(self, bootstrap: str) -> None:
        self.epoll = select.epoll()
        self.watched: set[int] = set()
        self.client = LoopClient(bootstrap, self, max_wait_ms=50, max_bytes=200)
        self.turns: list[Turn] = []

    def watch(self, fd: int, *, read: bool, write: bool) -> None:
        events = read * select.EPOLLIN | write * select.EPOLLOUT
        if fd in self.watched:
            self.epoll.modify(fd, events)
        else:
            self.epoll.register(fd, events)
            self.watched.add(fd)

    def unwatch(self, fd: int) -> None:
        self.epoll.unregister(fd)
        self.watched.remove(fd)

    def run_until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + 300
        while not condition():
            assert time.monotonic() < deadline
            due = self.client.next_deadline
            wait_s = 1.0 if due is None else max(due - time.monotonic(), 0)
            for fd, mask in self.epoll.poll(wait_s):
                assert self.client.ready(
                    fd, bool(mask & ~select.EPOLLOUT), bool(mask & ~select.EPOLLIN)
                )
            self.turns.append(self.client.turn())

    def batches(self) -> list[bytes]:
        return [bytes(b) for turn in self.turns for f in turn.fetched for b in f.batches]

    def close(self) -> None:
        self.client.close()
        self.epoll.close()


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    with scripted({"logs": 1}) as running:
        yield running


@pytest.fixture
def loop(broker: ScriptedBroker) -> Iterator[Loop]:
    made = Loop(broker.address)
    yield made
    made.close()
    assert made.watched == set()


def fill(broker: ScriptedBroker, count: int) -> None:
    for number in range(count):
        body = b"opaque %d" % number
        broker.logs[LOGS].append(seal(EncodedBatch(body, NONE.number, 2, 0, 0, len(body))))


@pytest.mark.parametrize("fault", [None, HangUp, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_a_mirror_gets_every_batch_as_it_is(
    broker: ScriptedBroker, loop: Loop, fault: ErrorCode | type[HangUp] | None
) -> None:
    """The mirror gets every batch byte for byte, once and in order, even if connections are
    lost."""
    fill(broker, 20)
    if fault is not None:
        broker.faults[ApiKey.FETCH] += [fault, fault]
    loop.client.seek(LOGS, 0)
    loop.run_until(lambda: loop.client.positions == {LOGS: 40})
    assert loop.batches() == broker.logs[LOGS].batches
    for raw in loop.batches():
        check(raw, 0, read_header(raw))


def test_a_mirror_looks_again_at_the_batch_below_its_end(
    broker: ScriptedBroker, loop: Loop
) -> None:
    """If the mirror seeks to the last offset of its own log, it gets the whole batch that contains
    this offset."""
    fill(broker, 3)
    loop.client.seek(LOGS, 5)
    loop.run_until(loop.batches)
    assert loop.batches() == broker.logs[LOGS].batches[2:]


def test_questions_are_answered_beside(broker: ScriptedBroker, loop: Loop) -> None:
    """While the mirror fetches, it can also send other requests to the source. Even if the source
    does not answer the fetch, a later turn of the event loop returns the answer to such a request,
    together with the number (`ticket`) that `ask` returned for the request."""
    broker.faults[ApiKey.FETCH].append(Silence)
    loop.client.seek(LOGS, 0)
    loop.run_until(lambda: broker.count(ApiKey.FETCH))
    ticket = loop.client.ask(metadata_call(None))
    loop.run_until(lambda: any(turn.answers for turn in loop.turns))
    answer = next(answer for turn in loop.turns for answer in turn.answers)
    assert answer.ticket == ticket
    assert answer.error is None
    assert list(cluster_of(answer.response).topics) == ["logs"]
    assert broker.count(ApiKey.FETCH) == 1


def test_what_stops_a_partition_is_told(broker: ScriptedBroker, loop: Loop) -> None:
    """If the source no longer has the requested offset, or a fetched batch is damaged, the client
    returns the error as a value. It does not raise an exception in the event loop."""
    fill(broker, 2)
    broker.logs[LOGS].start = 2
    loop.client.seek(LOGS, 0)
    loop.run_until(lambda: any(turn.stopped for turn in loop.turns))
    [(tp, error)] = [each for turn in loop.turns for each in turn.stopped]
    assert tp == LOGS
    assert isinstance(error, OffsetOutOfRange)
    assert error.log_start_offset == 2
    broken = bytearray(broker.logs[LOGS].batches[1])
    broken[16] = 1
    broker.logs[LOGS].batches[1] = bytes(broken)
    broker.logs[LOGS].read = lambda offset, _: broker.logs[LOGS].batches[1:]  # type: ignore[method-assign]
    loop.turns.clear()
    loop.client.seek(LOGS, 2)
    loop.run_until(lambda: any(turn.stopped for turn in loop.turns))
    assert isinstance(loop.turns[-1].stopped[0][1], CorruptBatch)


def test_nobody_there_is_a_value() -> None:
    """If the source is down, the answer to each request is an error, which comes at once or at the
    request's deadline. No call blocks the event loop."""
    lonely = Loop(f"127.0.0.1:{free_port()}")
    try:
        ticket = lonely.client.ask(metadata_call(None))
        lonely.run_until(lambda: any(turn.answers for turn in lonely.turns))
        answer = next(answer for turn in lonely.turns for answer in turn.answers)
        assert answer.ticket == ticket
        assert isinstance(answer.error, Disconnected)
        again = lonely.client.ask(metadata_call(None))
        answers = lonely.client.turn().answers
        assert [(each.ticket, type(each.error)) for each in answers] == [(again, Disconnected)]
        assert "refused" in lonely.client.last_failure
    finally:
        lonely.close()

"""While many clients send requests without end, a client with few requests is served within a few
turns. A turn is one pass of the broker's event loop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from skidway.broker.network.inbound import RECEIVE_BYTES_MIN
from skidway.broker.network.loop import BYTES_PER_COST
from skidway.broker.network.shares import ALLOWANCE_MIN, TURN_COST
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol import produce
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.create_topics import CreatableTopic, CreateTopicsRequest
from skidway.kafka.protocol.frames import request_frame, response_body
from skidway.kafka.protocol.messages import encode
from skidway.kafka.protocol.metadata import MetadataRequest
from support.batches import batch
from support.broker_core import BrokerCore, CoreClient, broker_core

FLOODING = 20
EACH = 2_000
METADATA = request_frame(ApiKey.METADATA, 5, 1, "flood", encode(MetadataRequest(topics=()), 5))
TURNS_MAX = 3
"""A request takes at most three turns. In these turns the broker reads the request, flushes the
log, and answers the request."""


@pytest.fixture
def core(tmp_path: Path) -> Iterator[BrokerCore]:
    with broker_core(tmp_path) as made:
        client = made.connect()
        wanted = CreateTopicsRequest(topics=(CreatableTopic(name="logs", num_partitions=1),))
        assert client.ask(request_frame(wanted.API, 5, 1, "test", encode(wanted, 5)))
        client.close()
        yield made


def flood(core: BrokerCore) -> list[CoreClient]:
    """Returns clients that have sent all their requests. The broker has not handled any of these
    requests yet."""
    clients = [core.connect() for _ in range(FLOODING)]
    before = core.loop.traffic.requests
    for each in clients:
        each.send(METADATA * EACH)
    assert core.loop.traffic.requests == before
    return clients


def produce_frame() -> bytes:
    buffers = [produce.TopicBuffers("logs", 0, (bytes(batch(b"x")),))]
    return b"".join(bytes(each) for each in produce.write_request(1, "t", 7, -1, 1000, buffers))


def turns_until_stored(core: BrokerCore, client: CoreClient) -> int:
    client.send(produce_frame())
    for number in range(1, 1000):
        core.turn()
        for answer in client.answers():
            body = response_body(memoryview(answer), ApiKey.PRODUCE, 7)
            assert produce.parse_response(body, 7).results[0].error_code == ErrorCode.NONE
            return number
    raise AssertionError("no answer")


def test_a_good_client_is_served_beside_twenty_that_flood(core: BrokerCore) -> None:
    """While some 40,000 requests of flooding clients wait, another client sends a request now and
    then. Each of its requests is read, flushed and answered within three turns, and the work of
    each turn is bounded."""
    good = core.connect()
    turns_until_stored(core, good)
    clients = flood(core)
    bound = TURN_COST // 20 + ALLOWANCE_MIN // 20 + 1
    asked = 0
    while core.loop.traffic.requests < FLOODING * EACH // 2:
        before = core.loop.traffic.requests
        turns = turns_until_stored(core, good)
        asked += 1
        assert turns <= TURNS_MAX
        assert core.loop.traffic.requests - before <= turns * bound + 1
        for each in clients:
            each.answers()
    assert asked > 20


def test_those_that_flood_share_alike_and_all_are_answered(core: BrokerCore) -> None:
    """The event loop serves the flooding clients equally. An allowance is the work that the loop
    may do for one client before it serves the next client. While all clients have requests left,
    the work for one client exceeds the work for any other client by at most one allowance plus the
    cost of one receive. In the end all requests are answered, and the loop is idle."""
    bound = (ALLOWANCE_MIN + RECEIVE_BYTES_MIN // BYTES_PER_COST) // 20 + 1
    clients, answered = flood(core), [0] * FLOODING
    for _ in range(10_000):
        core.turn()
        for number, each in enumerate(clients):
            answered[number] += len(each.answers())
        if sum(answered) == FLOODING * EACH:
            break
        if max(answered) < EACH:
            assert max(answered) - min(answered) <= bound
    assert answered == [EACH] * FLOODING
    core.turn()
    assert not core.loop._shares
    assert not core.loop._to_send


def test_a_timer_is_not_kept_waiting_by_a_flood(core: BrokerCore) -> None:
    """Even while many clients flood the broker, each turn of the event loop runs the timers that
    are due and the calls that other threads have posted."""
    flood(core)
    called: list[str] = []
    core.turn()
    core.loop.call_later(0, lambda: called.append("timer"))
    core.loop.post(lambda: called.append("posted"))
    core.turn()
    assert sorted(called) == ["posted", "timer"]


def test_what_waits_of_those_that_flood_is_bounded(core: BrokerCore) -> None:
    """When many clients send at once, the broker holds at most 32 KiB of each client's data. The
    rest of the data stays in the kernel's socket buffers."""
    flood(core)
    for _ in range(5):
        core.turn()
        held = [each.inbound.pending_bytes for each in core.loop.connections.values()]
        assert max(held) <= RECEIVE_BYTES_MIN

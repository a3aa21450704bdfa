"""The client asks leaders where their logs end, and gets ends above the high watermarks."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from skidway.kafka.client import Client
from skidway.kafka.client import log_ends as module
from skidway.kafka.client.log_ends import LogEnds
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.types import TopicPartition
from support.batches import sized
from support.scripted_broker import HangUp, PartitionLog, ScriptedBroker, Silence, scripted

P, Q = TopicPartition("logs", 0), TopicPartition("logs", 1)
API = ApiKey.OFFSET_FOR_LEADER_EPOCH


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    with scripted({"logs": 2}) as running:
        yield running


@pytest.fixture
def client(broker: ScriptedBroker) -> Iterator[Client]:
    """A client with the leaders of the topic."""
    with Client(broker.address, request_timeout_ms=1_000) as running:
        running.metadata(["logs"])
        yield running


@pytest.fixture
def ends(client: Client, monkeypatch: pytest.MonkeyPatch) -> LogEnds:
    monkeypatch.setattr(module, "AGAIN_S", 0.02)
    return LogEnds(client)


def wait_for(
    client: Client, ends: LogEnds, wanted: dict[TopicPartition, int], within_s: float = 60
) -> None:
    """Asks until the ends are the wanted ones."""
    until = time.monotonic() + within_s
    while (found := {tp: ends.end(tp) for tp in wanted}) != wanted:
        assert time.monotonic() < until, found
        ends.ask(wanted)
        client.wait(0.01)


def ask_until(client: Client, ends: LogEnds, broker: ScriptedBroker, count: int) -> None:
    """Asks about P until the broker has got `count` further requests, and the client their
    answers."""
    until, before = time.monotonic() + 60, broker.count(API)
    while broker.count(API) <= before + count:  # the answer to the request before this one is here
        assert time.monotonic() < until
        ends.ask([P])
        client.wait(0.01)


def test_an_end_is_above_the_high_watermark(
    broker: ScriptedBroker, client: Client, ends: LogEnds
) -> None:
    """The end of a log includes records above the high watermark."""
    log = broker.logs[P.topic, P.partition]
    log.append(bytes(sized(100, 5)))
    log.pending = 2
    assert ends.end(P) is None
    wait_for(client, ends, {P: 5, Q: 0})


def test_an_end_stays_what_it_was_first(
    broker: ScriptedBroker, client: Client, ends: LogEnds
) -> None:
    """Records that are appended later do not move an end. Otherwise a topic that is written all the
    time would never be read up to its end. After `forget`, the leader is asked anew."""
    log = broker.logs[P.topic, P.partition]
    log.append(bytes(sized(100, 5)))
    wait_for(client, ends, {P: 5})
    log.append(bytes(sized(100, 5)))
    ask_until(client, ends, broker, 2)
    assert ends.end(P) == 5
    ends.forget()
    assert ends.end(P) is None
    wait_for(client, ends, {P: 10})


@pytest.mark.parametrize(("epoch", "size"), [(1, 3), (1, 9), (0, 3)])
def test_the_end_that_a_new_leader_says_counts(
    broker: ScriptedBroker, client: Client, ends: LogEnds, epoch: int, size: int
) -> None:
    """If a partition has a new leader, the end of the new leader's log counts, whether it is lower
    or higher than that of the old leader's log. If a leader's log has become shorter, the lower end
    counts."""
    broker.logs[P.topic, P.partition].append(bytes(sized(100, 5)))
    wait_for(client, ends, {P: 5})
    broker.logs[P.topic, P.partition] = log = PartitionLog()
    log.append(bytes(sized(100, size)))
    broker.leader_epoch = epoch
    wait_for(client, ends, {P: size})


@pytest.mark.parametrize(
    "fault", [HangUp, Silence, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_SERVER_ERROR]
)
def test_a_leader_that_does_not_say_its_end_is_asked_again(
    broker: ScriptedBroker,
    client: Client,
    ends: LogEnds,
    fault: ErrorCode | type[HangUp] | type[Silence],
) -> None:
    """If a leader answers with an error, or does not answer, nothing is known, and the client asks
    again."""
    broker.logs[P.topic, P.partition].append(bytes(sized(100, 5)))
    broker.faults[API] += [fault, fault]
    wait_for(client, ends, {P: 5})
    assert broker.count(API) >= 3


def test_a_broker_without_the_api_has_no_end(
    broker: ScriptedBroker, client: Client, ends: LogEnds
) -> None:
    """If a broker does not offer OffsetForLeaderEpoch, the end is 0, so that only the high
    watermark counts."""
    del broker.ranges[API]
    broker.logs[P.topic, P.partition].append(bytes(sized(100, 5)))
    with Client(broker.address) as other:
        other.metadata(["logs"])
        wait_for(other, LogEnds(other), {P: 0, Q: 0})
    assert broker.count(API) == 0


def test_a_leader_that_does_not_know_its_epoch_has_no_end(
    broker: ScriptedBroker, client: Client, ends: LogEnds
) -> None:
    """If metadata have no leader epoch, the leader answers that it knows no end, and the end is 0,
    so that only the high watermark counts."""
    broker.logs[P.topic, P.partition].append(bytes(sized(100, 5)))
    broker.leader_epoch = -1
    client.metadata(["logs"])
    broker.leader_epoch = 0
    wait_for(client, ends, {P: 0})


def test_an_answer_to_an_earlier_question_does_not_count(
    broker: ScriptedBroker, client: Client, ends: LogEnds
) -> None:
    """After `forget`, the answer to a request that was sent before it does not count."""
    log = broker.logs[P.topic, P.partition]
    log.append(bytes(sized(100, 5)))
    until = time.monotonic() + 60
    while not broker.count(API):  # the client has not taken the answer yet
        assert time.monotonic() < until
        ends.ask([P])
        client.wait(0.001)
    ends.forget()
    log.append(bytes(sized(100, 5)))
    wait_for(client, ends, {P: 10})

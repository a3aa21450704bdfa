"""Tests when the client looks up leaders, and which brokers it asks."""

from __future__ import annotations

import itertools

import pytest

from skidway.kafka.client.cluster import Address
from skidway.kafka.client.connection import Answer
from skidway.kafka.client.metadata import AGE_MAX_S, Metadata
from skidway.kafka.client.session import Channel, ClientSession, Inbox
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from skidway.kafka.types import TopicPartition

BOOTSTRAP = (Address("a", 1), Address("b", 1))
LOGS = TopicPartition("logs", 0)


class ScriptedSession(ClientSession):
    """A fake session that keeps the submitted requests until the test answers them."""

    def __init__(self) -> None:
        super().__init__(client_id="me", request_timeout_s=30, random=lambda: 0.5)
        self.asked: list[tuple[Address, MetadataRequest, Inbox]] = []
        self.down: set[Address] = set()

    def usable(self, address: Address, channel: Channel, now: float) -> bool:
        return address not in self.down

    def submit(self, address, channel, call, inbox, now):  # type: ignore[no-untyped-def]
        assert call.api is ApiKey.METADATA
        self.asked.append((address, call.build(12), inbox))
        return len(self.asked)

    def answer(self, *, leader: int = 1, error: Exception | None = None) -> None:
        partition = MetadataResponsePartition(
            partition_index=0, leader_id=leader, replica_nodes=(1,), isr_nodes=(1,)
        )
        response = MetadataResponse(
            brokers=(MetadataResponseBroker(node_id=1, host="c", port=2),),
            topics=(MetadataResponseTopic(name="logs", partitions=(partition,)),),
        )
        inbox = self.asked[-1][2]
        inbox.append(Answer(len(self.asked), None if error else response, error))


@pytest.fixture
def session() -> ScriptedSession:
    return ScriptedSession()


@pytest.fixture
def metadata() -> Metadata:
    return Metadata(BOOTSTRAP, lambda: 0.5)


def test_nothing_is_asked_that_nobody_wants(metadata: Metadata, session: ScriptedSession) -> None:
    """As long as the client uses no topic, it requests no metadata, however old its metadata is."""
    metadata.advance(session, AGE_MAX_S * 2)
    assert session.asked == []


def test_a_leader_is_looked_up_and_never_created(
    metadata: Metadata, session: ScriptedSession
) -> None:
    """The request that looks up a partition's leader contains the topic's name, and does not allow
    the broker to create the topic."""
    assert metadata.leader(LOGS) is None
    metadata.advance(session, 1.0)
    metadata.advance(session, 1.0)
    [(address, request, _)] = session.asked
    assert address in BOOTSTRAP
    assert [topic.name for topic in request.topics or ()] == ["logs"]
    assert not request.allow_auto_topic_creation
    session.answer()
    metadata.advance(session, 1.1)
    assert metadata.leader(LOGS) == ("c", 2)
    assert len(session.asked) == 1


def test_a_partition_without_leader_is_asked_for_again_with_waits(
    metadata: Metadata, session: ScriptedSession
) -> None:
    """If a partition has no leader, the client requests metadata again after 50 ms, and then after
    growing waits of up to a second."""
    metadata.leader(LOGS)
    now, times = 1.0, []
    for _ in range(400):
        metadata.advance(session, now)
        if len(session.asked) > len(times):
            times.append(now)
            session.answer(leader=-1)
        assert metadata.leader(LOGS) is None
        now += 0.01
    gaps = [b - a for a, b in itertools.pairwise(times)]
    assert gaps[0] == pytest.approx(0.06, abs=0.02)
    assert gaps[-1] > 0.9
    assert len(gaps) < 9


def test_unreachable_brokers_are_passed_over(metadata: Metadata, session: ScriptedSession) -> None:
    """The client requests metadata from any broker that it can reach. If it can reach none, it
    tries again later."""
    session.down = set(BOOTSTRAP)
    metadata.leader(LOGS)
    metadata.advance(session, 1.0)
    assert session.asked == []
    due = metadata.next_deadline
    assert due is not None
    session.down = {BOOTSTRAP[0]}
    metadata.advance(session, due)
    assert [address for address, _, _ in session.asked] == [BOOTSTRAP[1]]


def test_an_answer_that_does_not_come_is_asked_for_again(
    metadata: Metadata, session: ScriptedSession
) -> None:
    """If the connection is lost before an answer with metadata comes, the client requests metadata
    again."""
    metadata.leader(LOGS)
    metadata.advance(session, 1.0)
    session.answer(error=ConnectionError())
    metadata.advance(session, 1.0)
    assert len(session.asked) == 1
    due = metadata.next_deadline
    assert due is not None
    metadata.advance(session, due)
    assert len(session.asked) == 2


def test_a_stale_picture_and_an_old_one_are_renewed(
    metadata: Metadata, session: ScriptedSession
) -> None:
    """The client requests metadata again if a broker's answer shows that the metadata is out of
    date, and also when the metadata is five minutes old."""
    metadata.leader(LOGS)
    metadata.advance(session, 1.0)
    session.answer()
    metadata.advance(session, 1.0)
    metadata.advance(session, 50.0)
    assert len(session.asked) == 1
    metadata.mark_stale()
    metadata.advance(session, 51.0)
    assert len(session.asked) == 2
    session.answer()
    metadata.advance(session, 51.0)
    metadata.advance(session, 51.0 + AGE_MAX_S)
    assert len(session.asked) == 3


def test_brokers_known_come_before_the_configured_ones(
    metadata: Metadata, session: ScriptedSession
) -> None:
    """The client asks the brokers in the cluster's metadata first, and then the configured brokers.
    It keeps the configured brokers in case the cluster moves back to them."""
    metadata.leader(LOGS)
    metadata.advance(session, 1.0)
    session.answer()
    metadata.advance(session, 1.0)
    assert metadata.addresses() == [("c", 2), *BOOTSTRAP]

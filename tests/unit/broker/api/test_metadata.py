"""Tests the cached answers to Metadata requests. A client gets the same answers as without the
cache, only faster."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.broker.api import metadata
from skidway.broker.api.exchange import SHARED_BYTES_MIN, Exchange
from skidway.broker.catalog import (
    Catalog,
    Endpoint,
    LiveBroker,
    PartitionState,
    Topic,
    TopicPartitionInfo,
)
from skidway.broker.kept_answers import KeptAnswers
from skidway.broker.settings import BrokerSettings
from skidway.broker.topics.administration import CREATING_MAX
from skidway.broker.topics.auto_creation import MINUTE_MAX, REQUEST_MAX, AutoCreation
from skidway.errors import SkidwayError
from skidway.kafka.acls.rules import EVERYTHING
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from skidway.kafka.protocol.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from skidway.kafka.protocol.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from skidway.kafka.protocol.frames import request_frame, response_body
from skidway.kafka.protocol.messages import Request, Response, decode, encode
from skidway.kafka.protocol.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from skidway.kafka.types import PLAINTEXT, TopicPartition
from support.broker_core import BrokerCore, CoreClient, broker_core
from support.live_brokers import live_broker
from support.open_access import AUTHORIZER

VERSIONS = list(range(ApiKey.METADATA.broker.highest + 1))
NAMES = ("a", "b", "c", "not there", "offline.a")
TURNS_MAX = 100
"""Every action of these tests ends within this many turns of the loop."""


class Answers:
    """A stand-in for the broker's loop. It keeps the answers that the handler sends."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def fill(self, _connection: object, _slot: object, pieces: Any) -> None:
        self.sent.append(pieces)


class World:
    """A stand-in for those parts of a broker that the handler of Metadata requests needs. Tests
    replace its catalog and its set of stopped partitions (partitions that it does not serve)."""

    def __init__(self, catalog: Catalog, stopped: Mapping[TopicPartition, str]) -> None:
        self.created: list[str] = []
        session = SimpleNamespace(is_connected=True)
        self.broker: Any = SimpleNamespace(
            settings=BrokerSettings(),
            topics=SimpleNamespace(
                catalog=catalog,
                session=session,
                is_creating=lambda _name: False,
                create=lambda name, *_: self.created.append(name),
                no_room=lambda: None,
            ),
            auto_creation=AutoCreation(lambda: 0.0),
            logs=SimpleNamespace(stopped=stopped),
        )
        self.forget()

    def forget(self) -> None:
        """Drops the cached answers."""
        broker = self.broker
        broker.metadata_answers = KeptAnswers(lambda: (broker.topics.catalog, broker.logs.stopped))

    def ask(self, request: bytes, version: int) -> bytes:
        loop: Any = Answers()
        connection: Any = SimpleNamespace(
            reserve=object, address="10.0.0.1", listener=PLAINTEXT, access=EVERYTHING
        )
        body = memoryview(request)
        metadata.handle(
            self.broker, Exchange(loop, AUTHORIZER, connection, ApiKey.METADATA, version, 7, body)
        )
        (pieces,) = loop.sent
        return b"".join(pieces)


IDS = st.integers(1, 3)
STATES = st.none() | st.builds(PartitionState, IDS, st.integers(0, 3), st.tuples(IDS))
INFOS = st.builds(TopicPartitionInfo, st.tuples(IDS), STATES)
PARTITIONS = st.lists(INFOS, max_size=3).map(lambda infos: dict(enumerate(infos)))
BROKERS = st.sets(IDS).map(
    lambda ids: {each: live_broker(each, f"host{each}", 9092) for each in sorted({1, *ids})}
)
TOPICS = st.dictionaries(
    st.sampled_from("abc"), st.tuples(st.integers(1, 3), PARTITIONS), max_size=3
).map(
    lambda found: {
        name: Topic(name, uuid.UUID(int=number), partitions)
        for name, (number, partitions) in found.items()
    }
)
CATALOGS = st.builds(
    Catalog, cluster_id=st.just("cluster"), brokers=BROKERS, topics=TOPICS, controller_id=IDS
)
STOPPED = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from("abc"), st.integers(0, 2)), st.just("broken")
)
ASKED = st.none() | st.lists(st.sampled_from(NAMES), max_size=4).map(tuple)


@st.composite
def requests(draw: st.DrawFn) -> tuple[bytes, int]:
    version = draw(st.sampled_from(VERSIONS))
    names = draw(ASKED)
    topics = tuple(MetadataRequestTopic(name=each) for each in names or ())
    request = MetadataRequest(
        topics=None if names is None and version else topics,
        allow_auto_topic_creation=draw(st.booleans()) if version >= 4 else True,
        include_topic_authorized_operations=draw(st.booleans()) if version >= 8 else False,
    )
    return encode(request, version), version


@given(
    pictures=st.lists(st.tuples(CATALOGS, STOPPED), min_size=1, max_size=4),
    asked=st.lists(requests(), min_size=1, max_size=4),
)
def test_a_kept_answer_is_the_fresh_one(
    pictures: list[tuple[Catalog, dict[TopicPartition, str]]], asked: list[tuple[bytes, int]]
) -> None:
    """An answer that is made with the cache equals, byte for byte, the answer that is made without
    the cache. This holds in every version, for any topics, and whatever has changed since the
    previous request. A missing topic is created as often as without the cache."""
    kept, fresh = World(*pictures[0]), World(*pictures[0])
    for catalog, stopped in pictures:
        for world in (kept, fresh):
            world.broker.topics.catalog = catalog
            world.broker.logs.stopped = stopped
        for request, version in asked * 2:
            fresh.forget()
            assert kept.ask(request, version) == fresh.ask(request, version)
    assert kept.created == fresh.created


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_is_made_once(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second client that asks for the same topics gets the same bytes. For this client, the
    broker does not decode the request or encode an answer."""
    infos = {number: TopicPartitionInfo((1,), PartitionState(1, 0, (1,))) for number in range(300)}
    topic = Topic("a", uuid.uuid4(), infos)
    own = live_broker(1, "host", 9092)
    world = World(Catalog("cluster", {1: own}, {"a": topic}, 1), {})
    request = encode(MetadataRequest(topics=(MetadataRequestTopic(name="a"),)), version)
    first = world.ask(request, version)
    assert len(first) > SHARED_BYTES_MIN
    monkeypatch.setattr(Exchange, "decode", None)
    monkeypatch.setattr(Exchange, "reply", None)
    assert world.ask(request, version) == first


def test_internal_topics_of_kafka_are_not_created_by_asking() -> None:
    """A client that asks for a topic whose name begins with two underscores, such as
    `__consumer_offsets`, only wants to know whether it is there. So the topic is not created, and
    the answer says that it is unknown."""
    world = World(Catalog("cluster", {1: live_broker(1, "host", 9092)}), {})
    names = ("__consumer_offsets", "__transaction_state", "__x", "_single")
    asked = tuple(MetadataRequestTopic(name=name) for name in names)
    frame = memoryview(world.ask(encode(MetadataRequest(topics=asked), 5), 5))[4:]
    answer = decode(MetadataResponse, response_body(frame, ApiKey.METADATA, 5), 5)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    codes = [each.error_code for each in answer.topics]
    assert codes == [unknown] * 3 + [ErrorCode.LEADER_NOT_AVAILABLE]
    assert world.created == ["_single"]


def test_a_topic_that_is_not_there_is_asked_for_anew() -> None:
    """An answer about a missing topic is not cached, because each request may create the topic. For
    example, while ZooKeeper is unreachable, a request cannot create the topic. Once ZooKeeper is
    reachable again, the next request must create the topic, although the cluster has not changed in
    the meantime."""
    world = World(Catalog("cluster", {1: live_broker(1, "host", 9092)}), {})
    request = encode(MetadataRequest(topics=(MetadataRequestTopic(name="wanted"),)), 5)
    world.broker.topics.session.is_connected = False
    world.ask(request, 5)
    assert not world.created
    world.broker.topics.session.is_connected = True
    world.ask(request, 5)
    world.ask(request, 5)
    assert world.created == ["wanted", "wanted"]
    assert len(world.broker.metadata_answers) == 0


def test_a_request_creates_few_topics_and_the_next_one_goes_on(tmp_path: Path) -> None:
    """One request creates at most ten topics, and one client address at most a hundred in a minute.
    About the others the answer says what it says about a topic that is being created, so clients
    ask again and get them later. An illegal name is refused for good."""
    with broker_core(tmp_path) as core:
        asking, catalog = Asking(core), core.broker.topics
        names = ["not/legal", *(f"t{number}" for number in range(MINUTE_MAX + 20))]
        codes = [each.error_code for each in asking.ask(*names, may_create=True).topics]
        assert codes[0] == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert set(codes[1:]) == {ErrorCode.LEADER_NOT_AVAILABLE}
        assert len(catalog.catalog.topics) == REQUEST_MAX
        for _ in range(20):
            asking.ask(*names, may_create=True)
        assert len(catalog.catalog.topics) == MINUTE_MAX
        assert core.broker.counts.uncreated["postponed"] > 0
        core.advance(60)
        for _ in range(2):
            asking.ask(*names, may_create=True)
        assert len(catalog.catalog.topics) == MINUTE_MAX + 20


def test_there_are_no_more_topics_than_max_topics(tmp_path: Path) -> None:
    """If the cluster has max.topics topics, requests for unknown topics are answered with
    POLICY_VIOLATION, after which clients do not ask again. Requests for its topics are answered as
    before, and CreateTopics is refused with a sentence that names the setting."""
    with broker_core(tmp_path, topics_max=3) as core:
        asking = Asking(core)
        asking.ask("a", "b", "c", "d", may_create=True)
        answer = asking.ask("a", "d", may_create=True)
        assert [each.error_code for each in answer.topics] == [0, ErrorCode.POLICY_VIOLATION]
        for validate_only in (False, True):
            wanted = CreateTopicsRequest(
                topics=(CreatableTopic(name="d"),), validate_only=validate_only
            )
            (refused,) = asking.create(wanted).topics
            assert refused.error_code == ErrorCode.POLICY_VIOLATION
            assert "max.topics" in (refused.error_message or "")
        assert sorted(core.broker.topics.catalog.topics) == ["a", "b", "c"]


def test_topics_that_are_being_created_leave_room_for_other_work(tmp_path: Path) -> None:
    """However many topics requests name, the queue for ZooKeeper keeps places for groups: of the
    topics beyond CREATING_MAX, CreateTopics says that the client may try again."""
    with broker_core(tmp_path) as core:
        wanted = CreateTopicsRequest(
            topics=tuple(CreatableTopic(name=f"t{n}") for n in range(CREATING_MAX + 5))
        )
        codes = Counter(each.error_code for each in Asking(core).create(wanted).topics)
    assert codes == {0: CREATING_MAX, ErrorCode.REQUEST_TIMED_OUT: 5}


# In the tests above, the test itself replaces the catalog. In the following tests, a whole broker
# changes the catalog.


class Asking:
    """A client that asks a broker in this process for one topic or for all topics."""

    def __init__(self, core: BrokerCore) -> None:
        self.core = core
        self.topics = core.broker.topics
        self._client: CoreClient = core.connect()

    def ask(self, *names: str, may_create: bool = False) -> MetadataResponse:
        topics = tuple(MetadataRequestTopic(name=each) for each in names) or None
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=may_create)
        body = encode(request, 7)
        frame = self._client.ask(request_frame(ApiKey.METADATA, 7, 1, "test", body))
        assert frame is not None
        return decode(MetadataResponse, response_body(memoryview(frame), ApiKey.METADATA, 7), 7)

    def create(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        self._client.send(request_frame(request.API, 5, 1, "test", encode(request, 5)))
        for _ in range(CREATING_MAX):
            if frames := self._client.answers():
                break
            self.core.turn()
        (frame,) = frames
        body = response_body(memoryview(frame), request.API, 5)
        return decode(CreateTopicsResponse, body, 5)

    def both(self) -> tuple[MetadataResponseTopic, MetadataResponseTopic | None]:
        """Returns the topic `logs` as it is in two answers: in the answer to a request for this
        topic, and in the answer to a request for all topics."""
        (named,) = self.ask("logs").topics
        return named, next((each for each in self.ask().topics if each.name == "logs"), None)

    def do(self, action: Callable[..., object], *arguments: Any) -> None:
        """Starts an action, and runs turns of the broker's loop until the action reports that it is
        done, so that clients can see its effect."""
        outcomes: list[SkidwayError | None] = []
        action(*arguments, outcomes.append)
        for _ in range(TURNS_MAX):
            if outcomes:
                break
            self.core.turn()
        assert outcomes == [None]

    def make(self) -> None:
        self.do(self.topics.create, "logs", {0: (self.core.broker.settings.broker_id,)}, {})


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Asking]:
    with broker_core(tmp_path) as core:
        yield Asking(core)


def leaders(topic: MetadataResponseTopic | None) -> list[int]:
    assert topic is not None
    assert topic.error_code == 0
    return [each.leader_id for each in topic.partitions]


def test_a_topic_is_seen_as_soon_as_it_is_there(asking: Asking) -> None:
    """When a topic is created, deleted, and created again, each answer shows the topic's state at
    the time of the request."""
    for _ in range(2):
        named, listed = asking.both()
        assert (named.error_code, listed) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
        asking.make()
        assert [leaders(each) for each in asking.both()] == [[1], [1]]
        asking.do(asking.topics.delete, asking.topics.catalog.topics["logs"])


def test_more_partitions_are_seen_as_soon_as_they_are_there(asking: Asking) -> None:
    """As soon as new partitions exist, they are in the answers, with their leaders."""
    asking.make()
    assert [leaders(each) for each in asking.both()] == [[1], [1]]
    topic = asking.topics.catalog.topics["logs"]
    asking.do(asking.topics.extend, topic, {0: (1,), 1: (1,), 2: (1,)})
    assert [leaders(each) for each in asking.both()] == [[1, 1, 1], [1, 1, 1]]


def test_brokers_are_seen_as_they_come_and_go(asking: Asking) -> None:
    """The brokers and leaders in the answers are those of the newest catalog that the broker has
    read from ZooKeeper."""
    asking.make()
    asking.both()
    catalog = asking.topics.catalog
    topic = catalog.topics["logs"]
    theirs = TopicPartitionInfo((2,), PartitionState(2, 4, (2,)))
    there = replace(
        catalog,
        brokers={**catalog.brokers, 2: live_broker(2, "there", 9092)},
        topics={"logs": replace(topic, partitions={**topic.partitions, 1: theirs})},
    )
    asking.topics.apply(there)
    assert [each.node_id for each in asking.ask("logs").brokers] == [1, 2]
    assert [leaders(each) for each in asking.both()] == [[1, 2], [1, 2]]
    asking.topics.apply(replace(there, brokers=catalog.brokers, controller_id=3))
    answer = asking.ask("logs")
    assert ([each.node_id for each in answer.brokers], answer.controller_id) == ([1], 3)
    assert [leaders(each) for each in asking.both()] == [[1, -1], [1, -1]]


def test_a_partition_that_stops_is_seen(asking: Asking) -> None:
    """The answers show a stopped partition (one that the broker does not serve because its log is
    damaged, for example) as offline until its topic is deleted."""
    asking.make()
    partition, logs = TopicPartition("logs", 0), asking.core.broker.logs

    def offline() -> list[tuple[int, ...]]:
        topics = [each for each in asking.both() if each is not None]
        return [each.offline_replicas for topic in topics for each in topic.partitions]

    assert offline() == [(), ()]
    logs.stop(partition, "damaged")
    assert offline() == [(1,), (1,)]
    logs.delete(partition)
    assert offline() == [(), ()]


def test_each_listener_is_answered_with_its_own_addresses(tmp_path: Path) -> None:
    """Metadata, FindCoordinator and DescribeCluster answer with the addresses of the listener that
    was asked, and leave out brokers that do not have it. Answers that the broker keeps are kept for
    each listener."""
    with broker_core(tmp_path) as core:
        topics = core.broker.topics
        own = LiveBroker(
            1, (Endpoint("PLAINTEXT", "PLAINTEXT", "in", 1), Endpoint("SSL", "SSL", "out", 2))
        )
        topics.catalog = replace(topics.catalog, brokers={1: own, 2: live_broker(2, "other")})
        found = {}
        for listener in ("PLAINTEXT", "SSL", "PLAINTEXT", "SSL"):
            client = core.connect(listener)
            asked: list[tuple[Request, type[Response], int]] = [
                (MetadataRequest(topics=None), MetadataResponse, 9),
                (FindCoordinatorRequest(key="g"), FindCoordinatorResponse, 3),
                (DescribeClusterRequest(), DescribeClusterResponse, 0),
            ]
            answers: Any = [_asked(client, *each) for each in asked]
            metadata_, coordinator, cluster = answers
            found[listener] = (
                [(each.host, each.port) for each in metadata_.brokers],
                (coordinator.host, coordinator.port),
                [(each.host, each.port) for each in cluster.brokers],
            )
        others = ("other", 9092)
        assert found["PLAINTEXT"] == ([("in", 1), others], ("in", 1), [("in", 1), others])
        assert found["SSL"] == ([("out", 2)], ("out", 2), [("out", 2)])


def _asked(client: CoreClient, request: Request, kind: type[Response], version: int) -> Response:
    answer = client.ask(request_frame(request.API, version, 1, "t", encode(request, version)))
    assert answer is not None
    body = response_body(memoryview(answer), request.API, version)
    return decode(kind, body, version)

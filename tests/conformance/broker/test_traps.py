"""Tests traps with hand-written requests. A trap is a case in which other brokers have made clients
hang or fail."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from skidway.kafka.batch import headers
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol import fetch_request, fetch_response
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.create_topics import (
    BROKER_DEFAULT,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from skidway.kafka.protocol.fetch_request import FetchTarget
from skidway.kafka.protocol.fetch_response import FetchAnswer
from skidway.kafka.protocol.frames import response_body
from skidway.kafka.protocol.list_offsets import (
    LATEST,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from skidway.kafka.protocol.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from skidway.kafka.protocol.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from skidway.kafka.protocol.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from support.batches import batch, sized
from support.brokers import SkidwayBroker
from support.raw_client import RawClient

pytestmark = pytest.mark.quick

NOBODYS_SESSION = 123_456


def create(broker: SkidwayBroker, partitions: int = 1) -> str:
    name = f"trap-{uuid.uuid4().hex[:12]}"
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    with RawClient(broker.port) as client:
        answer: Any = client.ask(CreateTopicsRequest(topics=(topic,)), 7, CreateTopicsResponse)
    assert answer.topics[0].error_code == 0
    return name


def fetched(client: RawClient, version: int, request: fetch_request.Fetch) -> FetchAnswer:
    """Sends the Fetch request in the given version, and returns the broker's answer."""
    client.send(fetch_request.write_request(1, "raw", version, request))
    return fetch_response.parse_response(
        response_body(memoryview(client.receive()), ApiKey.FETCH, version), version
    )


@pytest.mark.parametrize("version", range(7, 13))
def test_a_new_fetch_session_is_answered_without_one(
    skidway_broker: SkidwayBroker, version: int
) -> None:
    """If a client asks for a new fetch session, the answer contains all requested partitions and
    the session id 0, which means that there is no session (KIP-227)."""
    topic = create(skidway_broker)
    with RawClient(skidway_broker.port) as client:
        assert client.produce(topic, batch(b"x")).error_code == 0
        wanted = [FetchTarget(topic, 0, 0, 1_000)]
        answer = fetched(
            client, version, fetch_request.Fetch(wanted, 0, 1, 1_000, session_id=0, session_epoch=0)
        )
        assert (answer.error_code, answer.session_id) == (0, 0)
        assert [len(list(headers(each.records))) for each in answer.partitions] == [1]


@pytest.mark.parametrize("version", range(7, 13))
def test_a_session_of_another_broker_is_unknown(
    skidway_broker: SkidwayBroker, version: int
) -> None:
    """A fetch in an unknown session gets FETCH_SESSION_ID_NOT_FOUND, after which clients begin a
    new session. It is not an error to close an unknown session."""
    topic = create(skidway_broker)
    with RawClient(skidway_broker.port) as client:
        for epoch, code in ((5, ErrorCode.FETCH_SESSION_ID_NOT_FOUND), (-1, ErrorCode.NONE)):
            request = fetch_request.Fetch(
                [FetchTarget(topic, 0, 0, 1_000)], 0, 1, 1_000,
                session_id=NOBODYS_SESSION, session_epoch=epoch,
            )  # fmt: skip
            answer = fetched(client, version, request)
            assert (answer.error_code, answer.session_id) == (code, 0)


@pytest.mark.parametrize("version", [4, 11, 12])
def test_the_first_partition_with_data_gives_one_batch(
    skidway_broker: SkidwayBroker, version: int
) -> None:
    """However small the limits of a Fetch request are, the broker sends at least one whole batch,
    from the first partition that has data (KIP-74)."""
    topic = create(skidway_broker, 3)
    with RawClient(skidway_broker.port) as client:
        for partition in (0, 2):
            for _ in range(2):
                client.produce(topic, sized(5_000), partition=partition)
        for order, first in (((1, 2, 0), 2), ((0, 1, 2), 0)):
            wanted = [FetchTarget(topic, partition, 0, 100) for partition in order]
            answer = fetched(client, version, fetch_request.Fetch(wanted, 0, 1, 100))
            found = {each.partition: len(each.records) for each in answer.partitions}
            assert found == {0: 0, 1: 0, 2: 0, first: 5_000}


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(-1, ErrorCode.NONE), (0, ErrorCode.NONE), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
def test_leader_epochs_are_compared(
    skidway_broker: SkidwayBroker, epoch: int, code: ErrorCode
) -> None:
    """If a client's leader epoch is newer than the broker's, the client gets an error from Fetch
    and from ListOffsets (KIP-320)."""
    topic = create(skidway_broker)
    with RawClient(skidway_broker.port) as client:
        wanted = [FetchTarget(topic, 0, 0, 1_000, current_leader_epoch=epoch)]
        answer = fetched(client, 12, fetch_request.Fetch(wanted, 0, 1, 1_000))
        assert [each.error_code for each in answer.partitions] == [code]
        listed = _listed(client, topic, epoch)
        assert listed.error_code == code


def test_a_client_of_the_leader_before_is_fenced(own_broker: SkidwayBroker) -> None:
    """After a crash the broker raises the leader epoch. A client that still sends the old epoch
    gets FENCED_LEADER_EPOCH from Fetch and from ListOffsets."""
    broker = own_broker.start()
    topic = create(broker)
    broker.crash()
    with RawClient(broker.port) as client:
        now = _metadata(client, topic).topics[0].partitions[0].leader_epoch
        assert now > 0
        wanted = [FetchTarget(topic, 0, 0, 1_000, current_leader_epoch=now - 1)]
        answer = fetched(client, 12, fetch_request.Fetch(wanted, 0, 1, 1_000))
        assert [each.error_code for each in answer.partitions] == [ErrorCode.FENCED_LEADER_EPOCH]
        assert _listed(client, topic, now - 1).error_code == ErrorCode.FENCED_LEADER_EPOCH


@pytest.mark.parametrize("version", range(2, 8))
def test_defaults_for_partitions_and_replicas(skidway_broker: SkidwayBroker, version: int) -> None:
    """In every version, -1 as the number of partitions or replicas means the broker's own default
    (KIP-464). kafkajs relies on this meaning."""
    name = f"trap-{uuid.uuid4().hex[:12]}"
    topic = CreatableTopic(
        name=name, num_partitions=BROKER_DEFAULT, replication_factor=BROKER_DEFAULT
    )
    with RawClient(skidway_broker.port) as client:
        answer: Any = client.ask(
            CreateTopicsRequest(topics=(topic,)), version, CreateTopicsResponse
        )
        [created] = answer.topics
        assert created.error_code == 0
        if version >= 5:  # Java's Admin fails if `configs` is null
            assert (created.num_partitions, created.replication_factor) == (1, 1)
            assert "cleanup.policy" in {each.name for each in created.configs}
        assert len(_metadata(client, name).topics[0].partitions) == 1


@pytest.mark.parametrize("version", range(12))
def test_metadata_of_everything_in_every_version(
    skidway_broker: SkidwayBroker, version: int
) -> None:
    """A Metadata request that names no topics lists all topics. In version 0 this request contains
    an empty list of topics, and in later versions it contains null."""
    topic = create(skidway_broker)
    with RawClient(skidway_broker.port) as client:
        request = MetadataRequest(topics=() if version == 0 else None)
        answer: Any = client.ask(request, version, MetadataResponse)
        [found] = [each for each in answer.topics if each.name == topic]
        assert (found.error_code, len(found.partitions)) == (0, 1)
        if version >= 10:  # a zero id tells librdkafka and franz-go that a broker has no topic ids
            assert found.topic_id.int != 0


def _listed(client: RawClient, topic: str, epoch: int) -> Any:
    asked = ListOffsetsPartition(partition_index=0, timestamp=LATEST, current_leader_epoch=epoch)
    request = ListOffsetsRequest(topics=(ListOffsetsTopic(name=topic, partitions=(asked,)),))
    answer: Any = client.ask(request, 7, ListOffsetsResponse)
    return answer.topics[0].partitions[0]


def _metadata(client: RawClient, topic: str) -> Any:
    return client.ask(
        MetadataRequest(topics=(MetadataRequestTopic(name=topic),)), 11, MetadataResponse
    )


def test_a_restart_changes_nothing_that_clients_remember(own_broker: SkidwayBroker) -> None:
    """The cluster id, the controller, the topic ids and the leader epochs stay the same when the
    broker stops cleanly and starts again."""
    broker = own_broker.start()
    topic = create(broker, 2)
    pictures = []
    for _ in range(2):
        with RawClient(broker.port) as client:
            answer = _metadata(client, topic)
            [found] = answer.topics
            epochs = [(each.leader_id, each.leader_epoch) for each in found.partitions]
            pictures.append((answer.cluster_id, answer.controller_id, found.topic_id, epochs))
        broker.restart()
    assert pictures[0] == pictures[1]
    assert None not in pictures[0]


@pytest.mark.parametrize("version", range(2, 8))
def test_offsets_of_all_partitions_and_of_unknown_ones(
    skidway_broker: SkidwayBroker, version: int
) -> None:
    """If an OffsetFetch request has no list of topics, the answer contains every committed offset
    of the group with the offset's metadata. A partition without a commit gets -1 and no error,
    because after an error consumers would never begin to read."""
    topic = create(skidway_broker, 2)
    row = OffsetCommitRequestPartition(
        partition_index=1, committed_offset=42, committed_metadata="words"
    )
    commit = OffsetCommitRequest(
        group_id=topic, topics=(OffsetCommitRequestTopic(name=topic, partitions=(row,)),)
    )
    with RawClient(skidway_broker.port) as client:
        done: Any = client.ask(commit, 8, OffsetCommitResponse)
        assert done.topics[0].partitions[0].error_code == 0
        found: Any = client.ask(
            OffsetFetchRequest(group_id=topic, topics=None), version, OffsetFetchResponse
        )
        assert [each.name for each in found.topics] == [topic]
        [all_of_it] = found.topics[0].partitions
        assert (all_of_it.partition_index, all_of_it.committed_offset) == (1, 42)
        assert (all_of_it.metadata, all_of_it.error_code) == ("words", 0)
        asked = OffsetFetchRequestTopic(name=topic, partition_indexes=(0, 7))
        found = client.ask(
            OffsetFetchRequest(group_id=topic, topics=(asked,)), version, OffsetFetchResponse
        )
        rows = found.topics[0].partitions
        assert [(each.committed_offset, each.error_code) for each in rows] == [(-1, 0)] * 2
        assert found.error_code == 0

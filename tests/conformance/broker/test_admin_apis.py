"""The administrative APIs with hand-written requests, in every version that the broker offers."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping

import pytest

from skidway.audit.topic.program_status import broker_of
from skidway.kafka.batch import LOG_APPEND_TIME, headers
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
)
from skidway.kafka.protocol.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from skidway.kafka.protocol.delete_records import (
    HIGH_WATERMARK,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from skidway.kafka.protocol.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from skidway.kafka.protocol.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    ResourceType,
)
from skidway.kafka.protocol.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from skidway.kafka.protocol.incremental_alter_configs import (
    AlterableConfig as Change,
)
from skidway.kafka.protocol.incremental_alter_configs import (
    AlterConfigsResource as Changes,
)
from skidway.kafka.protocol.incremental_alter_configs import (
    ConfigOperation,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from skidway.kafka.protocol.list_offsets import (
    MAX_TIMESTAMP,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from skidway.kafka.protocol.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from skidway.kafka.protocol.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from support.batches import batch, sized
from support.brokers import SkidwayBroker
from support.raw_client import RawClient

TOPIC, BROKER = ResourceType.TOPIC, ResourceType.BROKER


def create(broker: SkidwayBroker, partitions: int = 1, **configs: str) -> str:
    name = f"topic-{uuid.uuid4().hex[:12]}"
    settings = tuple(
        CreatableTopicConfig(name=key.replace("_", "."), value=value)
        for key, value in configs.items()
    )
    topic = CreatableTopic(name=name, num_partitions=partitions, configs=settings)
    with RawClient(broker.port) as client:
        answer = client.ask(CreateTopicsRequest(topics=(topic,)), 7, CreateTopicsResponse)
        assert isinstance(answer, CreateTopicsResponse)
        assert answer.topics[0].error_code == 0
    return name


def deleted(
    client: RawClient, topic: str, offset: int, *, partition: int = 0, version: int = 2
) -> tuple[int, int]:
    """Asks the broker to delete a partition's records before `offset`. Returns the error code and
    the low watermark of the broker's answer."""
    row = DeleteRecordsPartition(partition_index=partition, offset=offset)
    request = DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=topic, partitions=(row,)),))
    answer = client.ask(request, version, DeleteRecordsResponse)
    assert isinstance(answer, DeleteRecordsResponse)
    found = answer.topics[0].partitions[0]
    return found.error_code, found.low_watermark


@pytest.mark.parametrize("version", range(3))
def test_records_are_deleted(skidway_broker: SkidwayBroker, version: int) -> None:
    """DeleteRecords moves the log start offset to the given offset, even if this offset is within a
    batch. It never moves the log start back, nor beyond the log end."""
    topic = create(skidway_broker)
    with RawClient(skidway_broker.port) as client:
        for _ in range(3):
            client.produce(topic, sized(500, 10))
        assert deleted(client, topic, 15, version=version) == (0, 15)
        below = client.fetch(topic, 14)
        assert (below.error_code, below.log_start_offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, 15)
        # A fetch returns whole batches: clients skip the records before the offset that they asked
        # for.
        assert [h.base_offset for _, h in headers(client.fetch(topic, 15).records)] == [10, 20]
        assert deleted(client, topic, 3, version=version) == (0, 15)
        for offset in (31, -2):
            code, low = deleted(client, topic, offset, version=version)
            assert (code, low) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert deleted(client, topic, 0, partition=7, version=version) == (unknown, -1)
        assert deleted(client, topic, HIGH_WATERMARK, version=version) == (0, 30)
        assert client.produce(topic, batch(b"x")).base_offset == 30
        assert client.fetch(topic, 30).log_start_offset == 30


def epoch_end(
    client: RawClient, topic: str, epoch: int, *, known: int = -1, partition: int = 0,
    version: int = 4,
) -> EpochEndOffset:  # fmt: skip
    row = OffsetForLeaderPartition(
        partition=partition, current_leader_epoch=known, leader_epoch=epoch
    )
    request = OffsetForLeaderEpochRequest(
        replica_id=-1 if version > 2 else -2,
        topics=(OffsetForLeaderTopic(topic=topic, partitions=(row,)),),
    )
    answer = client.ask(request, version, OffsetForLeaderEpochResponse)
    assert isinstance(answer, OffsetForLeaderEpochResponse)
    return answer.topics[0].partitions[0]


@pytest.mark.parametrize("version", range(2, 5))
def test_an_epochs_end_is_known(skidway_broker: SkidwayBroker, version: int) -> None:
    """OffsetForLeaderEpoch answers that the current leader epoch ends at the log end, and that an
    unknown later epoch has no end. It refuses a client that knows a newer current epoch than the
    broker."""
    topic = create(skidway_broker)
    with RawClient(skidway_broker.port) as client:
        client.produce(topic, sized(100, 5))
        found = epoch_end(client, topic, 0, known=0, version=version)
        assert (found.error_code, found.leader_epoch, found.end_offset) == (0, 0, 5)
        found = epoch_end(client, topic, 1, version=version)
        assert (found.leader_epoch, found.end_offset) == (-1, -1)
        found = epoch_end(client, topic, 0, known=3, version=version)
        assert found.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        found = epoch_end(client, topic, 0, partition=9, version=version)
        assert found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_new_epoch_after_a_crash_is_in_the_log(own_broker: SkidwayBroker) -> None:
    """After kill -9 and a restart the broker still knows the end of each epoch, and refuses a
    client that knows only the epoch before the crash."""
    broker = own_broker.start()
    topic = create(broker)
    with RawClient(broker.port) as client:
        client.produce(topic, sized(100, 5))
    broker.crash()
    with RawClient(broker.port) as client:
        assert epoch_end(client, topic, 0).end_offset == 5
        assert epoch_end(client, topic, 0, known=0).error_code == ErrorCode.FENCED_LEADER_EPOCH
        client.produce(topic, sized(100, 3))
    broker.restart()
    with RawClient(broker.port) as client:
        assert epoch_end(client, topic, 0).end_offset == 5
        found = epoch_end(client, topic, 1)
        assert (found.leader_epoch, found.end_offset) == (1, 8)


def alter(
    client: RawClient, name: str, configs: Mapping[str, str | None], *, kind: int = TOPIC,
    version: int = 2, only: bool = False,
) -> int:  # fmt: skip
    """Asks the broker to replace all settings of the resource `name` (a topic or a broker) by
    `configs`, or, with `only`, to check the request without changing a setting. Returns the error
    code of the broker's answer."""
    rows = tuple(AlterableConfig(name=key, value=value) for key, value in configs.items())
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=rows)
    request = AlterConfigsRequest(resources=(resource,), validate_only=only)
    answer = client.ask(request, version, AlterConfigsResponse)
    assert isinstance(answer, AlterConfigsResponse)
    return answer.responses[0].error_code


def change(
    client: RawClient, name: str, *changes: tuple[str, int, str | None], kind: int = TOPIC,
    version: int = 1, only: bool = False,
) -> tuple[int, str | None]:  # fmt: skip
    """Asks the broker to make `changes` to settings of the resource `name` (a topic or a broker). A
    change is a triple (setting, operation, value). With `only`, the broker checks the request and
    changes nothing. Returns the error code and the error message of the broker's answer."""
    rows = tuple(
        Change(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    )
    resource = Changes(resource_type=kind, resource_name=name, configs=rows)
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=only)
    answer = client.ask(request, version, IncrementalAlterConfigsResponse)
    assert isinstance(answer, IncrementalAlterConfigsResponse)
    return answer.responses[0].error_code, answer.responses[0].error_message


def described(
    client: RawClient, name: str, *, kind: int = TOPIC, keys: tuple[str, ...] | None = None,
    synonyms: bool = False, documentation: bool = False, version: int = 4,
) -> DescribeConfigsResult:  # fmt: skip
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    request = DescribeConfigsRequest(
        resources=(resource,), include_synonyms=synonyms, include_documentation=documentation
    )
    answer = client.ask(request, version, DescribeConfigsResponse)
    assert isinstance(answer, DescribeConfigsResponse)
    return answer.results[0]


def own(client: RawClient, topic: str) -> dict[str, str | None]:
    """Returns the names and values of the settings that are set for the topic itself, without
    defaults."""
    rows = described(client, topic).configs
    return {each.name: each.value for each in rows if each.config_source == 1}


@pytest.mark.parametrize("version", range(3))
def test_settings_are_replaced(skidway_broker: SkidwayBroker, version: int) -> None:
    """AlterConfigs replaces all settings of a topic; a request that is refused, or only validates,
    changes nothing."""
    topic = create(skidway_broker, retention_ms="1000", segment_ms="5000")
    with RawClient(skidway_broker.port) as client:
        new = {"flush.ms": "9", "retention.ms": "7"}
        assert alter(client, topic, new, version=version, only=True) == 0
        assert alter(client, topic, {"retention.ms": "x"}, version=version) == (
            ErrorCode.INVALID_CONFIG
        )
        assert alter(client, topic, {"retention.ms": None}, version=version) == (
            ErrorCode.INVALID_REQUEST
        )
        assert own(client, topic) == {"retention.ms": "1000", "segment.ms": "5000"}
        assert alter(client, topic, new, version=version) == 0
        assert own(client, topic) == new
        missing = alter(client, "nobody-made-this", new, version=version)
        assert missing == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        broker = alter(client, "1", {"log.retention.ms": "1"}, kind=BROKER, version=version)
        assert broker == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", range(2))
def test_settings_change_one_by_one(skidway_broker: SkidwayBroker, version: int) -> None:
    """IncrementalAlterConfigs sets, deletes, appends to and subtracts from single settings. No
    other setting changes, and each change is in effect as soon as the request is answered."""
    topic = create(skidway_broker, retention_ms="1000")
    with RawClient(skidway_broker.port) as client:
        big = bytes(sized(5000))
        assert client.produce(topic, big).error_code == 0
        small = ("max.message.bytes", ConfigOperation.SET, "1000")
        hold = ("retention.hold", ConfigOperation.APPEND, "mirror,load")
        assert change(client, topic, small, hold, version=version, only=True)[0] == 0
        assert client.produce(topic, big).error_code == 0
        assert change(client, topic, small, hold, version=version)[0] == 0
        assert client.produce(topic, big).error_code == ErrorCode.MESSAGE_TOO_LARGE
        less = ("retention.hold", ConfigOperation.SUBTRACT, "mirror")
        back = ("max.message.bytes", ConfigOperation.DELETE, None)
        assert change(client, topic, less, back, version=version)[0] == 0
        assert client.produce(topic, big).error_code == 0
        assert own(client, topic) == {"retention.ms": "1000", "retention.hold": "load"}
        code, message = change(client, topic, ("no.such", ConfigOperation.SET, "1"))
        assert code == ErrorCode.INVALID_CONFIG
        assert "no.such" in (message or "")
        assert change(client, topic, ("retention.ms", 7, "1"))[0] == ErrorCode.INVALID_REQUEST


def test_settings_survive_a_restart(own_broker: SkidwayBroker) -> None:
    """The settings of a topic are stored in ZooKeeper, and so survive a restart of the broker."""
    broker = own_broker.start()
    topic = create(broker)
    with RawClient(broker.port) as client:
        assert change(client, topic, ("retention.ms", ConfigOperation.SET, "77"))[0] == 0
    broker.crash()
    with RawClient(broker.port) as client:
        assert own(client, topic) == {"retention.ms": "77"}


@pytest.mark.parametrize("version", range(1, 5))
def test_settings_are_described(skidway_broker: SkidwayBroker, version: int) -> None:
    """DescribeConfigs returns the requested settings, with synonyms and documentation only on
    request."""
    topic = create(skidway_broker, retention_ms="1000")
    keys = ("retention.ms", "no.such")
    with RawClient(skidway_broker.port) as client:
        found = described(client, topic, keys=keys, synonyms=True, version=version)
        (row,) = found.configs
        assert (row.name, row.value) == ("retention.ms", "1000")
        assert [each.name for each in row.synonyms] == ["retention.ms", "log.retention.hours"]
        assert row.documentation is None
        (row,) = described(client, topic, keys=keys, documentation=True, version=4).configs
        assert row.synonyms == ()
        assert row.documentation
        assert described(client, "", kind=BROKER, version=version).configs == ()
        assert described(client, "1", kind=BROKER, version=version).configs
        wrong = described(client, "2", kind=BROKER, version=version)
        assert wrong.error_code == ErrorCode.INVALID_REQUEST


def test_a_broker_says_what_does_not_answer_it(skidway_broker: SkidwayBroker) -> None:
    """Asked for `skidway.status`, a broker says how it was started and what does not answer it. It
    is no setting, so answers with all settings leave it out."""
    with RawClient(skidway_broker.port) as client:
        (row,) = described(client, "1", kind=BROKER, keys=("skidway.status",)).configs
        told = broker_of("", json.loads(row.value or ""))
        assert (told.invocation.verb, told.obstacles, told.mirrors) == ("broker run", (), ())
        names = {x.name for x in described(client, "1", kind=BROKER).configs}
        assert names
        assert "skidway.status" not in names


@pytest.mark.parametrize("acks", [1, -1])
def test_the_time_of_appending_is_the_records_time(
    skidway_broker: SkidwayBroker, acks: int
) -> None:
    """If a topic's setting message.timestamp.type is LogAppendTime, the append time is in the
    Produce response and in the stored batch. If it is CreateTime, the response has no append
    time."""
    topic = create(skidway_broker, message_timestamp_type="LogAppendTime")
    with RawClient(skidway_broker.port) as client:
        before = int(time.time() * 1000)
        # The test sends three equal batches, because the broker has a faster check for a batch that
        # is like the previous batch.
        for expected in (0, 1, 2):
            found = client.produce(topic, batch(b"x", timestamps=[5]), acks=acks)
            assert (found.error_code, found.base_offset) == (0, expected)
            assert before <= found.log_append_time_ms <= before + 60_000
        ((_, header), *_) = headers(client.fetch(topic, 0, max_wait_ms=10_000).records)
        assert header.attributes & LOG_APPEND_TIME
        assert header.max_timestamp >= before
        other = create(skidway_broker)
        assert client.produce(other, batch(b"x"), acks=acks).log_append_time_ms == -1


def listed(client: RawClient, topic: str, timestamp: int, version: int) -> tuple[int, int]:
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(topics=(ListOffsetsTopic(name=topic, partitions=(partition,)),))
    answer = client.ask(request, version, ListOffsetsResponse)
    assert isinstance(answer, ListOffsetsResponse)
    found = answer.topics[0].partitions[0]
    return found.error_code, found.offset


def test_times_that_a_version_does_not_have_are_refused(skidway_broker: SkidwayBroker) -> None:
    """ListOffsets of the versions 1 to 6 refuses the time -3, which asks for the record with the
    largest timestamp: only version 7 has this time. The versions 1 to 7 refuse the time -4, which
    exists only for tiered logs."""
    topic = create(skidway_broker)
    unsupported = (ErrorCode.UNSUPPORTED_VERSION, -1)
    with RawClient(skidway_broker.port) as client:
        client.produce(topic, batch(b"a", b"b", timestamps=[10, 20]))
        for version in range(1, 8):
            expected = (0, 1) if version == 7 else unsupported
            assert listed(client, topic, MAX_TIMESTAMP, version) == expected
            assert listed(client, topic, -4, version) == unsupported
            assert listed(client, topic, 11, version) == (0, 1)


def test_the_largest_time_is_among_what_was_not_deleted(skidway_broker: SkidwayBroker) -> None:
    """ListOffsets finds the largest timestamp of the records that were not deleted, even if their
    batch begins before the log start."""
    topic = create(skidway_broker)
    with RawClient(skidway_broker.port) as client:
        client.produce(topic, batch(b"a", b"b", b"c", timestamps=[90, 20, 30]))
        assert listed(client, topic, MAX_TIMESTAMP, 7) == (0, 0)
        assert deleted(client, topic, 1) == (0, 1)
        assert listed(client, topic, MAX_TIMESTAMP, 7) == (0, 2)
        assert listed(client, topic, 15, 7) == (0, 1)


@pytest.mark.parametrize("version", range(2))
def test_the_cluster_is_described(skidway_broker: SkidwayBroker, version: int) -> None:
    """DescribeCluster returns the same cluster id and controller as Metadata, and lists the
    broker."""
    with RawClient(skidway_broker.port) as client:
        answer = client.ask(DescribeClusterRequest(), version, DescribeClusterResponse)
        known = client.ask(MetadataRequest(topics=()), 8, MetadataResponse)
        assert isinstance(answer, DescribeClusterResponse)
        assert isinstance(known, MetadataResponse)
        assert (answer.cluster_id, answer.controller_id) == (known.cluster_id, known.controller_id)
        assert [(b.broker_id, b.host, b.port) for b in answer.brokers] == [
            (1, "127.0.0.1", skidway_broker.port)
        ]


@pytest.mark.parametrize("version", range(1, 5))
def test_log_directories_are_described(skidway_broker: SkidwayBroker, version: int) -> None:
    """DescribeLogDirs returns the directory and size of each requested partition. From version 4 on
    it also returns the total and the free space of the file system."""
    topic = create(skidway_broker, 2)
    with RawClient(skidway_broker.port) as client:
        client.produce(topic, sized(500), partition=1)
        wanted = (DescribableLogDirTopic(topic=topic, partitions=(1, 9)),)
        for topics in (None, wanted):
            answer = client.ask(
                DescribeLogDirsRequest(topics=topics), version, DescribeLogDirsResponse
            )
            assert isinstance(answer, DescribeLogDirsResponse)
            (directory,) = answer.results
            assert (directory.error_code, directory.log_dir) == (0, str(skidway_broker.logs))
            assert (directory.total_bytes > directory.usable_bytes > 0) == (version >= 4)
            found = {
                (each.name, row.partition_index): row.partition_size
                for each in directory.topics
                for row in each.partitions
            }
            assert found[topic, 1] == 500
            assert (found == {(topic, 1): 500}) == (topics is not None)


def test_nothing_is_created_where_that_is_not_wanted(own_broker: SkidwayBroker) -> None:
    """With auto.create.topics.enable=false no topic is created, even if a client's request allows
    the creation."""
    own_broker.settings["auto.create.topics.enable"] = "false"
    broker = own_broker.start()
    with RawClient(broker.port) as client:

        def ask(topics: tuple[MetadataRequestTopic, ...] | None) -> MetadataResponse:
            request = MetadataRequest(topics=topics, allow_auto_topic_creation=True)
            answer = client.ask(request, 8, MetadataResponse)
            assert isinstance(answer, MetadataResponse)
            return answer

        for _ in range(2):
            (found,) = ask((MetadataRequestTopic(name="wanted"),)).topics
            assert found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert client.produce("wanted", batch(b"x")).error_code != 0
        assert ask(None).topics == ()


def test_time_bounds_of_a_topic_hold(skidway_broker: SkidwayBroker) -> None:
    """The broker refuses batches whose timestamps are too old or too far in the future. Each of
    these two bounds has its own topic setting."""
    now = int(time.time() * 1000)
    topic = create(
        skidway_broker,
        message_timestamp_before_max_ms="60000",
        message_timestamp_after_max_ms="30000",
    )
    with RawClient(skidway_broker.port) as client:
        for off, code in ((-120_000, 32), (0, 0), (20_000, 0), (120_000, 32)):
            assert client.produce(topic, batch(b"x", timestamps=[now + off])).error_code == code
        mixed = batch(b"old", b"new", timestamps=[now - 120_000, now])
        assert client.produce(topic, mixed).error_code == ErrorCode.INVALID_TIMESTAMP


def test_acks_all_needs_its_replicas(skidway_broker: SkidwayBroker) -> None:
    """If min.insync.replicas is 2, batches with acks=all are refused, because each partition has
    one replica. Batches with acks=1 are accepted."""
    topic = create(skidway_broker, min_insync_replicas="2")
    with RawClient(skidway_broker.port) as client:
        for expected in range(2):
            refused = client.produce(topic, batch(b"x"), acks=-1)
            assert refused.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
            assert client.produce(topic, batch(b"x"), acks=1).base_offset == expected


def test_segments_that_were_deleted_leave_the_disk(own_broker: SkidwayBroker) -> None:
    """DeleteRecords frees the disk space of whole segments before the new log start. The deleted
    records stay deleted if the broker is then killed."""
    own_broker.settings["log.segment.bytes"] = 1024
    broker = own_broker.start()
    topic = create(broker)
    directory = broker.logs / f"{topic}-0"
    with RawClient(broker.port) as client:
        for _ in range(6):
            client.produce(topic, sized(800))
        assert deleted(client, topic, 4) == (0, 4)
        assert len(list(directory.glob("*.log*"))) == 2
        assert deleted(client, topic, 5) == (0, 5)
    broker.crash()
    with RawClient(broker.port) as client:
        assert client.fetch(topic, 5).log_start_offset == 5
        assert client.fetch(topic, 4).error_code == ErrorCode.OFFSET_OUT_OF_RANGE

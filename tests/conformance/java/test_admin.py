"""Apache Kafka's unmodified Java Admin client and command-line tools work with our broker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skidway.kafka.client import Client
from support.java_clients import JavaClients, JavaFailed
from support.kafka import tool, topic_name

pytestmark = [pytest.mark.java, pytest.mark.foreign]

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "org.apache.kafka.tools.ConfigCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
START_MS = 1_700_000_000_000


def topics(bootstrap: str, *arguments: str) -> str:
    return tool(TOPICS, ["--bootstrap-server", bootstrap, *arguments])


def fill(java: JavaClients, bootstrap: str, topic: str, count: int) -> None:
    """Produces `count` records, each in a separate batch. Each timestamp is one second earlier than
    the timestamp of the record before, so the first record has the latest timestamp."""
    with java.producer(bootstrap, batch_size=0) as producer:
        for number in range(count):
            at_ms = START_MS + (count - number) * 1_000
            java.wait(producer.send(java.record(topic, b"%d" % number, timestamp=at_ms)))


def test_topics_by_the_command(bootstrap: str) -> None:
    """kafka-topics can create, list, describe and delete a topic, and can add partitions to it."""
    name = topic_name("by-command")
    creating = ["--partitions", "3", "--replication-factor", "1", "--config", "retention.ms=90000"]
    assert "Created topic" in topics(bootstrap, "--create", "--topic", name, *creating)
    assert name in topics(bootstrap, "--list").splitlines()
    described = topics(bootstrap, "--describe", "--topic", name)
    assert "PartitionCount: 3" in described
    assert "retention.ms=90000" in described
    assert described.count("Leader: 1") == 3
    topics(bootstrap, "--alter", "--topic", name, "--partitions", "5")
    assert "PartitionCount: 5" in topics(bootstrap, "--describe", "--topic", name)
    topics(bootstrap, "--delete", "--topic", name)
    assert name not in topics(bootstrap, "--list").splitlines()


def test_configs_by_the_command(java_clients: JavaClients, admin: Any, bootstrap: str) -> None:
    """kafka-configs shows a topic's changed settings, and with --all also default settings. It can
    also show the broker's settings."""
    name = topic_name("configs")
    java_clients.create(admin, name, segment_bytes=2_000_000)
    common = ["--bootstrap-server", bootstrap, "--describe"]
    own = tool(CONFIGS, [*common, "--entity-type", "topics", "--entity-name", name])
    assert "segment.bytes=2000000" in own
    assert "cleanup.policy" not in own
    everything = tool(CONFIGS, [*common, "--entity-type", "topics", "--entity-name", name, "--all"])
    for setting in ("cleanup.policy=delete", "max.message.bytes=1048588", "retention.ms="):
        assert setting in everything
    broker = tool(CONFIGS, [*common, "--entity-type", "brokers", "--entity-name", "1", "--all"])
    assert "cluster.name=main" in broker


def test_offsets_by_the_command(java_clients: JavaClients, bootstrap: str, topic: str) -> None:
    """GetOffsetShell prints each partition's latest and earliest offset, and the offset of the
    record with the largest timestamp. For a time after all records it prints no offset."""
    fill(java_clients, bootstrap, topic, 10)
    common = ["--bootstrap-server", bootstrap, "--topic", topic]
    assert tool(OFFSETS, common).split() == [f"{topic}:0:10", f"{topic}:1:0"]
    earliest = tool(OFFSETS, [*common, "--time", "earliest"])
    assert earliest.split() == [f"{topic}:0:0", f"{topic}:1:0"]
    # `fill` gives the first record, at offset 0, the latest timestamp.
    newest = tool(OFFSETS, [*common, "--time", "max-timestamp", "--partitions", "0"])
    assert newest.split() == [f"{topic}:0:0"]
    late = tool(OFFSETS, [*common, "--time", str(START_MS + 99_000), "--partitions", "0"])
    assert late.split() in ([], [f"{topic}:0:"])


def test_offsets_by_the_admin(
    java_clients: JavaClients, admin: Any, bootstrap: str, topic: str
) -> None:
    """Admin.listOffsets returns the earliest and latest offsets, the offsets for given times, and
    the offset of the record with the largest timestamp."""
    fill(java_clients, bootstrap, topic, 10)
    spec, tp = java_clients.kafka.clients.admin.OffsetSpec, java_clients.tp(topic)

    def listed(which: Any) -> tuple[int, int]:
        found = java_clients.wait(admin.listOffsets({tp: which}).partitionResult(tp))
        return found.offset(), found.timestamp()

    assert listed(spec.earliest())[0] == 0
    assert listed(spec.latest())[0] == 10
    assert listed(spec.maxTimestamp()) == (0, START_MS + 10_000)
    assert listed(spec.forTimestamp(START_MS + 3_500)) == (0, START_MS + 10_000)
    assert listed(spec.forTimestamp(START_MS + 11_000)) == (-1, -1)


def test_the_cluster_is_described(java_clients: JavaClients, admin: Any, bootstrap: str) -> None:
    """The Java Admin client can describe the cluster, that is, its nodes, its controller and its
    id."""
    described = admin.describeCluster()
    nodes = java_clients.wait(described.nodes())
    assert nodes.size() == 1
    node = nodes.iterator().next()
    assert (f"{node.host()}:{node.port()}", node.id()) == (bootstrap, 1)
    assert java_clients.wait(described.controller()).id() == 1
    with Client(bootstrap) as client:
        assert java_clients.wait(described.clusterId()) == client.metadata(()).cluster_id


def test_a_topic_made_again_is_another(java_clients: JavaClients, admin: Any) -> None:
    """A topic keeps its id until it is deleted. A later topic with the same name has a different
    id."""
    name = topic_name("again")
    new = java_clients.kafka.clients.admin.NewTopic(name, 2, 1).configs({})
    ids = []
    for _ in range(2):
        created = admin.createTopics([new])
        java_clients.wait(created.all())
        assert java_clients.wait(created.numPartitions(name)) == 2
        assert java_clients.wait(created.replicationFactor(name)) == 1
        config = java_clients.wait(created.config(name))
        assert config.get("cleanup.policy").value() == "delete"
        ids.append(java_clients.wait(created.topicId(name)).toString())
        described = java_clients.wait(admin.describeTopics([name]).allTopicNames())[name]
        assert described.topicId().toString() == ids[-1]
        java_clients.wait(admin.deleteTopics([name]).all())
    assert ids[0] != ids[1]


def test_a_topic_is_deleted_by_id(java_clients: JavaClients, admin: Any, topic: str) -> None:
    """A client can delete a topic by its id. A second deletion by this id is refused with
    UnknownTopicIdException."""
    described = java_clients.wait(admin.describeTopics([topic]).allTopicNames())[topic]
    collection = java_clients.kafka.common.TopicCollection
    java_clients.wait(admin.deleteTopics(collection.ofTopicIds([described.topicId()])).all())
    assert topic not in set(java_clients.wait(admin.listTopics().names()))
    with pytest.raises(JavaFailed) as caught:
        java_clients.wait(admin.deleteTopics(collection.ofTopicIds([described.topicId()])).all())
    assert caught.value.name == "UnknownTopicIdException"


@pytest.mark.parametrize(
    ("name", "partitions", "replicas", "configs", "exception"),
    [
        ("not a name", 1, 1, {}, "InvalidTopicException"),
        ("..", 1, 1, {}, "InvalidTopicException"),
        ("fine", 0, 1, {}, "InvalidPartitionsException"),
        ("fine", 1, 3, {}, "InvalidReplicationFactorException"),
        ("fine", 1, 1, {"no.such.setting": "1"}, "InvalidConfigurationException"),
        ("fine", 1, 1, {"retention.ms": "soon"}, "InvalidConfigurationException"),
    ],
)
def test_mistakes_have_their_exceptions(
    java_clients: JavaClients,
    admin: Any,
    name: str,
    partitions: int,
    replicas: int,
    configs: dict[str, str],
    exception: str,
) -> None:
    """If the broker refuses to create a topic, the Admin client raises the same exception as with
    Apache Kafka, and the topic does not exist afterwards."""
    new = java_clients.kafka.clients.admin.NewTopic(name, partitions, replicas).configs(configs)
    with pytest.raises(JavaFailed) as caught:
        java_clients.wait(admin.createTopics([new]).all())
    assert caught.value.name == exception
    assert name not in set(java_clients.wait(admin.listTopics().names()))


def test_topics_that_are_or_are_not_there(
    java_clients: JavaClients, admin: Any, topic: str
) -> None:
    """Creating an existing topic raises TopicExistsException. Describing or deleting a missing
    topic raises UnknownTopicOrPartitionException."""
    with pytest.raises(JavaFailed, match="TopicExistsException"):
        java_clients.create(admin, topic)
    for future in (
        admin.describeTopics(["nobody-made-this"]).allTopicNames(),
        admin.deleteTopics(["nobody-made-this"]).all(),
    ):
        with pytest.raises(JavaFailed, match="UnknownTopicOrPartitionException"):
            java_clients.wait(future)
    assert "nobody-made-this" not in set(java_clients.wait(admin.listTopics().names()))


def test_validating_creates_nothing(java_clients: JavaClients, admin: Any) -> None:
    """With validateOnly the broker describes the topic that it would create, and creates no
    topic."""
    name = topic_name("validated")
    package = java_clients.kafka.clients.admin
    only = package.CreateTopicsOptions().validateOnly(True)
    new = package.NewTopic(name, 3, 1).configs({"retention.ms": "5000"})
    created = admin.createTopics([new], only)
    java_clients.wait(created.all())
    assert java_clients.wait(created.numPartitions(name)) == 3
    assert java_clients.wait(created.replicationFactor(name)) == 1
    config = java_clients.wait(created.config(name))
    assert config.get("retention.ms").value() == "5000"
    assert config.get("cleanup.policy").value() == "delete"
    assert name not in set(java_clients.wait(admin.listTopics().names()))


def own_settings(java: JavaClients, admin: Any, topic: str) -> dict[str, str]:
    """Returns the settings that are set for the topic itself, as Admin.describeConfigs returns
    them."""
    resource = config_resource(java, topic)
    found = java.wait(admin.describeConfigs([resource]).all())[resource]
    return {
        entry.name(): entry.value()
        for entry in found.entries().toArray()
        if str(entry.source()) == "DYNAMIC_TOPIC_CONFIG"
    }


def config_resource(java: JavaClients, topic: str) -> Any:
    kind = getattr(java.jvm, "org.apache.kafka.common.config.ConfigResource$Type").TOPIC
    return java.kafka.common.config.ConfigResource(kind, topic)


def test_settings_change_by_the_admin(java_clients: JavaClients, admin: Any, topic: str) -> None:
    """Admin.incrementalAlterConfigs can set, append to, subtract from and delete a topic's
    settings. If the broker refuses a change, the Admin client raises an exception."""
    package = java_clients.kafka.clients.admin
    resource = config_resource(java_clients, topic)
    types = getattr(java_clients.jvm, "org.apache.kafka.clients.admin.AlterConfigOp$OpType")

    def change(name: str, value: str, operation: str) -> None:
        entry = package.ConfigEntry(name, value)
        kind = types.valueOf(operation)
        operations = [package.AlterConfigOp(entry, kind)]
        java_clients.wait(admin.incrementalAlterConfigs({resource: operations}).all())

    change("retention.ms", "5000", "SET")
    change("retention.hold", "a,b", "APPEND")
    change("retention.hold", "a", "SUBTRACT")
    assert own_settings(java_clients, admin, topic) == {
        "retention.ms": "5000",
        "retention.hold": "b",
    }
    change("retention.ms", "", "DELETE")
    assert own_settings(java_clients, admin, topic) == {"retention.hold": "b"}
    for name, value in (("no.such.setting", "1"), ("retention.ms", "soon")):
        with pytest.raises(JavaFailed) as caught:
            change(name, value, "SET")
        assert caught.value.name == "InvalidConfigurationException"


def test_settings_change_by_the_command(bootstrap: str, topic: str) -> None:
    """kafka-configs --alter can add and delete settings of a topic."""
    common = ["--bootstrap-server", bootstrap, "--entity-type", "topics", "--entity-name", topic]
    tool(CONFIGS, [*common, "--alter", "--add-config", "segment.bytes=2000000,flush.ms=7"])
    tool(CONFIGS, [*common, "--alter", "--delete-config", "flush.ms"])
    shown = tool(CONFIGS, [*common, "--describe"])
    assert "segment.bytes=2000000" in shown
    assert "flush.ms=7" not in shown


def test_records_are_deleted_by_the_command(
    java_clients: JavaClients, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    """kafka-delete-records moves the log start offset. The broker refuses an offset beyond the log
    end."""
    fill(java_clients, bootstrap, topic, 10)
    wanted = tmp_path / "offsets.json"

    def delete(offset: int) -> str:
        row = {"topic": topic, "partition": 0, "offset": offset}
        wanted.write_text(json.dumps({"partitions": [row], "version": 1}))
        where = ["--bootstrap-server", bootstrap, "--offset-json-file", str(wanted)]
        return tool("org.apache.kafka.tools.DeleteRecordsCommand", where)

    assert "low_watermark: 4" in delete(4)
    assert "OffsetOutOfRange" in delete(11)
    assert "low_watermark: 10" in delete(-1)
    earliest = tool(OFFSETS, ["--bootstrap-server", bootstrap, "--topic", topic, "--time", "-2"])
    assert f"{topic}:0:10" in earliest


def test_log_directories_are_described_by_the_admin(
    java_clients: JavaClients, admin: Any, bootstrap: str, topic: str
) -> None:
    """Admin.describeLogDirs returns the size of each partition, and the total and usable bytes of
    the file system."""
    fill(java_clients, bootstrap, topic, 3)
    integer = java_clients.jvm.java.lang.Integer.valueOf(1)
    (found,) = java_clients.wait(admin.describeLogDirs([integer]).allDescriptions())[1].values()
    assert found.error() is None
    assert found.replicaInfos()[java_clients.tp(topic)].size() > 0
    assert found.totalBytes().getAsLong() > found.usableBytes().getAsLong() > 0

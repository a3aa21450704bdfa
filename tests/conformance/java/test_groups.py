"""Apache Kafka's unmodified Java consumer and Java Admin client work with consumer groups on our
broker."""

from __future__ import annotations

from typing import Any

import pytest

from support.java_clients import JavaClients, JavaFailed, values_of
from support.kafka import tool

pytestmark = [pytest.mark.java, pytest.mark.foreign]

GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


def test_a_group_from_its_first_record_to_its_deletion(
    java_clients: JavaClients, admin: Any, bootstrap: str, topic: str
) -> None:
    """A Java consumer can commit offsets for its group. kafka-consumer-groups can describe and
    reset these offsets, and the Admin client can list and delete them. While a group has members,
    the broker refuses to delete the group."""
    java, group = java_clients, f"group-{topic}"
    with java.producer(bootstrap) as producer:
        for number in range(10):
            producer.send(java.record(topic, b"%d" % number, partition=number % 2))
        producer.flush()
    settings = {"group_id": group, "auto_offset_reset": "earliest", "enable_auto_commit": False}
    with java.consumer(bootstrap, **settings) as consumer:
        consumer.subscribe([topic])
        found = java.poll(consumer, 10)
        assert sorted(map(str, values_of(found))) == sorted(str(b"%d" % n) for n in range(10))
        consumer.commitSync()
        described = java.wait(admin.describeConsumerGroups([group]).all())[group]
        assert described.state().toString() == "Stable"
        assert described.members().size() == 1
        listed = java.wait(admin.listConsumerGroups().all())
        assert group in {each.groupId() for each in listed}
        with pytest.raises(JavaFailed, match="GroupNotEmptyException"):
            java.wait(admin.deleteConsumerGroups([group]).all())
        with pytest.raises(JavaFailed, match="GroupSubscribedToTopicException"):
            java.wait(admin.deleteConsumerGroupOffsets(group, {java.tp(topic)}).all())
        consumer.unsubscribe()
    stored = java.wait(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata())
    assert {each.partition(): stored[each].offset() for each in stored} == {0: 5, 1: 5}
    shown = tool(GROUPS, ["--bootstrap-server", bootstrap, "--describe", "--group", group])
    assert [
        line.split()[3:6] for line in shown.splitlines() if group in line and topic in line
    ] == [
        ["5", "5", "0"],
        ["5", "5", "0"],
    ]
    tool(
        GROUPS,
        ["--bootstrap-server", bootstrap, "--group", group, "--topic", topic,
         "--reset-offsets", "--to-earliest", "--execute"],
    )  # fmt: skip
    java.wait(admin.deleteConsumerGroupOffsets(group, {java.tp(topic, 1)}).all())
    stored = java.wait(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata())
    assert {each.partition(): stored[each].offset() for each in stored} == {0: 0}
    java.wait(admin.deleteConsumerGroups([group]).all())
    assert group not in {each.groupId() for each in java.wait(admin.listConsumerGroups().all())}
    with pytest.raises(JavaFailed, match="GroupIdNotFoundException"):
        java.wait(admin.deleteConsumerGroups([group]).all())

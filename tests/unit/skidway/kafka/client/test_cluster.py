"""Tests the classes for the addresses of brokers and for a cluster's metadata."""

from __future__ import annotations

import uuid

import pytest

from skidway.errors import UsageError
from skidway.kafka.client.cluster import Address, cluster_of, parse_bootstrap
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from skidway.kafka.types import TopicPartition


@pytest.mark.parametrize(
    ("text", "addresses"),
    [
        ("broker:9093", [("broker", 9093)]),
        ("broker", [("broker", 9092)]),
        (" a:1 , b:2,", [("a", 1), ("b", 2)]),
        ("[::1]:9094", [("::1", 9094)]),
        ("[fe80::1]", [("fe80::1", 9092)]),
        ("127.0.0.1:1", [("127.0.0.1", 1)]),
    ],
)
def test_bootstrap_servers(text: str, addresses: list[tuple[str, int]]) -> None:
    """The addresses of bootstrap servers are HOST:PORT, separated by commas. IPv6 addresses are in
    brackets, and the default port is 9092."""
    assert list(parse_bootstrap(text)) == addresses


@pytest.mark.parametrize(
    "text",
    ["", " , ", ":9092", "a:b", "a:0", "a:65536", "::1", "a:-1", "[::1", "a..b", "a:" + "9" * 5000],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    """An invalid bootstrap address is refused with an error message."""
    with pytest.raises(UsageError, match="bootstrap"):
        parse_bootstrap(text)


def test_addresses_are_shown_as_they_are_written() -> None:
    """An IPv6 address is shown in brackets."""
    assert str(Address("::1", 9092)) == "[::1]:9092"
    assert str(Address("a", 1)) == "a:1"


def response(*partitions: MetadataResponsePartition, error: int = 0) -> MetadataResponse:
    broker = MetadataResponseBroker(node_id=3, host="h", port=9)
    topic = MetadataResponseTopic(
        name="t", topic_id=uuid.UUID(int=5), error_code=error, partitions=partitions
    )
    return MetadataResponse(brokers=(broker,), cluster_id="c", controller_id=3, topics=(topic,))


def partition(index: int, leader: int) -> MetadataResponsePartition:
    return MetadataResponsePartition(
        partition_index=index, leader_id=leader, replica_nodes=(3,), isr_nodes=(3,)
    )


def test_leaders_are_found() -> None:
    """`leader` returns the address of a partition's leader, or None if the leader, broker,
    partition or topic is unknown."""
    cluster = cluster_of(response(partition(1, 3), partition(0, -1), partition(2, 8)))
    assert cluster.leader(TopicPartition("t", 1)) == ("h", 9)
    for tp in [("t", 0), ("t", 2), ("t", 3), ("t", -1), ("u", 0)]:
        assert cluster.leader(TopicPartition(*tp)) is None
    assert [p.index for p in cluster.topics["t"].partitions] == [0, 1, 2]
    assert cluster.topics["t"].topic_id == uuid.UUID(int=5)


def test_partitions_with_holes_are_not_believed() -> None:
    """If a topic's partitions are not numbered 0, 1, 2 ..., the topic is treated as if it had no
    partitions."""
    assert cluster_of(response(partition(0, 3), partition(2, 3))).topics["t"].partitions == ()
    assert cluster_of(response(partition(0, 3), partition(0, 3))).topics["t"].partitions == ()


def test_unknown_error_codes() -> None:
    """An unknown error code counts as UNKNOWN_SERVER_ERROR."""
    assert cluster_of(response(error=4_000)).topics["t"].error is ErrorCode.UNKNOWN_SERVER_ERROR

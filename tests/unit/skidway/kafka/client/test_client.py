"""Tests a client of a cluster in which some or all brokers are dead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from skidway.kafka.batch import OFFSET_MAX
from skidway.kafka.client import Client
from skidway.kafka.client.calls import Call
from skidway.kafka.client.cluster import Address, Broker, Cluster
from skidway.kafka.errors import BrokerUnreachable, KafkaError
from skidway.kafka.protocol.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from skidway.kafka.protocol.list_offsets import (
    EARLIEST,
    LATEST,
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from skidway.kafka.types import TopicPartition
from support.clock import ManualClock


class PartlyThere(Client):
    """A client whose cluster metadata lists three brokers, of which some are dead."""

    dead: frozenset[int] = frozenset()

    def metadata(self, topics: Any = None) -> Cluster:
        return Cluster("c", 1, {each: Broker(each, "host", 9000 + each) for each in (1, 2, 3)}, {})

    def _ask(self, call: Call, choose: Callable[[float], Address | None]) -> Any:
        address = choose(0.0)
        assert address is not None
        number = address.port - 9000
        if number in self.dead:
            raise BrokerUnreachable(f"broker {number} does not answer")
        row = DescribeConfigsResourceResult(name="cluster.name", value=f"told by {number}")
        result = DescribeConfigsResult(resource_type=4, resource_name=str(number), configs=(row,))
        return DescribeConfigsResponse(results=(result,))


@pytest.fixture
def client() -> Iterator[PartlyThere]:
    """A client that never opens a connection."""
    with PartlyThere("host:9001") as made:
        yield made


@pytest.mark.parametrize(
    ("dead", "who"), [(set(), 1), ({1}, 2), ({1, 2}, 3)], ids=["none", "one", "two"]
)
def test_a_dead_broker_that_is_still_listed_hides_no_settings(
    client: PartlyThere, dead: set[int], who: int
) -> None:
    """If a broker in the cluster's metadata is dead, the client asks another broker for the
    brokers' settings."""
    client.dead = frozenset(dead)
    assert client.broker_configs() == {"cluster.name": f"told by {who}"}


def test_where_nobody_answers_the_cluster_is_unreachable(client: PartlyThere) -> None:
    """If no broker answers, the client raises BrokerUnreachable instead of returning an empty
    answer."""
    client.dead = frozenset({1, 2, 3})
    with pytest.raises(BrokerUnreachable, match="broker 3"):
        client.broker_configs()


@pytest.mark.parametrize(
    ("patience_ms", "said"), [(1_000, "within 10[0-9]{2} ms"), (None, "30000")]
)
def test_people_do_not_wait_for_an_address_that_refuses(
    monkeypatch: pytest.MonkeyPatch, patience_ms: int | None, said: str
) -> None:
    """If connections are refused and no broker has answered the client yet, a request gives up
    after refused_timeout_ms. If this setting is missing, the request gives up only after the usual
    request timeout."""
    clock = ManualClock()
    with Client("host:1", refused_timeout_ms=patience_ms, clock=clock) as client:
        monkeypatch.setattr(client.session, "usable", lambda *_: False)
        monkeypatch.setattr(client, "wait", lambda seconds, wake=(): clock.advance(seconds))
        client.session.failure_count, client.session.last_failure = 1, "host:1: refused"
        with pytest.raises(BrokerUnreachable, match=f"{said}.*refused"):
            client.metadata()


def test_a_partition_that_an_answer_leaves_out_has_an_error(
    client: PartlyThere, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a leader's answer leaves out a partition, the partition has an error that names it, so
    that nobody takes the answer for whole."""
    monkeypatch.setattr(Cluster, "leader", lambda *_: Address("host", 9001))
    monkeypatch.setattr(client, "_ask", lambda *_: ListOffsetsResponse(topics=()))
    tp = TopicPartition("logs", 3)
    found, errors = client.list_offsets_now({tp: LATEST})
    assert (found, [*errors]) == ({}, [tp])
    client.request_timeout_ms = 0
    with pytest.raises(KafkaError, match="logs-3 leaves out this partition"):
        client.list_offsets({tp: LATEST})


@pytest.mark.parametrize(
    ("time_ms", "offset"),
    [(LATEST, (1 << 63) - 1), (EARLIEST, OFFSET_MAX + 1), (LATEST, -1), (EARLIEST, -5), (7, -2)],
)
def test_an_offset_that_no_log_has_is_an_error(
    client: PartlyThere, monkeypatch: pytest.MonkeyPatch, time_ms: int, offset: int
) -> None:
    """If a leader says that a partition has an offset that no log can have, or has no beginning or
    no end, the partition has an error that names it, and its offset is not believed."""
    tp = TopicPartition("logs", 3)
    row = ListOffsetsPartitionResponse(partition_index=tp.partition, offset=offset)
    lie = ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name="logs", partitions=(row,)),))
    monkeypatch.setattr(Cluster, "leader", lambda *_: Address("host", 9001))
    monkeypatch.setattr(client, "_ask", lambda *_: lie)
    with pytest.raises(KafkaError, match=f"logs-3.*{offset}"):
        client.list_offsets({tp: time_ms})

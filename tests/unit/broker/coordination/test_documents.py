from __future__ import annotations

import json
import uuid

import pytest

from skidway.broker.catalog import Endpoint, LiveBroker, PartitionState
from skidway.broker.coordination import documents
from skidway.broker.coordination.documents import DocumentRefused, Registration
from skidway.broker.listener_settings import SSL
from skidway.kafka.types import PLAINTEXT


def test_documents_come_back() -> None:
    """Every kind of document in ZooKeeper is read as it was written."""
    topic_id = uuid.uuid4()
    assert documents.read_topic("/t", documents.topic(topic_id, {1: (2,), 0: (1,)})) == (
        topic_id,
        {0: (1,), 1: (2,)},
    )
    state = PartitionState(1, 3, (1, 2), 9)
    assert documents.read_state("/s", documents.state(state), 9) == state
    assert documents.read_configs("/c", documents.configs({"a": "b"})) == {"a": "b"}
    endpoints = Endpoint("IN", PLAINTEXT, "host", 9092), Endpoint("OUT", SSL, "fd00::1", 9093)
    registered = Registration(LiveBroker(5, endpoints), "directory")
    data = documents.registration(registered, 1)
    assert documents.read_registration("/brokers/ids/5", data) == registered
    assert documents.read_producer_id_block("/p", documents.producer_id_block(1, 5, 9)) == 9
    assert documents.read_cluster_id("/c", documents.cluster_id("abc")) == "abc"
    assert documents.read_controller("/c", documents.controller(4, 1)) == 4


def test_a_broker_is_registered_as_in_kafka() -> None:
    """A broker's node names all listeners with their protocols, as Kafka's does; host and port are
    those of a listener without TLS, if there is one."""
    outside = Endpoint("OUT", SSL, "fd00::1", 9093)
    for endpoints, host, port in (
        ((outside, Endpoint("IN", PLAINTEXT, "a", 1)), "a", 1),
        ((outside,), None, -1),
    ):
        registered = Registration(LiveBroker(5, endpoints), "directory")
        content = json.loads(documents.registration(registered, 1))
        assert content["endpoints"][0] == "OUT://[fd00::1]:9093"
        assert content["listener_security_protocol_map"]["OUT"] == "SSL"
        assert (content["host"], content["port"]) == (host, port)


@pytest.mark.parametrize(
    "endpoints", ['"x"', "[]", '["IN://host"]', '["IN://host:x"]', '["OTHER://host:1"]']
)
def test_a_broker_without_addresses_is_refused(endpoints: str) -> None:
    """A broker's node whose endpoints are not whole is refused."""
    text = f'{{"listener_security_protocol_map": {{"IN": "SSL"}}, "endpoints": {endpoints}}}'
    with pytest.raises(DocumentRefused, match="/brokers/ids/5"):
        documents.read_registration("/brokers/ids/5", text.encode())


def test_kafkas_own_documents_are_read() -> None:
    """The broker can read documents that Apache Kafka 3 wrote."""
    data = (
        b'{"removing_replicas":{},"partitions":{"0":[1,2]},"topic_id":"EjRWeJq83vASNFZ4mrze8A",'
        b'"adding_replicas":{},"version":3}'
    )
    assert documents.read_topic("/t", data) == (
        uuid.UUID("12345678-9abc-def0-1234-56789abcdef0"),
        {0: (1, 2)},
    )
    data = b'{"controller_epoch":7,"leader":1,"version":1,"leader_epoch":2,"isr":[1,2]}'
    assert documents.read_state("/s", data, 0) == PartitionState(1, 2, (1, 2), 0)


@pytest.mark.parametrize(
    "data",
    [b"", b"null", b"[]", b"{}", b"\xff", b'{"partitions":{"x":[1]}}', b'{"partitions":{"0":7}}'],
)
def test_damaged_documents_are_refused_by_path(data: bytes) -> None:
    """If the ZooKeeper node of a topic does not contain a valid topic document, the broker refuses
    to read it, and the error names the node's path."""
    with pytest.raises(DocumentRefused, match="/brokers/topics/t"):
        documents.read_topic("/brokers/topics/t", data)

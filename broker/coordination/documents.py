"""The paths and contents of the broker's nodes in ZooKeeper. Other programs may have written the
contents, so the functions here check every content that they read.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skidway.broker.catalog import Endpoint, LiveBroker, PartitionState
from skidway.broker.log.checkpoints import decode_id, encode_id
from skidway.errors import SkidwayError
from skidway.kafka.types import PLAINTEXT

CLUSTER_ID = "/cluster/id"
BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
TOPIC_CONFIGS = "/config/topics"
DELETE_TOPICS = "/admin/delete_topics"
CONTROLLER = "/controller"
PRODUCER_ID_BLOCK = "/producer_id_numbers"
PRODUCER_ID_KEY = "/producer_id_key"
"""Kafka has neither: its ids have no numbers, and are in `/latest_producer_id_block`."""


class DocumentRefused(SkidwayError):
    """Raised if the content of a node is not what a node at this path must contain."""


@dataclass(frozen=True, slots=True)
class Registration:
    """A broker's registration. directory_id: the id of the broker's log directory. A broker that
    was restarted has the same directory id as before; another broker that is wrongly configured
    with the same broker id has another directory id.
    """

    broker: LiveBroker
    directory_id: str


def broker_path(broker_id: int | str) -> str:
    """Returns the path of the node in which a broker registers."""
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    """Returns the path of the node of a topic."""
    return f"{TOPICS}/{topic}"


def config_path(topic: str) -> str:
    """Returns the path of the node that stores a topic's settings."""
    return f"{TOPIC_CONFIGS}/{topic}"


def deletion_path(topic: str) -> str:
    """Returns the path of the node that marks a topic as being deleted."""
    return f"{DELETE_TOPICS}/{topic}"


def state_path(topic: str, partition: int) -> str:
    """Returns the path of the node that stores a partition's state."""
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def cluster_id(content: str) -> bytes:
    """Returns the content of the node /cluster/id. content: the cluster's id."""
    return _dump({"version": "1", "id": content})


def read_cluster_id(path: str, data: bytes) -> str:
    """Returns the cluster's id, from the content of /cluster/id."""
    return str(_field(path, _load(path, data), "id", str))


def registration(registered: Registration, now_ms: int) -> bytes:
    """Returns the content of a broker's node: the fields that Kafka writes, and also Skidway's
    directory id. As in Kafka, `host` and `port` are those of a listener without TLS, for old
    clients of ZooKeeper.
    """
    endpoints = registered.broker.endpoints
    plain = next((each for each in endpoints if each.protocol == PLAINTEXT), None)
    return _dump(
        {
            "version": 5,
            "listener_security_protocol_map": {x.listener: x.protocol for x in endpoints},
            "endpoints": [f"{x.listener}://{x.address}" for x in endpoints],
            "jmx_port": -1,
            "features": {},
            "host": None if plain is None else plain.host,
            "port": -1 if plain is None else plain.port,
            "timestamp": str(now_ms),
            "skidway.directory.id": registered.directory_id,
        }
    )


def read_registration(path: str, data: bytes) -> Registration:
    """Returns a broker's registration, from the content of its node."""
    name = path.rpartition("/")[2]
    if not name.isdecimal() or not name.isascii():
        raise DocumentRefused(f"ZooKeeper's node {path} is no broker's: {name!r} is no broker.id")
    broker_id = int(name)
    content = _load(path, data)
    endpoints = _endpoints(path, content)
    return Registration(
        LiveBroker(broker_id, endpoints, content.get("rack")),
        str(content.get("skidway.directory.id", "")),
    )


def topic(topic_id: uuid.UUID, partitions: Mapping[int, Sequence[int]]) -> bytes:
    """Returns the content of the node of a topic. partitions: the replicas of each partition."""
    return _dump(
        {
            "version": 3,
            "topic_id": encode_id(topic_id),
            "partitions": {str(number): list(each) for number, each in partitions.items()},
            "adding_replicas": {},
            "removing_replicas": {},
        }
    )


def read_topic(path: str, data: bytes) -> tuple[uuid.UUID | None, dict[int, tuple[int, ...]]]:
    """Returns the topic id (None if an old Kafka created the topic) and the replicas of each
    partition.
    """
    content = _load(path, data)
    partitions = _field(path, content, "partitions", dict)
    text = content.get("topic_id")
    try:
        replicas = {
            int(number): tuple(int(each) for each in partitions[number]) for number in partitions
        }
        return None if text is None else decode_id(str(text)), dict(sorted(replicas.items()))
    except (TypeError, ValueError) as error:
        raise DocumentRefused(f"ZooKeeper's node {path} is no topic: {error}") from error


def state(content: PartitionState) -> bytes:
    """Returns the content of the node for a partition's state."""
    return _dump(
        {
            "controller_epoch": 1,
            "leader": content.leader,
            "version": 1,
            "leader_epoch": content.leader_epoch,
            "isr": list(content.isr),
        }
    )


def read_state(path: str, data: bytes, version: int) -> PartitionState:
    """Returns a partition's state, from the content of its node. version: the version of the
    node.
    """
    content = _load(path, data)
    isr = tuple(each for each in _field(path, content, "isr", list) if isinstance(each, int))
    leader = _field(path, content, "leader", int)
    return PartitionState(leader, _field(path, content, "leader_epoch", int), isr, version)


def configs(content: Mapping[str, str]) -> bytes:
    """Returns the content of the node for a topic's settings."""
    return _dump({"version": 1, "config": dict(content)})


def read_configs(path: str, data: bytes) -> dict[str, str]:
    """Returns a topic's settings, from the content of their node."""
    content = _field(path, _load(path, data), "config", dict)
    return {str(name): str(value) for name, value in content.items()}


def deletion(topic_id: uuid.UUID) -> bytes:
    """Returns the content of the node that marks a topic as being deleted."""
    return _dump({"topic_id": encode_id(topic_id)})


def controller(broker_id: int, now_ms: int) -> bytes:
    """Returns the content of the node /controller. broker_id: the broker that is the controller."""
    return _dump({"version": 1, "brokerid": broker_id, "timestamp": str(now_ms)})


def read_controller(path: str, data: bytes) -> int:
    """Returns the controller's broker id, from the content of /controller."""
    return int(_field(path, _load(path, data), "brokerid", int))


def producer_id_block(broker_id: int, first: int, last: int) -> bytes:
    """Returns the content of /producer_id_numbers. `first` and `last` both belong to the
    block.
    """
    return _dump(
        {"version": 1, "broker": broker_id, "block_start": str(first), "block_end": str(last)}
    )


def read_producer_id_block(path: str, data: bytes) -> int:
    """Returns the last number of the newest block, from /producer_id_numbers."""
    content = _load(path, data)
    try:
        return int(content["block_end"])
    except (KeyError, TypeError, ValueError) as error:
        raise DocumentRefused(f"ZooKeeper's node {path} has no block_end") from error


def producer_id_key(key: bytes) -> bytes:
    """Returns the content of /producer_id_key."""
    return _dump({"version": 1, "key": key.hex()})


def read_producer_id_key(path: str, data: bytes) -> bytes:
    """Returns the key, from the content of /producer_id_key."""
    try:
        return bytes.fromhex(_field(path, _load(path, data), "key", str))
    except ValueError as error:
        raise DocumentRefused(f"the key in ZooKeeper's node {path} is not hexadecimal") from error


def _endpoints(path: str, content: dict[str, Any]) -> tuple[Endpoint, ...]:
    protocols = _field(path, content, "listener_security_protocol_map", dict)
    found = []
    for text in _field(path, content, "endpoints", list):
        listener, _, address = str(text).partition("://")
        host, _, port = address.rpartition(":")
        if not host or not port.isdecimal() or listener not in protocols:
            raise DocumentRefused(f"ZooKeeper's node {path} has the endpoint {text!r}")
        found.append(Endpoint(listener, str(protocols[listener]), host.strip("[]"), int(port)))
    if not found:
        raise DocumentRefused(f"ZooKeeper's node {path} has no endpoint")
    return tuple(found)


def _dump(content: dict[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def _load(path: str, data: bytes) -> dict[str, Any]:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DocumentRefused(f"ZooKeeper's node {path} holds no JSON: {error}") from error
    if not isinstance(content, dict):
        raise DocumentRefused(f"ZooKeeper's node {path} holds no JSON object")
    return content


def _field(path: str, content: dict[str, Any], name: str, kind: type) -> Any:
    value = content.get(name)
    if not isinstance(value, kind):
        raise DocumentRefused(f"ZooKeeper's node {path} lacks {name}")
    return value

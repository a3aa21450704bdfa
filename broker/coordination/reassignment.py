"""Reads a partition's assignment and state together, and changes them in one transaction."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from skidway.broker.catalog import PartitionState
from skidway.broker.coordination import documents
from skidway.broker.coordination.store import TopicGone
from skidway.coordination import Coordinator
from skidway.errors import SkidwayError, StateRefused
from skidway.kafka.types import TopicPartition


@dataclass(frozen=True, slots=True)
class Assigned:
    """The assignment of a topic's partitions, and the state of one of these partitions. version:
    the version of the node that stores the assignment.
    """

    topic_id: uuid.UUID
    replicas: Mapping[int, tuple[int, ...]]
    version: int
    state: PartitionState
    configs: Mapping[str, str]


def read(coordinator: Coordinator, partition: TopicPartition) -> Assigned:
    """Reads a partition's assignment and state.

    Raises StateRefused if no broker has ever led the partition. Also raises TopicGone,
    DocumentRefused and Unreachable.
    """
    topic, number = partition
    path = documents.topic_path(topic)
    found = coordinator.get(path)
    if found is None or coordinator.get(documents.deletion_path(topic)) is not None:
        raise TopicGone(f"There is no topic '{topic}'.")
    topic_id, replicas = documents.read_topic(path, found.data)
    if topic_id is None or number not in replicas:
        raise StateRefused(f"ZooKeeper's node {path} has no partition {number}, or no topic_id")
    state_path = documents.state_path(topic, number)
    node = coordinator.get(state_path)
    if node is None:
        raise StateRefused(f"{partition} was never led by a broker: there is nothing to move")
    state = documents.read_state(state_path, node.data, node.version)
    config_path = documents.config_path(topic)
    settings = coordinator.get(config_path)
    configs = {} if settings is None else documents.read_configs(config_path, settings.data)
    return Assigned(topic_id, replicas, found.version, state, configs)


def write(
    coordinator: Coordinator,
    partition: TopicPartition,
    before: Assigned,
    wanted: PartitionState,
) -> None:
    """Assigns the partition to the broker `wanted.leader`, and writes `wanted` as the partition's
    state, both in one transaction.

    Raises SkidwayError if the assignment or the state has changed since `before` was read. If
    Unreachable is raised, the write may have been done.
    """
    topic, number = partition
    path, state_path = documents.topic_path(topic), documents.state_path(topic, number)
    replicas = {**before.replicas, number: (wanted.leader,)}
    wanted = replace(wanted, isr=(wanted.leader,))

    def build(transaction: Any) -> None:
        topic_node = documents.topic(before.topic_id, replicas)
        transaction.set_data(path, topic_node, before.version)
        transaction.set_data(state_path, documents.state(wanted), before.state.version)

    results = coordinator.transact(path, build)
    if any(isinstance(each, Exception) for each in results):
        raise SkidwayError(f"ZooKeeper's node {path} was changed meanwhile; try again")

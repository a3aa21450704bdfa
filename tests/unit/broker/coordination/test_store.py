"""Each topic is created in ZooKeeper and removed from ZooKeeper only once, even if several brokers
try to create or remove it at the same time."""

from __future__ import annotations

import uuid
from typing import cast

import pytest

from skidway.broker.coordination import documents, store
from skidway.coordination import Coordinator
from skidway.kafka import group_nodes
from support.nodes import Nodes

CONFIG, TOPIC = documents.config_path("logs"), documents.topic_path("logs")
MARK = documents.deletion_path("logs")


def create(nodes: Nodes, settings: dict[str, str]) -> None:
    store.create_topic(cast(Coordinator, nodes), "logs", uuid.uuid4(), {0: [1]}, settings)


@pytest.mark.parametrize("looked_at", [TOPIC, CONFIG])
@pytest.mark.parametrize("left", [False, True])
def test_two_brokers_that_create_a_topic_leave_one_with_its_settings(
    looked_at: str, left: bool
) -> None:
    """If two brokers create a topic at the same time, the topic gets the settings from the faster
    broker. Settings that an earlier, unfinished creation has left in ZooKeeper do not matter."""
    nodes = Nodes()
    if left:
        nodes.content[CONFIG] = documents.configs({"retention.ms": "1"})
    nodes.after[looked_at] = lambda: create(nodes, {"retention.ms": "2"})
    try:
        create(nodes, {"retention.ms": "3"})
    except store.TopicExists:
        assert documents.read_configs(CONFIG, nodes.content[CONFIG]) == {"retention.ms": "2"}
    else:  # nobody read the node `looked_at`, so only one broker created the topic
        assert documents.read_configs(CONFIG, nodes.content[CONFIG]) == {"retention.ms": "3"}
    assert TOPIC in nodes.content


def topic_nodes() -> dict[str, bytes]:
    state = documents.state_path("logs", 0)
    parents = [state.rpartition("/")[0], state.rpartition("/")[0].rpartition("/")[0]]
    return dict.fromkeys([CONFIG, TOPIC, *parents, state], b"{}")


def remove(nodes: Nodes) -> None:
    store.remove_topic(cast(Coordinator, nodes), "logs")


@pytest.mark.parametrize("at_once", [1, 2, 500])
def test_the_end_of_a_deletion_removes_all_nodes(
    monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """The last step of a topic's deletion uses as many transactions as necessary. It removes from
    ZooKeeper the topic, its partitions, its settings, and the node that says that the topic is
    being deleted."""
    monkeypatch.setattr(store, "REMOVED_AT_ONCE", at_once)
    nodes = Nodes()
    nodes.content = {**topic_nodes(), MARK: b"{}", "/brokers/topics/logs2": b"{}"}
    remove(nodes)
    assert list(nodes.content) == ["/brokers/topics/logs2"]
    remove(nodes)


OFFSETS = group_nodes.topic_offsets_path("readers", "logs")


def commit_offset(nodes: Nodes) -> None:
    nodes.create_if_absent(f"{OFFSETS}/0", b"5")


def test_the_end_of_a_deletion_removes_the_offsets_of_all_groups() -> None:
    """The last step of a topic's deletion removes all offsets that groups have committed for the
    topic, including an offset that a group commits during this step."""
    nodes = Nodes()
    nodes.content = {**topic_nodes(), MARK: b"{}"}
    commit_offset(nodes)
    other = group_nodes.topic_offsets_path("readers", "logs2")
    nodes.create_if_absent(f"{other}/0", b"7")
    nodes.after[OFFSETS] = lambda: nodes.create_if_absent(f"{OFFSETS}/1", b"6")
    remove(nodes)
    assert OFFSETS not in nodes.content
    assert f"{other}/0" in nodes.content


@pytest.mark.parametrize("looked_at", [MARK, OFFSETS])
def test_a_late_end_of_a_deletion_leaves_a_new_topic_alone(looked_at: str) -> None:
    """Several brokers may do the last step of a topic's deletion. If another broker has already
    done it, and a new topic has the same name, this broker removes nothing. The new topic keeps its
    nodes and the offsets that groups have committed for it."""
    nodes = Nodes()
    nodes.content = {**topic_nodes(), MARK: b"{}"}
    commit_offset(nodes)
    before = set(nodes.content)

    def finished() -> None:  # another broker removes the mark; the other nodes are of a new topic
        del nodes.content[MARK]

    nodes.after[looked_at] = finished
    remove(nodes)
    assert set(nodes.content) == before - {MARK}

"""Tests how a mirror records a gap in the settings of its topic in ZooKeeper. A gap is a range of
offsets that the mirror lacks. The mirror never overwrites gaps of other partitions, or gaps that
other brokers have written."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest

from skidway.broker.coordination import documents, store
from skidway.broker.coordination.store import TooManyGaps, TopicGone
from skidway.errors import StateRefused, Unreachable
from skidway.kafka import gaps
from skidway.kafka.gaps import Gap

TOPIC, ID = "dc1.logs", uuid.uuid4()
ONE, TWO = Gap(0, 3, 9, "expired"), Gap(1, 0, 5, "expired")


class Node(NamedTuple):
    data: bytes
    version: int


@dataclass
class ZooKeeper:
    """A stand-in for ZooKeeper: nodes with versions. Each function in `meanwhile` runs once,
    between a read of the broker and its next write."""

    nodes: dict[str, Node] = field(default_factory=dict)
    meanwhile: list[Callable[[], None]] = field(default_factory=list)

    def get(self, path: str) -> Node | None:
        return self.nodes.get(path)

    def set_versioned(self, path: str, data: bytes, version: int) -> bool:
        if self.meanwhile:
            self.meanwhile.pop()()
        if self.nodes[path].version != version:
            return False
        self.nodes[path] = Node(data, version + 1)
        return True

    def create_if_absent(self, path: str, data: bytes) -> bool:
        return self.nodes.setdefault(path, Node(data, 0)).data is data

    def name(self, gap: Gap, topic_id: uuid.UUID = ID) -> None:
        store.name_gap(self, TOPIC, topic_id, gap)  # type: ignore[arg-type]

    def configs(self) -> dict[str, str]:
        path = documents.config_path(TOPIC)
        return documents.read_configs(path, self.nodes[path].data)

    def named(self) -> list[Gap]:
        return gaps.decode(self.configs()[gaps.CONFIG])

    def put(self, configs: dict[str, str]) -> None:
        self.nodes[documents.config_path(TOPIC)] = Node(documents.configs(configs), 0)


@pytest.fixture
def zookeeper() -> ZooKeeper:
    made = ZooKeeper()
    made.nodes[documents.topic_path(TOPIC)] = Node(documents.topic(ID, {0: (1,), 1: (1,)}), 0)
    made.put({"mirror.source.topic": "logs"})
    return made


def test_gaps_add_up(zookeeper: ZooKeeper) -> None:
    """A new gap (a range of missing offsets) is added to the topic's other gaps, and the topic's
    other settings stay. If the gap is already recorded, nothing changes."""
    zookeeper.name(ONE)
    zookeeper.name(TWO)
    zookeeper.name(ONE)
    assert zookeeper.named() == [ONE, TWO]
    assert zookeeper.configs()["mirror.source.topic"] == "logs"


def test_a_gap_that_another_broker_writes_at_the_same_time_stays(zookeeper: ZooKeeper) -> None:
    """Another broker may write a gap (a range of missing offsets) into a topic's settings after
    this broker has read the settings, and before this broker writes a gap. This broker then reads
    the settings again, and both gaps stay."""
    zookeeper.meanwhile.append(lambda: zookeeper.name(TWO))
    zookeeper.name(ONE)
    assert sorted(zookeeper.named()) == [ONE, TWO]


def test_settings_that_are_missing_are_made(zookeeper: ZooKeeper) -> None:
    """If a topic has no node for its settings in ZooKeeper, the broker creates the node, with the
    gap (the range of missing offsets) that it has to record."""
    del zookeeper.nodes[documents.config_path(TOPIC)]
    zookeeper.name(ONE)
    assert zookeeper.named() == [ONE]


def test_another_topic_of_the_name_is_not_told(zookeeper: ZooKeeper) -> None:
    """A gap (a range of missing offsets) of a deleted topic is not written into the settings of a
    new topic of the same name."""
    with pytest.raises(TopicGone):
        zookeeper.name(ONE, uuid.uuid4())
    del zookeeper.nodes[documents.topic_path(TOPIC)]
    with pytest.raises(TopicGone):
        zookeeper.name(ONE)
    assert gaps.CONFIG not in zookeeper.configs()


def test_settings_that_cannot_be_read_are_left_alone(zookeeper: ZooKeeper) -> None:
    """If the broker cannot read the settings of a topic, it never overwrites them: a person may
    have edited them by hand to list gaps (missing offsets)."""
    zookeeper.put({gaps.CONFIG: "from three to nine"})
    with pytest.raises(StateRefused, match="partition:first-end:reason"):
        zookeeper.name(ONE)
    assert zookeeper.configs()[gaps.CONFIG] == "from three to nine"


def test_there_is_an_end_to_gaps(zookeeper: ZooKeeper) -> None:
    """The settings of a topic may contain at most a thousand gaps (ranges of missing offsets). When
    they contain a thousand, the last gap may still grow, but a further gap is refused with a
    reason."""
    many = [Gap(0, 10 * number, 10 * number + 3, "expired") for number in range(gaps.GAPS_MAX)]
    zookeeper.put({gaps.CONFIG: gaps.encode(many)})
    zookeeper.name(many[-1]._replace(end=many[-1].end + 2))
    assert len(zookeeper.named()) == gaps.GAPS_MAX
    with pytest.raises(TooManyGaps, match="names 1000 gaps already"):
        zookeeper.name(Gap(1, 0, 5, "expired"))


def test_a_node_that_never_stands_still_is_given_up(zookeeper: ZooKeeper) -> None:
    """If other programs change the node of the topic's settings before every write of the broker,
    the broker cannot record a gap (a range of missing offsets). After a limited number of tries it
    reports an error."""

    def touch() -> None:
        path = documents.config_path(TOPIC)
        zookeeper.nodes[path] = Node(zookeeper.nodes[path].data, zookeeper.nodes[path].version + 1)
        zookeeper.meanwhile.append(touch)

    zookeeper.meanwhile.append(touch)
    with pytest.raises(Unreachable, match="changes too often"):
        zookeeper.name(ONE)

"""Tests the nodes of consumer groups in ZooKeeper."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.kafka import group_nodes
from skidway.kafka.types import TopicPartition


@given(st.text(min_size=1, max_size=40))
def test_every_group_has_a_node_of_its_own(group: str) -> None:
    """Every group has its own ZooKeeper node directly below /consumers. The group's name can be
    computed from the node's name."""
    path = group_nodes.group_path(group)
    above, _, name = path.rpartition("/")
    assert above == group_nodes.CONSUMERS
    assert name not in ("", ".", "..")
    assert name.isascii()
    assert group_nodes.group_of(name) == group


def test_plain_names_are_kafkas() -> None:
    """The nodes of a group with a plain name have the same paths as in Kafka 0.8."""
    path = group_nodes.offset_path("my-group.1", TopicPartition("logs", 3))
    assert path == "/consumers/my-group.1/offsets/logs/3"


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"12", (12, b"")),
        (b" 7\n", (7, b"")),
        (b'5 {"metadata":"x"}', (5, b'{"metadata":"x"}')),
        (b"", None),
        (b"-1", None),
        (b"x5", None),
        (b"5 x", None),
        (b"1" * 30, None),
    ],
)
def test_an_offset_stands_in_front(data: bytes, found: tuple[int, bytes] | None) -> None:
    """The data of an offset node is a number, which a JSON object may follow. A node with any other
    data has no offset."""
    assert group_nodes.split_offset(data) == found

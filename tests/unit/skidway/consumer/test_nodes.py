from __future__ import annotations

import json

import pytest

from skidway.consumer import nodes
from skidway.errors import UsageError
from skidway.kafka import group_nodes
from skidway.kafka.types import TopicPartition

TP = TopicPartition("clicks", 12)


@pytest.mark.parametrize(
    ("data", "offset"),
    [
        (b"0", 0),
        (b"123", 123),
        (b" 123\n", 123),
        (b'123 {"metadata":"m","leader_epoch":4}', 123),
        (b'123{"metadata":"}"}', 123),
        (b"", None),
        (b"-1", None),
        (b"12x", None),
        (b'{"offset":3}', None),
        (b"9" * 30, None),
    ],
)
def test_offsets_are_read_leniently(data: bytes, offset: int | None) -> None:
    """An offset node contains a decimal number, which a JSON object may follow. A node with any
    other content has no offset."""
    assert nodes.read_offset(data) == offset


def test_what_is_written_is_kafkas_layout() -> None:
    """The ZooKeeper nodes that the consumer writes have the paths and contents of Kafka 0.8."""
    assert nodes.owner_path("g", TP) == "/consumers/g/owners/clicks/12"
    assert group_nodes.offset_path("g", TP) == "/consumers/g/offsets/clicks/12"
    assert group_nodes.offset_path("a/b", TP) == "/consumers/a%2Fb/offsets/clicks/12"
    assert group_nodes.group_of("a%2Fb") == "a/b"
    assert nodes.offset_document(7) == b"7"
    document = json.loads(nodes.registration_document({"clicks": 2}, 5, 9))
    assert document["version"] == 1
    assert document["subscription"] == {"clicks": 2}
    assert document["timestamp"] == "5"
    assert nodes.read_token(nodes.registration_document({}, 5, 9)) == 9


def test_owner_paths_are_read_back() -> None:
    """An owner node's path gives its partition; any other path gives no partition."""
    assert nodes.partition_of(nodes.owner_path("g", TP)) == TP
    assert nodes.partition_of("/consumers/g/ids/c") is None
    assert nodes.partition_of("7") is None


def test_registrations_name_readers() -> None:
    """Each stream of a registered consumer is a reader. A registration node that cannot be parsed
    counts as one without readers."""
    data = nodes.registration_document({"a": 2, "b": 1}, 0)
    assert nodes.read_registration("c", data) == {
        "c-0": frozenset({"a", "b"}),
        "c-1": frozenset({"a"}),
    }
    for strange in (b"", b"[]", b"\xff", b'{"subscription":7}', b'{"subscription":{"a":"x"}}'):
        assert nodes.read_registration("c", strange) == {}
    assert nodes.read_registration("c", b'{"subscription":{"a":1000000000}}') == {}


def test_names_of_groups() -> None:
    """A group name is refused with an error message if it is empty, is longer than 249 characters,
    or is `.` or `..`. It is also refused if it contains a character that is not an ASCII letter, a
    digit, `.`, `_` or `-`."""
    assert nodes.check_group("a.b-c_1") == "a.b-c_1"
    for name in ("", ".", "..", "a/b", "a b", "ä", "x" * 250):
        with pytest.raises(UsageError):
            nodes.check_group(name)


def test_members_of_brokers_are_counted() -> None:
    """The number of a group's members is read from the node in which a broker has stored the group.
    If the node cannot be parsed, the number is 0."""
    assert nodes.coordinated_members(b'{"members":[{},{}]}') == 2
    assert nodes.coordinated_members(b'{"members":[],"omitted":300}') == 300
    assert nodes.coordinated_members(b'{"members":[{}],"omitted":"x"}') == 1
    assert nodes.coordinated_members(b"garbage") == 0


def test_beginnings() -> None:
    """A ZooKeeper node stores the number of partitions that a topic had when the consumer group
    began to read it. If the node is empty, this number is unknown."""
    assert nodes.read_beginning(nodes.beginning_document(4)) == 4
    assert nodes.read_beginning(b"") is None

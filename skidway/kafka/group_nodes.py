"""Paths of consumer groups in ZooKeeper: Kafka 0.8's layout, for brokers and Skidway's consumers.

    /consumers/G/ids/C         registrations of consumers that coordinate through ZooKeeper
    /consumers/G/owners/T/P    owner of each partition that those consumers read
    /consumers/G/offsets/T/P   the next offset to read, in decimal; a JSON object with metadata or a
                               leader epoch may follow. The commit's time is the node's mtime.
    /consumers/G/group         generation and members of a group that a broker coordinates

A group's name may be any text; characters that are not allowed in a node's name are
percent-encoded.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from skidway.kafka.types import TopicPartition

CONSUMERS = "/consumers"
_OFFSET = re.compile(rb"\s*([0-9]{1,19})\s*(\{.*)?\Z", re.DOTALL)


def group_path(group: str) -> str:
    """Returns the path of a group's node; all nodes of the group are below it."""
    name = quote(group, safe="")
    return f"{CONSUMERS}/{name.replace('.', '%2E') if name in ('.', '..') else name}"


def group_of(name: str) -> str:
    """Returns the name of the group whose node is called `name`."""
    return unquote(name)


def record_path(group: str) -> str:
    """Returns the path of the node that stores the generation and the members of a group that a
    broker coordinates."""
    return f"{group_path(group)}/group"


def ids_path(group: str) -> str:
    """Returns the path of the node whose children are the registrations of a group's consumers."""
    return f"{group_path(group)}/ids"


def owners_path(group: str) -> str:
    """Returns the path of the node below which each partition has a node. The content of a
    partition's node names the member of the group that owns the partition."""
    return f"{group_path(group)}/owners"


def offsets_path(group: str) -> str:
    """Returns the path of the node below which a group has its committed offsets."""
    return f"{group_path(group)}/offsets"


def topic_offsets_path(group: str, topic: str) -> str:
    """Returns the path of the node below which a group has its committed offsets of one topic."""
    return f"{offsets_path(group)}/{topic}"


def offset_path(group: str, tp: TopicPartition) -> str:
    """Returns the path of the node with the group's committed offset in a partition."""
    return f"{topic_offsets_path(group, tp.topic)}/{tp.partition}"


def split_offset(data: bytes) -> tuple[int, bytes] | None:
    """Returns the committed offset in a node's content, and the JSON after the offset (empty if
    there is none). Returns None for content without an offset."""
    found = _OFFSET.match(data)
    return None if found is None else (int(found[1]), found[2] or b"")

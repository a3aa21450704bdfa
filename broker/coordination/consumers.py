"""Groups in ZooKeeper: paths and contents under /consumers, in Kafka 0.8's layout.

    /consumers/G/offsets/T/P   the next offset to read, in decimal; with metadata or a leader epoch
                               a JSON object behind it. The commit's time is the node's mtime.
    /consumers/G/group         generation and members of a group that this broker coordinates
    /consumers/G/ids, owners   of consumers that coordinate through ZooKeeper themselves

A group's name may be any text; characters that a node's name cannot have are percent-encoded.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from broker.coordination.documents import DocumentRefused
from skidway.kafka.types import TopicPartition

CONSUMERS = "/consumers"
NO_EPOCH = -1
_OFFSET = re.compile(rb"\s*([0-9]{1,19})\s*(\{.*)?\Z", re.DOTALL)
_NUMBER = re.compile(r"[0-9]{1,10}\Z")


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed offset; `time_ms` is when ZooKeeper took it, 0 before that."""

    offset: int
    metadata: str = ""
    leader_epoch: int = NO_EPOCH
    time_ms: int = 0


def group_path(group: str) -> str:
    """Above all of a group."""
    name = quote(group, safe="")
    return f"{CONSUMERS}/{name.replace('.', '%2E') if name in ('.', '..') else name}"


def group_of(name: str) -> str:
    """The group whose node has this name."""
    return unquote(name)


def record_path(group: str) -> str:
    """Generation and members."""
    return f"{group_path(group)}/group"


def ids_path(group: str) -> str:
    """Where consumers register that coordinate through ZooKeeper."""
    return f"{group_path(group)}/ids"


def owners_path(group: str) -> str:
    """What those consumers own."""
    return f"{group_path(group)}/owners"


def offsets_path(group: str) -> str:
    """Above all offsets."""
    return f"{group_path(group)}/offsets"


def topic_offsets_path(group: str, topic: str) -> str:
    """Above the offsets of a topic."""
    return f"{offsets_path(group)}/{topic}"


def offset_path(group: str, partition: TopicPartition) -> str:
    """A committed offset."""
    return f"{topic_offsets_path(group, partition.topic)}/{partition.partition}"


def partition_number(name: str) -> int | None:
    """The partition of a node's name; None if it is none."""
    return int(name) if _NUMBER.match(name) else None


def offset_document(committed: Committed) -> bytes:
    """A committed offset as it is written: a bare number if that is all."""
    more: dict[str, str | int] = {}
    if committed.metadata:
        more["metadata"] = committed.metadata
    if committed.leader_epoch != NO_EPOCH:
        more["leader_epoch"] = committed.leader_epoch
    number = b"%d" % committed.offset
    return number + b" " + json.dumps(more, separators=(",", ":")).encode() if more else number


def read_offset(path: str, data: bytes, time_ms: int) -> Committed:
    """A committed offset from its node. Raises DocumentRefused."""
    found = _OFFSET.match(data)
    if found is None:
        raise DocumentRefused(f"ZooKeeper's node {path} does not begin with an offset")
    try:
        more = json.loads(found[2]) if found[2] else {}
        epoch = int(more.get("leader_epoch", NO_EPOCH))
    except (ValueError, TypeError) as error:
        raise DocumentRefused(f"ZooKeeper's node {path} is no offset: {error}") from error
    return Committed(int(found[1]), str(more.get("metadata", "")), epoch, time_ms)

"""The contents of a group's nodes in ZooKeeper, as consumers write them. The module `group_nodes`
has the paths.

    /consumers/G/ids/C          ephemeral: the topics of consumer C, and its number of streams
    /consumers/G/owners/T/P     ephemeral: the reader that owns partition P
    /consumers/G/offsets/T/P    the next offset to read, in decimal
    /consumers/G/offsets/T      how many partitions the topic had when the group first read it

A reader is one stream of a consumer. Its name is the consumer's name and a number. Other programs
may have written the nodes. So content that cannot be parsed is ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from skidway.errors import UsageError
from skidway.kafka.group_nodes import owners_path, split_offset
from skidway.kafka.types import TopicPartition

BROKER_IDS = "/brokers/ids"
BROKER_TOPICS = "/brokers/topics"

STREAMS_MAX = 1000
"""The highest number of streams of one consumer. If another program registers a consumer with more
streams for a topic, Skidway treats this consumer as if it did not subscribe to the topic.
"""

_NAME = re.compile(r"[\w.-]{1,249}\Z", re.ASCII)


def check_group(group: str) -> str:
    """Checks the name of a group, and returns it. Raises UsageError for an empty name, for "." and
    "..", for a name with other characters than letters, digits, ".", "_" and "-", and for a name of
    more than 249 characters."""
    if not _NAME.match(group) or group in (".", ".."):
        raise UsageError(
            f"{group!r} cannot name a group: letters, digits, '.', '_' and '-', at most 249"
        )
    return group


def coordinated_members(data: bytes) -> int:
    """Returns the number of members that a group has in Kafka's group protocol, as the group's
    broker recorded this number in ZooKeeper."""
    document = _object(data)
    members, omitted = document.get("members"), document.get("omitted")
    listed = len(members) if isinstance(members, list) else 0
    return listed + (omitted if isinstance(omitted, int) and omitted > 0 else 0)


def owner_path(group: str, tp: TopicPartition) -> str:
    """Returns the path of the owner node of a partition."""
    return f"{owners_path(group)}/{tp.topic}/{tp.partition}"


def partition_of(path: str) -> TopicPartition | None:
    """Returns the partition in the path of an owner or offset node, or None for another path."""
    above, _, partition = path.rpartition("/")
    topic = above.rpartition("/")[2]
    is_number = partition.isascii() and partition.isdecimal() and len(partition) < 11
    return TopicPartition(topic, int(partition)) if topic and is_number else None


def offset_document(offset: int) -> bytes:
    """Returns the content of the node in which a committed offset is stored."""
    return b"%d" % offset


def read_offset(data: bytes) -> int | None:
    """Returns the offset in a node's content: a decimal number, with or without a JSON document
    after it. Returns None for other content."""
    found = split_offset(data)
    return None if found is None else found[0]


def registration_document(streams: Mapping[str, int], now_ms: int, token: int = 0) -> bytes:
    """Returns the content of a consumer's registration: topics, and the number of streams that
    share each topic.

    `token` identifies the consumer's newest transaction (see `guard`).
    """
    document = {
        "version": 1,
        "subscription": dict(streams),
        "pattern": "static",
        "timestamp": str(now_ms),
        "token": token,
    }
    return json.dumps(document, separators=(",", ":")).encode()


def read_token(data: bytes) -> int:
    """Returns the token in a registration's content (it identifies the newest transaction), or 0 if
    there is none."""
    token = _object(data).get("token")
    return token if isinstance(token, int) else 0


def read_registration(consumer: str, data: bytes) -> dict[str, frozenset[str]]:
    """Returns the readers of a registered consumer, each with its topics. The result is empty if
    the content is unreadable.
    """
    subscription = _object(data).get("subscription")
    if not isinstance(subscription, dict):
        return {}
    readers: dict[str, set[str]] = {}
    for topic, streams in subscription.items():
        if isinstance(streams, int) and 0 < streams <= STREAMS_MAX:
            for number in range(streams):
                readers.setdefault(reader_name(consumer, number), set()).add(str(topic))
    return {name: frozenset(topics) for name, topics in readers.items()}


def reader_name(consumer: str, number: int) -> str:
    """Returns the name of a consumer's stream, as it is written in owner nodes."""
    return f"{consumer}-{number}"


def beginning_document(partitions: int) -> bytes:
    """Returns the content that a group stores when it first reads a topic: the number of partitions
    at that time."""
    return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":")).encode()


def read_beginning(data: bytes) -> int | None:
    """Returns the number of partitions that a topic had when the group first read it, or None if
    this number is not recorded.
    """
    partitions = _object(data).get("partitions")
    return partitions if isinstance(partitions, int) else None


def _object(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}

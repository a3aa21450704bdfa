"""The content of the node in ZooKeeper that stores a committed offset. The node's path comes from
`skidway.kafka.group_nodes`.
"""

from __future__ import annotations

import json
import re
import sys
import uuid
from dataclasses import dataclass
from typing import Final, NamedTuple

from skidway.broker.coordination.documents import DocumentRefused
from skidway.kafka.group_nodes import split_offset

NO_EPOCH = -1
OFFSET_BYTES: Final = 350
"""The approximate number of bytes of memory that a committed offset needs, not counting the
metadata that a client may store with it."""
_NUMBER = re.compile(r"[0-9]{1,10}\Z")


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed offset. time_ms: when it was committed; 0 if unknown. version: the version of its
    node in ZooKeeper.
    """

    offset: int
    metadata: str = ""
    leader_epoch: int = NO_EPOCH
    time_ms: int = 0
    version: int = 0


class TopicOffset(NamedTuple):
    """A committed offset and the id of its topic. The id is needed because the topic may have been
    deleted since the commit, and another topic may have its name.
    """

    topic_id: uuid.UUID
    committed: Committed

    @property
    def size_bytes(self) -> int:
        """The approximate number of bytes of memory that the offset needs."""
        return OFFSET_BYTES + sys.getsizeof(self.committed.metadata)


def partition_number(name: str) -> int | None:
    """Returns the number of the partition, from the node's name; None if the name is not a
    number.
    """
    return int(name) if _NUMBER.match(name) else None


def offset_document(committed: Committed) -> bytes:
    """Returns the content of the node for a committed offset. If the client committed the offset
    with neither metadata nor leader epoch, the content is only the offset, in decimal.
    """
    more: dict[str, str | int] = {}
    if committed.metadata:
        more["metadata"] = committed.metadata
    if committed.leader_epoch != NO_EPOCH:
        more["leader_epoch"] = committed.leader_epoch
    number = b"%d" % committed.offset
    return number + b" " + json.dumps(more, separators=(",", ":")).encode() if more else number


def read_offset(path: str, data: bytes, time_ms: int) -> Committed:
    """Returns the committed offset that is stored in a node. path, data: the node's path and
    content. time_ms: when the offset was committed. Raises DocumentRefused."""
    found = split_offset(data)
    if found is None:
        raise DocumentRefused(f"ZooKeeper's node {path} does not begin with an offset")
    try:
        more = json.loads(found[1]) if found[1] else {}
        epoch = int(more.get("leader_epoch", NO_EPOCH))
    except (ValueError, TypeError) as error:
        raise DocumentRefused(f"ZooKeeper's node {path} is no offset: {error}") from error
    return Committed(found[0], str(more.get("metadata", "")), epoch, time_ms)

"""A group as it is stored in ZooKeeper. The record is enough for the members to continue after a
restart of the broker without a rebalance."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

from skidway.broker.groups.member import Member, Protocol
from skidway.errors import SkidwayError

BYTES_MAX = 512 * 1024
"""If a group's document (the content of its node) is larger than this, the broker stores it without
the group's members. After a restart of the broker, these members join again.

ZooKeeper accepts at most 1 MB in one request."""
_GENERATION_MAX = (1 << 31) - 1


class RecordRefused(SkidwayError):
    """Raised if a stored group cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRecord:
    """The generation and the members of a group. empty_since_ms: the wall-clock time since which
    the group has had no members; 0 while it has members, or if the time is unknown.

    omitted: the number of members that were left out because the document would have been too
    large. ids_version: consumers that coordinate through ZooKeeper register as children of the
    group's `ids` node. The broker has seen that the node has no children, and `ids_version` is the
    version of the children at that time.
    """

    generation: int
    protocol_type: str = ""
    protocol: str | None = None
    leader: str | None = None
    members: tuple[Member, ...] = ()
    omitted: int = 0
    empty_since_ms: int = 0
    ids_version: int = -1


def encode(record: GroupRecord) -> bytes:
    """Returns the content of the node that stores a group."""
    content = _content(record, record.members)
    return content if len(content) <= BYTES_MAX else _content(record, ())


def decode(path: str, data: bytes) -> GroupRecord:
    """Decodes a group from the content of its node. Raises RecordRefused."""
    try:
        content = json.loads(data)
        generation = int(content["generation"])
        if not 0 <= generation <= _GENERATION_MAX:
            raise RecordRefused(f"ZooKeeper's node {path} has the generation {generation}")
        return GroupRecord(
            generation=generation,
            protocol_type=str(content.get("protocol_type", "")),
            protocol=content.get("protocol"),
            leader=content.get("leader"),
            members=tuple(_member(each) for each in content.get("members", ())),
            omitted=int(content.get("omitted", 0)),
            empty_since_ms=int(content.get("empty_since_ms", 0)),
            ids_version=int(content.get("ids_version", -1)),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise RecordRefused(f"ZooKeeper's node {path} is no group: {error}") from error


def _content(record: GroupRecord, members: tuple[Member, ...]) -> bytes:
    content = {
        "version": 1,
        "generation": record.generation,
        "protocol_type": record.protocol_type,
        "protocol": record.protocol,
        "leader": record.leader,
        "members": [_document(each) for each in members],
        "omitted": len(record.members) - len(members),
        "empty_since_ms": record.empty_since_ms,
        "ids_version": record.ids_version,
    }
    return json.dumps(content, separators=(",", ":")).encode()


def _document(member: Member) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "session_timeout_ms": round(member.session_timeout_s * 1000),
        "rebalance_timeout_ms": round(member.rebalance_timeout_s * 1000),
        "protocols": [[each.name, _text(each.metadata)] for each in member.protocols],
        "assignment": _text(member.assignment),
    }


def _member(content: dict[str, Any]) -> Member:
    instance_id = content["instance_id"]
    return Member(
        member_id=str(content["member_id"]),
        instance_id=None if instance_id is None else str(instance_id),
        client_id=str(content["client_id"]),
        client_host=str(content["client_host"]),
        session_timeout_s=int(content["session_timeout_ms"]) / 1000,
        rebalance_timeout_s=int(content["rebalance_timeout_ms"]) / 1000,
        protocols=tuple(Protocol(str(name), _bytes(said)) for name, said in content["protocols"]),
        assignment=_bytes(content["assignment"]),
    )


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)

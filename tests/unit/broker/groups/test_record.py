from __future__ import annotations

from dataclasses import replace

import pytest

from skidway.broker.groups.member import Member, Protocol
from skidway.broker.groups.record import BYTES_MAX, GroupRecord, RecordRefused, decode, encode


def member(size: int = 3) -> Member:
    return Member(
        member_id="m-1",
        instance_id="i",
        client_id="Größe",
        client_host="/127.0.0.1",
        session_timeout_s=45.0,
        rebalance_timeout_s=300.0,
        protocols=(Protocol("range", b"\x00\xff" * size),),
        assignment=b"\x01",
    )


def record(*members: Member) -> GroupRecord:
    return GroupRecord(
        generation=7,
        protocol_type="consumer",
        protocol="range",
        leader="m-1",
        members=members,
        empty_since_ms=5,
        ids_version=2,
    )


def test_there_and_back() -> None:
    """A group is read from its ZooKeeper node exactly as it was stored."""
    assert decode("path", encode(record(member()))) == record(member())


def test_a_large_group_is_stored_without_its_members() -> None:
    """If a group is too large for a ZooKeeper node, it is stored with its generation and the number
    of its members, but without the members. After a restart, the members must join again."""
    content = encode(record(member(BYTES_MAX)))
    assert len(content) < BYTES_MAX
    assert decode("path", content) == replace(record(), omitted=1)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"[]", b"{}", b'{"generation":-1}', b'{"generation":"x"}',
        b'{"generation":4294967296}',
        b'{"generation":1,"members":[{}]}', b'{"generation":1,"members":3}', b"\xff",
    ],
)  # fmt: skip
def test_what_is_no_group_is_refused(content: bytes) -> None:
    """If the ZooKeeper node of a group does not contain a group, the broker refuses to read it, and
    the error names the node's path."""
    with pytest.raises(RecordRefused, match="/consumers/g/group"):
        decode("/consumers/g/group", content)

"""Clients that ask for, or join, thousands of groups keep no clients of other addresses out."""

from __future__ import annotations

import pytest

from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from skidway.kafka.protocol.frames import request_frame, response_body
from skidway.kafka.protocol.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from skidway.kafka.protocol.messages import decode, encode
from support.brokers import SkidwayBroker
from support.raw_client import RawClient

GOOD = "127.0.0.9"


def joining(group: str, member_id: str = "") -> JoinGroupRequest:
    """Returns the request of a member that joins."""
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=1_800_000,
        rebalance_timeout_ms=1_800_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )


def frame_of(request: JoinGroupRequest | DescribeGroupsRequest, version: int) -> bytes:
    return request_frame(request.API, version, 1, "raw", encode(request, version))


def join(client: RawClient, group: str) -> JoinGroupResponse:
    """Joins as clients do: with the id that the first answer gives."""
    first = client.ask(joining(group), 4, JoinGroupResponse)
    assert isinstance(first, JoinGroupResponse)
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    joined = client.ask(joining(group, first.member_id), 4, JoinGroupResponse)
    assert isinstance(joined, JoinGroupResponse)
    return joined


def test_a_request_for_thousands_of_groups_lets_others_pass(own_broker: SkidwayBroker) -> None:
    """While the broker looks for 3,000 groups that one request names, a client joins a group. The
    request is answered, too: none of the groups is there."""
    own_broker.settings["group.initial.rebalance.delay.ms"] = 0
    own_broker.start()
    names = tuple(f"no-{number}" for number in range(3_000))
    with RawClient(own_broker.port) as many, RawClient(own_broker.port, source=GOOD) as good:
        many.send(frame_of(DescribeGroupsRequest(groups=names), 0))
        many.socket.setblocking(False)
        assert join(good, "good").error_code == ErrorCode.NONE
        with pytest.raises(BlockingIOError):
            many.socket.recv(1)
        many.socket.settimeout(120)
        body = response_body(memoryview(many.receive()), ApiKey.DESCRIBE_GROUPS, 0)
        described = decode(DescribeGroupsResponse, body, 0).groups
        assert [each.group_id for each in described] == list(names)
        assert {each.group_state for each in described} == {"Dead"}


def test_ids_that_nobody_uses_keep_nobody_out(own_broker: SkidwayBroker) -> None:
    """A client that asks a group for 11,000 member ids, and uses none, keeps no client of another
    address out of the group. The group gets its generation soon after the client has left."""
    own_broker.settings["group.initial.rebalance.delay.ms"] = 0
    own_broker.start()
    frames = frame_of(joining("target"), 4) * 500
    with RawClient(own_broker.port) as many:
        for _ in range(22):
            many.send(frames)
            for _ in range(500):
                body = response_body(memoryview(many.receive()), ApiKey.JOIN_GROUP, 4)
                code = decode(JoinGroupResponse, body, 4).error_code
                assert code == ErrorCode.MEMBER_ID_REQUIRED
    with RawClient(own_broker.port, source=GOOD) as good:
        joined = join(good, "target")
        assert joined.error_code == ErrorCode.NONE
        assert joined.leader == joined.member_id

"""The outputs of a group's state machine: answers to waiting requests, and requests to store the
group before further answers are sent.
"""

from __future__ import annotations

from dataclasses import dataclass

from skidway.broker.groups.member import Token
from skidway.kafka.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class ToldMember:
    """A member, as the answer to the leader's JoinGroup request describes it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The answer to a JoinGroup request."""

    error: ErrorCode = ErrorCode.NONE
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str = ""
    member_id: str = ""
    members: tuple[ToldMember, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """The answer to a SyncGroup request."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request. token: the value that the caller gave for the request."""

    token: Token
    content: Joined | Synced


@dataclass(frozen=True, slots=True)
class Store:
    """Asks the caller to store the group as it is now, and then to call `Group.stored` with
    `number`."""

    number: int


Output = Answer | Store

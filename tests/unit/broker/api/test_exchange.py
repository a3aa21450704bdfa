from __future__ import annotations

from typing import Any

from skidway.broker.api.exchange import Exchange
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.join_group import JoinGroupResponse
from support.open_access import AUTHORIZER


class Connection:
    address = "client"

    def reserve(self) -> object:
        return object()


class Loop:
    """A stand-in for the broker's loop. It records what is sent, and which connections are
    closed."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.dropped: list[str] = []

    def fill(self, _connection: Connection, _slot: object, pieces: Any) -> None:
        self.sent.append(pieces)

    def drop(self, _connection: Connection, reason: str) -> None:
        self.dropped.append(reason)


def answer(member_id: str) -> Loop:
    loop: Any = Loop()
    connection: Any = Connection()
    exchange = Exchange(loop, AUTHORIZER, connection, ApiKey.JOIN_GROUP, 7, 1, memoryview(b""))
    exchange.reply(JoinGroupResponse(member_id=member_id))
    return loop


def test_an_answer_that_cannot_be_written_closes_its_connection_alone() -> None:
    """If an answer cannot be encoded, the broker closes only the connection of this answer. The
    code that sends the answer raises no exception, so the request or timer that caused the answer
    is not disturbed."""
    loop = answer("m" * 40_000)
    assert (loop.sent, loop.dropped) == ([], ["failed"])
    loop = answer("m")
    assert len(loop.sent) == 1
    assert loop.dropped == []

"""The refused messages in the ledger (see module admission)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum

from skidway.audit.signing.verifier import Flaw
from skidway.dataclass import dataclass


class Reason(StrEnum):
    """Why a signed message is refused, or a record that is no message."""

    NOT_OWN = "not its own"
    FOREIGN_AGENT = "another's agent id"
    TOO_MANY = "too many agents"
    NO_MESSAGE = "no message"


@dataclass(frozen=True, slots=True)
class Refused:
    """Refused messages with the same sender, kind, reason, detail, claimed name and topic. sender:
    the identity that the signature names or, without one, the claimed name. kind: "" if the record
    is no message. reason: a Flaw or a Reason. partition: that of the first of them. first, last:
    offsets. taken_ms: when the last of them was read. claimed: in whose name they are (see
    claims.Claim). is_admitted: whether the last of them was taken nevertheless."""

    sender: str
    kind: str
    reason: str
    detail: str
    claimed: str
    topic: str
    count: int
    partition: int
    first: int
    last: int
    taken_ms: int
    is_admitted: bool


def refused(connection: sqlite3.Connection) -> Iterator[Refused]:
    """Yields the refused messages, those that were read last first."""
    query = "SELECT * FROM refused ORDER BY taken DESC, sender, kind"
    for row in connection.execute(query):
        found = Refused(*row)
        yield replace(found, is_admitted=bool(found.is_admitted))


def refused_by_reason(connection: sqlite3.Connection) -> dict[str, int]:
    """Returns how many messages were refused, by each reason there is."""
    found = dict(connection.execute("SELECT reason, sum(count) FROM refused GROUP BY reason"))
    return {**dict.fromkeys((*Flaw, *Reason), 0), **found}

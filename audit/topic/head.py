"""The first fields of a tier's message, read without decoding the rest.

Most messages of a busy audit topic are agents' deltas, which a loader does not need, and the
largest ones are deltas of loaders, with the counts of all agents. To decode all of them would cost
a loader more than all other work of a small load.

In every version of the schema `Audit`, a message begins with its kind and its tier. Both are enums
with few symbols, so each takes one byte: twice the place of the symbol.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import cache
from typing import Any

import fastavro

from skidway.audit.topic.messages import AUDIT_SCHEMA, MessageRefused, Tier
from skidway.schemas import single_object
from skidway.schemas.datum import MALFORMED
from skidway.schemas.single_object import HEADER_BYTES

DELTA, SEAL, HEARTBEAT = "DELTA", "SEAL", "HEARTBEAT"


@dataclass(frozen=True, slots=True)
class Head:
    """Who sent a message, and its number."""

    producer: str
    epoch: int
    number: int


def sort_of(value: bytes) -> tuple[str, Tier] | None:
    """Kind and tier of a tier's message; None for any other value, and for a damaged one."""
    return _sorts(bytes(value[:HEADER_BYTES])).get(bytes(value[HEADER_BYTES : HEADER_BYTES + 2]))


def head_of(value: bytes) -> Head:
    """The head of a tier's message, whose other fields may be damaged. Raises MessageRefused if the
    value is no message of a tier, or its head is damaged."""
    fields = _first_fields(bytes(value[:HEADER_BYTES]))
    if fields is None:
        raise MessageRefused("The value is no message of a tier.")
    try:
        found: Any = fastavro.schemaless_reader(io.BytesIO(value[HEADER_BYTES:]), fields, None)
    except MALFORMED as error:
        raise MessageRefused(f"The head of a message is damaged: {error}.") from error
    return Head(found["producer"], found["epoch"], found["number"])


@cache
def _sorts(header: bytes) -> dict[bytes, tuple[str, Tier]]:
    """The kinds and tiers of the messages with this header, by their two bytes."""
    fields = _first_fields(header)
    if fields is None:
        return {}
    kinds, tiers = (field["type"]["symbols"] for field in fields["fields"][:2])
    return {
        bytes((2 * first, 2 * second)): (kind, Tier(tier))
        for first, kind in enumerate(kinds)
        for second, tier in enumerate(tiers)
    }


@cache
def _first_fields(header: bytes) -> Any:
    """The schema with this header, cut behind the number; None if it is no schema of a tier."""
    schema = single_object.shipped().with_header(header)
    if schema is None or schema.name != AUDIT_SCHEMA:
        return None
    fields = schema.plain["fields"]
    end = 1 + [field["name"] for field in fields].index("number")
    return {**schema.plain, "fields": fields[:end]}

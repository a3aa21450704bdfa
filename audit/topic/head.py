"""Reads the first fields of a tier's message (a delta, a seal or a heartbeat), without decoding the
rest.

A loader reads messages of the audit topic. Most of them are deltas (counts) of agents, which the
loader does not need. The largest messages are deltas of loaders, with the counts of all agents.
Decoding all of these messages completely would take longer than the rest of a small load.

In every version of the schema `Audit`, a message begins with its kind and its tier. The kind and
the tier are Avro enums with few symbols, so each of them is encoded as one byte: the index of the
symbol times two.
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
    """The sender (producer and epoch) of a message, and the message's number."""

    producer: str
    epoch: int
    number: int


def sort_of(value: bytes) -> tuple[str, Tier] | None:
    """Returns the kind and the tier of a delta, seal or heartbeat; None for any other value."""
    return _sorts(bytes(value[:HEADER_BYTES])).get(bytes(value[HEADER_BYTES : HEADER_BYTES + 2]))


def head_of(value: bytes) -> Head:
    """Returns the sender and the number of a tier's message. Raises MessageRefused if the value is
    not a tier's message, or if the fields up to the number are damaged. Does not notice damage in
    the other fields."""
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
    """Returns a dictionary with the kind and the tier of messages that begin with `header`. header:
    the first bytes of a message, which name its schema. The keys of the dictionary are the two
    bytes that follow the header. The dictionary is empty if the schema is not that of a tier's
    messages."""
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
    """Returns the schema that `header` names, without the fields after `number`. Returns None if
    the header does not name a schema of a tier's messages."""
    schema = single_object.shipped().with_header(header)
    if schema is None or schema.name != AUDIT_SCHEMA:
        return None
    fields = schema.plain["fields"]
    end = 1 + [field["name"] for field in fields].index("number")
    return {**schema.plain, "fields": fields[:end]}

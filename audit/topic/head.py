"""Reads the first fields of a tier's message (a delta, a seal or a heartbeat), without decoding the
rest.

A loader reads messages of the audit topic. Most of them are deltas (counts) of agents, which the
loader does not need. The largest messages are deltas of loaders, with the counts of all agents.
Decoding all of these messages completely would take longer than the rest of a small load.

Such a message begins with its kind and its tier. The kind and the tier are Avro enums with few
symbols, so each of them is encoded as one byte: the index of the symbol times two.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any, Final

import fastavro

from skidway.audit.topic import field_bounds
from skidway.audit.topic.messages import AUDIT_SCHEMA, MessageRefused, Tier
from skidway.schemas import single_object
from skidway.schemas.datum import MALFORMED
from skidway.schemas.single_object import HEADER_BYTES

DELTA, SEAL, HEARTBEAT = "DELTA", "SEAL", "HEARTBEAT"

_SCHEMA: Final = single_object.shipped().schema(AUDIT_SCHEMA)
_KINDS, _TIERS = (field["type"]["symbols"] for field in _SCHEMA.plain["fields"][:2])
_SORTS: Final = {
    _SCHEMA.header + bytes((2 * first, 2 * second)): (kind, Tier(tier))
    for first, kind in enumerate(_KINDS)
    for second, tier in enumerate(_TIERS)
}
_NAMES: Final = [field["name"] for field in _SCHEMA.plain["fields"]]
_HEAD: Final = {**_SCHEMA.plain, "fields": _SCHEMA.plain["fields"][: 1 + _NAMES.index("number")]}
"""The schema of a tier's messages, without the fields after `number`."""


@dataclass(frozen=True, slots=True)
class Head:
    """The sender (producer and epoch) of a message, and the message's number."""

    producer: str
    epoch: int
    number: int


def sort_of(value: bytes) -> tuple[str, Tier] | None:
    """Returns the kind and the tier of a delta, seal or heartbeat; None for any other value."""
    return _SORTS.get(bytes(value[: HEADER_BYTES + 2]))


def head_of(value: bytes) -> Head:
    """Returns the sender and the number of a tier's message. Raises MessageRefused if the value is
    not a tier's message, or if the fields up to the number are damaged. Does not notice damage in
    the other fields."""
    if not value.startswith(_SCHEMA.header):
        raise MessageRefused("The value is no message of a tier.")
    try:
        found: Any = fastavro.schemaless_reader(io.BytesIO(value[HEADER_BYTES:]), _HEAD, None)
        field_bounds.check(found)
    except MALFORMED as error:
        raise MessageRefused(f"The head of a message is damaged: {error}.") from error
    return Head(found["producer"], found["epoch"], found["number"])

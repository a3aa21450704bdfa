"""Encodes and decodes Skidway's own messages in Avro's single-object encoding, in which each
message begins with the fingerprint of its schema.

    0       2                             10
    +-------+-----------------------------+---------------
    | C3 01 | CRC-64-AVRO, little-endian  | Avro datum ...
    +-------+-----------------------------+---------------

The encoding is described in the specification of Avro 1.12, "Single-object encoding". Reading these
messages needs no registry, so the audit continues while the registry is down. The schemas are the
`.avsc` files of this package.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any, Final

from fastavro.schema import fingerprint, to_parsing_canonical_form

from skidway.dataclass import dataclass
from skidway.errors import SkidwayError
from skidway.schemas.avro_schema import AvroType, parse
from skidway.schemas.datum import MALFORMED, malformed_reason, plain_schema, read_datum, write_datum

MARKER: Final = b"\xc3\x01"
HEADER_BYTES: Final = 10


class MessageInvalid(SkidwayError):
    """Raised for bytes that are no single-object message, and for a record that does not fit its
    schema."""


class UnknownFingerprint(MessageInvalid):
    """Raised for a message whose schema this version of the program does not have, because a newer
    version wrote the message."""

    def __init__(self, wanted: bytes) -> None:
        super().__init__(
            f"No schema here has the fingerprint {wanted.hex()}: a newer version wrote the message."
        )
        self.fingerprint = wanted


@dataclass(frozen=True, slots=True)
class MessageSchema:
    """A schema of messages. `name` is the name of its record, without namespace. `header` is the
    first 10 bytes of each message."""

    name: str
    avro: AvroType
    plain: Any
    header: bytes
    text: str


class Messages:
    """The message schemas of one version of the program."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._by_name = {each.name: each for each in map(_message_schema, texts)}
        self._by_header = {each.header: each for each in self._by_name.values()}

    def schema(self, schema_name: str) -> MessageSchema:
        """Returns the schema `schema_name`. Raises `KeyError` if the program has no schema with
        this name.
        """
        return self._by_name[schema_name]

    def encode(self, schema_name: str, record: dict[str, Any]) -> bytes:
        """See the module's `encode`."""
        message = self._by_name[schema_name]
        try:
            return message.header + write_datum(message.plain, record, exact=True)
        except MALFORMED as error:
            raise MessageInvalid(
                f"The record is no {schema_name}: {malformed_reason(error)}."
            ) from error

    def is_known(self, fingerprint: bytes) -> bool:
        """See the module's `is_known`."""
        return MARKER + fingerprint in self._by_header

    def name_of(self, data: bytes) -> str | None:
        """See the module's `name_of`."""
        written = self._by_header.get(data[:HEADER_BYTES])
        return None if written is None else written.name

    def decode(self, data: bytes) -> tuple[str, dict[str, Any]]:
        """See the module's `decode`."""
        data = bytes(data)
        if len(data) < HEADER_BYTES or not data.startswith(MARKER):
            raise MessageInvalid("The value does not begin like a single-object message (C3 01).")
        written = self._by_header.get(data[:HEADER_BYTES])
        if written is None:
            raise UnknownFingerprint(data[len(MARKER) : HEADER_BYTES])
        try:
            return written.name, read_datum(written.avro, written.plain, data[HEADER_BYTES:])
        except MALFORMED as error:
            reason = malformed_reason(error)
            raise MessageInvalid(f"A message of {written.name} is damaged: {reason}.") from None


def encode(schema_name: str, record: dict[str, Any]) -> bytes:
    """Returns `record` as a message, encoded with the schema `schema_name` (such as `Audit` or
    `Announcement`).

    Times are milliseconds (`born_ns`: nanoseconds). A field that is missing gets its default value.
    Raises `KeyError` for a name without a shipped schema, and `MessageInvalid` for a record that
    does not fit the schema.
    """
    return shipped().encode(schema_name, record)


def decode(data: bytes) -> tuple[str, dict[str, Any]]:
    """Returns the schema name and the record of a message.

    Raises `MessageInvalid`, or `UnknownFingerprint` for a message of a newer version.
    """
    return shipped().decode(data)


def name_of(data: bytes) -> str | None:
    """Returns the schema name of a message, found from the message's header alone, or None for
    bytes that are no message of a known schema."""
    return shipped().name_of(data)


def is_known(fingerprint: bytes) -> bool:
    """Returns whether this version of the program can read messages with this fingerprint (8 bytes,
    as in `UnknownFingerprint`)."""
    return shipped().is_known(fingerprint)


def schema_text(schema_name: str) -> str:
    """Returns the text of the `.avsc` file that declares the record `schema_name`, for example
    `Rejected`."""
    return shipped().schema(schema_name).text


@cache
def shipped() -> Messages:
    """Returns the schemas that come with this version of the program."""
    files = resources.files("skidway.schemas").iterdir()
    return Messages(each.read_text("utf-8") for each in files if each.name.endswith(".avsc"))


def _message_schema(text: str) -> MessageSchema:
    avro = parse(text)
    crc = fingerprint(to_parsing_canonical_form(json.loads(text)), "CRC-64-AVRO")
    name = getattr(avro, "name", avro.kind).rpartition(".")[2]
    header = MARKER + bytes.fromhex(crc)  # fastavro returns the eight bytes in little-endian order
    return MessageSchema(name, avro, plain_schema(avro, defaults=True), header, text)

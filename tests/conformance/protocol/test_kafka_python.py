"""Our messages agree with those of kafka-python, whose codec is generated from Apache Kafka's own
definitions.

kafka-python reads our bytes as the message that we wrote, and writes this message as the same
bytes. The names, versions, nullability and tags of all fields are the same as in Kafka's
definitions.
"""

from __future__ import annotations

import dataclasses
import io
import uuid
import warnings
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skidway.kafka.errors import RETRIABLE, ErrorCode
from skidway.kafka.protocol import Message, encode, flexible
from skidway.kafka.protocol.apis import NEVER_FLEXIBLE
from skidway.kafka.protocol.messages import Array, Field, Fixed, Id, Nested, Text, fields
from support.messages import ALL, CASES, messages, name_of

with warnings.catch_warnings():  # it reads its data files in a way that is deprecated
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.errors import kafka_errors
    from kafka.protocol.schemas import BaseField, StructField, load_json


@cache
def definition(name: str) -> dict[str, Any]:
    """Returns Kafka's definition of the message with this name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found: dict[str, Any] = load_json(name, package="kafka.protocol.schemas.resources")
    return found


class Theirs:
    """kafka-python's codec for one message in one version. Converts between bytes and
    dictionaries."""

    def __init__(self, name: str, version: int, compact: bool) -> None:
        self._codec = _codec(name)
        self._form = {"version": version, "compact": compact, "tagged": compact}

    def decode(self, body: bytes) -> dict[str, Any]:
        """Returns the message in a body. Fails the test if further bytes follow the message."""
        stream = io.BytesIO(body)
        found: dict[str, Any] = self._codec.decode(stream, **self._form)
        assert stream.read() == b""
        return found

    def encode(self, message: dict[str, Any]) -> bytes:
        """Returns the body of a message."""
        return bytes(self._codec.encode(message, **self._form))


@cache
def _codec(name: str) -> StructField:
    return StructField(definition(name))


def version_range(text: str | None) -> tuple[int, int] | None:
    """Returns the first and the last version of a version range in a definition, such as "3+" or
    "3-5". Returns None if the range is empty."""
    found: tuple[int, int] | None = BaseField.parse_versions(text)
    return found


def name_and_retriable(code: int) -> tuple[str, bool]:
    """Returns the name of an error code, and whether kafka-python retries a request that failed
    with this code. Raises KeyError if kafka-python does not know the code."""
    error = kafka_errors[code]
    return error.message, bool(error.retriable)


ITS_OWN_NAMES = {  # where kafka-python's names differ from Apache Kafka's
    ErrorCode.UNKNOWN_SERVER_ERROR: "UNKNOWN",
    ErrorCode.NONE: "NO_ERROR",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "NOT_LEADER_FOR_PARTITION",
    ErrorCode.MESSAGE_TOO_LARGE: "MESSAGE_SIZE_TOO_LARGE",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "INVALID_TOPIC",
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: "INVALID_REPLICATION_ASSIGNMENT",
}
TYPES = {"b": "int8", "h": "int16", "i": "int32", "q": "int64", "?": "bool"}


def plain(value: Any, version: int) -> Any:
    """Returns a message in the form that kafka-python's codec uses. This form consists of
    dictionaries and lists. The form leaves out the fields that do not exist in this version, and
    the tagged fields that have their default values. If all bytes of a topic id are zero, this form
    has None in its place."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain(getattr(value, field.name), version)
            for field in fields(type(value))
            if field.exists(version) and not is_silent(field, getattr(value, field.name))
        }
    if isinstance(value, tuple):
        return [plain(item, version) for item in value]
    return None if isinstance(value, uuid.UUID) and not value.int else value


def is_silent(field: Field, value: Any) -> bool:
    """Returns whether the field is tagged and has its default value. The codec does not write such
    a field, so a reader does not find it."""
    return field.tag is not None and value == field.default


@pytest.mark.parametrize(("cls", "version"), CASES, ids=name_of)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_same_bytes(cls: type[Message], version: int, data: st.DataObject) -> None:
    """kafka-python reads our bytes as the message that we wrote, and writes that message as the
    same bytes."""
    message = data.draw(messages(cls, version))
    body = encode(message, version)
    theirs = Theirs(cls.__name__, version, flexible(cls.API, version))
    found = theirs.decode(body)
    assert found == plain(message, version)
    assert theirs.encode(found) == body


@pytest.mark.parametrize("cls", ALL, ids=name_of)
def test_same_definition(cls: type[Message]) -> None:
    """A message's API key, versions, flexible versions and fields are those of Kafka's
    definition."""
    theirs = definition(cls.__name__)
    assert theirs["apiKey"] == cls.API
    first_flexible, _ = version_range(theirs["flexibleVersions"]) or (None, None)
    never = first_flexible == -1  # kafka-python's way to say that no version is flexible
    assert cls.API.flexible_since == (NEVER_FLEXIBLE if never else first_flexible)
    _, highest = version_range(theirs["validVersions"]) or (None, -1)
    assert highest >= cls.VERSIONS.highest
    for version in range(cls.VERSIONS.lowest, cls.VERSIONS.highest + 1):
        assert ours(cls, version) == kafkas(theirs["fields"], version)


def ours(cls: type, version: int) -> list[Any]:
    """Returns the name, type, nullability and tag of each of our fields in the given version."""
    return [
        (
            field.name.replace("_", ""),
            kind(field.shape, version),
            # On the wire a structure cannot be null. If a field has a structure as its type and the
            # value None, the message contains neither the field nor its tag.
            version >= field.nullable_since and not isinstance(field.shape, Nested),
            field.tag,
        )
        for field in fields(cls)
        if field.exists(version)
    ]


def kind(shape: Any, version: int) -> Any:
    if isinstance(shape, Fixed):
        return TYPES[shape.code]
    if isinstance(shape, Array):
        return [kind(shape.element, version)]
    if isinstance(shape, Nested):
        return ours(shape.cls, version)
    return {Text: "string", Id: "uuid"}.get(type(shape), "bytes")


def kafkas(definitions: list[dict[str, Any]], version: int) -> list[Any]:
    """Returns the name, type, nullability and tag of each of Kafka's fields in the given
    version."""
    return [
        (
            item["name"].lower(),
            kafkas_kind(item, version),
            within(item.get("nullableVersions"), version),
            item.get("tag"),
        )
        for item in definitions
        if within(item["versions"], version)
    ]


def kafkas_kind(item: dict[str, Any], version: int) -> Any:
    name = item["type"].removeprefix("[]").replace("records", "bytes")
    inner = kafkas(item["fields"], version) if "fields" in item else name
    return [inner] if item["type"].startswith("[]") else inner


def within(versions: str | None, version: int) -> bool:
    found = version_range(versions)
    return found is not None and found[0] <= version <= found[1]


@pytest.mark.parametrize("code", ErrorCode, ids=lambda code: code.name)
def test_same_error_codes(code: ErrorCode) -> None:
    """The name, number and retriability of each error code are those in kafka-python."""
    name, retried = name_and_retriable(code.value)
    assert ITS_OWN_NAMES.get(code, code.name) == name
    # CORRUPT_MESSAGE is retriable according to Kafka's protocol guide, but not in kafka-python.
    assert (code in RETRIABLE) == (retried or code is ErrorCode.CORRUPT_MESSAGE)

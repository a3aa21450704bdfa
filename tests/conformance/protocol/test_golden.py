"""Our codec agrees with the bytes in tests/data/protocol, which were written by hand from the
protocol's description, field by field.

Each message is written and read whole. A message that is cut at any of its bytes, or that one more
byte follows, has to be refused. These tests also find a mistake that reader and writer share.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest
import yaml

from skidway.kafka.errors import ProtocolError, TrailingBytes
from skidway.kafka.protocol import Message, decode, encode, fetch_request, fetch_response, produce
from skidway.kafka.protocol.messages import Array, Blob, Id, Nested, Shape, fields
from support.messages import ALL, wire

DATA = Path(__file__).parents[2] / "data/protocol"
CLASSES = {cls.__name__: cls for cls in ALL}


class Golden(NamedTuple):
    """A message in a version, and its bytes."""

    version: int
    message: Message
    body: bytes


def golden() -> Iterator[Golden]:
    """The cases of the files in DATA. In a case's text `bytes`, # begins a comment. Fields of type
    bytes are in hexadecimal, and a field that the case does not name has its default."""
    for path in sorted(DATA.glob("*.yml")):
        for case in yaml.safe_load(path.read_text()):
            message = built(CLASSES[case["message"]], case.get("fields", {}))
            yield Golden(case["version"], message, wire(case["bytes"]))


def built(cls: type, values: dict[str, Any]) -> Any:
    shapes = {field.name: field.shape for field in fields(cls)}
    return cls(**{name: value_of(shapes[name], value) for name, value in values.items()})


def value_of(shape: Shape, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(shape, Array):
        return tuple(value_of(shape.element, each) for each in value)
    if isinstance(shape, Nested):
        return built(shape.cls, value)
    if isinstance(shape, Id):
        return UUID(value)
    return bytes.fromhex(value) if isinstance(shape, Blob) else value


def name_of(case: Golden) -> str:
    return f"{type(case.message).__name__}-{case.version}"


GOLDEN = list(golden())
HOT = {
    produce.ProduceRequest: produce.parse_request,
    produce.ProduceResponse: produce.parse_response,
    CLASSES["FetchRequest"]: fetch_request.parse_request,
    CLASSES["FetchResponse"]: fetch_response.parse_response,
}

every = pytest.mark.parametrize("case", GOLDEN, ids=name_of)


def test_no_file_is_passed_over() -> None:
    """The files have a hundred cases, and at least one for each message."""
    assert len(GOLDEN) >= 100
    assert {type(case.message) for case in GOLDEN} == set(ALL)


@every
def test_written(case: Golden) -> None:
    """Our codec writes each case's message as the bytes of the case."""
    assert encode(case.message, case.version).hex(" ") == case.body.hex(" ")


@every
def test_read(case: Golden) -> None:
    """Our codec reads the bytes of each case as the case's message, and refuses fewer or more
    bytes."""
    version, message, body = case
    assert decode(type(message), body, version) == message
    with pytest.raises(TrailingBytes):
        decode(type(message), body + b"\0", version)
    for end in range(len(body)):
        with pytest.raises(ProtocolError):
            decode(type(message), body[:end], version)


@pytest.mark.parametrize(
    "case", [each for each in GOLDEN if type(each.message) in HOT], ids=name_of
)
def test_hot_paths_read_the_same_bytes(case: Golden) -> None:
    """The hand-written parsers of Produce and Fetch also read the bytes of their cases, and refuse
    fewer or more bytes."""
    version, message, body = case
    parse = HOT[type(message)]
    assert parse(memoryview(body), version)
    with pytest.raises(TrailingBytes):
        parse(memoryview(body + b"\0"), version)
    for end in range(len(body)):
        with pytest.raises(ProtocolError):
            parse(memoryview(body)[:end], version)

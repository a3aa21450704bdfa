"""Makes Hypothesis strategies for all messages of Kafka's protocol that Skidway knows, makes
messages from YAML, and parses bytes from hexadecimal text."""

from __future__ import annotations

import dataclasses
import struct
import uuid
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from hypothesis import strategies as st

from skidway.kafka.protocol import ApiKey, Message, Request, Response
from skidway.kafka.protocol.messages import (
    Array,
    Blob,
    Field,
    Fixed,
    Id,
    Nested,
    Shape,
    Text,
    fields,
)


def _messages(suffix: str) -> dict[ApiKey, Any]:
    """Returns the request class or the response class of each API. `suffix` is "Request" or
    "Response". The names of the class and of its module are derived from the API's name."""
    found = {}
    for key in ApiKey:
        module = import_module(f"skidway.kafka.protocol.{key.name.lower()}")
        name = "".join(word.title() for word in key.name.split("_"))
        found[key] = getattr(module, name + suffix)
    return found


REQUESTS: dict[ApiKey, type[Request]] = _messages("Request")
RESPONSES: dict[ApiKey, type[Response]] = _messages("Response")
ALL = [*REQUESTS.values(), *RESPONSES.values()]
CASES = [
    (cls, version)
    for cls in ALL
    for version in range(cls.VERSIONS.lowest, cls.VERSIONS.highest + 1)
]


def name_of(value: object) -> str:
    """Returns the text for a parameter in a test's id: the name of a message class, or a
    version."""
    return value.__name__ if isinstance(value, type) else f"v{value}"


def messages(cls: type[Message], version: int) -> st.SearchStrategy[Any]:
    """Returns a strategy for messages of the class `cls` in one version of the protocol. Fields
    that the version does not have get their default values."""
    return _structures(cls, version)


@cache
def _structures(cls: type, version: int) -> st.SearchStrategy[Any]:
    present = {f.name: _values(f, version) for f in fields(cls) if f.exists(version)}
    return st.builds(cls, **present)


def _values(field: Field, version: int) -> st.SearchStrategy[Any]:
    values = _of_shape(field.shape, version)
    if version >= field.nullable_since:
        values = st.none() | values
    if field.default is not dataclasses.MISSING:
        values = st.just(field.default) | values
    return values


def _of_shape(shape: Shape, version: int) -> st.SearchStrategy[Any]:
    if isinstance(shape, Fixed):
        return st.booleans() if shape.code == "?" else integers(shape.code)
    if isinstance(shape, Text):
        return st.text(max_size=40) | st.just("long" * 50)
    if isinstance(shape, Array):
        return st.lists(_of_shape(shape.element, version), max_size=3).map(tuple)
    if isinstance(shape, Nested):
        return _structures(shape.cls, version)
    return st.uuids() if isinstance(shape, Id) else st.binary(max_size=200)


def integers(code: str) -> st.SearchStrategy[int]:
    """Returns a strategy for integers of the width that `code` has in the module `struct`. The
    strategy often draws the smallest and the largest integer."""
    half = 1 << (8 * struct.calcsize(f">{code}") - 1)
    return st.sampled_from([0, -1, -half, half - 1]) | st.integers(-half, half - 1)


def wire(text: str) -> bytes:
    """Converts a text of hexadecimal digits and spaces to bytes. The character # begins a comment,
    which extends to the end of the line."""
    return bytes.fromhex("".join(line.partition("#")[0] for line in text.splitlines()))


def built(cls: type, values: Mapping[str, Any]) -> Any:
    """Returns a message, or a part of one, with the values of its fields as YAML has them: bytes in
    hexadecimal."""
    shapes = {field.name: field.shape for field in fields(cls)}
    return cls(**{name: _built(shapes[name], value) for name, value in values.items()})


def _built(shape: Shape, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(shape, Array):
        return tuple(_built(shape.element, each) for each in value)
    if isinstance(shape, Nested):
        return built(shape.cls, value)
    if isinstance(shape, Id):
        return uuid.UUID(value)
    return bytes.fromhex(value) if isinstance(shape, Blob) else value

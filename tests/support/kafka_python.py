"""Gives tests kafka-python's codec for the messages of Kafka's protocol. This codec is generated
from Apache Kafka's own definitions of these messages.

When kafka-python is imported, it reads its data files in a way that is deprecated in Python 3.11
and 3.12. In our tests warnings are errors, so this module suppresses warnings during the import of
kafka-python.
"""

from __future__ import annotations

import io
import warnings
from functools import cache
from typing import Any

with warnings.catch_warnings():
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

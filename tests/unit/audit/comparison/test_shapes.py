"""Tests how records of log shippers are read. A *shape* says in which fields of a record a shipper
puts host, path, position and line. The tests use records with the fields that the shippers'
documentation names. No shipper runs in these tests (tests/conformance/shippers runs rsyslog)."""

from __future__ import annotations

import json

import pytest

from skidway.audit.comparison.shapes import SHAPES, Shape, Shipped

LINE = "GET /help 200"
FILEBEAT = {
    "@timestamp": "2026-01-31T10:00:00.000Z",
    "@metadata": {"beat": "filebeat", "type": "_doc", "version": "8.10.0"},
    "log": {"offset": 81920, "file": {"path": "/var/log/app.log"}},
    "message": LINE,
    "input": {"type": "filestream"},
    "host": {"name": "web7"},
    "agent": {"name": "web7", "type": "filebeat"},
}
VECTOR = {
    "file": "/var/log/app.log", "host": "web7", "message": LINE, "offset": 81920,
    "source_type": "file", "timestamp": "2026-01-31T10:00:00Z",
}  # fmt: skip
FLUENT_BIT = {"@timestamp": 1769853600.0, "path": "/var/log/app.log", "log": LINE}
RSYSLOG = {"host": "web7", "path": "/var/log/app.log", "offset": "81920", "message": LINE}


@pytest.mark.parametrize(
    ("shape", "document", "host", "offset"),
    [
        ("filebeat", FILEBEAT, "web7", 81920),
        ("vector", VECTOR, "web7", 81920),
        ("fluent-bit", FLUENT_BIT, None, None),
        ("rsyslog", RSYSLOG, "web7", 81920),
    ],
)
def test_the_documented_fields_are_read(
    shape: str, document: dict[str, object], host: str | None, offset: int | None
) -> None:
    """A shape reads four values from a record that has the documented fields of its shipper: the
    host, the path, the position of the line's first byte, and the line."""
    expected = Shipped(host, "/var/log/app.log", offset, LINE.encode())
    assert SHAPES[shape].shipped(json.dumps(document).encode()) == expected


def test_a_value_may_be_the_line() -> None:
    """With the shape `text`, the value of a record is the line itself, with or without a line
    terminator."""
    assert SHAPES["text"].shipped(b"a line\r\n") == Shipped(None, None, None, b"a line")


def test_fields_may_have_other_names() -> None:
    """The caller can replace the field names of a shape. An empty name means that the records do
    not have the field."""
    shape = SHAPES["vector"].with_names({"text": "log.original", "offset": "", "path": None})
    assert shape == Shape("log.original", "file", None, "host")
    value = json.dumps({"log.original": "x", "file": "/f"}).encode()
    assert shape.shipped(value) == Shipped(None, "/f", None, b"x")


@pytest.mark.parametrize("value", [None, b"no json", b"[]", b"{}", b'{"message": 5}', b"\xff"])
def test_values_without_the_shape(value: bytes | None) -> None:
    """If the value of a record does not have the fields that the shape names, no line is read from
    it."""
    assert SHAPES["vector"].shipped(value) is None


@pytest.mark.parametrize("offset", [-1, 1 << 63, 10**30, "9" * 30, "x", None, True, 1.5, []])
def test_what_cannot_be_a_position_is_no_position(offset: object) -> None:
    """If the offset in a record cannot be a position in a file, the record is compared by its text
    alone, and `skidway audit compare` continues."""
    document = {"path": "/var/log/app.log", "offset": offset, "message": LINE}
    shipped = SHAPES["vector"].with_names({"path": "path"}).shipped(json.dumps(document).encode())
    assert shipped is not None
    assert shipped.offset is None

from __future__ import annotations

import json
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from skidway.errors import Unreachable
from skidway.schemas.client import RegistryRefused, RegistryUnreachable
from skidway.schemas.codec import Codec
from skidway.schemas.codec.objects import Map
from skidway.schemas.consuming.values import Values, plain
from skidway.schemas.wire import add_prefix

LINE = '{"type":"record","name":"r","fields":[{"name":"line","type":"string"}]}'
CODEC = Codec(LINE)


class Registry:
    """A registry that has only the schema with the id 7."""

    is_away = False
    asked = 0

    def schema(self, schema_id: int) -> str:
        self.asked += 1
        if self.is_away:
            raise RegistryUnreachable("No schema registry answers.")
        if schema_id != 7:
            raise RegistryRefused(404, 40403, f"Schema {schema_id} not found")
        return LINE


def avro(schema_id: int, *lines: str) -> list[bytes]:
    batch = pa.RecordBatch.from_pydict({"line": list(lines)})
    return list(add_prefix(schema_id, CODEC.encode(batch)).to_pylist())


def test_avro_is_decoded_and_anything_else_left_alone() -> None:
    """A consumed value is decoded if it is an Avro datum of a known schema. All other values stay
    as they are. If values cannot be decoded, each reason is printed only once."""
    notes: list[str] = []
    values = Values(Registry(), notes.append)
    mixed = [*avro(7, "one"), b"plain", None, *avro(8, "other"), b"\0\0\0\0\7\xff", *avro(7, "two")]
    for _ in range(2):
        found = values.read(pa.array(mixed, pa.binary()))
        assert [each.schema_id for each in found] == [7, None, None, None, None, 7]
        assert [each.line for each in found[:3]] == [b'{"line": "one"}', b"plain", b""]
        assert [each.raw for each in found] == mixed
    assert notes == [
        "values that are no datum of their schema 7 are not decoded",
        "values with schema 8 are not decoded: Schema 8 not found",
    ]


def test_a_registry_that_is_away_matters_where_it_was_named() -> None:
    """If the registry does not answer, a command that shows records fails only if the user gave the
    registry's address. Otherwise it shows the values as bytes, and prints one message about the
    registry."""
    registry = Registry()
    registry.is_away = True
    notes: list[str] = []
    values = Values(registry, notes.append, is_named=False)
    (found,) = values.read(pa.array(avro(7, "one"), pa.binary()))
    assert (found.schema_id, found.line) == (None, avro(7, "one")[0])
    values.read(pa.array(avro(7, "one"), pa.binary()))
    assert registry.asked == 1
    assert len(notes) == 1
    assert "--registry" in notes[0]
    with pytest.raises(Unreachable):
        Values(registry, notes.append).read(pa.array(avro(7, "one"), pa.binary()))
    registry.asked = 0
    values.read(pa.array([b"no Avro"], pa.binary()))
    assert registry.asked == 0


def test_everything_avro_has_is_json() -> None:
    """Avro values are shown as JSON, with bytes as text or base64 and times in the form of RFC
    3339."""
    at = datetime(2026, 1, 31, 10, tzinfo=UTC)
    document = {"at": at, "text": b"a", "raw": b"\xff", "list": [b"b", {"in": b"\xfe"}], "n": None}
    assert json.loads(json.dumps(plain(document))) == {
        "at": "2026-01-31T10:00:00Z",
        "text": "a",
        "raw_base64": "/w==",
        "list": ["b", {"in_base64": "/g=="}],
        "n": None,
    }


def test_no_value_is_mistaken_for_another() -> None:
    """If bytes in a list or map are no text, all bytes of the field are base64, and its name says
    so. Maps are objects with their own keys, and numbers that JSON does not have are text, so that
    every reader of JSON takes them."""
    document = {
        "list": [b"/g==", b"\xfe"],
        "map": Map(a=b"\xff", a_base64=b"text"),
        "lists": [[Map(a=b"text")], [Map(a=b"/w==")]],
        "deep": [Map(a=[b"text"]), Map(b=[b"\xff"])],
        "numbers": [float("nan"), float("inf"), -float("inf"), 1.5],
    }
    assert json.loads(json.dumps(plain(document), allow_nan=False)) == {
        "list_base64": ["L2c9PQ==", "/g=="],
        "map_base64": {"a": "/w==", "a_base64": "dGV4dA=="},
        "lists": [[{"a": "text"}], [{"a": "/w=="}]],
        "deep_base64": [{"a": ["dGV4dA=="]}, {"b": ["/w=="]}],
        "numbers": ["NaN", "Infinity", "-Infinity", 1.5],
    }


def test_no_field_takes_the_name_of_another() -> None:
    """Bytes that are no text get a name that no other field of the record has, whatever the order
    of the fields, so every field is shown."""
    assert plain({"a": b"\xff", "a_base64": "mine"}) == {
        "a_base64_base64": "/w==", "a_base64": "mine",
    }  # fmt: skip
    assert plain({"in": {"a_base64": b"\xfe", "a": b"\xff", "a_base64_base64": None}}) == {
        "in": {
            "a_base64_base64_base64": "/g==",
            "a_base64_base64_base64_base64": "/w==",
            "a_base64_base64": None,
        }
    }

"""Each value is decoded with its own schema, and the values become columns. A value that cannot be
decoded is rejected with a reason."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from skidway.errors import SkidwayError
from skidway.loader.reading.decoder import Decoded, Decoder, check_reader
from skidway.schemas.client import RegistryRefused, RegistryUnreachable
from support.loading import SCHEMA, SCHEMA_ID, Registry, datum

NO_COLUMNS = json.dumps({"type": "record", "name": "E", "fields": []})
STRANGER = json.dumps(
    {"type": "record", "name": "S", "fields": [{"name": "other", "type": "string"}]}
)


def decode(values: list[bytes | None]) -> Decoded:
    registry = Registry({1: SCHEMA, 2: NO_COLUMNS, 3: STRANGER, 4: "{}"})
    return Decoder(registry, SCHEMA).decode(pa.array(values, pa.binary()))


def test_one_schema_is_decoded_at_once() -> None:
    """Values of the same schema become columns of this schema. The result says how many values had
    each schema id."""
    decoded = decode([datum("a"), datum("b")])
    assert decoded.columns[0].to_pylist() == ["a", "b"]
    assert decoded.good.all()
    assert decoded.schema_ids == {1: 2}


def test_no_values() -> None:
    """If the decoder gets no values, the columns that it returns have no rows."""
    decoded = decode([])
    assert [len(column) for column in decoded.columns] == [0]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "null-value"),
        (b"text", "no-schema-id"),
        (b"\0\0\0\0\2\0", "not-projectable"),
        (b"\0\0\0\0\4\0", "unknown-schema"),
        (b"\0\0\0\0\5\0", "unknown-schema"),
        (b"\0\0\0\0\3\2x", "not-projectable"),
        (b"\0\0\0\0\1\x08x", "undecodable"),
    ],
)
@pytest.mark.parametrize("alone", [True, False])
def test_what_has_no_columns_has_a_reason(value: bytes | None, reason: str, alone: bool) -> None:
    """Each unreadable value is rejected with the right reason, whether it comes among good values
    or alone."""
    values = [value] if alone else [datum("a"), value, datum("b")]
    decoded = decode(values)
    at = values.index(value)
    assert {index: why for index, (why, _) in decoded.refused.items()} == {at: reason}
    assert decoded.good.tolist() == [index != at for index in range(len(values))]
    assert decoded.columns[0].to_pylist() == ([] if alone else ["a", "b"])


@pytest.mark.parametrize(
    ("fields", "columns"),
    [
        ([], []),
        ([{"name": "x", "type": "int", "default": 7}], [[7, 7, 7, 5]]),
        ([{"name": "x", "type": ["null", "int"], "default": None}], [[None, None, None, 5]]),
    ],
)
def test_a_record_without_fields_is_a_row(fields: list[Any], columns: list[Any]) -> None:
    """Each record of a schema without fields becomes a row. If the newest version has a field, the
    row has the field's default or null."""
    reader = json.dumps({"type": "record", "name": "E", "fields": fields})
    written = json.dumps({"type": "record", "name": "E", "fields": [{"name": "x", "type": "int"}]})
    decoder = Decoder(Registry({2: NO_COLUMNS, 6: written}), reader)
    empty = b"\0\0\0\0\2"
    values = [empty, empty, b"\0\0\0\0\2x", empty, b"\0\0\0\0\6\n"]
    decoded = decoder.decode(pa.array(values, pa.binary()))
    assert decoded.good.tolist() == [True, True, False, True, True]
    assert [each.to_pylist() for each in decoded.columns] == columns
    assert decoded.refused[2][0] == "undecodable"
    assert decoded.schema_ids == {2: 3, 6: 1}
    assert decoder.decode(pa.array([empty] * 2, pa.binary())).good.tolist() == [True, True]


def test_a_registry_that_fails_is_not_an_unknown_schema() -> None:
    """If the registry answers a request for a schema with any error other than "there is no such
    schema" (error code 40403), or does not answer, no value is rejected: the load stops. A proxy
    that answers with status 404 does not have this error code. If the registry has answered with an
    error, the load's error names the schema id."""

    class Broken(Registry):
        def schema(self, schema_id: int, /) -> str:
            raise RegistryRefused(500, 50001, "the store is down")

    class Proxy(Registry):
        def schema(self, schema_id: int, /) -> str:
            raise RegistryRefused(404, 0, "The registry answers with status 404.")

    class Away(Registry):
        def schema(self, schema_id: int, /) -> str:
            raise RegistryUnreachable("no registry answered")

    refused: list[tuple[Registry, type[Exception], str]] = [
        (Broken(), RegistryRefused, f"schema {SCHEMA_ID}: the store is down"),
        (Proxy(), RegistryRefused, f"schema {SCHEMA_ID}: .* status 404"),
        (Away(), RegistryUnreachable, "no registry answered"),
    ]
    for registry, error, words in refused:
        with pytest.raises(error, match=words):
            Decoder(registry, SCHEMA).decode(pa.array([datum("a")], pa.binary()))


def test_each_schema_is_asked_for_once() -> None:
    """A decoder asks the registry only once for each schema id, even if the registry does not have
    the schema."""
    asked: list[int] = []

    class Counting(Registry):
        def schema(self, schema_id: int, /) -> str:
            asked.append(schema_id)
            return super().schema(schema_id)

    decoder = Decoder(Counting(), SCHEMA)
    for _ in range(3):
        decoder.decode(pa.array([datum("a"), b"\0\0\0\0\7x"], pa.binary()))
    assert sorted(asked) == [1, 7]


def test_an_unknown_schema_is_asked_for_again() -> None:
    """One decoder may be used for several tasks. If the registry did not have a schema during one
    task, the decoder asks for this schema again in the next task."""
    registry = Registry({})
    decoder = Decoder(registry, SCHEMA)
    values = pa.array([datum("a")], pa.binary())
    assert not decoder.decode(values).good.any()
    registry.add(SCHEMA_ID, SCHEMA)
    assert not decoder.decode(values).good.any(), "a task decides about a schema once"
    decoder.forget_unknown()
    assert decoder.decode(values).good.all()


def test_a_field_with_one_of_our_names_is_refused() -> None:
    """A schema is refused if one of its fields has the name of a column that the loader adds, in
    any mixture of upper and lower case. The error names the field."""
    for name in ("_agent", "_Agent"):
        with pytest.raises(SkidwayError, match=name):
            check_reader(record(name), frozenset({"_agent"}))
    check_reader(record("agent"), frozenset({"_agent"}))


def record(*names: str) -> str:
    """Returns the schema of a record whose fields have the given names."""
    fields = [{"name": name, "type": "long"} for name in names]
    return json.dumps({"type": "record", "name": "R", "fields": fields})


def test_fields_whose_names_differ_only_in_case_are_refused() -> None:
    """A schema is refused if the names of two fields of one record differ only in case, at any
    depth, because plain Spark would refuse the files. The error names both fields."""
    check_reader(record("a", "b"), frozenset())
    with pytest.raises(SkidwayError, match="its fields a and A differ only in upper and lower"):
        check_reader(record("a", "A"), frozenset())
    for nested in ({"type": "array", "items": INNER}, {"type": "map", "values": INNER}, INNER):
        outer = {"type": "record", "name": "O", "fields": [{"name": "in", "type": nested}]}
        with pytest.raises(SkidwayError, match="x and X"):
            check_reader(json.dumps(outer), frozenset())


INNER = json.loads(record("x", "X"))


MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-millis"}


def of(kind: object, name: str = "t") -> dict[str, object]:
    return {"type": "record", "name": "Log", "fields": [{"name": name, "type": kind}]}


@pytest.mark.parametrize(
    ("written", "read"),
    [(MILLIS, MILLIS), (LOCAL, LOCAL), ("long", MILLIS), (MILLIS, ["null", MILLIS]),
     (["null", "long"], ["null", LOCAL])],
)  # fmt: skip
@pytest.mark.parametrize(
    "shape", ["flat", "items", "values", "field", "items of records", "branch"]
)
def test_a_time_that_readers_of_the_files_cannot_hold_is_rejected(
    written: object, read: object, shape: str
) -> None:
    """A value with nanoseconds in a field for milliseconds is rejected by name, at any depth, also
    if the field was a long when it was written. The values beside it become rows."""

    def wrapped(kind: object) -> dict[str, object]:
        inner = {"type": "record", "name": "In", "fields": [{"name": "t", "type": kind}]}
        return of({
            "flat": kind, "items": {"type": "array", "items": kind},
            "values": {"type": "map", "values": kind}, "field": inner,
            "items of records": {"type": "array", "items": inner},
            "branch": ["string", inner],
        }[shape])  # fmt: skip

    def value(number: int) -> object:
        return {
            "flat": number, "items": [0, number, 1], "values": {"a": 0, "b": number},
            "field": {"t": number}, "items of records": [{"t": 0}, {"t": number}],
            "branch": {"t": number},
        }[shape]  # fmt: skip

    bare = json.loads(json.dumps(wrapped(written)), object_hook=without_logical_type)
    numbers = [1, 1_795_248_901_000_000_000, 1_795_248_901_000, -(2**63), 9_223_372_036_854_776]
    values = [avro_value(bare, {"t": value(number)}) for number in numbers]
    registry = Registry({1: json.dumps(wrapped(written)), 2: json.dumps(wrapped(read))})
    decoded = Decoder(registry, json.dumps(wrapped(read))).decode(pa.array(values, pa.binary()))
    assert decoded.good.tolist() == [True, False, True, False, False]
    assert {index: reason for index, (reason, _) in decoded.refused.items()} == dict.fromkeys(
        (1, 3, 4), "far-time"
    )
    assert "a time that microseconds of 64 bits cannot hold" in decoded.refused[1][1]
    assert [len(column) for column in decoded.columns] == [2]


def without_logical_type(part: dict[str, object]) -> dict[str, object]:
    return {key: each for key, each in part.items() if key != "logicalType"}


def avro_value(schema: dict[str, object], row: dict[str, object]) -> bytes:
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, fastavro.parse_schema(schema), row)
    return b"\0\0\0\0\1" + sink.getvalue()

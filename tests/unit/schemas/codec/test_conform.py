"""The codec checks columns before it encodes them. A row with a value that the schema does not
allow is refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from skidway.schemas.codec import Codec


def codec_of(avro: Any) -> Codec:
    return Codec({"type": "record", "name": "R", "fields": [{"name": "a", "type": avro}]})


def encoded(avro: Any, values: list[Any]) -> tuple[list[bytes | None], list[tuple[int, str]]]:
    codec = codec_of(avro)
    column = pa.array(values, codec.arrow_schema.field("a").type)
    datums, refused = codec.encode_rows_checked(pa.record_batch({"a": column}))
    return datums.to_pylist(), refused


def test_a_union_takes_exactly_one_member() -> None:
    """The column of a union is a struct with a field for each member (type) of the union. In each
    row exactly one of these fields must be set. A row in which none or several are set is
    refused."""
    both, none = {"member0": 1, "member1": "x"}, {"member0": None, "member1": None}
    datums, refused = encoded(["int", "string"], [{"member0": 1}, both, none, {"member1": "x"}])
    assert datums == [b"\x00\x02", None, None, b"\x02\x02x"]
    assert refused == [
        (1, "field a: several members of the union are set"),
        (2, "field a: no member of the union is set"),
    ]


def test_a_nullable_union_is_null_as_a_whole() -> None:
    """If a row has null in the column of a union, the datum has the union's branch `null`, at
    whatever position in the union this branch is. If the union has no null branch, a row with a
    null is refused."""
    values = [None, {"member1": "x"}]
    assert encoded(["int", "null", "string"], values)[0] == [b"\x02", b"\x04\x02x"]
    assert encoded(["int", "string"], values)[1] == [
        (0, "field a: missing or null in a required field")
    ]


def test_a_key_twice_in_a_map_is_a_fault() -> None:
    """A row whose map has a key twice is refused, because it is undefined which of the two values a
    reader would keep. The same key in the maps of two rows is allowed."""
    pairs = [[("k", 1), ("l", 2)], [("k", 1), ("k", 2)], [("k", 3)]]
    datums, refused = encoded({"type": "map", "values": "int"}, pairs)
    assert datums[1] is None
    assert refused == [(1, "field a: a map has a key twice")]


def test_a_large_fixed_has_its_size() -> None:
    """A field of a fixed type of more than 64 bytes is a binary column. A row with a value of
    another length in that column is refused."""
    fixed = {"type": "fixed", "name": "F", "size": 65}
    datums, refused = encoded(["null", fixed], [b"x" * 65, b"x" * 64, None])
    assert datums == [b"\x02" + b"x" * 65, None, b"\x00"]
    assert refused == [(1, "field a: not 65 bytes")]


@pytest.mark.parametrize(
    ("avro", "value", "datum"),
    [
        ('"string"', "x", b"\x02x"),
        ('["null", "int"]', 5, b"\x02\x0a"),
        ('{"type": "map", "values": "int"}', [("k", 1)], b"\x02\x02k\x02\x00"),
    ],
)
def test_a_schema_that_is_no_record_has_one_column(avro: str, value: Any, datum: bytes) -> None:
    """A schema that is not a record has one column, `value`, and its datums consist of the value
    only."""
    codec = Codec(avro)
    assert codec.arrow_schema.names == ["value"]
    batch = pa.RecordBatch.from_pylist([{"value": value}], codec.arrow_schema)
    assert codec.encode(batch).to_pylist() == [datum]
    assert codec.decode(pa.array([datum])).batch.equals(batch)

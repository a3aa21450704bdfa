"""pyruhvro is young: each fault of it that we know is shown here, and that it does not get through.

A test that fails at "it still does" is good news: the check around it may go.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyruhvro
import pytest

from skidway.schemas.codec import Codec
from skidway.schemas.codec.fast_path import NotProven, _guarded


def schema_of(avro: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": "a", "type": avro}]}


def by_itself(avro: Any, datums: list[bytes]) -> list[Any]:
    batch = pyruhvro.deserialize_array(datums, json.dumps(schema_of(avro)))
    return list(batch.column(0).cast(pa.binary()).to_pylist())


@pytest.mark.parametrize(
    ("avro", "datum", "value"),
    [
        ("bytes", b"\x02x", b"x"),
        ({"type": "fixed", "name": "F", "size": 1}, b"x", b"x"),
        ({"type": "string", "logicalType": "uuid"}, b"\x02x", "x"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, b"\x02\x05", 5),
    ],
)
def test_types_on_which_it_panics_are_not_shown_to_it(avro: Any, datum: bytes, value: Any) -> None:
    """bytes, fixed, uuid and decimal: both ways, without a panic."""
    codec = Codec(schema_of(avro))
    decoded = codec.decode(pa.array([datum]))
    assert decoded.batch.column(0).to_pylist() == [value]
    assert codec.encode(decoded.batch).to_pylist() == [datum]


def test_its_panics_are_contained() -> None:
    """It panics on bytes, with a BaseException that no `except Exception` sees; the guard makes it
    an ordinary "not proven". Others, as Ctrl-C, go through."""
    schema = json.dumps(schema_of("bytes"))
    with pytest.raises(BaseException) as caught:  # it still does
        pyruhvro.deserialize_array([b"\x02x"], schema)
    assert not isinstance(caught.value, Exception)
    with pytest.raises(NotProven):
        _guarded(lambda: pyruhvro.deserialize_array([b"\x02x"], schema))

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _guarded(interrupted)


def test_a_null_in_a_required_string_is_not_an_empty_one() -> None:
    """It writes '' for the null; the row is refused before it sees the column."""
    batch = pa.record_batch({"a": pa.array([None], pa.string())})
    text = json.dumps(schema_of("string"))
    assert pyruhvro.serialize_record_batch(batch, text, 1)[0].to_pylist() == [
        b"\0"
    ]  # it still does
    datums, refused = Codec(schema_of("string")).encode_rows_checked(batch)
    assert datums.to_pylist() == [None]
    assert refused == [(0, "field a: null in a required field")]


def test_a_string_that_is_not_utf8_does_not_get_through() -> None:
    """It gives strings that are none; the datum is found and set apart, whatever is beside it."""
    assert by_itself("string", [b"\x02\xff"]) == [b"\xff"]  # it still does
    decoded = Codec(schema_of("string")).decode(pa.array([b"\x02x", b"\x02\xff", b"\x02y"]))
    assert decoded.batch.column(0).to_pylist() == ["x", "y"]
    assert decoded.refused == [(1, "a string is not UTF-8")]


def test_bytes_behind_a_datum_are_seen() -> None:
    """It reads the front and is content; encoded again, the datum would be shorter than it is."""
    assert by_itself("string", [b"\x02xyz"]) == [b"x"]  # it still does
    decoded = Codec(schema_of("string")).decode(pa.array([b"\x02xyz", b"\x02x"]))
    assert decoded.batch.column(0).to_pylist() == ["x"]
    assert decoded.refused == [(0, "2 bytes too many")]


def test_timestamps_are_in_utc() -> None:
    """It gives them without a zone: they travel as long and become moments here."""
    stamp = {"type": "long", "logicalType": "timestamp-millis"}
    batch = pyruhvro.deserialize_array([b"\x02"], json.dumps(schema_of(stamp)))
    assert batch.column(0).type.tz is None  # it still does
    decoded = Codec(schema_of(stamp)).decode(pa.array([b"\x02"]))
    assert decoded.batch.column(0).type == pa.timestamp("ms", "UTC")


@pytest.mark.parametrize(
    ("avro", "column"),
    [("long", pa.array([1], pa.uint64())), ("string", pa.array(["x"], pa.large_string()))],
)
def test_columns_that_it_refuses_are_brought_to_its_types(avro: str, column: pa.Array) -> None:
    """uint64 and large_string."""
    datums = Codec(schema_of(avro)).encode(pa.record_batch({"a": column}))
    assert datums.to_pylist() == [b"\x02" if avro == "long" else b"\x02x"]


def test_what_it_reads_has_exactly_the_schemas_types() -> None:
    """Also an int, which is shown to it as a long so that one out of range is seen and not cut."""
    codec = Codec(schema_of("int"))
    decoded = codec.decode(pa.array([b"\x02", b"\x80\x80\x80\x80\x20"]))
    assert decoded.batch.schema.equals(codec.arrow_schema)
    assert decoded.batch.column(0).to_pylist() == [1]
    assert [index for index, _ in decoded.refused] == [1]


def test_an_answer_of_another_length_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many rows as datums, as many datums as rows, or the next path does it."""
    codec = Codec(schema_of("long"))
    datums = pa.array([b"\x02", b"\x04"])
    real = pyruhvro.deserialize_array
    monkeypatch.setattr(pyruhvro, "deserialize_array", lambda some, schema: real(some[:1], schema))
    assert codec.decode(datums).batch.column(0).to_pylist() == [1, 2]
    monkeypatch.setattr(pyruhvro, "serialize_record_batch", lambda *_: [pa.array([b"\x02"])])
    assert codec.encode(pa.record_batch({"a": [1, 2]})).equals(datums)

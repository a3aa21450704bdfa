"""The codec uses pyruhvro, a young library that encodes and decodes Avro. The tests show that the
codec avoids pyruhvro's known bugs. Some tests also show that pyruhvro still has the bug.

If a test fails at a line with the comment "pyruhvro still does", pyruhvro has fixed the bug. The
codec's check for this bug may then be removed.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyruhvro
import pytest
from prometheus_client import REGISTRY

from skidway.schemas.codec import Codec
from skidway.schemas.codec.fast_path import NotProven, _guarded


def schema_of(avro: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": "a", "type": avro}]}


def encoded(path: str) -> float:
    """Returns how many datums all codecs have encoded so far by the given path (way to encode)."""
    labels = {"direction": "encode", "path": path}
    return REGISTRY.get_sample_value("skidway_schemas_datums_total", labels) or 0


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
    """pyruhvro panics on the types bytes, fixed, uuid and decimal. The codec reads and writes
    values of these types correctly. Its calls of pyruhvro do not fail."""
    codec, text = Codec(schema_of(avro)), json.dumps(schema_of(avro))
    decoded = codec.decode(pa.array([datum]))
    assert decoded.batch.column(0).to_pylist() == [value]
    with pytest.raises(NotProven, match="panicked"):  # pyruhvro still does
        _guarded(lambda: pyruhvro.serialize_record_batch(decoded.batch, text, 1))
    before = encoded(codec.path)
    assert codec.encode(decoded.batch).to_pylist() == [datum]
    assert encoded(codec.path) - before == 1


def test_its_panics_are_contained() -> None:
    """A panic of pyruhvro becomes the codec's own error NotProven, even if the panic is a
    BaseException, which `except Exception` does not catch. Other BaseExceptions, such as Ctrl-C,
    pass through."""
    batch = pa.record_batch({"a": pa.array([b"x"])})
    text = json.dumps(schema_of("bytes"))
    with pytest.raises(NotProven, match="panicked"):  # pyruhvro still does
        _guarded(lambda: pyruhvro.serialize_record_batch(batch, text, 1))

    class PanicException(BaseException):
        """An exception with the name of the exception that pyo3 (the library between Rust and
        Python) raises when Rust code panics."""

    def panicked() -> None:
        raise PanicException

    with pytest.raises(NotProven):
        _guarded(panicked)

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _guarded(interrupted)


def test_a_null_in_a_required_string_is_not_an_empty_one() -> None:
    """pyruhvro writes an empty string for a null in a required field. So the codec refuses such a
    row before it passes the column to pyruhvro."""
    batch = pa.record_batch({"a": pa.array([None], pa.string())})
    text = json.dumps(schema_of("string"))
    assert pyruhvro.serialize_record_batch(batch, text, 1)[0].to_pylist() == [
        b"\0"
    ]  # pyruhvro still does
    datums, refused = Codec(schema_of("string")).encode_rows_checked(batch)
    assert datums.to_pylist() == [None]
    assert refused == [(0, "field a: missing or null in a required field")]


@pytest.mark.parametrize(
    ("avro", "column"),
    [("long", pa.array([1], pa.uint64())), ("string", pa.array(["x"], pa.large_string()))],
)
def test_columns_that_it_refuses_are_brought_to_its_types(avro: str, column: pa.Array) -> None:
    """pyruhvro refuses columns of the Arrow types uint64 and large_string. The codec casts them to
    types that pyruhvro accepts, and encodes them with pyruhvro."""
    batch, text = pa.record_batch({"a": column}), json.dumps(schema_of(avro))
    with pytest.raises(NotProven, match="downcast failed"):  # pyruhvro still does
        _guarded(lambda: pyruhvro.serialize_record_batch(batch, text, 1))
    before = encoded("pyruhvro")
    datums = Codec(schema_of(avro)).encode(batch)
    assert datums.to_pylist() == [b"\x02" if avro == "long" else b"\x02x"]
    assert encoded("pyruhvro") - before == 1


def test_an_answer_of_another_length_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the number of datums that pyruhvro returns differs from the number of rows, the codec
    encodes the rows without pyruhvro."""
    codec = Codec(schema_of("long"))
    monkeypatch.setattr(pyruhvro, "serialize_record_batch", lambda *_: [pa.array([b"\x02"])])
    datums = codec.encode(pa.record_batch({"a": [1, 2]}))
    assert datums.to_pylist() == [b"\x02", b"\x04"]

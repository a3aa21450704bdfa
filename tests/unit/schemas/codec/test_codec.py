"""The codec converts Avro datums to Arrow columns and back, as Avro's specification demands, and
refuses bad data. It has three ways ("paths") to do this: with the library pyruhvro, by columns, and
one datum at a time. All paths give the same results."""

from __future__ import annotations

import datetime as dt
import io
import json
from contextlib import suppress
from decimal import Decimal
from random import Random
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skidway.errors import SkidwayError
from skidway.schemas.avro_schema import SchemaInvalid, parse
from skidway.schemas.codec import (
    NOT_UTF8,
    Codec,
    ColumnsRefused,
    DatumReader,
    EncodeRefused,
    NotUtf8,
)
from skidway.schemas.codec.arrow import SchemaUnsupported, decimal_type
from skidway.schemas.codec.rows import Rows
from skidway.schemas.datum import plain_schema, write_datum
from support.avro import batches, outgoing, raw, records
from support.avro_schemas import Maker
from support.randomness import share_of

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
common = settings(
    max_examples=share_of(150), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def record(*fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": n, "type": t} for n, t in fields]}


def columnar(schema: Any) -> Codec:
    """Returns a codec that never uses the fast path (with pyruhvro)."""
    codec = Codec(schema)
    codec._fast = None
    return codec


def one_by_one(schema: Any, datums: pa.BinaryArray) -> tuple[pa.RecordBatch, list[Any]]:
    """Decodes the datums one by one, with fastavro and the strict check. Returns the rows and the
    refused datums."""
    codec = Codec(schema)
    columns, faults = Rows(codec._record, codec.arrow_schema).decode(datums.to_pylist())
    batch = pa.RecordBatch.from_arrays(columns, schema=codec.arrow_schema)
    return batch, sorted(faults.items())


def written(schema: Any, batch: pa.RecordBatch) -> list[bytes]:
    """Returns the datums that fastavro writes for the rows of `batch`."""
    record = Codec(schema)._record
    plain = plain_schema(record, tagged=True)
    rows = _raw(batch).to_pylist()
    return [write_datum(plain, outgoing(record, row)) for row in rows]


def bytes_of(batch: pa.RecordBatch) -> list[Any]:
    """Returns the rows in a form that can be compared. In this form NaN equals NaN."""
    return [repr(row) for row in _raw(batch).to_pylist()]


def _raw(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(map(raw, batch.columns)), names=batch.schema.names)


@common
@given(batches(flat=True))
def test_flat_records_take_the_fast_path_and_come_back(case: tuple[Any, pa.RecordBatch]) -> None:
    """The codec encodes flat records (without arrays, maps and unions of several types) with
    pyruhvro. After encoding and decoding, the columns are the same."""
    schema, batch = case
    codec = Codec(schema)
    assert codec.path == "pyruhvro"
    datums = codec._fast.encode(batch.columns)  # type: ignore[union-attr]
    assert codec.encode(batch).equals(datums)
    decoded = codec.decode(datums)
    assert bytes_of(decoded.batch) == bytes_of(batch)
    assert decoded.batch.schema.equals(codec.arrow_schema)
    assert decoded.good.all()
    assert not decoded.refused


@common
@given(batches(flat=False))
def test_every_schema_with_columns_comes_back(case: tuple[Any, pa.RecordBatch]) -> None:
    """Arrays, maps, decimals, nullable records and values of the type fixed are the same after
    encoding and decoding."""
    schema, batch = case
    codec = Codec(schema)
    decoded = codec.decode(codec.encode(batch))
    assert bytes_of(decoded.batch) == bytes_of(batch)
    assert decoded.batch.schema.equals(codec.arrow_schema)


@common
@given(batches(flat=True) | batches(flat=False))
def test_every_path_writes_the_same_bytes(case: tuple[Any, pa.RecordBatch]) -> None:
    """Every path of the codec (every way in which it can encode) writes exactly the bytes that
    fastavro writes."""
    schema, batch = case
    wanted = written(schema, batch)
    assert Codec(schema).encode(batch).to_pylist() == wanted
    assert columnar(schema).encode(batch).to_pylist() == wanted


@st.composite
def damaged(draw: st.DrawFn) -> tuple[Any, pa.BinaryArray]:
    """Draws a schema, and datums of this schema. Some of the datums are truncated, lengthened or
    changed, or are arbitrary bytes."""
    schema, batch = draw(batches(flat=draw(st.booleans())))
    datums = Codec(schema).encode(batch).to_pylist() + draw(
        st.lists(st.binary(max_size=24), max_size=2)
    )
    for at in draw(st.lists(st.integers(0, max(len(datums) - 1, 0)), max_size=2)):
        if at < len(datums):
            datums[at] = _damage(draw, datums[at])
    return schema, pa.array(datums, pa.binary())


def _damage(draw: st.DrawFn, datum: bytes) -> bytes:
    kind, at = draw(st.integers(0, 3)), draw(st.integers(0, len(datum)))
    if kind == 0:
        return datum[:at]
    if kind == 1:
        return datum + draw(st.binary(min_size=1, max_size=3))
    if kind == 2:
        return datum[:at] + draw(st.binary(min_size=1, max_size=2)) + datum[at + 1 :]
    return datum[:at] + draw(st.sampled_from([b"\xff" * 9 + b"\x7f", b"\x80\x00", b"\xff" * 12]))


@settings(common, max_examples=share_of(600))
@given(damaged(), st.integers(1, 40))
def test_all_paths_agree_on_any_bytes(case: tuple[Any, pa.BinaryArray], times: int) -> None:
    """For any bytes, the codec returns the same rows in the same order as the strict reader, which
    reads one datum after the other. It also refuses the same datums, with the same indices and
    reasons."""
    schema, datums = case
    datums = pa.concat_arrays([datums] * times)
    wanted, refused = one_by_one(schema, datums)
    for codec in (Codec(schema), columnar(schema)):
        found = codec.decode(datums)
        assert found.refused == refused
        assert bytes_of(found.batch) == bytes_of(wanted)
        found.batch.validate(full=True)
        assert np.flatnonzero(~found.good).tolist() == [index for index, _ in refused]


@common
@given(records(flat=False), st.lists(st.binary(max_size=40), max_size=4))
def test_no_bytes_break_the_codec(case: tuple[Any, Any], datums: list[bytes]) -> None:
    """Every datum, whatever its bytes are, is either decoded or refused."""
    decoded = Codec(case[0]).decode(pa.array(datums, pa.binary()))
    assert decoded.batch.num_rows + len(decoded.refused) == len(datums)
    assert decoded.good.sum() == decoded.batch.num_rows


def test_a_string_that_is_not_utf8_is_set_apart() -> None:
    """A datum whose string is not UTF-8 is refused, and the other datums are decoded."""
    decoded = Codec(record(("a", "string"))).decode(pa.array([b"\x02x", b"\x02\xff", b"\x02y"]))
    assert decoded.batch.column(0).to_pylist() == ["x", "y"]
    assert decoded.refused == [(1, "a string is not UTF-8")]


def test_bytes_behind_a_datum_are_seen() -> None:
    """A datum with more bytes than its values need is refused."""
    decoded = Codec(record(("a", "string"))).decode(pa.array([b"\x02xyz", b"\x02x"]))
    assert decoded.batch.column(0).to_pylist() == ["x"]
    assert decoded.refused == [(0, "2 bytes too many")]


def test_timestamps_are_in_utc() -> None:
    """Decoded timestamps are in UTC."""
    stamp = {"type": "long", "logicalType": "timestamp-millis"}
    decoded = Codec(record(("a", stamp))).decode(pa.array([b"\x02"]))
    assert decoded.batch.column(0).type == pa.timestamp("ms", "UTC")


def test_an_int_out_of_range_is_seen_and_not_cut() -> None:
    """A datum with an int that has more than 32 bits is refused; the int is not truncated."""
    codec = Codec(record(("a", "int")))
    decoded = codec.decode(pa.array([b"\x02", b"\x80\x80\x80\x80\x20"]))
    assert decoded.batch.schema.equals(codec.arrow_schema)
    assert decoded.batch.column(0).to_pylist() == [1]
    assert [index for index, _ in decoded.refused] == [1]


def test_a_bad_datum_is_set_apart_and_the_rest_decodes() -> None:
    """If one datum of several is bad, only this datum is refused, with its index and a reason. The
    other datums are decoded."""
    codec = Codec(record(("a", "string"), ("n", "long")))
    good = codec.encode(pa.record_batch({"a": ["x", "y", "z"], "n": [1, 2, 3]})).to_pylist()
    decoded = codec.decode(
        pa.array([good[0], good[1] + b"\0", None, good[2], b"\x02"], pa.binary())
    )
    assert decoded.batch.to_pylist() == [{"a": "x", "n": 1}, {"a": "z", "n": 3}]
    assert decoded.good.tolist() == [True, False, False, True, False]
    assert decoded.refused == [
        (1, "1 bytes too many"),
        (2, "there is no value"),
        (4, "it ends too early"),
    ]


def test_a_few_bad_datums_among_many_cost_only_themselves() -> None:
    """If a few of many datums are bad, only the bad datums are decoded one at a time. The refusals
    have the right indices."""
    codec = Codec(record(("n", "long"), ("a", ["null", "string"])))
    rows = [{"n": at, "a": None if at % 3 else str(at)} for at in range(5000)]
    datums = codec.encode(pa.RecordBatch.from_pylist(rows, codec.arrow_schema)).to_pylist()
    bad = {0: b"", 1234: None, 1235: datums[7] + b"x", 4999: b"\xff"}
    for at, value in bad.items():
        datums[at] = value
    single = 0
    decode_singly = codec._rows.decode

    def counted(some: list[bytes]) -> Any:
        nonlocal single
        single += len(some)
        return decode_singly(some)

    codec._rows.decode = counted  # type: ignore[method-assign]
    decoded = codec.decode(pa.array(datums, pa.binary()).slice(0))
    assert [index for index, _ in decoded.refused] == sorted(bad)
    assert decoded.batch.to_pylist() == [row for row in rows if row["n"] not in bad]
    assert np.flatnonzero(~decoded.good).tolist() == sorted(bad)
    assert single == 3


@pytest.mark.parametrize(
    ("avro", "datum", "reason"),
    [
        ("string", b"\x04\xff\xfe", "UTF-8"),
        ("string", b"\x01a", "length"),
        ("boolean", b"\x02", "boolean"),
        ("int", b"\xfe\xff\xff\xff\xff\x01", "int"),
        ("int", b"\x80\x80\x80\x80\x11", "int"),
        ("long", b"\xff" * 9 + b"\x7f", "64 bits"),
        ("long", b"\xff" * 9 + b"\x02", "64 bits"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, b"\x08", ""),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, b"\x01", "symbol"),
        (["null", "long"], b"\x01\x02", "branch"),
        (["null", "long"], b"\x04\x02", ""),
        ({"type": "array", "items": "long"}, b"\x03\x0a\x02\x04\x00", "block"),
        ({"type": "map", "values": "long"}, b"\x04\x02k\x02\x02k\x04\x00", "a key twice"),
        ({"type": "map", "values": "long"}, b"\x02\x02k\x02\x02\x82\x00k\x04\x00", "a key twice"),
    ],
)
def test_what_lenient_readers_let_pass_is_refused(avro: Any, datum: bytes, reason: str) -> None:
    """Datums with numbers out of range, negative numbers of union branches, wrong block sizes or
    duplicate keys are refused, although some Avro libraries accept them."""
    decoded = Codec(record(("a", avro))).decode(pa.array([datum]))
    assert decoded.batch.num_rows == 0
    ((index, found),) = decoded.refused
    assert index == 0
    assert reason in found


@pytest.mark.parametrize(
    ("avro", "datum", "value"),
    [
        ("long", b"\x82\x00", 1),
        ({"type": "array", "items": "long"}, b"\x02\x02\x01\x02\x04\x00", [1, 2]),
        (
            {"type": "map", "values": "long"},
            b"\x02\x02k\x02\x02\x02l\x04\x00",
            [("k", 1), ("l", 2)],
        ),
    ],
)
def test_unusual_but_legal_encodings_are_read(avro: Any, datum: bytes, value: Any) -> None:
    """Datums with padded varints are legal in Avro, so the codec decodes them. The same holds for
    arrays and maps in several blocks, with or without the blocks' sizes."""
    decoded = Codec(record(("a", avro))).decode(pa.array([datum]))
    assert decoded.batch.to_pylist() == [{"a": value}]


def test_a_null_in_a_required_field_refuses_its_row_only() -> None:
    """If a field that is not nullable is null, only its row is refused. The null is never written
    as an empty string."""
    codec = Codec(record(("a", "string"), ("n", ["null", "long"])))
    batch = pa.record_batch({"a": ["x", None, "z"], "n": pa.array([1, 2, None])})
    datums, refused = codec.encode_rows_checked(batch)
    assert datums.to_pylist() == [b"\x02x\x02\x02", None, b"\x02z\x00"]
    assert refused == [(1, "field a: missing or null in a required field")]
    with pytest.raises(EncodeRefused) as caught:
        codec.encode(batch)
    assert caught.value.refused == refused


def test_text_that_is_not_utf8_refuses_its_row_only() -> None:
    """If a text in a column is not UTF-8, only its row is refused. The reason has the type NotUtf8,
    so that the agent can distinguish it from other reasons."""
    codec = Codec(record(("line", "string")))
    datums, refused = codec.encode_rows_checked(
        pa.record_batch({"line": pa.array([b"ok", b"\xff\xfe", b"\xc3\xa9"])})
    )
    assert datums.to_pylist() == [b"\x04ok", None, b"\x04\xc3\xa9"]
    ((index, reason),) = refused
    assert index == 1
    assert reason.endswith(NOT_UTF8)
    assert isinstance(reason, NotUtf8)


def test_a_character_cut_in_two_is_not_utf8() -> None:
    """If a character's bytes are divided between two neighbouring rows, both rows are refused,
    although their bytes together would be valid."""
    codec = Codec(record(("line", "string")))
    _, refused = codec.encode_rows_checked(pa.record_batch({"line": pa.array([b"\xc3", b"\xa9"])}))
    assert [index for index, _ in refused] == [0, 1]


def test_lossless_inputs_are_brought_to_the_schemas_types() -> None:
    """Columns of other types than the schema's are cast if no value changes. Examples are
    dictionaries, large strings, other integers and other time units."""
    stamp = {"type": "long", "logicalType": "timestamp-millis"}
    codec = Codec(
        record(("a", "string"), ("b", "string"), ("n", "long"), ("m", "int"), ("t", stamp))
    )
    batch = pa.record_batch(
        {
            "t": pa.array([5, 6], pa.timestamp("s", "Europe/Berlin")),
            "a": pa.array(["x", "y"]).dictionary_encode(),
            "b": pa.array(["x", "y"], pa.large_string()),
            "n": pa.array([1, 2], pa.uint64()),
            "m": pa.array([1, 2], pa.uint8()),
        }
    )
    back = codec.decode(codec.encode(batch)).batch
    assert back.schema == codec.arrow_schema
    assert back.column("a").to_pylist() == ["x", "y"]
    assert back.column("t").type == pa.timestamp("ms", "UTC")
    assert back.column("t").cast(pa.int64()).to_pylist() == [5000, 6000]


def test_numbers_out_of_range_refuse_their_rows_only() -> None:
    """If a number is too large for the type of its field (int or long), only its row is refused."""
    codec = Codec(record(("n", "long"), ("m", "int")))
    batch = pa.record_batch(
        {"n": pa.array([1, 2**63, 3], pa.uint64()), "m": pa.array([1, 2, 2**31], pa.int64())}
    )
    datums, refused = codec.encode_rows_checked(batch)
    assert datums.to_pylist() == [b"\x02\x02", None, None]
    assert [index for index, _ in refused] == [1, 2]


def test_bad_values_inside_lists_maps_and_records_are_found() -> None:
    """A row with a bad value inside a list, map or record is refused."""
    inner = {"type": "record", "name": "I", "fields": [{"name": "x", "type": "string"}]}
    codec = Codec(
        record(
            ("l", {"type": "array", "items": "long"}),
            ("m", {"type": "map", "values": {"type": "enum", "name": "E", "symbols": ["A"]}}),
            ("s", ["null", inner]),
        )
    )
    batch = pa.record_batch(
        {
            "l": pa.array([[1], [2, None], [3], [4]], pa.list_(pa.int64())),
            "m": pa.array([[("k", "A")], [], [("k", "B")], []], pa.map_(pa.string(), pa.string())),
            "s": pa.array([None, None, {"x": "y"}, {"x": None}], pa.struct([("x", pa.string())])),
        }
    )
    datums, refused = codec.encode_rows_checked(batch)
    assert [index for index, _ in refused] == [1, 2, 3]
    assert "field s: x: missing or null" in refused[2][1]
    assert codec.decode(datums.slice(0, 1)).batch.to_pylist() == [
        {"l": [1], "m": [("k", "A")], "s": None}
    ]


def test_items_out_of_range_refuse_their_rows_only() -> None:
    """If items in lists and maps are out of range, only their rows are refused. This also holds for
    a slice of an Arrow array. Arrow's cast of a slice also converts items outside the slice, and
    these may be out of range, too."""
    codec = Codec(
        record(("l", {"type": "array", "items": "int"}), ("m", {"type": "map", "values": "int"}))
    )
    batch = pa.record_batch(
        {
            "l": pa.array([[2**40], [1], [2**40], [2], []], pa.list_(pa.int64())),
            "m": pa.array(
                [[("k", 2**40)], [("k", 1)], [], [("k", 2**40)], [("k", 3)]],
                pa.map_(pa.string(), pa.int64()),
            ),
        }
    ).slice(1)
    datums, refused = codec.encode_rows_checked(batch)
    assert [index for index, _ in refused] == [1, 2]
    assert codec.encode_rows_checked(batch.slice(0, 1)) == (datums.slice(0, 1), [])
    assert codec.decode(datums.drop_null()).batch.to_pylist() == [
        {"l": [1], "m": [("k", 1)]},
        {"l": [], "m": [("k", 3)]},
    ]


@pytest.mark.parametrize(
    ("avro", "default"),
    [({"type": "bytes", "logicalType": "decimal", "precision": 2}, "\x7f\xff")],
)
def test_a_default_that_is_no_value_is_refused_in_a_sentence(avro: Any, default: Any) -> None:
    """The default of a field may fit the field's base type but not its logical type. If the field's
    column is missing, so that the default would be encoded, ColumnsRefused is raised."""
    schema = record(("a", avro), ("b", "int"))
    schema["fields"][0]["default"] = default
    with pytest.raises(ColumnsRefused, match="default does not fit"):
        Codec(schema).encode(pa.record_batch({"b": pa.array([1], pa.int32())}))


def test_a_fixed_of_another_size_is_refused() -> None:
    """If a field has the type fixed, and the values in its column have another size than the schema
    says, the column is refused with an error message."""
    codec = Codec(record(("a", {"type": "fixed", "name": "F", "size": 3})))
    with pytest.raises(ColumnsRefused, match="fixed_size_binary"):
        codec.encode(pa.record_batch({"a": pa.array([b"ab"], pa.binary(2))}))


def test_slices_of_batches_and_of_datums_are_their_own() -> None:
    """A record batch or an array of datums may be a slice of a larger one. Only the rows in the
    slice are encoded or decoded, whether by pyruhvro or by columns."""
    schema = record(("a", "string"), ("n", ["null", "int"]), ("b", "boolean"))
    batch = pa.record_batch(
        {
            "a": [str(i) for i in range(40)],
            "n": pa.array([i if i % 3 else None for i in range(40)], pa.int32()),
            "b": [i % 5 == 0 for i in range(40)],
        }
    ).slice(7, 20)
    for codec in (Codec(schema), columnar(schema)):
        datums = codec.encode(batch)
        assert codec.decode(datums.slice(4, 9)).batch.to_pylist() == batch.slice(4, 9).to_pylist()


def test_a_missing_column_takes_its_default() -> None:
    """If the given columns lack a field of the schema, the field's default is encoded."""
    schema = record(("a", "string"))
    schema["fields"] += [
        {"name": "b", "type": ["null", "string"], "default": None},
        {"name": "c", "type": "bytes", "default": "\u00ff"},
        {"name": "d", "type": {"type": "map", "values": "int"}, "default": {"k": 1}},
        {
            "name": "e",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2},
            "default": "\u0001",
        },
    ]
    codec = Codec(schema)
    back = codec.decode(codec.encode(pa.record_batch({"a": ["x"]}))).batch
    assert back.to_pylist() == [
        {"a": "x", "b": None, "c": b"\xff", "d": [("k", 1)], "e": Decimal("0.01")}
    ]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({}, "Field a has no column and no default"),
        ({"a": ["x"], "z": ["y"]}, "no field for column z"),
        ({"a": [1]}, "Column a is int64; its field takes string"),
        ({"a": [1.5]}, "Column a is double"),
    ],
)
def test_columns_that_are_not_the_schemas_are_refused(columns: dict[str, Any], words: str) -> None:
    """If the columns do not match the fields of the schema, the whole batch is refused with one
    error, and not each row with its own error."""
    with pytest.raises(ColumnsRefused, match=words):
        Codec(record(("a", "string"))).encode(pa.record_batch(columns))


@pytest.mark.parametrize(
    ("schema", "error", "words"),
    [
        ("{", SchemaInvalid, "no JSON"),
        (record(("a", ["null", "R"]), ("n" * 999, "null")), SchemaUnsupported, "a contains itself"),
    ],
)
def test_schemas_without_columns_are_refused_in_a_sentence(
    schema: Any, error: type[Exception], words: str
) -> None:
    """A schema that cannot be converted to columns is refused with an error message when its codec
    is created."""
    with pytest.raises(error, match=words):
        Codec(schema)


def test_a_record_without_fields_has_rows() -> None:
    """A record without fields has no columns, but a row for each datum; a datum with a byte is
    refused. A reader with fields gets their defaults, and a reader without fields the rows."""
    nothing, grown = record(), record(("x", "int"))
    grown["fields"][0]["default"] = 7
    datums = pa.array([b"", b"", b"x", b"\x0e"], pa.binary())
    decoded = Codec(nothing).decode(datums)
    assert decoded.batch.num_rows == 2
    assert decoded.good.tolist() == [True, True, False, False]
    assert [index for index, _ in decoded.refused] == [2, 3]
    assert Codec(nothing).encode(decoded.batch).to_pylist() == [b"", b""]
    assert DatumReader(nothing, grown).decode(datums).batch.to_pylist() == [{"x": 7}, {"x": 7}]
    shrunk = DatumReader(grown, nothing).decode(datums)
    assert (shrunk.batch.num_rows, shrunk.good.tolist()) == (2, [False, False, True, True])


def test_columns_that_multiply_are_refused() -> None:
    """A schema that would have too many columns is refused. For example, forty records, each of
    which uses the previous record twice, would give a million million columns."""
    records = [record(("a", "int")) | {"name": "R0"}]
    records += [
        record(("a", f"R{at}"), ("b", f"R{at}")) | {"name": f"R{at + 1}"} for at in range(40)
    ]
    top = record(*((f"f{at}", each) for at, each in enumerate(records))) | {"name": "Top"}
    with pytest.raises(SchemaUnsupported, match="more than 10000 columns"):
        Codec(top)


def test_a_decimal_in_a_large_fixed_costs_nothing() -> None:
    """If a decimal is stored in a fixed type, the codec finds out how many digits fit into the type
    without computing the largest number that fits. So even a schema with a very large fixed type
    costs no time."""
    fixed = {"type": "fixed", "name": "F", "size": 2**31 - 1}
    avro = parse(fixed | {"logicalType": "decimal", "precision": 4})
    assert decimal_type(avro) == pa.decimal128(4, 0)


def test_types_without_namespace_inside_one_are_encoded() -> None:
    """A type without a namespace may be nested in a type of the namespace `n`. Values of the inner
    type are encoded correctly, even if another type in `n` has the same name."""
    plain = {"type": "enum", "name": "X", "namespace": "", "symbols": ["P"]}
    inner = record(("p", plain), ("q", {"type": "enum", "name": "X", "symbols": ["Q"]}))
    codec = Codec(record(("a", inner | {"name": "n.S"}), ("b", "X"), ("c", "n.X")))
    row = {"a": {"p": "P", "q": "Q"}, "b": "P", "c": "Q"}
    batch = pa.RecordBatch.from_pylist([row], schema=codec.arrow_schema)
    assert codec.decode(codec.encode(batch)).batch.to_pylist() == [row]


def test_the_bytes_are_avros() -> None:
    """fastavro can read the datums that the codec wrote, including logical types."""
    schema = record(
        ("t", {"type": "long", "logicalType": "timestamp-millis"}),
        ("d", {"type": "int", "logicalType": "date"}),
        ("p", {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 3}),
    )
    moment = dt.datetime(2011, 6, 12, 1, 2, 3, 4000, tzinfo=dt.UTC)
    row = {"t": moment, "d": dt.date(1969, 12, 31), "p": Decimal("-123456789012345678901.234")}
    batch = pa.RecordBatch.from_pylist([row], schema=Codec(schema).arrow_schema)
    (datum,) = Codec(schema).encode(batch).to_pylist()
    assert fastavro.schemaless_reader(io.BytesIO(datum), fastavro.parse_schema(schema), None) == row


def test_no_rows_are_no_datums() -> None:
    """Encoding and decoding empty input gives empty output of the right types."""
    for avro in ("string", {"type": "array", "items": "long"}):
        codec = Codec(record(("a", avro)))
        none = pa.RecordBatch.from_pylist([], codec.arrow_schema)
        assert codec.encode(none).to_pylist() == []
        decoded = codec.decode(pa.array([], pa.binary()))
        assert decoded.batch.schema == codec.arrow_schema
        assert decoded.batch.num_rows == len(decoded.good) == 0


def test_datums_of_a_large_array_are_read() -> None:
    """The codec also decodes datums in an Arrow array of the type large_binary."""
    codec = Codec(record(("a", "long")))
    decoded = codec.decode(pa.array([b"\x02"], pa.large_binary()))
    assert pc.sum(decoded.batch.column("a")).as_py() == 1


def test_a_bad_default_loses_no_datum() -> None:
    """Values of a schema with an invalid default, which older registries accepted, are still
    encoded and decoded. The default is used, and then refused, only if a column is missing."""
    fields = [{"name": "a", "type": "int"}, {"name": "b", "type": "int", "default": "none"}]
    codec = Codec({"type": "record", "name": "R", "fields": fields})
    batch = pa.record_batch({"a": pa.array([1], pa.int32()), "b": pa.array([2], pa.int32())})
    assert codec.decode(codec.encode(batch)).batch.to_pydict() == batch.to_pydict()
    with pytest.raises(ColumnsRefused, match="Field b has no column and its default is none"):
        codec.encode(batch.drop_columns(["b"]))


@pytest.mark.parametrize("logical", ["time-millis", "time-micros"])
@pytest.mark.parametrize("shape", ["flat", "nullable", "items"])
def test_a_time_outside_of_its_day_is_a_fault_of_its_row(logical: str, shape: str) -> None:
    """A row is refused if its time of day is negative, or is a day or longer, whether the row is
    decoded or encoded, and by whichever path of the codec."""
    kind, day = {"time-millis": ("int", 86_400_000), "time-micros": ("long", 86_400_000_000)}[
        logical
    ]
    time: Any = {"type": kind, "logicalType": logical}
    wrap = {
        "flat": (time, lambda number: number),
        "nullable": (["null", time], lambda number: number),
        "items": ({"type": "array", "items": time}, lambda number: [0, number]),
    }[shape]
    schema = {"type": "record", "name": "R", "fields": [{"name": "t", "type": wrap[0]}]}
    bare = json.loads(json.dumps(schema).replace(f', "logicalType": "{logical}"', ""))
    numbers = [0, -1, day - 1, day]
    plain = Codec(bare)
    rows = pa.array([wrap[1](number) for number in numbers], plain.arrow_schema.field(0).type)
    datums = plain.encode(pa.record_batch([rows], schema=plain.arrow_schema))
    for codec in (Codec(schema), columnar(schema)):
        found = codec.decode(datums)
        assert [index for index, _ in found.refused] == [1, 3]
        assert all(reason == "no time of a day" for _, reason in found.refused)
        found.batch.validate(full=True)
        given = pa.record_batch([rows.cast(codec.arrow_schema.field(0).type)], ["t"])
        written, refused = codec.encode_rows_checked(given)
        assert [index for index, _ in refused] == [1, 3]
        assert written.to_pylist() == [datums[0].as_py(), None, datums[2].as_py(), None]


@pytest.mark.parametrize("logical", ["timestamp-millis", "local-timestamp-millis"])
@pytest.mark.parametrize("shape", ["flat", "nullable", "items", "values", "field", "branch"])
def test_a_time_that_microseconds_cannot_hold_is_not_encoded(logical: str, shape: str) -> None:
    """A row with nanoseconds in a field for milliseconds is not encoded, at any depth, because most
    programs could not read it later. It is decoded, so that people can see it."""
    time: Any = {"type": "long", "logicalType": logical}
    avro, wrap = {
        "flat": (time, lambda number: number),
        "nullable": (["null", time], lambda number: number),
        "items": ({"type": "array", "items": time}, lambda number: [0, number]),
        "values": ({"type": "map", "values": time}, lambda number: [("a", number)]),
        "field": (record(("t", time)), lambda number: {"t": number}),
        "branch": (["string", time], lambda number: {"member0": None, "member1": number}),
    }[shape]
    schema = {"type": "record", "name": "Q", "fields": [{"name": "t", "type": avro}]}
    plain = Codec(json.loads(json.dumps(schema).replace(f', "logicalType": "{logical}"', "")))
    farthest = 9_223_372_036_854_775
    numbers = [
        farthest,
        farthest + 1,
        -farthest,
        -farthest - 1,
        1_795_248_901_000_000_000,
        -(2**63),
    ]
    rows = pa.array([wrap(number) for number in numbers], plain.arrow_schema.field(0).type)
    datums = plain.encode(pa.record_batch([rows], schema=plain.arrow_schema))
    codec = Codec(schema)
    found = codec.decode(datums)
    assert found.good.all()
    written, refused = codec.encode_rows_checked(found.batch)
    assert [index for index, _ in refused] == [1, 3, 4, 5]
    assert all(
        why.endswith("a time that microseconds of 64 bits cannot hold") for _, why in refused
    )
    assert written.to_pylist() == [datums[0].as_py(), None, datums[2].as_py(), None, None, None]


SEVERAL = ["int", "string"]
ARRAY = {"type": "array", "items": SEVERAL}
ITEMS = b"\x04" + b"\x00\x02" + b"\x02\x02x" + b"\x00"
ONE, X = {"member0": 1, "member1": None}, {"member0": None, "member1": "x"}


@pytest.mark.parametrize("times", [1, 100])
@pytest.mark.parametrize(
    ("avro", "datum", "value"),
    [
        (["null", ARRAY, "long"], b"\x02" + ITEMS, {"member0": [ONE, X], "member1": None}),
        (
            [{"type": "map", "values": SEVERAL}, ARRAY],
            b"\x00" + b"\x02\x02k" + b"\x02\x02x" + b"\x00",
            {"member0": [("k", X)], "member1": None},
        ),
        (
            ["long", record(("a", ["null", "long", ARRAY]))],
            b"\x02" + b"\x04" + ITEMS,
            {"member0": None, "member1": {"a": {"member0": None, "member1": [ONE, X]}}},
        ),
    ],
)
def test_a_branch_of_a_union_may_hold_unions(
    avro: Any, datum: bytes, value: Any, times: int
) -> None:
    """A branch of a union (for example an array) may contain further unions, at any depth. Such
    datums are decoded. A datum with an invalid branch is refused."""
    decoded = Codec(avro).decode(pa.array([datum] * times + [b"\x09"], pa.binary()))
    assert decoded.batch.to_pylist() == [{"value": value}] * times
    assert [index for index, _ in decoded.refused] == [times]


@pytest.mark.parametrize("begin", range(0, 600, 100))
def test_a_schema_has_a_codec_or_a_refusal(begin: int) -> None:
    """For any schema and any bytes the codec either works or raises a SkidwayError."""
    for seed in range(begin, begin + 100):
        random = Random(seed)
        avro = Maker(random).schema()
        if random.random() < 0.5:
            values = Maker(random).schema()
            avro = [{"type": "array", "items": avro}, "null", {"type": "map", "values": values}]
        try:
            codec = Codec(avro)
        except SkidwayError:
            continue
        datums = [random.randbytes(random.randint(0, 12)) for _ in range(4)]
        decoded = codec.decode(pa.array(datums, pa.binary()))
        with suppress(SchemaUnsupported):  # recursive values cannot be encoded
            again = codec.decode(codec.encode(decoded.batch))
            assert again.batch.num_rows == decoded.batch.num_rows

"""Values of recursive types become JSON texts. Each text represents the value that Apache's Avro
library decodes. Other fields become ordinary columns."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skidway.schemas.avro_schema import parse
from skidway.schemas.codec import Codec
from skidway.schemas.codec.arrow import SchemaUnsupported, arrow_schema, as_record
from skidway.schemas.codec.json_text import JsonText
from skidway.schemas.codec.rows import Rows
from support.circles import NODE, TEXTS, datum, decoded, nodes, wanted
from support.randomness import share_of

common = settings(
    max_examples=share_of(200), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
LINK = {
    "type": "record",
    "name": "Link",
    "fields": [{"name": "v", "type": "int"}, {"name": "next", "type": ["null", "Link"]}],
}
AROUND = {
    "type": "record",
    "name": "Around",
    "fields": [
        {"name": "links", "type": {"type": "array", "items": LINK}},
        {"name": "by", "type": {"type": "map", "values": ["null", "Link", "string"]}},
        {"name": "last", "type": "string"},
    ],
}


def text(value: Any) -> str | None:
    if value is None:
        return None
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def test_only_the_fields_that_lead_back_are_text() -> None:
    """A field whose type contains the field's own record becomes a column of JSON texts. The column
    is nullable if null is a branch of the type. All other fields become the same columns as in
    other schemas."""
    columns = Codec(NODE).arrow_schema
    assert [each.name for each in columns if columns.field(each.name).type == pa.string()] == [
        "text", "level", *TEXTS,
    ]  # fmt: skip
    assert [columns.field(name).nullable for name in TEXTS] == [True, False, False, True, True]
    assert columns.field("money").type == pa.decimal128(9, 2)
    around = Codec(AROUND).arrow_schema
    link = pa.struct([pa.field("v", pa.int32(), False), pa.field("next", pa.string())])
    assert around.field("links").type == pa.list_(pa.field("item", link, False))


@common
@given(st.lists(nodes(), max_size=4))
def test_texts_hold_what_the_library_decodes(values: list[Any]) -> None:
    """If a schema is recursive, each JSON text represents the value that Apache's Avro library
    decodes, and each other column has the values that the library decodes."""
    datums = [datum(NODE, value) for value in values]
    found = Codec(NODE).decode(pa.array(datums, pa.binary()))
    found.batch.validate(full=True)
    assert not found.refused
    for row, raw in zip(found.batch.to_pylist(), datums, strict=True):
        node = decoded(raw, NODE)
        expected = {**node, **{name: text(wanted(node)[name]) for name in TEXTS}}
        assert repr(row) == repr(expected)


@common
@given(st.lists(nodes(), min_size=1, max_size=3), st.data())
def test_values_one_by_one_and_columns_agree(values: list[Any], data: st.DataObject) -> None:
    """Whether the datums of a recursive schema are read one by one or by columns, the result has
    the same rows, and the same datums are refused. This holds even if bytes of the datums are
    damaged."""
    datums = [datum(NODE, value) for value in values]
    for at, raw in enumerate(datums):
        place, byte = data.draw(st.integers(0, len(raw) - 1)), data.draw(st.integers(0, 255))
        datums[at] = raw[:place] + bytes([byte]) + raw[place + 1 :]
    found = Codec(NODE).decode(pa.array(datums, pa.binary()))
    rows, faults = Rows(as_record(parse(NODE)), arrow_schema(parse(NODE))).decode(datums)
    assert faults == dict(found.refused)
    for column, other in zip(found.batch.columns, rows, strict=True):
        assert repr(column.to_pylist()) == repr(other.to_pylist())


@common
@given(nodes())
def test_a_text_is_the_datum_again(value: Any) -> None:
    """The JSON text of a recursive value represents the whole value: a datum with the same value
    can be made from the text."""
    form, raw = JsonText(parse(NODE)), datum(NODE, value)
    found, end = form.read(b"--" + raw + b"--", 2, 2 + len(raw) + 2)
    assert end == 2 + len(raw)
    assert form.read(form.datum(found), 0, len(form.datum(found)))[0] == found
    assert repr(decoded(form.datum(found), NODE)) == repr(decoded(raw, NODE))


@pytest.mark.parametrize("count", [1, 2, 100])
def test_texts_inside_of_arrays_and_maps(count: int) -> None:
    """If the items of an array or a map are recursive values, each item becomes a JSON text. If one
    of these values is invalid, only its datum is refused."""
    link = {"v": 1, "next": {"v": 2, "next": None}}
    by = {"a": None, "b": ("Link", link), "c": ("string", "x")}
    good = datum(AROUND, {"links": [link, link["next"]] * 3, "by": by, "last": "end"})
    bad = good.replace(b"\x02\x02\x04\x00", b"\x02\x07\x04\x00", 1)
    found = Codec(AROUND).decode(pa.array([good, bad] * count, pa.binary()))
    assert found.good.tolist() == [True, False] * count
    link = {"v": 1, "next": '{"v":2,"next":null}'}
    row = {
        "links": [link, {"v": 2, "next": None}] * 3,
        "by": [("a", None), ("b", {"member0": link, "member1": None}),
               ("c", {"member0": None, "member1": "x"})],
        "last": "end",
    }  # fmt: skip
    assert found.batch.to_pylist() == [row] * count


def test_texts_are_not_encoded() -> None:
    """The codec of a recursive schema can only decode. The error about encoding names the recursive
    field."""
    codec = Codec(NODE)
    with pytest.raises(SchemaUnsupported, match="Field next contains itself: its values are only"):
        codec.encode(pa.RecordBatch.from_pylist([], codec.arrow_schema))

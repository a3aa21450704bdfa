"""Tests the types of columns: Spark can read them, and they stay the same when a schema changes
compatibly."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

from skidway.loader.reading.column_types import (
    column_schema,
    converted,
    directory_schema,
    reverted,
)
from skidway.schemas.codec import Codec
from support.avro import batches, raw
from support.randomness import share_of


def type_of(avro: Any) -> pa.DataType:
    """Returns the Arrow type of the column for a field of the Avro type."""
    schema = {"type": "record", "name": "R", "fields": [{"name": "f", "type": avro}]}
    return column_schema(Codec(json.dumps(schema)).arrow_schema).field("f").type


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("int", "long"),
        ("float", "double"),
        ("int", ["null", "long"]),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}),
        ({"type": "map", "values": "float"}, {"type": "map", "values": "double"}),
        (["int", "string"], ["long", "string"]),
        (
            {"type": "enum", "name": "E", "symbols": ["A"]},
            {"type": "enum", "name": "E", "symbols": ["A", "B"]},
        ),
        ({"type": "int", "logicalType": "time-millis"}, "long"),
        ({"type": "long", "logicalType": "timestamp-nanos"}, "long"),
    ],
)
def test_a_compatible_change_does_not_change_the_type(before: Any, after: Any) -> None:
    """If the registry accepts a change from one Avro type to another, the column has the same type
    in files of both schemas."""
    assert type_of(before) == type_of(after)


@pytest.mark.parametrize(
    ("avro", "arrow"),
    [
        ({"type": "long", "logicalType": "time-micros"}, pa.int64()),
        ({"type": "long", "logicalType": "local-timestamp-nanos"}, pa.int64()),
        ({"type": "long", "logicalType": "timestamp-millis"}, pa.timestamp("ms", "UTC")),
        ({"type": "bytes", "logicalType": "decimal", "precision": 39}, pa.string()),
        ({"type": "bytes", "logicalType": "decimal", "precision": 38}, pa.decimal128(38, 0)),
        ("null", pa.string()),
        ({"type": "record", "name": "E", "fields": []}, pa.struct([("_", pa.string())])),
        ({"type": "fixed", "name": "F", "size": 0}, pa.binary()),
        ({"type": "fixed", "name": "F", "size": 1}, pa.binary()),
    ],
)
def test_what_spark_cannot_read_gets_a_type_that_it_can_read(avro: Any, arrow: pa.DataType) -> None:
    """Every Avro type becomes a column type that Parquet can store and Spark can read without an
    extension. Otherwise Spark would refuse the whole file."""
    assert type_of(avro) == arrow


def test_in_a_directory_every_field_may_be_null() -> None:
    """In the schema of an output directory every field is nullable, at any depth, because files
    that were written with an older schema lack later fields."""
    inner = pa.field("x", pa.int64(), nullable=False)
    struct = pa.struct([inner])
    held = pa.schema(
        [
            pa.field("plain", pa.dictionary(pa.int32(), pa.string()), nullable=False),
            pa.field("list", pa.list_(pa.field("item", struct, nullable=False)), nullable=False),
            pa.field("map", pa.map_(pa.string(), pa.field("value", struct, nullable=False))),
        ]
    )
    loose = pa.struct([("x", pa.int64())])
    assert directory_schema(held) == pa.schema(
        [
            ("plain", pa.string()),
            ("list", pa.list_(loose)),
            ("map", pa.map_(pa.string(), loose)),
        ]
    )


@given(batches(flat=False))
@settings(max_examples=share_of(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_value_survives_the_conversion_and_the_file(
    made: tuple[dict[str, Any], pa.RecordBatch],
) -> None:
    """For every Avro type, a column that was converted, written to Parquet and read again has the
    same values as before. If the column that was read is converted back, it has the original type
    and the original values."""
    _, batch = made
    schema = column_schema(batch.schema)
    columns = [
        converted(column, field.type) for column, field in zip(batch.columns, schema, strict=True)
    ]
    table = pa.Table.from_arrays(columns, schema=schema)
    table.validate(full=True)
    file = io.BytesIO()
    pq.write_table(table, file, store_schema=False)
    read = pq.read_table(file)
    for name in batch.schema.names:
        before = raw(batch.column(name)).to_pylist()
        after = [value for part in read.column(name).chunks for value in raw(part).to_pylist()]
        assert len(before) == len(after)
        assert all(map(is_same, before, after))
        back = reverted(read.column(name).combine_chunks(), batch.schema.field(name).type)
        back.validate(full=True)
        assert back.type == batch.schema.field(name).type
        assert all(map(is_same, before, raw(back).to_pylist()))


def is_same(before: Any, after: Any) -> bool:
    """Returns whether the value `after`, which was read from a column, equals the value `before`,
    which the codec decoded. In a column a large decimal is a string, and an empty record has the
    field `_`."""
    match before, after:
        case Decimal(), str():
            return before == Decimal(after)
        case dict(), dict():
            if not before:
                return after in ({}, {"_": None})
            return before.keys() == after.keys() and all(
                is_same(before[name], after[name]) for name in before
            )
        case ((list() | tuple()), (list() | tuple())):
            return len(before) == len(after) and all(map(is_same, before, after))
    return repr(before) == repr(after)

"""Compares Skidway's codec, from Arrow columns to Avro datums and back, with fastavro and avro.

The figures are records per CPU second. Every side (Skidway's codec, fastavro, avro) does the same
job in one process on one thread: it encodes a record batch to an array of datums, and decodes the
array again. The batch has ROWS rows, or AVRO_ROWS rows for avro. Skidway's side is
`skidway.schemas.codec.Codec`, with all of its checks. The code of the peers is simple, and as fast
as these libraries allow:

    fastavro   encode: to_pylist(), schemaless_writer per row (its C extension) into one buffer;
               decode: schemaless_reader per datum, then conversion of the rows to a batch of the
               same types
    avro       Apache's own library in pure Python: DatumWriter and DatumReader per row; the other
               code is the same as for fastavro

All sides produce the same bytes and the same columns; the benchmark asserts this before it
measures. The benchmark measures several shapes. A shape is a schema with a batch of records of this
schema. No shape has dates or times, because the peers would spend most of their time on creating
Python objects for them. The peers make only their built-in checks.

The shapes `narrow`, `wide` and `nullable` have only fields with numbers and strings, so Skidway's
codec encodes them with the Rust library pyruhvro (the path `pyruhvro`). The codec encodes the other
shapes, and decodes all shapes, in whole columns with numpy and Arrow (the path `columns`). If the
codec cannot decode datums in whole columns (mostly because they are damaged), it decodes them one
at a time. The last row of the table measures this slow path.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import avro.io
import avro.schema
import fastavro
import numpy as np
import pyarrow as pa

from bench.measure import Row, Table, in_turn
from bench.scale import scaled
from skidway.schemas.avro_schema import parse
from skidway.schemas.codec import Codec
from skidway.schemas.codec.arrow import as_record
from skidway.schemas.codec.metrics import COLUMNS
from skidway.schemas.codec.rows import Rows

ROWS = scaled(16_384, 1_024)
AVRO_ROWS = 512
"""The number of rows for Apache's avro. It is smaller than ROWS (for Skidway's codec and fastavro),
because avro is a hundred times slower."""
ROUNDS = scaled(5, 1)
SECONDS_MIN = scaled(0.1, 0.0)

Shape = tuple[dict[str, Any], pa.RecordBatch]


def run() -> Table:
    """Measures encoding and decoding of each shape (a schema with a batch of records); the compared
    codecs take turns."""
    table = Table(f"codec: columns to Avro and back, {ROWS:,} rows a batch, one core")
    for name, (schema, batch) in shapes().items():
        codec = Codec(schema)
        datums = codec.encode(batch)
        assert codec.decode(datums).batch.equals(batch), name
        for what, sides in (
            ("encode", encoders(codec, schema, batch, datums)),
            ("decode", decoders(codec, schema, batch, datums)),
        ):
            found = in_turn(sides, ROUNDS)
            for peer in ("fastavro", "avro"):
                row = f"{name}, {what}" + (", beside avro" if peer == "avro" else "")
                note = f"path {codec.path if what == 'encode' else COLUMNS}"
                table.add(Row(row, "records/s", found["skidway"], found[peer], peer, note))
    table.add(one_by_one(*shapes()["nested"]))
    return table


def one_by_one(schema: dict[str, Any], batch: pa.RecordBatch) -> Row:
    """Measures how fast the codec decodes datums that it cannot decode in whole columns: it decodes
    each datum, encodes it again and compares the bytes.
    """
    codec = Codec(schema)
    datums, plain = codec.encode(batch), fastavro.parse_schema(schema)
    rows = Rows(as_record(parse(schema)), codec.arrow_schema)
    sides = {
        "skidway": lambda: rate(lambda: rows.decode(datums.to_pylist()), ROWS),
        "fastavro": lambda: rate(lambda: from_fastavro(plain, datums, codec.arrow_schema), ROWS),
    }
    found = in_turn(sides, ROUNDS)
    name, note = "nested, decode, a datum at a time", "path fastavro"
    return Row(name, "records/s", found["skidway"], found["fastavro"], "fastavro", note)


def encoders(
    codec: Codec, schema: Any, batch: pa.RecordBatch, datums: pa.BinaryArray
) -> dict[str, Callable[[], float]]:
    """For each compared codec, a function that measures encoding of the batch, and returns the
    records per CPU second."""
    plain = fastavro.parse_schema(schema)
    apache = avro.schema.parse(json.dumps(schema))
    few = batch.slice(0, AVRO_ROWS)
    assert with_fastavro(plain, batch).equals(datums)
    assert with_avro(apache, few).equals(datums.slice(0, AVRO_ROWS))
    return {
        "skidway": lambda: rate(lambda: codec.encode(batch), ROWS),
        "fastavro": lambda: rate(lambda: with_fastavro(plain, batch), ROWS),
        "avro": lambda: rate(lambda: with_avro(apache, few), AVRO_ROWS),
    }


def decoders(
    codec: Codec, schema: Any, batch: pa.RecordBatch, datums: pa.BinaryArray
) -> dict[str, Callable[[], float]]:
    """For each compared codec, a function that measures decoding of the datums, and returns the
    records per CPU second."""
    plain = fastavro.parse_schema(schema)
    apache = avro.schema.parse(json.dumps(schema))
    arrow, few = codec.arrow_schema, datums.slice(0, AVRO_ROWS)
    assert from_fastavro(plain, datums, arrow).equals(batch)
    assert from_avro(apache, few, arrow).equals(batch.slice(0, AVRO_ROWS))
    return {
        "skidway": lambda: rate(lambda: codec.decode(datums), ROWS),
        "fastavro": lambda: rate(lambda: from_fastavro(plain, datums, arrow), ROWS),
        "avro": lambda: rate(lambda: from_avro(apache, few, arrow), AVRO_ROWS),
    }


def rate(job: Callable[[], object], rows: int) -> float:
    """Rows per CPU second of `job`, which is repeated until it has run for `SECONDS_MIN`."""
    times, begin = 0, time.process_time()
    while True:
        job()
        times += 1
        taken = time.process_time() - begin
        if taken > SECONDS_MIN:
            return times * rows / taken


def with_fastavro(schema: Any, batch: pa.RecordBatch) -> pa.BinaryArray:
    buffer, offsets = io.BytesIO(), [0]
    for row in rows_of(batch):
        fastavro.schemaless_writer(buffer, schema, row)
        offsets.append(buffer.tell())
    return datums_of(buffer, offsets)


def with_avro(schema: Any, batch: pa.RecordBatch) -> pa.BinaryArray:
    buffer, offsets, writer = io.BytesIO(), [0], avro.io.DatumWriter(schema)
    encoder = avro.io.BinaryEncoder(buffer)
    for row in rows_of(batch):
        writer.write(row, encoder)
        offsets.append(buffer.tell())
    return datums_of(buffer, offsets)


def datums_of(buffer: io.BytesIO, offsets: list[int]) -> pa.BinaryArray:
    parts = [None, pa.py_buffer(np.array(offsets, np.int32)), pa.py_buffer(buffer.getvalue())]
    return pa.BinaryArray.from_buffers(pa.binary(), len(offsets) - 1, parts)


def rows_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = batch.to_pylist()
    if "labels" in batch.schema.names:  # Arrow returns a map as a list of pairs
        for row in rows:
            row["labels"] = dict(row["labels"])
    return rows


def from_fastavro(schema: Any, datums: pa.BinaryArray, arrow: pa.Schema) -> pa.RecordBatch:
    read = fastavro.schemaless_reader
    rows = [read(io.BytesIO(datum), schema, None) for datum in datums.to_pylist()]
    return batch_of(rows, arrow)


def from_avro(schema: Any, datums: pa.BinaryArray, arrow: pa.Schema) -> pa.RecordBatch:
    reader = avro.io.DatumReader(schema)
    rows = [reader.read(avro.io.BinaryDecoder(io.BytesIO(datum))) for datum in datums.to_pylist()]
    return batch_of(rows, arrow)


def batch_of(rows: list[Any], arrow: pa.Schema) -> pa.RecordBatch:
    if "labels" in arrow.names:
        for row in rows:
            row["labels"] = list(row["labels"].items())
    return pa.RecordBatch.from_pylist(rows, arrow)


def shapes() -> dict[str, Shape]:
    """The shapes by name (a shape is a schema with a batch of records). Their schemas and records
    are similar to those of logs. The first three have only fields with numbers and strings."""
    return {
        "narrow": shape(
            {
                "level": ("string", [("INFO", "WARN")[i % 2] for i in range(ROWS)]),
                "message": ("string", messages()),
                "bytes": ("long", [i * 31 for i in range(ROWS)]),
            }
        ),
        "wide": shape(
            {f"s{at}": ("string", [f"value {i * at}" for i in range(ROWS)]) for at in range(20)}
            | {f"n{at}": ("long", [i * at * 977 for i in range(ROWS)]) for at in range(20)}
            | {f"d{at}": ("double", [i / (at + 1) for i in range(ROWS)]) for at in range(10)}
        ),
        "nullable": shape(
            {
                "message": ("string", messages()),
                "status": (["null", "int"], [200 if i % 3 else None for i in range(ROWS)]),
                "user": (["null", "string"], [f"u{i}" if i % 2 else None for i in range(ROWS)]),
            }
        ),
        "bytes, fixed, decimal": shape(
            {
                "body": ("bytes", [b"\x00\xff" * (i % 40) for i in range(ROWS)]),
                "id": (fixed(), [i.to_bytes(16, "big") for i in range(ROWS)]),
                "price": (DECIMAL, [Decimal(i * 7) / 100 for i in range(ROWS)]),
                "message": ("string", messages()),
            }
        ),
        "nested": shape(
            {
                "message": ("string", messages()),
                "request": (["null", REQUEST], [request(i) for i in range(ROWS)]),
                "tags": (array("string"), [[f"t{k}" for k in range(i % 5)] for i in range(ROWS)]),
                "times": (array("long"), [list(range(i, i + i % 8)) for i in range(ROWS)]),
                "labels": (LABELS, [[("host", f"h{i % 50}"), ("rack", "r1")] for i in range(ROWS)]),
            }
        ),
    }


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 2}
LABELS = {"type": "map", "values": "string"}
REQUEST = {
    "type": "record",
    "name": "Request",
    "fields": [
        {"name": "path", "type": "string"},
        {"name": "status", "type": "int"},
        {"name": "agent", "type": ["null", "string"]},
    ],
}


def fixed() -> dict[str, Any]:
    return {"type": "fixed", "name": "Id", "size": 16}


def array(items: str) -> dict[str, Any]:
    return {"type": "array", "items": items}


def request(i: int) -> dict[str, Any] | None:
    agent = "curl/8.5.0" if i % 2 else None
    return {"path": f"/a/{i}", "status": 200 + i % 5, "agent": agent} if i % 4 else None


def messages() -> list[str]:
    return [f"Receiving block blk_{i * 7919} src: /10.0.{i % 250}.{i % 199}" for i in range(ROWS)]


def shape(columns: dict[str, tuple[Any, list[Any]]]) -> Shape:
    """Returns the shape (a schema with a batch of records) that has these columns. columns: by
    name, the Avro type and the values of a column."""
    fields = [{"name": name, "type": avro} for name, (avro, _) in columns.items()]
    schema = {"type": "record", "name": "Log", "fields": fields}
    arrow = Codec(schema).arrow_schema
    values = [pa.array(each, arrow.field(name).type) for name, (_, each) in columns.items()]
    return schema, pa.RecordBatch.from_arrays(values, schema=arrow)

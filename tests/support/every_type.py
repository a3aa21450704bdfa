"""An output of the loader with a column of each type, for tests of the programs that read outputs.

`written` makes loads in memory, and writes their files into a directory. `EXPECTED` has the rows
that a reader must find. `plain` brings the rows of an Arrow table into the same form: times are
microseconds since 1970, dates are days since 1970, bytes are hexadecimal digits, decimals are
texts, and maps and structs are dicts.
"""

from __future__ import annotations

import io
import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
from pyarrow import types

from skidway.schemas.codec.times import MILLIS_MAX
from support.loading import Record
from support.memory_loading import MemoryLoading

TIMES_MS = (
    1_769_844_600_123,
    -62_135_596_800_000,  # 0001-01-01, which programs write for "no time"
    -62_167_219_200_000,  # the year 0
    -12_219_292_800_000 - 86_400_000 * 5,  # 1582-10-10, a day that Spark 2's calendar lacks
    -2_208_988_800_001,  # the last millisecond before 1900
    253_402_300_799_999,  # the last millisecond before the year 10000
    MILLIS_MAX,
    -MILLIS_MAX,
)
DAYS_MAX = 2_932_896
"""The day 9999-12-31, the last one that every reader knows."""
DAY, HOURS = "2026-01-31", (7, 18)
HOURS_MS = (1_769_842_800_000, 1_769_882_400_000)


def logical(kind: str, name: str, **more: int) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


INNER = {"type": "record", "name": "In", "fields": [
    {"name": "x", "type": "int"}, {"name": "t", "type": logical("long", "timestamp-millis")},
    {"name": "y", "type": ["null", "string"]}]}  # fmt: skip
TYPES: dict[str, Any] = {
    "n": "int",
    "l": "long",
    "f": "float",
    "b": "boolean",
    "s": "string",
    "optional": ["null", "string"],
    "bytes": "bytes",
    "fixed": {"type": "fixed", "name": "F4", "size": 4},
    "long_fixed": {"type": "fixed", "name": "F65", "size": 65},
    "level": {"type": "enum", "name": "E", "symbols": ["INFO", "WARN"]},
    "price": logical("bytes", "decimal", precision=8, scale=2),
    "huge": logical("bytes", "decimal", precision=50, scale=0),
    "day": logical("int", "date"),
    "time_ms": logical("int", "time-millis"),
    "time_us": logical("long", "time-micros"),
    "at_ms": logical("long", "timestamp-millis"),
    "at_us": logical("long", "timestamp-micros"),
    "at_ns": logical("long", "timestamp-nanos"),
    "local_ms": logical("long", "local-timestamp-millis"),
    "local_us": logical("long", "local-timestamp-micros"),
    "id": logical("string", "uuid"),
    "numbers": {"type": "array", "items": "long"},
    "moments": {"type": "array", "items": logical("long", "timestamp-millis")},
    "labels": {"type": "map", "values": "string"},
    "inner": INNER,
    "optional_inner": ["null", "In"],
    "choice": ["null", "string", "long"],
    "Upper": "string",
}
SCHEMA = {
    "type": "record",
    "name": "Log",
    "fields": [{"name": name, "type": kind} for name, kind in TYPES.items()],
}


def _row(number: int, ms: int) -> dict[str, Any]:
    """Returns row `number`, as Avro has it, with numbers in place of times."""
    days = min(max(ms // 86_400_000, -DAYS_MAX), DAYS_MAX)
    inner = {"x": number, "t": ms, "y": None if number % 2 else "y"}
    return {
        "n": number, "l": 2**40 + number, "f": 1.5, "b": number % 2 == 0, "s": f"line {number}",
        "optional": None if number % 2 else "x", "bytes": b"\xff\x00", "fixed": b"abcd",
        "long_fixed": b"f" * 65, "level": "WARN", "price": b"\x04\xd2", "huge": b"\x04\xd2",
        "day": days, "time_ms": 3_600_000, "time_us": 3_600_000_000, "at_ms": ms,
        "at_us": ms * 1000, "at_ns": number, "local_ms": ms, "local_us": ms * 1000,
        "id": "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "numbers": [1, 2], "moments": [ms],
        "labels": {"k": "v"}, "inner": inner, "optional_inner": None if number % 2 else inner,
        "choice": number if number % 2 else "text", "Upper": "U",
    }  # fmt: skip


def _expected(number: int, ms: int) -> dict[str, Any]:
    """Returns row `number` in the form of `plain`."""
    inner = {"x": number, "t": ms * 1000, "y": None if number % 2 else "y"}
    return _row(number, ms) | {
        "bytes": "FF00", "fixed": "61626364", "long_fixed": "66" * 65, "price": "12.34",
        "huge": "1234", "at_ms": ms * 1000, "local_ms": ms * 1000, "moments": [ms * 1000],
        "inner": inner, "optional_inner": None if number % 2 else inner,
        "choice": {"member0": None if number % 2 else "text", "member1": number if number % 2
        else None},
        "_timestamp": (HOURS_MS[number % 2] + number) * 1000, "_kafka_offset": number,
        "_partition": 0, "_host": "host", "dt": DAY, "hour": HOURS[number % 2],
    }  # fmt: skip


EXPECTED = [_expected(number, ms) for number, ms in enumerate(TIMES_MS)]
"""The rows, sorted by `n`. Rows with even numbers are in the first hour, others in the second. The
records also had a value with nanoseconds in `at_ms`, which is no row."""


def written(folder: Path) -> Path:
    """Writes the output into `folder`. Returns the directory of the topic."""
    loading = MemoryLoading()
    loading.versions = [json.dumps(SCHEMA)]
    rows = [_row(number, ms) for number, ms in enumerate(TIMES_MS)]
    rows.append(rows[0] | {"at_ms": 1_795_248_901_000_000_000})
    loading.append(*(
        Record(first=10 * number, time_ms=HOURS_MS[number % 2] + number, value=_value(row))
        for number, row in enumerate(rows)
    ))  # fmt: skip
    loading.run()
    for path, data in loading.store.snapshot:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder / "logs"


def plain(table: pa.Table) -> list[dict[str, Any]]:
    """Returns the rows of the table that have columns of EXPECTED, sorted by `n`."""
    table = table.select([name for name in EXPECTED[0] if name in table.column_names])
    columns = {name: _values(table.column(name).combine_chunks()) for name in table.column_names}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    for row in rows:
        row["dt"], row["hour"] = _day(row["dt"]), int(row["hour"])
    return sorted(rows, key=lambda row: row["n"])


def _day(found: str | int) -> str:
    """Returns the value of the directory `dt`, which some readers turn into a date."""
    return found if isinstance(found, str) else str(date(1970, 1, 1) + timedelta(days=found))


def _values(column: pa.Array) -> list[Any]:
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks)
    kind = column.type
    if types.is_dictionary(kind):
        return _values(column.dictionary_decode())
    if types.is_timestamp(kind):
        return list(column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).to_pylist())
    if types.is_date(kind):
        return list(column.cast(pa.int32()).to_pylist())
    if types.is_struct(kind):
        parts = {
            field.name: _values(part) for field, part in zip(kind, column.flatten(), strict=True)
        }
        made = [dict(zip(parts, row, strict=True)) for row in zip(*parts.values(), strict=True)]
        return [row if there else None for row, there in zip(made, column.is_valid(), strict=True)]
    if types.is_list(kind) or types.is_large_list(kind):
        return [None if not each.is_valid else _values(each.values) for each in column]
    if types.is_map(kind):
        return [dict(each.as_py()) for each in column]
    return [_text(value) for value in column.to_pylist()]


def _text(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex().upper()
    return value if isinstance(value, str | int | float | None) else str(value)


def _value(row: dict[str, Any]) -> bytes:
    schema = json.loads(json.dumps(SCHEMA), object_hook=_without_logical_type)
    sink = io.BytesIO()
    fastavro.schemaless_writer(sink, fastavro.parse_schema(schema), row)
    return b"\0\0\0\0\1" + sink.getvalue()


def _without_logical_type(part: dict[str, Any]) -> dict[str, Any]:
    return {key: each for key, each in part.items() if key != "logicalType"}

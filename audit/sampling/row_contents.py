"""Reads those rows of one Parquet file that were made from lines in the wanted spans (byte ranges
of log files), and computes their content sums.

The module skips a row group if the statistics of `_agent`, `_file_id` and `_offset` show that it
has no such row. In the other row groups, the module first reads only the columns with the row's
origin and offset. It reads the other columns only if the origins and offsets show such a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skidway.audit.counts.content import content_sums
from skidway.audit.output.column_types import column_type, reverted
from skidway.audit.sampling.wanted import Found, Span
from skidway.audit.tracing.row_search import BUFFER_BYTES, PLACE, bounds_of, int64_of, is_within
from skidway.kafka.columns import Bools, Int64s
from skidway.schemas.codec import Codec, ColumnsRefused

_MISFITS: Final = (pa.ArrowException, ColumnsRefused, ValueError, OverflowError)
"""The errors that are raised if a row has a value that does not fit the schema of the row's
record.
"""

Codecs = Mapping[Span, Codec | str]
"""For each span (a range of bytes in a log file), the codec of its records, or the reason why no
codec is known."""


def rows_in(file: IO[bytes], path: str, codecs: Codecs) -> Iterator[tuple[Span, Found]]:
    """Finds the rows of a Parquet file that were made from lines in one of the spans (ranges of
    bytes in log files). Yields each row, and the span in which the row's line begins.
    """
    parquet = pq.ParquetFile(file, buffer_size=BUFFER_BYTES, pre_buffer=False)
    before = 0
    for number in range(parquet.num_row_groups):
        group = parquet.metadata.row_group(number)
        spans = [each for each in codecs if _may_have(group, each)]
        if spans:
            places = parquet.read_row_group(number, columns=list(PLACE), use_threads=False)
            columns = {name: int64_of(places.column(name)) for name in PLACE}
            chosen = {each: np.flatnonzero(_is_in(columns, each)) for each in spans}
            if any(map(len, chosen.values())):
                table = parquet.read_row_group(number, use_threads=False)
                for span, rows in chosen.items():
                    taken = table.take(pa.array(rows))
                    places_of = [f"{path} row {before + row}" for row in rows.tolist()]
                    for each in _found(taken, places_of, codecs[span]):
                        yield span, each
        before += group.num_rows


def obstacle(schema: pa.Schema, codec: Codec) -> str:
    """Returns the reason why the codec cannot make datums from rows with the columns of `schema`;
    an empty text if it can.
    """
    for field in codec.arrow_schema:
        at = schema.get_field_index(field.name)
        if at < 0:
            return f"the row has no column {field.name}, which its record has as a field"
        has = schema.field(at).type
        if _form(has) != _form(column_type(field.type)):
            return f"the column {field.name} is {has} now, and its record has {field.type}"
    return ""


def row_sums(table: pa.Table, codec: Codec) -> list[bytes]:
    """Returns the content sum of each row (the checksum of its content). If a row has a value that
    does not fit the schema of its record, the row's sum is empty (no bytes).
    """
    times = int64_of(table.column("_timestamp"))
    lengths = int64_of(table.column("_length"))
    try:
        return content_sums(times, lengths, _datums(table, codec))
    except _MISFITS:
        if table.num_rows <= 1:
            return [b""] * table.num_rows
        return [x for at in range(table.num_rows) for x in row_sums(table.slice(at, 1), codec)]


def row_at(file: IO[bytes], number: int, codec: Codec) -> dict[str, Any] | None:
    """Returns the values of row `number` of the file, converted to the types of the row's record.
    Returns None if they cannot be converted, or if the file has no such row.
    """
    parquet = pq.ParquetFile(file, buffer_size=BUFFER_BYTES, pre_buffer=False)
    for at in range(parquet.num_row_groups):
        count = parquet.metadata.row_group(at).num_rows
        if number < count:
            row = parquet.read_row_group(at, use_threads=False).slice(number, 1)
            try:
                return dict(_columns(row, codec).to_pylist()[0])
            except _MISFITS:
                return None
        number -= count
    return None


def _datums(table: pa.Table, codec: Codec) -> pa.BinaryArray:
    return codec.encode_rows_checked(_columns(table, codec))[0]


def _columns(table: pa.Table, codec: Codec) -> pa.RecordBatch:
    """Returns the columns of `table` that belong to the fields of the codec's schema, converted to
    the codec's types."""
    columns = [
        reverted(_whole(table.column(field.name)), field.type) for field in codec.arrow_schema
    ]
    schema = pa.schema([field.with_nullable(True) for field in codec.arrow_schema])
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _found(table: pa.Table, places: Sequence[str], codec: Codec | str) -> Iterator[Found]:
    is_reject = "timestamp_ms" in table.column_names
    columns = {name: int64_of(table.column(name)).tolist() for name in PLACE}
    times = int64_of(table.column("timestamp_ms" if is_reject else "_timestamp")).tolist()
    why = codec if isinstance(codec, str) else obstacle(table.schema, codec)
    hosts, paths = _texts(table, "_host"), _texts(table, "_file")
    sums: Sequence[bytes | None] = [None] * table.num_rows
    if not is_reject and not why and isinstance(codec, Codec):
        sums = row_sums(table, codec)
    for at, place in enumerate(places):
        yield Found(
            columns["_offset"][at],
            columns["_length"][at],
            times[at],
            columns["_partition"][at],
            columns["_kafka_offset"][at],
            place,
            sums[at],
            "" if is_reject else why,
            is_reject,
            host=hosts[at],
            path=paths[at],
        )


def _texts(table: pa.Table, name: str) -> Sequence[str | None]:
    """Returns the values of a text column, with "" for each null. If the table does not have the
    column, returns None for each row.
    """
    if name not in table.column_names:
        return [None] * table.num_rows
    return [each or "" for each in table.column(name).to_pylist()]


def _may_have(group: Any, span: Span) -> bool:
    bounds = bounds_of(group)
    least, greatest = bounds.get("_offset", (span.begin, span.begin))
    return (
        is_within(span.agent, bounds.get("_agent"))
        and is_within(span.file, bounds.get("_file_id"))
        and least < span.end
        and span.begin <= greatest
    )


def _is_in(columns: Mapping[str, Int64s], span: Span) -> Bools:
    is_of_file = (columns["_agent"] == span.agent) & (columns["_file_id"] == span.file)
    first = columns["_offset"]
    return np.asarray(is_of_file & (span.begin <= first) & (first < span.end))


def _form(arrow: pa.DataType) -> object:
    """Returns a value that represents an Arrow type: if two types count as the same type, their
    values are equal. The value leaves out the names of list items, and whether a field or an item
    is nullable, because Parquet files do not keep these.
    """
    if pa.types.is_dictionary(arrow):
        return _form(arrow.value_type)
    if pa.types.is_struct(arrow):
        return tuple((each.name, _form(each.type)) for each in arrow)
    if pa.types.is_map(arrow):
        return "map", _form(arrow.key_type), _form(arrow.item_type)
    if pa.types.is_list(arrow):
        return "list", _form(arrow.value_type)
    return arrow


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks != 1 else column.chunk(0)

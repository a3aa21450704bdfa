"""Finds rows in one Parquet file of the loader, by a text or by points of files.

The search skips row groups whose statistics show that they have no matching row. It reads a row
group's columns with text only if the group has rows of the wanted agents and event times. The
search looks for a text only in columns whose type is text or bytes, and not inside structs, lists
and maps.

Callers pass a file as a Python object. If one of Arrow's threads released its reference to such an
object while the interpreter ends, the process would abort. So row groups are read without these
threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from skidway.audit.tracing.lines import LineRow, Point
from skidway.kafka.columns import Bools, Int64s
from skidway.kafka.origin import Origin

PLACE: Final = ("_agent", "_file_id", "_offset", "_length", "_partition", "_kafka_offset")
OWN: Final = frozenset({*PLACE, "_host", "_file", "_timestamp"})
BUFFER_BYTES: Final = 1 << 20
LENGTH_MAX: Final = 1 << 32
"""Every line has fewer bytes than this. So a line that contains a given byte of a file begins less
than this many bytes before the given byte."""


@dataclass(frozen=True, slots=True)
class RowQuestion:
    """The rows to find: rows of `agents` with event times in [since_ms, until_ms) that have the
    text, rows whose lines include one of the points (bytes of log files), and rows of `records`.
    records: partition and offset of each record. The agents and the event times limit only the
    search for the text."""

    agents: frozenset[int] = frozenset()
    text: str | None = None
    points: tuple[Point, ...] = ()
    records: frozenset[tuple[int, int]] = frozenset()
    since_ms: int | None = None
    until_ms: int | None = None


def rows_in(file: IO[bytes], path: str, load: int, question: RowQuestion) -> Iterator[LineRow]:
    """Yields the rows of a Parquet file that match the question."""
    parquet = pq.ParquetFile(file, buffer_size=BUFFER_BYTES, pre_buffer=False)
    names = parquet.schema_arrow.names
    time_column = "timestamp_ms" if "timestamp_ms" in names else "_timestamp"
    for number in range(parquet.num_row_groups):
        if not _may_have(parquet.metadata.row_group(number), names, question):
            continue
        places = parquet.read_row_group(number, columns=[*PLACE, time_column], use_threads=False)
        columns = {name: _int64_of(places.column(name)) for name in (*PLACE, time_column)}
        chosen = _has_point(columns, question)
        texts: list[str | None] = [None] * places.num_rows
        if question.text is not None:
            is_meant = _is_meant(columns, columns[time_column], question)
            if is_meant.any():
                chosen |= _search_texts(parquet, number, question.text, is_meant, texts)
        for row in np.flatnonzero(chosen).tolist():
            yield _row(columns, time_column, row, path, load, texts[row])


def _bounds_of(group: Any) -> dict[str, tuple[int, int]]:
    """Returns, for each column in PLACE, the least and the greatest value in a row group, according
    to the statistics in the file. Leaves out columns without statistics.
    """
    bounds = {}
    for at in range(group.num_columns):
        column = group.column(at)
        known = column.statistics
        if column.path_in_schema in PLACE and known is not None and known.has_min_max:
            bounds[column.path_in_schema] = (known.min, known.max)
    return bounds


def _is_within(value: int, bounds: tuple[int, int] | None) -> bool:
    """Whether a row group may have the value. bounds: the column's least and greatest value in the
    row group; None if there are no statistics."""
    return bounds is None or bounds[0] <= value <= bounds[1]


def _int64_of(column: pa.ChunkedArray) -> Int64s:
    """The values of a column of integers or times, as an array of 64-bit integers."""
    found = column.cast(pa.int64()).to_numpy()
    return np.asarray(found, np.int64)


def _may_have(group: Any, names: Iterable[str], question: RowQuestion) -> bool:
    """Returns whether a row group may have a row that matches the question, as far as the
    statistics of the group show.
    """
    bounds = _bounds_of(group)
    agents = bounds.get("_agent")
    if question.text is not None and any(_is_within(x, agents) for x in question.agents):
        return True
    if any(
        _is_within(partition, bounds.get("_partition"))
        and _is_within(offset, bounds.get("_kafka_offset"))
        for partition, offset in question.records
    ):
        return True
    return any(
        _is_within(point.agent, agents)
        and _is_within(point.file, bounds.get("_file_id"))
        and _may_reach(point.byte, bounds.get("_offset"))
        for point in question.points
    )


def _may_reach(byte: int, bounds: tuple[int, int] | None) -> bool:
    return bounds is None or bounds[0] <= byte < bounds[1] + LENGTH_MAX


def _has_point(columns: dict[str, Int64s], question: RowQuestion) -> Bools:
    chosen = np.zeros(len(columns["_agent"]), np.bool_)
    end = columns["_offset"] + np.maximum(columns["_length"], 1)
    for agent, file, byte in question.points:
        is_of_file = (columns["_agent"] == agent) & (columns["_file_id"] == file)
        chosen |= is_of_file & (columns["_offset"] <= byte) & (byte < end)
    for partition, offset in question.records:
        is_there = columns["_partition"] == partition
        chosen |= is_there & (columns["_kafka_offset"] == offset)
    return chosen


def _is_meant(columns: dict[str, Int64s], times: Int64s, question: RowQuestion) -> Bools:
    chosen = np.isin(columns["_agent"], list(question.agents))
    if question.since_ms is not None:
        chosen &= times >= question.since_ms
    if question.until_ms is not None:
        chosen &= times < question.until_ms
    return np.asarray(chosen)


def _search_texts(
    parquet: pq.ParquetFile, number: int, text: str, is_meant: Bools, texts: list[str | None]
) -> Bools:
    """Returns, for each row of row group `number`, whether `is_meant` is true for the row and one
    of its values contains the text. Stores the first such value of each row in `texts`."""
    chosen = np.zeros(len(is_meant), np.bool_)
    rows = np.flatnonzero(is_meant)
    taken = pa.array(rows)
    for name in _text_columns(parquet.schema_arrow):
        table = parquet.read_row_group(number, columns=[name], use_threads=False)
        column = table.column(0).combine_chunks()
        values = column.take(taken)
        pattern = text if _is_string(values.type) else text.encode()
        found = pc.fill_null(pc.match_substring(values, pattern), False)
        for at in np.flatnonzero(found.to_numpy(zero_copy_only=False)).tolist():
            row = int(rows[at])
            chosen[row] = True
            texts[row] = texts[row] or _shown(values[at].as_py())
    return chosen


def _text_columns(schema: pa.Schema) -> list[str]:
    return [
        x.name for x in schema if x.name not in OWN and (_is_string(x.type) or _is_bytes(x.type))
    ]


def _is_string(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _shown(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def _row(
    columns: dict[str, Int64s], time_column: str, row: int, path: str, load: int, text: str | None
) -> LineRow:
    origin = Origin(*(int(columns[name][row]) for name in PLACE[:4]))
    partition, offset = int(columns["_partition"][row]), int(columns["_kafka_offset"][row])
    is_reject = time_column == "timestamp_ms"
    time_ms = int(columns[time_column][row])
    return LineRow(path, load, partition, offset, time_ms, origin, is_reject, text)

"""Tests how rows of Parquet files are converted back to the datums of their records, for every
schema. The content sum of a record or a row is a hash of its event time, length and datum."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from skidway.audit.counts.content import content_sums
from skidway.audit.output.column_types import column_schema, converted
from skidway.audit.sampling.row_contents import obstacle, row_at, rows_in
from skidway.audit.sampling.wanted import Found, Span
from skidway.schemas.codec import Codec
from support.avro import batches
from support.promises import promise
from support.randomness import share_of

AGENT, FILE, LENGTH = 7, 3, 10
OWN = (("_agent", AGENT), ("_file_id", FILE))
SPAN = Span(AGENT, FILE, 0, 1 << 40)
PROPERTY = settings(
    max_examples=share_of(60), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def output_file(batch: pa.RecordBatch, **others: pa.Array) -> io.BytesIO:
    """Returns a file of rows as the loader writes it, with the batch's columns and the columns that
    the loader adds. `others` replaces some of the columns that the loader adds."""
    count, schema = batch.num_rows, column_schema(batch.schema)
    columns = [
        converted(column, field.type) for column, field in zip(batch.columns, schema, strict=True)
    ]
    table = pa.Table.from_arrays(columns, schema=schema)
    own = {
        "_agent": pa.array(np.full(count, AGENT)),
        "_file_id": pa.array(np.full(count, FILE)),
        "_offset": pa.array(np.arange(count) * LENGTH),
        "_length": pa.array(np.full(count, LENGTH)),
        "_timestamp": pa.array(np.arange(count)).cast(pa.timestamp("ms", "UTC")),
        "_partition": pa.array(np.zeros(count, np.int32)),
        "_kafka_offset": pa.array(np.arange(count)),
    }
    for name, column in (own | others).items():
        table = table.append_column(name, column)
    file = io.BytesIO()
    pq.write_table(table, file, store_schema=False, row_group_size=2)
    file.seek(0)
    return file


def found_in(file: io.BytesIO, codec: Codec | str, span: Span = SPAN) -> list[Found]:
    return [row for _, row in rows_in(file, "a.parquet", {span: codec})]


def sums_of(batch: pa.RecordBatch, codec: Codec) -> list[bytes]:
    """Returns the content sums (hashes) of the batch's records, computed as the agent computes
    them."""
    count = batch.num_rows
    datums = codec.encode(batch)
    return content_sums(np.arange(count, dtype=np.int64), np.full(count, LENGTH), datums)


@promise("6 content")
@given(batches(flat=False))
@PROPERTY
def test_a_row_has_the_sum_of_its_record(made: tuple[dict[str, Any], pa.RecordBatch]) -> None:
    """The values of a row were converted to the types of columns, written to Parquet, read again
    and converted back. The row still has the same content sum (a hash of event time, length and
    datum) as its record, whatever the schema and the values are."""
    schema, batch = made
    codec = Codec(json.dumps(schema))
    found = found_in(output_file(batch), codec)
    assert [row.content for row in found] == sums_of(batch, codec)
    assert [row.place for row in found] == [f"a.parquet row {at}" for at in range(len(found))]
    assert all(not row.obstacle for row in found)


@promise("6 content")
@given(batches(flat=False), st.data())
@PROPERTY
def test_any_changed_value_changes_the_sum_of_its_row_only(
    made: tuple[dict[str, Any], pa.RecordBatch], data: st.DataObject
) -> None:
    """If one field of a row gets another value, the row gets another content sum (a hash). The sums
    of all other rows stay the same."""
    schema, batch = made
    assume(batch.num_rows > 1)
    row = data.draw(st.integers(0, batch.num_rows - 1), "row")
    other = data.draw(st.integers(0, batch.num_rows - 1), "row with the new value")
    at = data.draw(st.integers(0, batch.num_columns - 1), "field")
    order = np.arange(batch.num_rows)
    order[row] = other
    column = batch.column(at).take(pa.array(order))
    changed = batch.set_column(at, batch.schema.field(at), column)
    codec = Codec(json.dumps(schema))
    before, now = sums_of(batch, codec), [x.content for x in found_in(output_file(changed), codec)]
    datums = codec.encode(batch), codec.encode(changed)
    is_other = datums[0][row].as_py() != datums[1][row].as_py()
    assert [x != y for x, y in zip(before, now, strict=True)] == [
        is_other and each == row for each in range(batch.num_rows)
    ]


TEXTS = {"type": "record", "name": "R", "fields": [{"name": "text", "type": "string"}]}
CODEC = Codec(json.dumps(TEXTS))


def texts(*values: str) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values)], CODEC.arrow_schema)


@pytest.mark.parametrize("column", ["_timestamp", "_length"])
def test_time_and_length_of_a_row_count(column: str) -> None:
    """If the event time or the length of a row differs from that of its record, the row's content
    sum (a hash) differs from the record's sum."""
    kind = pa.timestamp("ms", "UTC") if column == "_timestamp" else pa.int64()
    other = {column: pa.array([77, 78]).cast(kind)}
    found = [x.content for x in found_in(output_file(texts("a", "b"), **other), CODEC)]
    assert not {*found} & {*sums_of(texts("a", "b"), CODEC)}


def test_only_rows_of_the_span_are_read() -> None:
    """Only rows of the requested span (an agent, a file and a byte range) are read."""
    file = output_file(texts("a", "b", "c", "d", "e"))
    chosen = found_in(file, CODEC, Span(AGENT, FILE, LENGTH, 3 * LENGTH))
    assert [x.first for x in chosen] == [LENGTH, 2 * LENGTH]
    for span in (Span(AGENT + 1, FILE, 0, 99), Span(AGENT, FILE + 1, 0, 99)):
        assert not found_in(file, CODEC, span)
    for column in ("_agent", "_file_id"):  # one row group has rows of two agents or files
        mixed = output_file(texts("a", "b"), **{column: pa.array([3, 7])})
        whole = Span(*(7 if name == column else own for name, own in OWN), 0, 99)
        assert [x.first for x in found_in(mixed, CODEC, whole)] == [LENGTH]


def test_host_and_path_of_a_row_are_read() -> None:
    """Host and path of a row are read with its content, even if the file stores these columns as
    dictionaries. A null is read as an empty text. If the file lacks the columns, host and path are
    unknown."""
    hosts = pa.array(["web1", None]).dictionary_encode()
    file = output_file(texts("a", "b"), _host=hosts, _file=pa.array([None, "/log/b"]))
    assert [(x.host, x.path) for x in found_in(file, CODEC)] == [("web1", ""), ("", "/log/b")]
    without = found_in(output_file(texts("a")), CODEC)
    assert [(x.host, x.path) for x in without] == [(None, None)]


def test_what_cannot_be_turned_back_is_no_difference() -> None:
    """If the record's schema has a field for which the file has no column, or a column of another
    type, the file's rows are not compared, and the reason names the column."""
    renamed = texts("a").rename_columns(["other"])
    (found,) = found_in(output_file(renamed), CODEC)
    assert found.content is None
    assert "no column text" in found.obstacle
    assert "text is int64" in obstacle(pa.schema([("text", pa.int64())]), CODEC)
    (unknown,) = found_in(output_file(texts("a")), "the schema 5 cannot be used")
    assert (unknown.content, unknown.obstacle) == (None, "the schema 5 cannot be used")


def test_a_column_of_a_later_schema_does_not_matter() -> None:
    """If a row has columns of a later schema, they do not matter: the row and its record are
    compared by the fields of the record's schema."""
    file = output_file(texts("a"), later=pa.array([None], pa.string()))
    assert [x.content for x in found_in(file, CODEC)] == sums_of(texts("a"), CODEC)


def test_a_value_that_no_record_can_have_differs() -> None:
    """If a value was changed and does not fit the record's schema, its row is a difference, and the
    other rows are compared as usual."""
    numbers = {"type": "record", "name": "N", "fields": [{"name": "n", "type": "int"}]}
    codec = Codec(json.dumps(numbers))
    batch = pa.record_batch([pa.array([1, 2, 3], pa.int32())], codec.arrow_schema)
    table = pq.read_table(output_file(batch))
    wide = table.set_column(0, "n", pa.array([1, 1 << 40, 3]))
    file = io.BytesIO()
    pq.write_table(wide, file)
    file.seek(0)
    found = [x.content for x in found_in(file, codec)]
    right = sums_of(batch, codec)
    assert found == [right[0], b"", right[2]]
    assert row_at(file, 1, codec) is None
    assert row_at(file, 2, codec) == {"n": 3}

"""Files are combined in groups. Each group is rewritten as one file with the same records, or stays
as it is."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import time
from decimal import Decimal
from typing import Any

import google_crc32c
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skidway.audit.counts import checksum
from skidway.audit.output import StoreFailed
from skidway.kafka.columns import Origins
from skidway.loader.reading.column_types import column_schema, converted
from skidway.loader.reading.columns import OWN, PLACE, Records, file_schema, own_columns
from skidway.loader.rewriting import group_rewrite
from skidway.loader.rewriting.group_rewrite import GroupRewrite, RewriteJob, Rewritten
from skidway.loader.rewriting.groups import Group
from skidway.loader.state.layout import LoadId
from skidway.loader.state.live_file import LiveFile
from skidway.loader.state.manifest import ROWS
from skidway.loader.state.parquet_file import write_table
from skidway.schemas.codec import Codec
from support.memory_store import MemoryStore

FOLDER = "t/dt=2026-01-01/hour=00"
LOAD = LoadId("t", 9, "a" * 32)


def schema(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": list(fields)})


INT = schema({"name": "a", "type": "int"})
DOUBLE = schema({"name": "b", "aliases": ["a"], "type": "double"})
CHOICE = schema({"name": "a", "type": ["string", "long"]})


class Folder:
    """A directory with files of rows, which the tests rewrite."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.files: list[LiveFile] = []

    def add(self, values: list[Any] | pa.Array, text: str = INT, schema_id: int = 1) -> LiveFile:
        """Adds a file of a further load to the directory, and returns the file. `values` has the
        value of the field `a` in each row. No two rows in the directory have the same origin."""
        load, count = len(self.files) + 1, len(values)
        codec = Codec(text).arrow_schema
        columns = column_schema(codec)
        offsets = np.arange(count) + 1000 * load
        origins = Origins(np.full(count, 7), np.full(count, 1), offsets * 10, np.full(count, 10))
        records = Records(0, offsets, np.full(count, 5), origins)
        places = pa.array(["x"] * count).cast(PLACE)
        column = values if isinstance(values, pa.Array) else pa.array(values, codec.field(0).type)
        made = converted(column, columns.field(0).type)
        table = pa.table([made, *own_columns(records, places, places)], file_schema(columns))
        path = f"{FOLDER}/part-{load}-0-0.parquet"
        file = replace(write_table(self.store, table, ROWS, path, path), staged="")
        self.files.append(LiveFile(file, load, schema_id))
        return self.files[-1]

    def carry(self, name: str, values: pa.Array | None = None) -> None:
        """Adds a column to the newest file, as if an earlier rewriting had kept the values of a
        dropped field in this column."""
        newest = self.files[-1]
        data = with_column(self.store.read(newest.file.path) or b"", name, values)
        self.store.put(newest.file.path, data)
        file = replace(newest.file, crc32c=google_crc32c.value(data), length=len(data))
        self.files[-1] = replace(newest, file=file)

    def rewritten(self, reader: str | None = None, **texts: str) -> Rewritten:
        job = RewriteJob(LOAD, "zstd", reader, {int(at[1:]): text for at, text in texts.items()})
        return GroupRewrite(job, Group(FOLDER, tuple(self.files)), 3, self.store, 0).run()

    def rows(self, result: Rewritten) -> list[dict[str, Any]]:
        assert result.made is not None, result.kept
        data = self.store.read(result.made.staged)
        assert data is not None
        return list(pq.read_table(io.BytesIO(data)).to_pylist())


@pytest.fixture
def folder() -> Folder:
    return Folder()


def test_files_become_one_file_with_the_same_records(folder: Folder) -> None:
    """If a group of small files is rewritten as one file, the new file has the rows of all these
    files in the same order. Its checksum is the sum of the old files' checksums."""
    folder.add([1, 2])
    folder.add([3])
    result = folder.rewritten()
    rows = folder.rows(result)
    assert [(row["a"], row["_kafka_offset"]) for row in rows] == [(1, 1000), (2, 1001), (3, 2000)]
    assert {row["_host"] for row in rows} == {"x"}
    made, files = result.made, [each.file for each in folder.files]
    assert made is not None
    assert (made.path, made.rows) == (f"{FOLDER}/rows-9-3.parquet", 3)
    assert made.checksum == checksum.signed(sum(each.checksum for each in files))
    before = pq.read_schema(io.BytesIO(folder.store.read(files[0].path) or b""))
    assert pq.read_schema(io.BytesIO(folder.store.read(made.staged) or b"")) == before


def test_memory_is_bounded_by_row_groups(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """When files are rewritten, rows are written as soon as there are enough for a Parquet row
    group, so that a task never has all rows of its group of files in memory."""
    monkeypatch.setattr(group_rewrite, "ROW_GROUP_ROWS", 2)
    for values in ([1], [2], [3], [4], [5]):
        folder.add(values)
    result = folder.rewritten()
    assert [row["a"] for row in folder.rows(result)] == [1, 2, 3, 4, 5]
    assert result.made is not None
    data = folder.store.read(result.made.staged)
    assert pq.ParquetFile(io.BytesIO(data or b"")).num_row_groups == 3


def test_rows_of_an_older_schema_get_the_newest_columns(folder: Folder) -> None:
    """When rows of an older schema are rewritten, renamed fields keep their values, and numbers get
    the type of the newest schema."""
    folder.add([1, 2])
    result = folder.rewritten(DOUBLE, _1=INT)
    assert [(row["b"], row["_offset"]) for row in folder.rows(result)] == [
        (1.0, 10000), (2.0, 10010),
    ]  # fmt: skip


def test_a_value_becomes_a_member_of_a_union(folder: Folder) -> None:
    """If a field's type was changed to a union of several types, its old values are written to the
    column of the member that Avro's schema resolution chooses."""
    folder.add([5])
    result = folder.rewritten(CHOICE, _1=INT)
    assert [row["a"] for row in folder.rows(result)] == [{"member0": None, "member1": 5}]


def test_columns_that_the_newest_schema_lacks_keep_their_values(folder: Folder) -> None:
    """A field that was dropped keeps its values in a column of its own name, through any number of
    rewritings."""
    text = schema({"name": "a", "type": "int"}, {"name": "old", "type": "string", "default": "x"})
    folder.add([1], INT)
    folder.carry("old")
    assert [row["old"] for row in folder.rows(folder.rewritten(DOUBLE, _1=text))] == ["value"]
    assert [row["old"] for row in folder.rows(folder.rewritten(DOUBLE, _1=INT))] == ["value"]


def test_a_column_is_never_dropped_for_another_of_its_name(folder: Folder) -> None:
    """A file stays as it is if it has the column of a dropped field, and the newest schema has
    another field of that name, because the new file could not have both. Spark does not distinguish
    upper and lower case."""
    path = folder.add([1], INT).file.path
    folder.carry("old")
    clash = schema(
        {"name": "a", "type": "double"}, {"name": "Old", "type": ["null", "long"], "default": None}
    )
    kept = folder.rewritten(clash, _1=INT).kept
    assert kept == f"{path}: it has another column old than the newest schema"


def test_carried_records_with_other_fields_become_one_file(folder: Folder) -> None:
    """If the columns of a dropped record have different fields in two files, a compaction gives the
    new file all of these fields. Each may be null."""
    x = pa.array([{"x": 1}], pa.struct([pa.field("x", pa.int64(), nullable=False)]))
    fields = [pa.field(name, pa.int64(), nullable=False) for name in "xy"]
    for values in (x, pa.array([{"x": 2, "y": 3}], pa.struct(fields))):
        folder.add([1])
        folder.carry("old", values)
    rows = folder.rows(folder.rewritten())
    assert [row["old"] for row in rows] == [{"x": 1, "y": None}, {"x": 2, "y": 3}]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ({"type": "fixed", "name": "F", "size": 4}, b"abcd"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 0}, Decimal(5)),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "A"),
        ({"type": "map", "values": "string"}, [("k", "v")]),
        ({"type": "int", "logicalType": "time-millis"}, time(1)),
        ("boolean", True),
    ],
)
@pytest.mark.parametrize("nulls", [0, 1])
def test_required_fields_of_records_that_may_be_missing(
    folder: Folder, kind: Any, value: Any, nulls: int
) -> None:
    """A record that is null in a row, or in all rows, may have a required field of any type."""
    values = [None] if nulls else [None, {"x": value}, None]
    fixed = {"name": "x", "type": kind}
    inner = {"type": "record", "name": "N", "fields": [fixed]}
    old = schema({"name": "a", "type": ["null", inner]})
    new = schema({"name": "b", "aliases": ["a"], "type": ["null", inner]})
    folder.add(values, old)
    rows = folder.rows(folder.rewritten(new, _1=old))
    assert [row["b"] is None for row in rows] == [each is None for each in values]


def test_files_with_other_carried_columns_become_one_file(folder: Folder) -> None:
    """Files may also have columns for fields that only earlier schemas had. A compaction (a
    rewriting of small files) keeps these columns in the new file. Rows from files that lack such a
    column have null in it."""
    folder.add([1])
    folder.add([2])
    folder.carry("old")
    folder.add([3])
    folder.carry("older")
    result = folder.rewritten()
    assert [(row["a"], row["old"], row["older"]) for row in folder.rows(result)] == [
        (1, None, None), (2, "value", None), (3, None, "value"),
    ]  # fmt: skip
    data = folder.store.read(result.made.staged if result.made else "") or b""
    names = pq.read_schema(io.BytesIO(data)).names
    assert names == ["a", "old", "older", *OWN.names]


def test_records_with_required_fields_may_be_missing(folder: Folder) -> None:
    """If a nested record is null in a row, it stays null in the new file, although the fields
    inside the record are not nullable."""
    inner = {"type": "record", "name": "N", "fields": [{"name": "x", "type": "int"}]}
    folder.add([1])
    optional = {"name": "r", "type": ["null", inner], "default": None}
    new = schema({"name": "a", "type": "double"}, optional)
    assert [row["r"] for row in folder.rows(folder.rewritten(new, _1=INT))] == [None]
    folder.add([2])
    stored = pa.struct([pa.field("x", pa.int64(), nullable=False)])
    folder.carry("r@1", pa.array([{"x": 7}], stored))
    assert [row["r@1"] for row in folder.rows(folder.rewritten())] == [None, {"x": 7}]


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        ({"type": "array", "items": "long"}, {"type": "array", "items": "double"}, [(1 << 53) + 1]),
        ({"type": "map", "values": "int"}, {"type": "map", "values": "float"}, [("k", 16777217)]),
        ("long", ["double", "string"], (1 << 53) + 1),
        ("long", ["double", "string"], (1 << 63) - 1),
        ("double", "long", -0.0),
    ],
)
def test_a_number_is_never_rounded(folder: Folder, old: Any, new: Any, value: Any) -> None:
    """A field's type may change from a number to a floating-point type. If a value has more digits
    than this type can store, the value's file stays as it is. This holds for nested fields, too."""
    text = schema({"name": "a", "type": old})
    folder.add([value], text)
    kept = folder.rewritten(schema({"name": "a", "type": new}), _1=text).kept
    assert "1 of its rows do not fit" in kept


def test_longs_that_become_times_stay_if_readers_cannot_hold_one(folder: Folder) -> None:
    """If a field that was a long becomes a timestamp in milliseconds, a file with nanoseconds in
    this field stays as it is. A file with milliseconds is rewritten."""
    old = schema({"name": "a", "type": "long"})
    new = schema({"name": "a", "type": {"type": "long", "logicalType": "timestamp-millis"}})
    folder.add([1_795_248_901_000], old)
    assert folder.rewritten(new, _1=old).made is not None
    folder.add([1_795_248_901_000_000_000], old)
    assert "1 of its rows do not fit" in folder.rewritten(new, _1=old).kept


@pytest.mark.parametrize("error", [StoreFailed("no room"), MemoryError()])
def test_a_file_whose_writing_fails_is_given_up(folder: Folder, error: Exception) -> None:
    """If the new file of a group of small files cannot be written, the loader leaves it unfinished,
    and the error is raised to the caller, who may try again."""
    folder.add([1])
    abandoned: list[str] = []

    class Full(MemoryStore):
        def create(self, path: str) -> Any:
            writer = super().create(path)

            def fail(_data: object) -> int:
                raise error

            writer.write = fail  # type: ignore[assignment, method-assign]
            writer.abandon = lambda: abandoned.append(path)  # type: ignore[method-assign]
            return writer

    folder.store = Full(folder.store.snapshot)
    with pytest.raises(type(error)):
        folder.rewritten()
    assert abandoned == [f"{LOAD.staging}/rows-3-0.parquet"]


def with_column(data: bytes, name: str, values: pa.Array | None) -> bytes:
    """Returns the Parquet file `data` with one more column before the loader's own columns. Without
    `values` this is a column of strings."""
    table = pq.read_table(io.BytesIO(data))
    more = pa.array(["value"] * table.num_rows) if values is None else values
    written = io.BytesIO()
    pq.write_table(table.add_column(1, name, more), written, store_schema=False)
    return written.getvalue()


def test_a_value_that_python_cannot_hold_stays_in_its_file(folder: Folder) -> None:
    """A timestamp beyond the year 9999, inside a nested record, is too large for Python. A file
    with such a value stays as it is, and the rewriting continues."""
    texts = [
        schema({"name": "a", "type": {"type": "record", "name": name, "fields": [
            {"name": "t", "type": {"type": "long", "logicalType": f"timestamp-{unit}"}}]}})
        for name, unit in (("N", "millis"), ("M", "micros"))
    ]  # fmt: skip
    moment = pa.array([1 << 55]).cast(pa.timestamp("ms", "UTC"))
    column = pa.StructArray.from_arrays([moment], fields=list(Codec(texts[0]).arrow_schema[0].type))
    path = folder.add(column, texts[0]).file.path
    assert folder.rewritten(texts[1], _1=texts[0]).kept.startswith(path)


def test_a_damaged_file_stays(folder: Folder) -> None:
    """A group of small files stays as it is if one of the files is damaged, because a rewritten
    file would hide the damage."""
    folder.add([1])
    path = folder.add([2]).file.path
    data = bytearray(folder.store.read(path) or b"")
    data[-20] ^= 1
    folder.store.put(path, bytes(data))
    result = folder.rewritten()
    assert (result.made, result.kept) == (
        None, f"{path} has other bytes than those that were committed",
    )  # fmt: skip


def test_a_file_that_is_gone_is_named(folder: Folder) -> None:
    """If a file of a group of small files is gone, the group is not rewritten, and the result names
    the file."""
    folder.add([1])
    path = folder.add([2]).file.path
    folder.store.delete(path)
    result = folder.rewritten()
    assert (result.made, result.kept) == (None, f"{path} is gone")


def test_rows_that_do_not_fit_stay(folder: Folder) -> None:
    """If a row does not fit the newest schema, the row's group of files stays as it is."""
    path = folder.add([None, 1], schema({"name": "a", "type": ["null", "int"]})).file.path
    texts = {"_1": schema({"name": "a", "type": ["null", "int"]})}
    assert folder.rewritten(DOUBLE, **texts).kept.startswith(f"{path}: 1 of its rows")


def test_a_schema_that_the_registry_lost(folder: Folder) -> None:
    """If the registry no longer has the schema of a file, the file stays as it is."""
    path = folder.add([1]).file.path
    kept = folder.rewritten(DOUBLE).kept
    assert kept == f"the registry does not have the schema of {path}"


def test_files_with_other_rows_than_were_committed_stay(folder: Folder) -> None:
    """If a group of small files has another number of rows, or another checksum, than the manifests
    say, the files stay as they are."""
    for change in ({"rows": 3}, {"checksum": 5}):
        folder.files.clear()
        each = folder.add([1])
        folder.files[0] = replace(each, file=replace(each.file, **change))
        assert "were committed" in folder.rewritten().kept

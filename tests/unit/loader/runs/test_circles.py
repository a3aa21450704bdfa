"""Tests loads of a topic with a recursive schema (a record that contains itself), before and after
a schema change."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest

from skidway.kafka import columns
from skidway.kafka.columns import Origins
from skidway.loader.reading.decoder import UNDECODABLE
from skidway.schemas.wire import add_prefix
from support.loading import SCHEMA_ID, START_MS
from support.memory_loading import AGENT, DATA, LENGTH, MemoryLoading
from support.promises import promise

LINE = {"name": "line", "type": "string"}
V = {"name": "v", "type": "int"}


def node(*fields: dict[str, Any], next: Any = ("null", "Node")) -> dict[str, Any]:
    every = [*fields, {"name": "next", "type": list(next), "default": None}]
    return {"type": "record", "name": "Node", "fields": every}


def schema(tree: Any) -> str:
    """Returns a schema in which the field `tree` has the given type or is null. Lines of the older
    schema lack this field."""
    tree = {"name": "tree", "type": ["null", tree], "default": None}
    return json.dumps({"type": "record", "name": "Log", "fields": [LINE, tree]})


def write(loading: MemoryLoading, *trees: Any) -> None:
    """Appends one line to the topic for each of the given values. Each line has the newest schema,
    and has the value in its field `tree`."""
    avro = fastavro.parse_schema(json.loads(loading.versions[-1]))
    datums = []
    for at, tree in enumerate(trees, loading.lines):
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, avro, {"line": f"line {at}", "tree": tree})
        datums.append(stream.getvalue())
    append(loading, datums)


def append(loading: MemoryLoading, datums: list[bytes]) -> None:
    values = add_prefix(SCHEMA_ID + len(loading.versions) - 1, pa.array(datums, pa.binary()))
    numbers = np.arange(loading.lines, loading.lines + len(datums), dtype=np.int64)
    full = np.ones(len(datums), np.int64)
    origins = Origins(full * AGENT, full, numbers * LENGTH, full * LENGTH)
    times = np.full(len(datums), START_MS, np.int64)
    loading.cluster.log(DATA).append(columns.encode(values, times, origins=origins))
    loading.lines += len(datums)


def trees(loading: MemoryLoading) -> list[Any]:
    return [row.get("tree") for row in loading.rows()]


def chain(*values: int) -> dict[str, Any] | None:
    return {"v": values[0], "next": chain(*values[1:])} if values else None


@pytest.fixture
def loading() -> MemoryLoading:
    """A topic and its output. Two lines are loaded. Two more lines, in a recursive schema (a record
    that contains itself), are not loaded yet."""
    made = MemoryLoading()
    made.write(2)
    made.run()
    made.versions.append(schema(node(V)))
    write(made, None, chain(1, 2, 3))
    return made


BEFORE = [None, None, None, {"v": 1, "next": '{"v":2,"next":{"v":3,"next":null}}'}]


@promise("5 columns")
def test_a_schema_that_contains_itself_is_loaded(loading: MemoryLoading) -> None:
    """In a recursive schema (a record that contains itself), the field that contains the record
    again is loaded as JSON text. All other fields are loaded as columns. Older files stay as they
    are."""
    outcome = loading.run()
    assert (outcome.rows, outcome.rejects, outcome.problems) == (2, 0, [])
    assert trees(loading) == BEFORE
    assert not loading.manifest(2).removed


def test_a_value_that_is_nested_too_deeply_is_a_reject(loading: MemoryLoading) -> None:
    """A record is rejected as undecodable if a field that becomes JSON text is nested more than 256
    levels deep. With 256 levels the record becomes a row, and so do the records around a reject."""
    for depth in (256, 257):
        append(loading, [b"\x02x\x02" + b"\x02\x02" * depth + b"\x02\0"])
    write(loading, chain(4))
    outcome = loading.run()
    assert (outcome.rows, outcome.rejects, outcome.reasons) == (4, 1, {UNDECODABLE: 1})
    deepest = '{"v":1,"next":' * 256 + "null" + "}" * 256
    assert trees(loading) == [*BEFORE, {"v": 1, "next": deepest}, {"v": 4, "next": None}]


CHANGES: list[tuple[Any, Any]] = [
    (node({"name": "number", "type": "double", "aliases": ["v"]}),
     {"number": 1.0, "next": '{"number":2.0,"next":{"number":3.0,"next":null}}'}),
    (node({"name": "w", "type": "int", "default": 7}, V),
     {"w": 7, "v": 1, "next": '{"w":7,"v":2,"next":{"w":7,"v":3,"next":null}}'}),
    (node(V, next=["null", "string", "Node"]),
     {"v": 1, "next": '{"member1":{"v":2,"next":{"member1":{"v":3,"next":null}}}}'}),
]  # fmt: skip


@promise("5 columns")
@pytest.mark.parametrize(("newest", "expected"), CHANGES)
def test_texts_follow_the_newest_schema(loading: MemoryLoading, newest: Any, expected: Any) -> None:
    """A recursive field is loaded as JSON text. If the same value has another text, or none, in a
    newer schema version, older files are rewritten. Lines of the older version that are loaded
    later get the same text as the rewritten rows."""
    loading.run()
    late = chain(1, 2, 3)
    write(loading, late)  # written in the older schema, and loaded with the newer schema
    loading.versions.append(schema(newest))
    outcome = loading.run()
    assert (outcome.rows, outcome.rejects, outcome.problems) == (1, 0, [])
    assert trees(loading)[3:] == [expected, expected]


def test_texts_that_stay_the_same_are_not_rewritten(loading: MemoryLoading) -> None:
    """A recursive field is loaded as JSON text. If the values have the same texts in a newer schema
    version, older files stay as they are."""
    loading.run()
    loading.versions.append(schema(node({"name": "v", "type": "long"})))
    write(loading, chain(2**40, 5))
    outcome = loading.run()
    assert outcome.problems == []
    assert trees(loading) == [*BEFORE, {"v": 2**40, "next": '{"v":5,"next":null}'}]
    assert not loading.manifest(3).removed


def test_a_column_becomes_a_text(loading: MemoryLoading) -> None:
    """If a field was a plain column before, and a newer schema version makes it recursive, older
    files are rewritten."""
    end = {"type": "record", "name": "End", "fields": [V]}
    loading.versions[1:] = [schema(node(V, next=["null", end]))]
    loading.run()
    again = node(V)
    again["aliases"] = ["End"]
    loading.versions.append(schema(again))
    write(loading, chain(7, 8))
    assert loading.run().problems == []
    assert trees(loading)[-1] == {"v": 7, "next": '{"v":8,"next":null}'}


def test_files_whose_texts_have_no_place_are_named(loading: MemoryLoading) -> None:
    """If values of an older file do not fit the newest schema, the file stays as it is. The result
    of each run names the file."""
    loading.run()
    loading.versions.append(schema(node(V, next=["null", "string"])))
    for _ in range(2):
        write(loading, None)
        (problem,) = loading.run().problems
        assert "1 of its rows do not fit the newest schema" in str(problem)
    assert trees(loading) == [*BEFORE, None, None]


def test_a_text_takes_the_name_of_a_dropped_string(loading: MemoryLoading) -> None:
    """A string field was dropped, and a later schema has a recursive field of the same name.
    Recursive fields are stored as JSON text. The old strings are not JSON. They stay in their
    column, and the run names the field and the versions."""
    text = {"name": "tree", "type": ["null", "string"], "default": None}
    renamed = {"name": "text", "type": "string", "aliases": ["line"]}
    more = {"name": "tree", "type": ["null", "Log"], "default": None}
    loading = MemoryLoading()
    said = []
    for fields, line in (
        ([LINE, text], b"\x02a\x02\x02b"),
        ([renamed], b"\x02a"),
        ([renamed, more], b"\x02a\x02\x02b\0"),
    ):
        loading.versions.append(json.dumps({"type": "record", "name": "Log", "fields": fields}))
        append(loading, [line])
        said.append([str(each) for each in loading.run().problems])
    assert [row["text"] for row in loading.rows()] == ["a"] * 3
    assert trees(loading) == ["b", None, '{"text":"b","tree":null}']
    assert said[:2] == [[], []]
    assert "version 4: tree is another column there" in said[2][0]

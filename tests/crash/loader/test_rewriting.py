"""Loads rewrite files for the columns of a new schema, and compactions combine
small files."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from skidway.audit.output import OutputConnection
from skidway.audit.recount import manifests, recount
from skidway.loader.store import StoreConnection
from support.hdfs import Hdfs
from support.processes import eventually
from support.promises import promise
from tests.crash.loader.conftest import (
    ON_SPARK,
    Cluster,
    Loading,
    SharedSpark,
    fill,
    identities,
    lines,
    spark_rows,
)

pytestmark = pytest.mark.java


def field(name: str, avro: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": avro, **more}


def record(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "Log", "fields": list(fields)}


def place(name: str, **more: Any) -> dict[str, Any]:
    inner = {"type": "record", "name": "Place", "fields": [field(name, "string", **more)]}
    return field("place", inner)


VERSIONS = [
    (
        record(field("line", "string"), field("size", "int"), field("host", "string"),
               field("took", "long"), place("room")),
        {"line": "a", "size": 3, "host": "web1", "took": 7, "place": {"room": "r"}},
    ),
    (
        record(field("line", "string"), field("size", "double"),
               field("server", "string", aliases=["host"]), field("took", ["string", "long"]),
               place("hall", aliases=["room"])),
        {"line": "b", "size": 0.5, "server": "web2", "took": "7 s", "place": {"hall": "h"}},
    ),
    (
        record(field("line", "string"), field("size", "double"), field("server", "string"),
               field("took", ["long", "boolean", "string"]), place("hall"),
               field("user", ["null", "string"], default=None)),
        {"line": "c", "size": 1.5, "server": "web3", "took": True, "place": {"hall": "h"},
         "user": "u"},
    ),
    (
        record(field("line", "string"), field("size", ["double", "string"]),
               field("server", "string"), field("took", ["long", "boolean", "string"]),
               place("hall")),
        {"line": "d", "size": "small", "server": "web4", "took": 8, "place": {"hall": "h"}},
    ),
    (
        record(field("line", "string"), field("size", ["double", "string"]),
               field("server", "string"), field("took", ["long", "boolean", "string"]),
               place("hall"), field("user", ["null", "string"], default=None)),
        {"line": "e", "size": 2.5, "server": "web5", "took": 9, "place": {"hall": "h"},
         "user": "v"},
    ),
]  # fmt: skip
"""Five versions of a schema, each with a row. The registry accepts each version as a change of the
version before. Each change except the last, which only adds a field, makes the loader rewrite
files."""

TOOK = [
    {"member0": None, "member1": 7},
    {"member0": "7 s", "member1": None},
    {"member0": 7, "member1": None, "member2": None},
    {"member0": None, "member1": None, "member2": "7 s"},
    {"member0": None, "member1": True, "member2": None},
]


def send(cluster: Cluster, topic: str, number: int) -> None:
    """Registers version `number` of the schema, and sends one line with the row of this version."""
    cluster.send_version(topic, number, *VERSIONS[number])


@promise("5 columns")
def test_all_rows_are_read_after_any_change(
    cluster: Cluster, spark: SharedSpark, tmp_path: Path
) -> None:
    """Plain Spark, DuckDB and pyarrow can read rows of all five schema versions in one hour. They
    need only the directory, and they find the original values. Between the versions, a number
    becomes a double, fields are renamed with aliases, and types become members of unions. One field
    is dropped, and later comes back, with its old values."""
    topic = cluster.topic(1, json.dumps(VERSIONS[0][0]))
    cluster.announce(topic, 1)
    loading = Loading(cluster, spark, topic, str(tmp_path / "out"), tmp_path)
    loading.way = ON_SPARK
    folder = tmp_path / "out" / topic
    send(cluster, topic, 0)
    assert loading.loaded()["rows"] == 1
    send(cluster, topic, 1)
    (first,) = loading.loaded()["topics"]
    assert first["loads"] == [2, 3]
    found = read_in_each_way(loading, folder)
    assert [row["size"] for row in found] == [3.0, 0.5]
    assert [row["server"] for row in found] == ["web1", "web2"]
    assert [row["took"] for row in found] == TOOK[:2]
    assert [row["place"] for row in found] == [{"hall": "r"}, {"hall": "h"}]
    send(cluster, topic, 2)
    assert loading.loaded()["rows"] == 1
    found = read_in_each_way(loading, folder)
    assert [row["took"] for row in found] == TOOK[2:]
    assert [row["user"] for row in found] == [None, None, "u"]
    assert [row["server"] for row in found] == ["web1", "web2", "web3"]
    for number in (3, 4):
        send(cluster, topic, number)
        assert loading.loaded()["rows"] == 1
    found = read_in_each_way(loading, folder)
    assert [row["size"]["member0"] for row in found] == [3.0, 0.5, 1.5, None, 2.5]
    assert [row["user"] for row in found] == [None, None, "u", None, "v"]
    assert is_whole(loading.output, 5)


@promise("5 columns")
def test_a_name_that_comes_back_with_another_type(
    cluster: Cluster, spark: SharedSpark, tmp_path: Path
) -> None:
    """If a version has the name of a dropped field, but another type, no value is dropped or
    converted: the older files stay as they are, rows are loaded, and each run names the field and
    both versions. Every file can still be read by itself."""
    versions = [
        record(field("line", "string"), field("user", "string")),
        record(field("line", "string")),
        record(
            field("line", "string"), field("user", {"type": "map", "values": "long"}, default={})
        ),
    ]
    rows = [{"line": "a", "user": "u"}, {"line": "b"}, {"line": "c", "user": {"id": 5}}]
    topic = cluster.topic(1, json.dumps(versions[0]))
    cluster.announce(topic, 1)
    loading = Loading(cluster, spark, topic, str(tmp_path / "out"), tmp_path)
    for number, (version, row) in enumerate(zip(versions, rows, strict=True)):
        cluster.send_version(topic, number, version, row)
        done = loading.run()
        assert json.loads(done.stdout)["rows"] == 1
    assert done.returncode == 1
    assert (
        f"version 1 of {topic}-value stay as they are beside version 3: field user" in done.stderr
    )
    files = sorted((tmp_path / "out" / topic).rglob("*.parquet"))
    tables = [pq.ParquetFile(each).read() for each in files]
    assert [each["user"].to_pylist() for each in tables if "user" in each.column_names] == [
        ["u"], [[("id", 5)]],
    ]  # fmt: skip
    assert is_whole(loading.output, 3)


def read_in_each_way(loading: Loading, folder: Path) -> list[dict[str, Any]]:
    """Returns the rows that Spark reads, with the columns of the newest schema. Asserts that DuckDB
    and pyarrow read the same rows if they are used as docs/loader.md describes."""
    found = spark_rows(loading, folder)
    columns = pq.read_schema(folder / "_common_metadata")
    # Spark returns `_timestamp` without a time zone, so it is not compared
    names = [name for name in columns.names if name != "_timestamp"]
    duck = duckdb.sql(
        f"select * from read_parquet('{folder}/*/*/*.parquet', union_by_name = true,"
        " hive_partitioning = true) order by _kafka_offset"
    )
    rows = [dict(zip(duck.columns, row, strict=True)) for row in duck.fetchall()]
    arrow = pq.read_table(folder, schema=columns).sort_by("_kafka_offset").to_pylist()
    for others in (rows, arrow):
        assert [{name: row[name] for name in names} for row in others] == [
            {name: row[name] for name in names} for row in found
        ]
    return found


def compacted(loading: Loading) -> dict[str, Any]:
    """Runs `skidway load compact` for all hours. Returns the JSON document that it prints."""
    arguments = [*loading.arguments(verb="compact"), "--until", "0s"]
    done = loading.spark.run(arguments)
    assert done.returncode == 0, done.stderr[-4000:]
    (topic,) = json.loads(done.stdout)["topics"]
    return dict(topic)


def is_whole(output: str, rows: int) -> bool:
    """Runs a recount, which counts the rows in the output's files again. Asserts that it finds no
    fault. Returns whether it finds this number of rows."""
    opened = OutputConnection(output).output()
    (topic,) = recount.topics(opened)
    found = recount.recount(opened, manifests.head(opened, topic))
    assert [each.sentence for each in found.faults.kept] == []
    return found.rows == rows


@promise("5 removed")
def test_a_compaction_changes_no_row(loading: Loading) -> None:
    """A compaction combines the small files of each hour. A reader of the directories still finds
    every row once, a recount of the rows finds no fault, and further loads succeed."""
    for at in range(4):
        fill(loading, 1000 * at, 1000)
        loading.loaded()
    before = loading.rows()
    done = compacted(loading)
    assert (done["rows"], done["problems"]) == (8000, [])
    assert done["files_after"] < done["files_before"]
    assert loading.rows() == before
    assert is_whole(loading.output, 8000)
    fill(loading, 3500, 1000)
    summary = loading.loaded()
    assert (summary["rows"], summary["repeats"]) == (1000, 1000)
    assert identities(loading.rows()) == lines(4500)
    assert compacted(loading)["files_before"] >= 2
    assert identities(loading.rows()) == lines(4500)


@promise("5 removed")
@pytest.mark.parametrize("moment", ["staging/*/rows-*", "00000000000000000004.json"])
def test_a_compaction_killed_and_begun_again(loading: Loading, moment: str) -> None:
    """If a compaction, which combines small files, is killed while its tasks write, or right after
    its commit, every row exists once after the next load."""
    for at in range(3):
        fill(loading, 1000 * at, 1000)
        loading.loaded()
    program = loading.start_verb("compact", "--until", "0s")
    eventually(lambda: loading.state(moment) or not program.running)
    program.kill()
    fill(loading, 3000, 100)
    loading.loaded()
    assert identities(loading.rows()) == lines(3100)
    assert is_whole(loading.output, 6200)
    deltas = loading.cluster.deltas(f"{loading.output}/{loading.topic}")
    assert sum(count.count for each in deltas for count in each.counts) == 6200


@promise("5 removed")
def test_a_compaction_on_hdfs(loading: Loading, hdfs: Hdfs, tmp_path: Path) -> None:
    """On a real HDFS, a compaction (which combines small files) changes no row, and a recount of
    the rows finds no fault."""
    output = f"{hdfs.url}/compacted"
    on_hdfs = Loading(loading.cluster, loading.spark, loading.topic, output, tmp_path)
    for at in range(3):
        fill(on_hdfs, 500 * at, 500)
        on_hdfs.loaded()
    assert compacted(on_hdfs)["rows"] == 3000
    store = StoreConnection(output).store()
    rows = [
        row
        for entry in store.files(loading.topic)
        for row in pq.read_table(io.BytesIO(store.read(entry.path) or b"")).to_pylist()
    ]
    assert identities(rows) == lines(1500)
    assert is_whole(output, 3000)

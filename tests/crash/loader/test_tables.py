"""Plain Spark and pyarrow can read directories of rows after any change of the schema, and a query
finds a row by its text."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skidway
from skidway.kafka.client import Client
from skidway.kafka.columns import Origins
from skidway.schemas.client import RegistryClient
from skidway.schemas.wire import add_prefix
from tests.crash.loader.conftest import (
    AGENT,
    LENGTH,
    ON_SPARK,
    START_MS,
    Cluster,
    Loading,
    SharedSpark,
    identities,
    lines,
    spark_rows,
)

pytestmark = pytest.mark.java

INNER = {"name": "x", "type": "int"}
GROWN = [INNER, {"name": "y", "type": "string", "default": "none"}]
LINE = {"name": "line", "type": "string"}


def record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


VERSIONS = [
    (
        record("Log", LINE, {"name": "size", "type": "int"}, {"name": "took", "type": "float"},
               {"name": "level", "type": {"type": "enum", "name": "L", "symbols": ["A"]}},
               {"name": "in", "type": record("In", INNER)},
               {"name": "all", "type": {"type": "array", "items": record("Item", INNER)}}),
        {"size": 1, "took": 1.5, "level": "A", "in": {"x": 1}, "all": [{"x": 1}]},
    ),
    (
        record("Log", LINE, {"name": "size", "type": "long"}, {"name": "took", "type": "double"},
               {"name": "level", "type": {"type": "enum", "name": "L", "symbols": ["A", "B"]}},
               {"name": "in", "type": record("In", *GROWN)},
               {"name": "all", "type": {"type": "array", "items": record("Item", *GROWN)}}),
        {"size": 1 << 40, "took": 0.1, "level": "B", "in": {"x": 2, "y": "y"},
         "all": [{"x": 2, "y": "y"}]},
    ),
    (
        record("Log", LINE, {"name": "size", "type": "long"}, {"name": "took", "type": "double"},
               {"name": "level", "type": {"type": "enum", "name": "L", "symbols": ["A", "B", "C"]}},
               {"name": "in", "type": record("In", *GROWN)},
               {"name": "all", "type": {"type": "array", "items": record("Item", *GROWN)}},
               {"name": "at", "default": 0, "type": {"type": "long",
                                                     "logicalType": "timestamp-nanos"}},
               {"name": "user", "type": ["null", "string"], "default": None}),
        {"size": 3, "took": 3.5, "level": "C", "in": {"x": 3, "y": "y"}, "all": [],
         "at": 5_000_000_001, "user": "u"},
    ),
]  # fmt: skip
"""The versions of a schema, each with a row. The registry accepts each version as a change of the
version before."""


def send(cluster: Cluster, topic: str, number: int) -> None:
    """Registers version `number` of the schema, and sends one line with the row of this version."""
    schema, row = VERSIONS[number]
    cluster.send_version(topic, number, schema, {"line": f"line {number}", **row})


def test_rows_of_all_versions_are_read_together(
    cluster: Cluster, spark: SharedSpark, tmp_path: Path
) -> None:
    """After each schema change that the registry accepts, Spark and pyarrow can read the rows of
    all versions with the columns of the newest version. Spark and pyarrow need only the directories
    for this."""
    topic = cluster.topic(1, json.dumps(VERSIONS[0][0]))
    cluster.announce(topic, 1)
    loading = Loading(cluster, spark, topic, str(tmp_path / "out"), tmp_path)
    loading.way = ON_SPARK
    folder = tmp_path / "out" / topic
    for number in range(len(VERSIONS)):
        send(cluster, topic, number)
        assert loading.loaded()["rows"] == 1
        found = spark_rows(loading, folder)
        assert [row["line"] for row in found] == [f"line {each}" for each in range(number + 1)]
        for row, (_, sent) in zip(found, VERSIONS, strict=False):
            assert {name: row[name] for name in sent} == with_new_fields(sent, number)
        columns = pq.read_schema(folder / "_common_metadata")
        assert set(VERSIONS[number][1]) <= set(columns.names)
        read = pq.read_table(folder, schema=columns).sort_by("_kafka_offset").to_pylist()
        assert [row["size"] for row in read] == [sent["size"] for _, sent in VERSIONS[: number + 1]]


def test_a_table_has_the_rows_of_the_manifests(loading: Loading, tmp_path: Path) -> None:
    """`skidway.table` returns each row once, even if the directory contains a copy of a file. It
    reads only the files of the hours that the query selects."""
    loading.way = ON_SPARK
    for at in range(2):
        for partition in (0, 1):
            loading.cluster.send(loading.topic, partition, 3000 * at, 3000)
        loading.loaded()
    folder = Path(loading.output) / loading.topic
    original = next(folder.rglob("part-1-*.parquet"))
    shutil.copy(original, original.with_name("part-99-0-0.parquet"))
    session = loading.spark._session
    rows = skidway.table(session, loading.output, loading.topic)
    assert identities([row.asDict() for row in rows.collect()]) == lines(6000)
    assert session.read.parquet(str(folder)).count() > rows.count(), "the copy is read by others"
    hours = sorted({row["hour"] for row in rows.select("hour").distinct().collect()})
    one, whole = rows.where(rows["hour"] == hours[0]), rows.count()
    for each in list(folder.rglob(f"hour={hours[1]:02}")):
        each.rename(tmp_path / "away")  # so a query that reads these files fails
    assert 0 < one.count() < whole


def with_new_fields(sent: dict[str, Any], number: int) -> dict[str, Any]:
    """Returns the row that was sent, with the nested fields of version `number`. Nested fields that
    the row does not have are null."""
    if number == 0:
        return sent
    return sent | {
        "in": {"y": None} | sent["in"], "all": [{"y": None} | each for each in sent["all"]],
    }  # fmt: skip


def test_a_type_that_contains_itself_is_asked_as_json(
    cluster: Cluster, spark: SharedSpark, tmp_path: Path
) -> None:
    """If a record type contains itself, the field of this type becomes JSON text, which Spark's
    `get_json_object` can read. The record's other fields become columns."""
    schema = record("Log", LINE, {"name": "next", "type": ["null", "Log"], "default": None})
    topic = cluster.topic(1, json.dumps(schema))
    cluster.announce(topic, 1)
    schema_id = RegistryClient(cluster.registry).latest(f"{topic}-value").id
    datums = []
    for row in (
        {"line": "a", "next": {"line": "b", "next": {"line": "c", "next": None}}},
        {"line": "d", "next": None},
    ):
        datum = io.BytesIO()
        fastavro.schemaless_writer(datum, fastavro.parse_schema(schema), row)
        datums.append(datum.getvalue())
    two = np.ones(2, np.int64)
    origins = Origins(two * AGENT, two, np.arange(2) * LENGTH, two * LENGTH)
    with Client(cluster.broker) as client:
        values = add_prefix(schema_id, pa.array(datums, pa.binary()))
        cluster.publish(client, topic, 0, values, origins)
    loading = Loading(cluster, spark, topic, str(tmp_path / "out"), tmp_path)
    loading.way = ON_SPARK
    assert loading.loaded()["rows"] == 2
    frame = loading.spark._session.read.parquet(str(tmp_path / "out" / topic))
    found = frame.selectExpr(
        "line", "get_json_object(next, '$.line')", "get_json_object(next, '$.next.line')"
    ).orderBy("line")
    assert [tuple(row) for row in found.collect()] == [("a", "b", "c"), ("d", None, None)]


PAGE = Path(__file__).parents[3] / "docs/audit.md"


def test_a_line_is_found_by_its_text(cluster: Cluster, spark: SharedSpark, tmp_path: Path) -> None:
    """docs/audit.md has two queries that find a line by its text. In DuckDB, the query finds the
    line's row; in Spark, the query finds its record in the topic. Both return the columns by which
    `skidway audit trace` follows the line."""
    schema = record("Log", {"name": "message", "type": "string"})
    topic = cluster.topic(1, json.dumps(schema))
    cluster.announce(topic, 1)
    for number in (4710, 4711):
        cluster.send_version(topic, number, schema, {"message": f"order {number} shipped"})
    loading = Loading(cluster, spark, topic, str(tmp_path / "out"), tmp_path)
    loading.way = ON_SPARK
    assert loading.loaded()["rows"] == 2
    wanted = ("host", "/var/log/app.log", 1, 4711 * LENGTH, "order 4711 shipped")
    folder = f"{tmp_path}/out/{topic}/dt=2023-11-14/hour=22/"
    query = of_page("sql", {"/data/logs/dc1.app/dt=2026-11-24/hour=12/": folder, "web7": "host"})
    assert duckdb.sql(query).fetchall() == [wanted]
    names: dict[str, Any] = {"spark": spark._session}
    code = of_page(
        "python",
        {
            "dc1-broker:9092": cluster.broker, "http://registry:8081": cluster.registry,
            '"app"': f'"{topic}"', "1795521600000": str(START_MS), "web7": "host",
        },
    )  # fmt: skip
    exec(compile(code, str(PAGE), "exec"), names)
    assert [tuple(row) for row in names["found"].collect()] == [wanted]


def of_page(language: str, names: Mapping[str, str]) -> str:
    """Returns the page's code in this language, with some names replaced. `names` maps each name on
    the page to the name that replaces it."""
    (code,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    for name, ours in names.items():
        assert name in code
        code = code.replace(name, ours)
    return code

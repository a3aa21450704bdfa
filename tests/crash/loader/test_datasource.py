"""`spark.read.format("skidway")` on a real Spark: Spark finds this data source by its name, and the
data source accepts its options."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from skidway import java
from support import jvm
from tests.crash.loader.conftest import START_MS, Loading

pytestmark = [pytest.mark.crash, pytest.mark.java]

QUERIES = """
import json, sys
from pyspark.sql import SparkSession
broker, registry, topic, late, settings = sys.argv[1:]
spark = SparkSession.builder.master("local[1]").config(map=json.loads(settings)).getOrCreate()
def read(**options):
    given = {"bootstrap.servers": broker, "topic": topic, "slice.records": "300"} | options
    return spark.read.format("skidway").options(**given).load()
def refused(call):
    try:
        call()
    except Exception as error:
        return [line for line in str(error).splitlines() if "skidway.errors" in line][-1]
decoded = read(**{"schema.registry.url": registry})
ordered = decoded.where("_partition = 1").orderBy("_kafka_offset").collect()
raw = read().selectExpr("length(value)", "_offset").limit(1).collect()
print(json.dumps({
    "columns": decoded.columns,
    "count": decoded.count(),
    "lines": [row.line for row in ordered],
    "raw": [list(row) for row in raw],
    "late": read(**{"starting.timestamp.ms": late}).count(),
    "early": read(**{"ending.timestamp.ms": late}).count(),
    "unknown option": refused(lambda: read(colour="red")),
    "no topic": refused(lambda: read(topic="gone").count()),
}))
spark.stop()
"""


def test_queries(loading: Loading, tmp_path: Path) -> None:
    """Decoded and raw columns and ranges of event time can be queried, and a bad option gets one
    sentence. All this works even in a folder with files that are named like parts of Skidway."""
    for name in ("agent", "audit", "broker", "loader", "schemas"):
        (tmp_path / f"{name}.py").touch()
    for partition in (0, 1):
        loading.cluster.send(loading.topic, partition, 0, 700)
    found = queries(loading, START_MS + 600_000, tmp_path)
    assert found["columns"] == [
        "line", "_agent", "_file_id", "_offset", "_length", "_timestamp", "_partition",
        "_kafka_offset",
    ]  # fmt: skip
    assert found["count"] == 1400
    assert found["lines"] == [f"line {number}" for number in range(700)]
    assert found["raw"] == [[len("line 0") + 6, 0]]
    assert (found["late"], found["early"]) == (200, 1200)
    assert "has no option colour" in found["unknown option"]
    assert "the topic gone does not exist" in found["no topic"]


def queries(loading: Loading, late_ms: int, folder: Path) -> dict[str, Any]:
    """Runs all queries in a Spark session that nothing else uses, as a user's program in `folder`
    would."""
    addresses = [loading.cluster.broker, loading.cluster.registry]
    settings = json.dumps({"spark.ui.enabled": "false", **jvm.SPARK})
    environment = {"PYSPARK_PYTHON": sys.executable, "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", QUERIES, *addresses, loading.topic, str(late_ms), settings],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        cwd=folder,
        env={**java.environment(java.find()), **environment},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))

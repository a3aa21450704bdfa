"""`spark.read.format("skidway")` works on a real Spark. Spark finds the data source by its name,
and the data source accepts its options."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support import spark_script
from tests.crash.loader.conftest import START_MS, Loading

pytestmark = pytest.mark.java

QUERIES = """
import json, sys
from pyspark.sql import SparkSession
from skidway.producer import Producer
settings, broker, registry, topic, late = sys.argv[1:]
spark = SparkSession.builder.config(map=json.loads(settings)).getOrCreate()
def read(schema=None, **options):
    given = {"kafka.bootstrap.servers": broker, "subscribe": topic, "maxRecordsPerPartition": "300"}
    reader = spark.read.format("skidway").options(**given | options)
    return (reader.schema(schema) if schema else reader).load()
def refused(call):
    try:
        call()
    except Exception as error:
        return [line for line in str(error).splitlines() if "skidway." in line and ": " in line][-1]
url = {"schema.registry.url": registry}
decoded = read(**url)
ordered = decoded.where("_partition = 1").orderBy("_kafka_offset").collect()
raw = read().selectExpr("length(value)", "_offset").orderBy("_offset").limit(1).collect()
found = {
    "columns": decoded.columns,
    "count": decoded.count(),
    "lines": [row.line for row in ordered],
    "raw": [list(row) for row in raw],
    "late": read(startingTimestamp=late).count(),
    "early": read(endingTimestamp=late).count(),
    "never": read(startingTimestamp=str(2 * int(late))).count(),
    "offsets": read(startingOffsets=json.dumps({topic: {"0": 650, "1": -1}})).count(),
    "pattern": read(subscribe="", subscribePattern=topic[:-1] + ".").count(),
    "chosen": [list(r) for r in read("_host string, line string", **url).limit(1).collect()],
    "headers": [
        [each.key for each in row._headers]
        for row in read(includeHeaders="true").select("_headers").limit(1).collect()
    ],
    "unknown option": refused(lambda: read(colour="red")),
    "no topic": refused(lambda: read(subscribe="gone").count()),
    "expired": refused(
        lambda: read(endingOffsets=json.dumps({topic: {"0": 9999, "1": -1}})).count()
    ),
}
where = "_partition = 1 and _kafka_offset >= 100 and line like '%9' and _timestamp < '2024-01-01'"
without = sorted(row.line for row in decoded.where(where).collect())
spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
found["filtered"] = [without == sorted(row.line for row in decoded.where(where).collect())]
found["filtered"] += [len(without), decoded.count()]
raw = read()
found["newer"] = [raw.count()]
with Producer(broker) as producer:
    producer.send(topic, b"one more").result()
found["newer"] += [raw.count(), read().count()]
print(json.dumps(found))
spark.stop()
"""


def test_queries(loading: Loading, tmp_path: Path) -> None:
    """A query can read decoded or raw values, and the columns for host and headers. It can select
    some of the columns. It can be limited to a range of offsets or of times. A DataFrame always
    reads the same offsets, and a new DataFrame also reads newer records. Filters that one query
    pushes down do not affect the next query. A bad option is refused with one sentence. All this
    works even if the working directory has files such as agent.py and loader.py."""
    for name in ("agent", "audit", "broker", "loader", "schemas"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('this is the file of the user')\n")
    for partition in (0, 1):
        loading.cluster.send(loading.topic, partition, 0, 700)
    found = spark_script.answer(
        QUERIES, loading.cluster.broker, loading.cluster.registry, loading.topic,
        str(START_MS + 600_000), folder=tmp_path, PYSPARK_PYTHON=sys.executable,
    )  # fmt: skip
    assert found["columns"] == [
        "line", "_agent", "_file_id", "_offset", "_length", "_timestamp", "_topic", "_partition",
        "_kafka_offset",
    ]  # fmt: skip
    assert found["count"] == 1400
    assert found["lines"] == [f"line {number}" for number in range(700)]
    assert found["raw"] == [[len("line 0") + 6, 0]]
    assert (found["late"], found["early"], found["never"]) == (200, 1200, 0)
    assert (found["offsets"], found["pattern"]) == (50, 1400)
    assert found["chosen"] == [["host", "line 0"]]
    assert found["headers"] == [["origin"]]
    assert found["filtered"] == [True, 60, 1400]
    assert found["newer"] == [1400, 1400, 1401]
    assert "has no option colour" in found["unknown option"]
    assert "the topic gone does not exist" in found["no topic"]
    assert "the log ends at offset 700, before offset 9999" in found["expired"]

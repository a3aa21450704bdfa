"""`format("skidway")` agrees with Spark's own `format("kafka")` and `from_avro` on the same
topics."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support import peers, spark_script
from tests.crash.loader.conftest import SCHEMA, Cluster

pytestmark = [pytest.mark.java, pytest.mark.slow]

BOTH = """
import json, sys
from pyspark.sql import SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import col, expr
import skidway
settings, jars, broker, registry, schema, cases = sys.argv[1:]
settings = json.loads(settings) | {"spark.jars": jars}
spark = SparkSession.builder.config(map=settings).getOrCreate()
skidway.register(spark)
def read(name, options):
    source = spark.read.format(name).option("kafka.bootstrap.servers", broker)
    return source.options(**options)
def theirs(options):
    rows = read("kafka", options).load()
    datum = from_avro(expr("substring(value, 6)"), schema).alias("v")
    names = ["topic", "partition", "offset", "timestamp", "headers"]
    return rows.select(datum, *(name for name in names if name in rows.columns)).select(
        "v.*", *(name for name in names if name in rows.columns)
    )
def ours(options):
    rows = read("skidway", options).option("schema.registry.url", registry).load()
    names = ["line", "_topic", "_partition", "_kafka_offset", "_timestamp", "_headers"]
    return rows.select(*(name for name in names if name in rows.columns))
found = []
for options in json.loads(cases):
    one, other = ours(options), theirs(options)
    rows = sorted(one.collect())
    found.append([
        len(rows), rows == sorted(other.collect()),
        [field.dataType.simpleString() for field in one.schema]
        == [field.dataType.simpleString() for field in other.schema],
    ])
print(json.dumps(found))
spark.stop()
"""


def test_both_sources_give_the_same_rows(cluster: Cluster, tmp_path: Path) -> None:
    """With the same options, both sources return the same rows with the same types. The test tries
    several topics, a pattern of topics, ranges of offsets, an empty range, a limit of records for
    each task, and headers."""
    one, two = cluster.topic(), cluster.topic(3)
    for topic in (one, two):
        for partition in (0, 1):
            cluster.send(topic, partition, 0, 300)
    names = {"subscribe": f"{one},{two}"}
    cases = [
        (names, 1200),
        ({"subscribePattern": f"{one[:-1]}.|{two}"}, 1200),
        ({**names, "includeHeaders": "true", "maxRecordsPerPartition": "70"}, 1200),
        (bounded(one, [10, -2], [290, -1]), 580),
        (bounded(one, [300, 300], [-1, -1]), 0),
    ]
    jars = ",".join(map(str, sorted(peers.jars("spark-kafka").glob("*.jar"))))
    found = spark_script.answer(
        BOTH, jars, cluster.broker, cluster.registry, SCHEMA,
        json.dumps([options for options, _ in cases]), folder=tmp_path,
    )  # fmt: skip
    assert found == [[count, True, True] for _, count in cases]


def bounded(topic: str, first: list[int], end: list[int]) -> dict[str, str]:
    """Returns Spark options that select a range of offsets in each partition of a topic. `first`
    and `end` contain the partitions' first offsets and end offsets."""
    return {
        "subscribe": topic,
        "startingOffsets": json.dumps({topic: {str(p): at for p, at in enumerate(first)}}),
        "endingOffsets": json.dumps({topic: {str(p): at for p, at in enumerate(end)}}),
    }

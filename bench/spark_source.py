"""The peer in the loader's benchmarks: loads with Spark's own Kafka source and `from_avro` into
hourly zstd Parquet.

bench/loader.py and bench/small.py run this script with the arguments JARS MEMORY SCHEMA ADDRESS
TOPIC PARTITIONS OUTPUT. The script reads lines such as `40000 80000` from its standard input. Each
line is an order to load, from each partition, the offsets from the first number up to, but not
including, the second number. After each load, the script prints how many seconds it took.
"""

import json
import sys
import time
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import col, date_format, substring

jars, memory, schema, address, topic, partitions, output = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.jars", jars)
    .config("spark.ui.enabled", "false")
    .config("spark.driver.memory", memory)
    .config("spark.sql.parquet.compression.codec", "zstd")
    .config("spark.sql.session.timeZone", "UTC")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")


def load(folder: str, starting: str, ending: str) -> float:
    """Loads a range of offsets into a folder. Returns how many seconds this took. starting, ending:
    the first offset of each partition's range, and the offset after its last; both as JSON for
    Spark's options."""
    begin = time.perf_counter()
    rows: Any = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", address)
        .option("subscribe", topic)
        .option("startingOffsets", starting)
        .option("endingOffsets", ending)
        .load()
        .select(
            from_avro(substring(col("value"), 6, 1 << 30), schema).alias("v"), "partition", "offset"
        )
        .select("v.*", "partition", "offset")
        .withColumn("dt", date_format("ts", "yyyy-MM-dd"))
        .withColumn("hour", date_format("ts", "HH"))
    )
    rows.write.partitionBy("dt", "hour").parquet(folder)
    return time.perf_counter() - begin


def offsets(at: str) -> str:
    return json.dumps({topic: {str(number): int(at) for number in range(int(partitions))}})


for turn, line in enumerate(sys.stdin):
    first, end = line.split()
    print(load(f"{output}/{turn}", offsets(first), offsets(end)), flush=True)

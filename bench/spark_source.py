"""The peer of the loader benchmark: Spark's own Kafka source, from_avro, hourly zstd Parquet.

bench/loader.py runs this script in the peer's environment, with the arguments ADDRESS TOPIC SCHEMA
OUTPUT JARS. The script loads twice and prints the rows per second of the second load.
"""

import sys
import time

from pyspark.sql import SparkSession
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.functions import col, date_format, substring

address, topic, schema, output, jars = sys.argv[1:6]
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.jars", jars)
    .config("spark.ui.enabled", "false")
    .config("spark.driver.memory", "3g")
    .config("spark.sql.parquet.compression.codec", "zstd")
    .config("spark.sql.session.timeZone", "UTC")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
rate = 0.0
for turn in range(2):
    begin = time.perf_counter()
    rows = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", address)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
        .select(
            from_avro(substring(col("value"), 6, 1 << 30), schema).alias("v"), "partition", "offset"
        )
        .select("v.*", "partition", "offset")
        .withColumn("dt", date_format("ts", "yyyy-MM-dd"))
        .withColumn("hour", date_format("ts", "HH"))
    )
    rows.write.partitionBy("dt", "hour").parquet(f"{output}/{turn}")
    took = time.perf_counter() - begin
    count = spark.read.parquet(f"{output}/{turn}").count()
    rate = count / took
print(rate)

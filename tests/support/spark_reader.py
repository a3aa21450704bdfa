"""A program that prints the rows of an output as Spark reads them, one JSON object a line, in the
form of `every_type.plain`. It runs on the pyspark in its PYTHONPATH, from 3.3 on.

    python spark_reader.py DIRECTORY [--hive]

With --hive, the program prints the rows again, as Hive's own reader of Parquet (its SerDe) reads
them, through an external table. Each row says in `reader` whether `spark` or `hive` has read it.
The Hive in Spark reads no timestamps in INT64, so the table has them as bigint, in milliseconds or
microseconds.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from typing import Any

from pyspark.sql import SparkSession

HIVE = {
    "n": "bigint", "l": "bigint", "f": "double", "b": "boolean", "s": "string",
    "optional": "string", "bytes": "binary", "fixed": "binary", "long_fixed": "binary",
    "level": "string", "price": "decimal(8,2)", "huge": "string", "day": "date",
    "time_ms": "bigint", "time_us": "bigint", "at_ms": "bigint", "at_us": "bigint",
    "at_ns": "bigint", "local_ms": "bigint", "local_us": "bigint", "id": "string",
    "numbers": "array<bigint>", "moments": "array<bigint>", "labels": "map<string,string>",
    "inner": "struct<x:bigint,t:bigint,y:string>",
    "optional_inner": "struct<x:bigint,t:bigint,y:string>",
    "choice": "struct<member0:string,member1:bigint>", "Upper": "string", "_timestamp": "bigint",
    "_kafka_offset": "bigint", "_partition": "int", "_host": "string",
}  # fmt: skip
"""The columns of the table in Hive."""
MICROS = "unix_micros(cast({} as timestamp))"
"""Spark's SQL for a timestamp in microseconds."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory")
    parser.add_argument("--hive", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        session = _session(scratch, is_hive=args.hive)
        try:
            session.read.parquet(args.directory).createOrReplaceTempView("spark_rows")
            _print(session, "spark")
            if args.hive:
                _make_table(session, args.directory)
                _print(session, "hive")
        finally:
            session.stop()


def _session(scratch: str, *, is_hive: bool) -> Any:
    made = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    for key, value in {
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.warehouse.dir": f"{scratch}/warehouse",
        "spark.sql.hive.convertMetastoreParquet": "false",
        "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:rows;create=true",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={scratch}",
    }.items():
        made = made.config(key, value)
    return (made.enableHiveSupport() if is_hive else made).getOrCreate()


def _make_table(session: Any, directory: str) -> None:
    columns = ", ".join(f"`{name}` {kind}" for name, kind in HIVE.items())
    session.sql(
        f"create external table hive_rows ({columns}) partitioned by (dt string, hour string)"
        f" stored as parquet location 'file://{directory}'"
    )
    session.sql("msck repair table hive_rows")


def _print(session: Any, reader: str) -> None:
    columns = [f"{_sql(name, reader == 'hive')} as `{name}`" for name in HIVE]
    columns += ["cast(dt as string) as dt", "cast(hour as int) as hour"]
    for row in session.sql(f"select {', '.join(columns)} from {reader}_rows").collect():
        print(json.dumps({"reader": reader} | row.asDict(recursive=True)))


def _sql(name: str, is_hive: bool) -> str:
    """Returns the expression for a column in the form of `every_type.plain`."""
    if HIVE[name] == "binary":
        return f"hex(`{name}`)"
    if name == "price":
        return f"cast(`{name}` as string)"
    if name == "day":
        return f"datediff(`{name}`, date'1970-01-01')"
    if name in ("at_us", "local_us"):
        return f"`{name}`" if is_hive else MICROS.format(f"`{name}`")
    if name in ("at_ms", "local_ms", "_timestamp"):
        return _micros(f"`{name}`", is_hive)
    if name == "moments":
        return f"transform(moments, x -> {_micros('x', is_hive)})"
    if HIVE[name].startswith("struct<x"):
        time = _micros(f"`{name}`.t", is_hive)
        made = f"named_struct('x', `{name}`.x, 't', {time}, 'y', `{name}`.y)"
        return f"if(`{name}` is null, null, {made})"
    return f"`{name}`"


def _micros(expression: str, is_hive: bool) -> str:
    return f"{expression} * 1000" if is_hive else MICROS.format(expression)


if __name__ == "__main__":
    main()

"""Other programs read the loader's files: all types, and the times that programs often cannot
read. docs/loader.md has a table of the programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support import foreign, reading
from support.every_type import EXPECTED, plain, written

FIRST_HOUR = EXPECTED[::2]
GREGORIAN = -141_427
"""The day 1582-10-15, from which on the Julian calendar is no longer used."""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a topic with a column of each type."""
    return written(tmp_path_factory.mktemp("output"))


def test_duckdb_reads_every_type(rows: Path) -> None:
    """DuckDB, as the page says, reads every column and the directories `dt` and `hour`."""
    source = f"read_parquet('{rows}/*/*/*.parquet', union_by_name = true, hive_partitioning = true)"

    def found(where: str) -> list[dict[str, Any]]:
        with duckdb.connect() as connection:
            return plain(connection.sql(f"select * from {source} where {where}").to_arrow_table())

    assert found("true") == EXPECTED
    assert found("dt = '2026-01-31' and hour = 7") == FIRST_HOUR


def test_pyarrow_reads_every_type(rows: Path) -> None:
    """pyarrow, as the page says, reads every column and the directories `dt` and `hour`."""
    columns = pq.read_schema(rows / "_common_metadata")
    columns = columns.append(pa.field("dt", "string")).append(pa.field("hour", "int32"))
    assert plain(pq.read_table(rows, schema=columns)) == EXPECTED
    filters = [("dt", "=", "2026-01-31"), ("hour", "=", 7)]
    found = pq.read_table(rows, schema=columns, filters=filters)
    assert plain(found) == FIRST_HOUR


@pytest.mark.java
@pytest.mark.foreign
def test_spark_and_hives_serde_read_every_type(rows: Path) -> None:
    """Spark reads every column and the directories `dt` and `hour`. So does the SerDe of the Hive
    in Spark, with times as numbers. It shows dates before 1582-10-15 in the Julian calendar."""
    found = reading.spark(rows, "--hive")
    assert read_by("spark", found) == EXPECTED
    for row, expected in zip(read_by("hive", found), EXPECTED, strict=True):
        if expected["day"] < GREGORIAN:
            assert row["day"] != expected["day"]
            row["day"] = expected["day"]
        assert row == expected


def read_by(reader: str, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rows that `reader` has read."""
    rows = [dict(row) for row in found if row["reader"] == reader]
    for row in rows:
        del row["reader"]
    return rows


@pytest.mark.java
@pytest.mark.foreign
def test_the_oldest_spark_of_the_loader_reads_every_type(rows: Path) -> None:
    """Spark 4.1, the oldest Spark on which the loader runs, reads every column, too."""
    assert read_by("spark", reading.spark(rows, packages=foreign.older_spark())) == EXPECTED


WRITE = """
import sys, pyarrow
def write(table):
    with pyarrow.ipc.new_file(sys.argv[1], table.schema) as sink:
        sink.write_table(table)
"""
POLARS = """
import polars
files = "{folder}/*/*/*.parquet"
found = polars.scan_parquet(files, hive_partitioning=True, missing_columns="insert")
write(found.filter({where}).collect().to_arrow())
"""
POLARS_HOUR = "(polars.col('dt') == polars.date(2026, 1, 31)) & (polars.col('hour') == 7)"
DATAFUSION = """
import datafusion
context = datafusion.SessionContext()
parts = [("dt", pyarrow.string()), ("hour", pyarrow.string())]
context.register_parquet("logs", "{folder}", table_partition_cols=parts)
write(context.sql("select * from logs where {where}").to_arrow_table())
"""


@pytest.mark.foreign
@pytest.mark.parametrize(
    ("program", "everything", "hour"),
    [
        (POLARS, "True", POLARS_HOUR),
        (DATAFUSION, "true", "dt = '2026-01-31' and hour = '07'"),
    ],
    ids=["polars", "datafusion"],
)
def test_others_read_every_type(
    rows: Path, tmp_path: Path, program: str, everything: str, hour: str
) -> None:
    """polars and DataFusion, as the page says, read every column and the directories."""

    def found(where: str) -> list[dict[str, Any]]:
        text = WRITE + program.format(folder=rows, where=where)
        file = reading.python(text, tmp_path / "found.arrow", foreign.readers())
        return plain(pa.ipc.open_file(file).read_all())

    assert found(everything) == EXPECTED
    assert found(hour) == FIRST_HOUR

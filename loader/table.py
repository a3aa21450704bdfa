"""Defines `skidway.table(spark, output, topic)`, which returns the rows of a topic as a DataFrame.
This function finds the topic's files in the manifests.

A reader that lists the directory may read too many or too few files. `skidway.table` reads exactly
the files that belong to the output. It reads no copy that somebody left in the directory, and no
file that a load has removed. It reads either all files of a load or none of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from skidway.errors import SkidwayError
from skidway.loader.state import chain, layout, operations
from skidway.loader.state.live import live
from skidway.loader.state.manifest import Manifest
from skidway.loader.state.moves import moves
from skidway.loader.store import Store, StoreConnection

LOOKS_MAX: Final = 100
LOOK_AGAIN_S: Final = 0.1
"""If the newest load has not yet moved all its files to their final paths, the reader waits this
many seconds and checks again, at most `LOOKS_MAX` times."""


def table(spark: Any, output: str, topic: str) -> Any:
    """Returns the rows of a topic, with the columns of the newest schema and the columns `dt` and
    `hour`. With a filter on `dt` and `hour`, Spark reads only the files of these hours.

    spark: a SparkSession. output: a directory, or hdfs://host:port/folder. Raises SkidwayError if
    the output has no load of the topic, if the newest load does not move its files to their final
    paths in time, or if a file of the loader's state is gone or damaged.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    store = StoreConnection(output).store()
    files = files_of(store, topic)
    root = store.url if "://" in store.url else f"file://{store.url}"
    reader = spark.read.option("basePath", f"{root}/{topic}")
    columns = _columns(store, topic)
    if not files:
        return spark.createDataFrame([], from_arrow_schema(columns))
    return reader.schema(from_arrow_schema(columns)).parquet(*(f"{root}/{each}" for each in files))


def files_of(store: Store, topic: str, pause: Callable[[float], object] = time.sleep) -> list[str]:
    """Returns the paths of all files that have the topic's rows after the newest load. Raises
    SkidwayError if the topic has no load, if the newest load does not move its files to their final
    paths in time, or if a manifest is gone or damaged."""
    for _ in range(LOOKS_MAX):
        newest = _newest(store, topic)
        if all(store.length(move.target) is not None for move in moves(newest)):
            return sorted(operations.run(live(newest), store))
        pause(LOOK_AGAIN_S)
    raise SkidwayError(
        f"load {newest.number} of {topic} is committed, but its files are not in place; run "
        "`skidway load run`, which moves them"
    )


def _newest(store: Store, topic: str) -> Manifest:
    newest = operations.run(chain.newest_manifest(topic), store)
    if newest is None:
        raise SkidwayError(f"{store.url} has no load of the topic {topic}")
    return newest


def _columns(store: Store, topic: str) -> pa.Schema:
    opened = store.open(layout.columns(topic))
    if opened is None:
        raise SkidwayError(f"{layout.columns(topic)} is gone; the next load writes it again")
    with opened:
        return pq.read_schema(opened)

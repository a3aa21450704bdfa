"""Makes the data source known to a Spark session: `skidway.register(spark)`."""

from __future__ import annotations

import os
import sys
from typing import Any

from skidway.loader.datasource.source import SkidwaySource


def register(spark: Any) -> None:
    """Makes `format("skidway")` known to a Spark session, and makes Spark run the source with the
    Python of this process.

    Spark starts Python workers with the command `python3`, or with the command in PYSPARK_PYTHON.
    If a virtual environment is not activated, `python3` is a Python without Skidway, and Spark does
    not find the source. `register` makes Spark use this process's Python, so PYSPARK_PYTHON is not
    needed. In a cluster, the other hosts then need a Python with Skidway at the same path. If their
    Python is at another path, set PYSPARK_PYTHON to this path. If PYSPARK_PYTHON is set, `register`
    leaves the choice of Python to this variable.

    spark: a session in this process. A Spark Connect session always runs the Python of its server,
    so `register` cannot choose its Python.
    """
    context = spark.sparkContext
    before = context.pythonExec
    if "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable
    try:
        spark.dataSource.register(SkidwaySource)
    finally:
        context.pythonExec = before

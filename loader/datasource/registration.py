"""Makes the source known to a session: `skidway.register(spark)`."""

from __future__ import annotations

import os
import sys
from typing import Any

from skidway.loader.datasource.source import SkidwaySource


def register(spark: Any) -> None:
    """Lets a session find `format("skidway")`, and lets the source run in this process's Python.

    Spark starts Python workers with the command `python3`, unless PYSPARK_PYTHON names another one.
    In a virtual environment that is not activated, this is a Python without Skidway, and Spark does
    not find the source. `register` needs no variable. In a cluster, the other hosts must have a
    Python with Skidway at the same path; otherwise set PYSPARK_PYTHON, which `register` keeps.

    spark: a session in this process. A session of Spark Connect runs its server's Python.
    """
    context = spark.sparkContext
    before = context.pythonExec
    if "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable
    try:
        spark.dataSource.register(SkidwaySource)
    finally:
        context.pythonExec = before

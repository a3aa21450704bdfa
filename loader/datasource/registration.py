"""Makes the source known to a session: `skidway.register(spark)`."""

from __future__ import annotations

import os
import sys
from typing import Any

from skidway.loader.datasource.source import SkidwaySource


def register(spark: Any) -> None:
    """Makes `format("skidway")` known to a session, and makes Spark run the source with the Python
    of this process.

    Spark starts Python workers with the command `python3`, or with the command in PYSPARK_PYTHON.
    If a virtual environment is not activated, `python3` is a Python without Skidway, and Spark does
    not find the source. With `register` you need not set PYSPARK_PYTHON. In a cluster, the other
    hosts must have a Python with Skidway at the same path; otherwise set PYSPARK_PYTHON, and
    `register` leaves it as it is.

    spark: a session in this process. A Spark Connect session runs the Python of its server,
    whatever `register` does.
    """
    context = spark.sparkContext
    before = context.pythonExec
    if "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable
    try:
        spark.dataSource.register(SkidwaySource)
    finally:
        context.pythonExec = before

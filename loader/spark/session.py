"""Starts and stops the Spark session in the driver's JVM (jvm.py). A process may start Spark again
after a start that failed, and after the JVM has died."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from skidway import java, lean_arrow
from skidway.loader.settings import LoaderSettings
from skidway.loader.spark import jvm
from skidway.loader.spark.failures import unanswered
from skidway.loader.spark.properties import properties, secrets, workers_python


def begin(settings: LoaderSettings, folder: Path) -> subprocess.Popen[bytes]:
    """Starts the driver's JVM, and does not wait for it. Raises SkidwayError if there is no Java,
    and OSError."""
    os.environ.update(java.environment(java.find()))
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYSPARK_PYTHON"] = workers_python(settings)
    lean_arrow.allow_pandas()
    return jvm.launch(properties(settings, folder), folder)


def start(settings: LoaderSettings, process: subprocess.Popen[bytes], folder: Path) -> Any:
    """Starts a Spark session in the JVM that `begin` has started. If another thread kills the JVM,
    the start fails at once. Raises SkidwayError if the JVM ends, and errors of Spark, pyspark and
    py4j, which have no common base class."""
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    gateway = jvm.connect(process, folder)
    # The JVM has got all properties but the secret ones.
    conf = SparkConf(_jvm=gateway.jvm).setAll(list(secrets(settings).items()))
    return SparkSession(SparkContext(conf=conf, gateway=gateway))


def warming(session: Any) -> Any:
    """Returns a DataFrame whose rows have no meaning. When the caller collects the DataFrame, every
    core starts its Python worker, and the workers import the loader's modules. So the tasks of the
    first load need not wait for the workers to start.
    """
    cores = session.sparkContext.defaultParallelism

    def idle(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import skidway.loader.spark.task  # noqa: F401 - for the import itself

        yield from numbers

    return session.range(0, cores, 1, cores).mapInArrow(idle, "id long")


def is_alive(session: Any) -> bool:
    """Returns whether the session can run tasks: its JVM still runs, and nobody has stopped its
    context."""
    context = session.sparkContext
    if context._gateway.proc.poll() is not None:
        return False
    try:
        return not context._jsc.sc().isStopped()
    except unanswered():
        return False


def stop(session: Any) -> None:
    """Stops the session, dead or alive, and ends its JVM. Afterwards `start` may be called
    again."""
    process = session.sparkContext._gateway.proc
    for _ in range(2):  # if the JVM is dead, only the second `stop` cleans up
        with warnings.catch_warnings(action="ignore"), suppress(*unanswered()):
            session.stop()
    end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends the JVM, and removes the references of pyspark to it, so that pyspark can use another
    JVM. pyspark uses the same JVM as long as the Python process lives, and has no public function
    to replace it."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession
    from pyspark.sql.context import SQLContext

    if SparkContext._gateway is not None:
        SparkContext._gateway.shutdown()
    jvm.end(process)
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SQLContext._instantiatedContext = None

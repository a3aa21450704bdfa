"""Starts and stops Spark: the driver's JVM, and the session in it.

The loader starts the JVM itself, with the Java that `skidway.java` finds, so that the JVM's output
goes to a file and not to the terminal. A process may start Spark again after the JVM has died.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from skidway import java, lean_arrow
from skidway.errors import SkidwayError
from skidway.loader.settings import LoaderSettings
from skidway.loader.spark.failures import sentence_in
from skidway.loader.spark.properties import properties, workers_python

JVM_ENDS_WITHIN_S: Final = 30.0
"""The JVM ends by itself when its standard input is closed. If the JVM still runs after this time,
the loader kills it."""


def start(settings: LoaderSettings, folder: Path) -> Any:
    """Starts a JVM and a Spark session in it. Raises SkidwayError if the JVM or the session does
    not start."""
    os.environ.update(java.environment(java.find()))
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYSPARK_PYTHON"] = workers_python(settings)
    lean_arrow.allow_pandas()
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    conf = SparkConf()
    conf.setAll(list(properties(settings, folder).items()))
    output = folder / "spark.out"
    try:
        with open(output, "ab") as stream:
            gateway = launch_gateway(conf, {"stdout": stream, "stderr": stream})  # type: ignore[no-untyped-call]
    except PySparkException as error:
        raise SkidwayError(f"Spark's Java process did not start: {_told(output)}") from error
    try:
        return SparkSession(SparkContext(conf=conf, gateway=gateway))
    except (Py4JError, PySparkException) as error:
        _end(gateway)
        raise SkidwayError(f"Spark did not start: {sentence_in(str(error))}") from error


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
    gateway = session.sparkContext._gateway
    for _ in range(2):  # if the JVM is dead, only the second `stop` cleans up
        with warnings.catch_warnings(action="ignore"), suppress(*unanswered()):
            session.stop()
    _end(gateway)
    _forget()


def unanswered() -> tuple[type[Exception], ...]:
    """Returns the types of the errors that a call to the JVM raises if the JVM is dead or the call
    fails."""
    from py4j.protocol import Py4JError

    return Py4JError, OSError


def _end(gateway: Any) -> None:
    """Ends the JVM, and waits until its process has ended."""
    gateway.shutdown()
    with suppress(OSError):
        gateway.proc.stdin.close()
    try:
        gateway.proc.wait(JVM_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()


def _forget() -> None:
    """Removes the references of pyspark to the JVM, so that pyspark can use another JVM. pyspark
    uses the same JVM as long as the Python process lives, and has no public function to replace
    it."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession
    from pyspark.sql.context import SQLContext

    SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SQLContext._instantiatedContext = None


def _told(path: Path) -> str:
    return sentence_in(path.read_text(errors="replace")) or "it said nothing"

"""Computes Spark's properties: the loader's defaults, overridden by the operator's `spark.conf`."""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path

from skidway import java
from skidway.loader.settings import LoaderSettings

BRIEF = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""JVM options of the driver. The driver only assigns slices to workers; no row passes through the
driver. The driver's JVM spends most of its time on its start, and the start takes far less CPU time
without the JVM's optimizing compiler."""


def properties(settings: LoaderSettings, folder: Path) -> dict[str, str]:
    """Returns the properties with which the loader starts Spark: the loader's own defaults, and
    those of the setting `spark.conf`, which take precedence. Writes the settings of Spark's log
    into a file in `folder`."""
    log4j = folder / "log4j2.properties"
    log4j.write_text(log4j_properties(settings.spark_log_file))
    return {
        "spark.app.name": "skidway-load",
        "spark.master": settings.spark_master,
        "spark.ui.enabled": "false",
        "spark.driver.memory": settings.spark_driver_memory,
        "spark.driver.defaultJavaOptions": BRIEF,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{log4j}",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **_hadoop_user(),
    } | settings.spark_conf


def log4j_properties(file: Path | None) -> str:
    """Returns the settings of Spark's log. If `file` is a path, Spark writes messages of level info
    and above to that file. If `file` is None, Spark writes warnings to its error output, which
    nobody sees."""
    pattern = "%d{yyyy-MM-dd HH:mm:ss.SSS} %-5p [%t] %c{1} - %m%n"
    level, kind = ("info", "File") if file else ("warn", "Console")
    lines = [
        "status = error",
        f"rootLogger.level = {level}",
        "rootLogger.appenderRef.a.ref = a",
        f"appender.a.type = {kind}",
        "appender.a.name = a",
        "appender.a.layout.type = PatternLayout",
        f"appender.a.layout.pattern = {pattern}",
    ]
    if file:
        lines += [
            f"appender.a.fileName = {java.escaped(file.absolute())}",
            "appender.a.append = true",
        ]
    return "\n".join(lines) + "\n"


def workers_python(settings: LoaderSettings) -> str:
    """Returns the Python that runs tasks: `spark.pyspark.python` if the operator sets this
    property, otherwise this process's Python. On Spark's workers, the Python at this path must have
    the loader's packages.

    Spark itself reads `spark.pyspark.python` only in a session that spark-submit started.
    """
    return settings.spark_conf.get("spark.pyspark.python", sys.executable)


def _hadoop_user() -> dict[str, str]:
    """Returns the properties that make tasks use HDFS under the name of the loader's user. This is
    necessary because the loader must move the files that the tasks write. The result is empty if
    the loader's user has no name."""
    name = os.environ.get("HADOOP_USER_NAME")
    if not name:
        try:
            name = pwd.getpwuid(os.geteuid()).pw_name
        except KeyError:  # the user id has no name that could be passed to HDFS
            return {}
    return {"spark.executorEnv.HADOOP_USER_NAME": name}

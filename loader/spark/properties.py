"""Computes Spark's properties: the loader's defaults, overridden by the operator's `spark.conf`."""

from __future__ import annotations

import os
import pwd
import re
import sys
from pathlib import Path

from skidway import java
from skidway.audit.output.hdfs.configuration import VARIABLES
from skidway.errors import ConfigurationRefused
from skidway.loader.settings import LoaderSettings
from skidway.regular_file import read_regular

BRIEF = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""JVM options of the driver. The driver only assigns slices to workers; no row passes through the
driver. The driver's JVM spends most of its time on its start, and the start takes far less CPU time
without the JVM's optimizing compiler."""


LOOPBACK = "127.0.0.1"

_SECRET = re.compile("secret|password|token|access.?key", re.IGNORECASE)
"""Spark itself hides the properties with such names in its pages (spark.redaction.regex)."""

PATTERN = "%d{yyyy-MM-dd HH:mm:ss.SSS} %-5p [%t] %c{1} - %m%n"


def properties(settings: LoaderSettings, folder: Path) -> dict[str, str]:
    """Returns the properties with which the loader starts Spark's process: the loader's own
    defaults, and those of the setting `spark.conf`, which take precedence; without `secrets`.
    Writes the settings of Spark's log into a file in `folder`."""
    log4j = folder / "log4j2.properties"
    log4j.write_text(log4j_properties(settings.spark_log_file))
    given = {
        "spark.app.name": "skidway-load",
        "spark.master": settings.spark_master,
        "spark.ui.enabled": "false",
        "spark.driver.memory": settings.spark_driver_memory,
        "spark.driver.defaultJavaOptions": BRIEF,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{log4j}",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **_authentication(settings),
        **_hadoop_environment(),
    } | settings.spark_conf
    return {name: value for name, value in given.items() if not _SECRET.search(name)}


def secrets(settings: LoaderSettings) -> dict[str, str]:
    """Returns the properties that the Spark context gets when the process runs, because every user
    of the host sees the command line of the process. Raises ConfigurationRefused."""
    given = _authentication(settings) | settings.spark_conf
    return {name: value for name, value in given.items() if _SECRET.search(name)}


def is_open(settings: LoaderSettings) -> bool:
    """Returns whether Spark's processes do not authenticate each other, so that whoever reaches
    their ports can read rows, and run code as the loader's user."""
    given = _authentication(settings) | settings.spark_conf
    return given.get("spark.authenticate", "false").lower() != "true"


def _authentication(settings: LoaderSettings) -> dict[str, str]:
    """Returns the properties that keep strangers away from the ports of Spark's processes. If all
    processes are on this host, Spark makes a random secret by itself, and nothing listens on other
    addresses than loopback."""
    if settings.is_spark_local:
        return {
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
            "spark.authenticate": "true",
        }
    if settings.spark_authenticate_secret_file is None:
        return {}
    return {
        "spark.authenticate": "true",
        "spark.authenticate.secret": _secret(settings.spark_authenticate_secret_file),
        "spark.network.crypto.enabled": "true",
        "spark.io.encryption.enabled": "true",
    }


def _secret(file: Path) -> str:
    try:
        secret = read_regular(file).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigurationRefused(
            f"spark.authenticate.secret.file: cannot read {file}: {reason}"
        ) from error
    if not secret:
        raise ConfigurationRefused(f"spark.authenticate.secret.file: {file} is empty")
    return secret


def temporary_directories(settings: LoaderSettings, folder: Path) -> list[str]:
    """Returns where Spark's processes on this machine keep temporary files. folder: where, if
    nobody has chosen another directory."""
    chosen = os.environ.get("SPARK_LOCAL_DIRS") or settings.spark_conf.get("spark.local.dir")
    return chosen.split(",") if chosen else [str(folder)]


def log4j_properties(file: Path | None) -> str:
    """Returns the settings of Spark's log. If `file` is a path, Spark writes messages of level info
    and above to that file. Spark always writes warnings to its output, in which the loader finds
    the reason of a start that failed."""
    lines = [
        "status = error",
        f"rootLogger.level = {'info' if file else 'warn'}",
        *_appender("console", "Console"),
        "rootLogger.appenderRef.console.level = warn",
    ]
    if file:
        lines += [
            *_appender("file", "File"),
            f"appender.file.fileName = {java.escaped(file.absolute())}",
            "appender.file.append = true",
        ]
    return "\n".join(lines) + "\n"


def _appender(name: str, kind: str) -> list[str]:
    return [
        f"rootLogger.appenderRef.{name}.ref = {name}",
        f"appender.{name}.type = {kind}",
        f"appender.{name}.name = {name}",
        f"appender.{name}.layout.type = PatternLayout",
        f"appender.{name}.layout.pattern = {PATTERN}",
    ]


def workers_python(settings: LoaderSettings) -> str:
    """Returns the Python that runs tasks: `spark.pyspark.python` if the operator sets this
    property, otherwise this process's Python. On Spark's workers, the Python at this path must have
    the loader's packages.

    Spark itself reads `spark.pyspark.python` only in a session that spark-submit started.
    """
    return settings.spark_conf.get("spark.pyspark.python", sys.executable)


def _hadoop_environment() -> dict[str, str]:
    """Returns the properties that make tasks use HDFS as the loader does: under the name of the
    loader's user, with its configuration, which has the name services, and in its realm.

    The name is necessary because the loader must move the files that the tasks write. It is missing
    if the loader's user has no name.
    """
    found = {}
    name = os.environ.get("HADOOP_USER_NAME") or _user_name()
    if name:
        found["spark.executorEnv.HADOOP_USER_NAME"] = name
    for variable, _ in VARIABLES:
        if value := os.environ.get(variable):
            found[f"spark.executorEnv.{variable}"] = value
            break
    if value := os.environ.get("KRB5_CONFIG"):
        found["spark.executorEnv.KRB5_CONFIG"] = value
    return found


def _user_name() -> str | None:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:  # the user id has no name that could be passed to HDFS
        return None

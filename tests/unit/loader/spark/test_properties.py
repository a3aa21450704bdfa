"""Tests the Spark properties with which the loader starts Spark."""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path

import pytest

from skidway.errors import ConfigurationRefused
from skidway.loader.settings import LoaderSettings
from skidway.loader.spark.properties import (
    is_open,
    log4j_properties,
    properties,
    secrets,
    temporary_directories,
    workers_python,
)


def settings(**more: object) -> LoaderSettings:
    given = {"bootstrap_servers": "x:1", "schema_registry_url": "http://x", "topics": ["t"]}
    return LoaderSettings(**{"output_url": "/out", **given, **more})  # type: ignore[arg-type]


def test_the_lines_of_the_log_file_have_a_fixed_form() -> None:
    """The lines of Spark's log file begin with time, level, thread and logger."""
    text = log4j_properties(Path("/tmp/spark.log"))
    assert "appender.file.fileName = /tmp/spark.log" in text
    assert "%d{yyyy-MM-dd HH:mm:ss.SSS} %-5p [%t] %c{1} - %m%n" in text


def test_a_log_file_of_any_name_is_the_one_that_is_meant() -> None:
    """Spark's log file may have any name. Characters of the name that are not ASCII are escaped in
    the properties file, because Java does not read this file as UTF-8."""
    assert r"fileName = /ö/spark.log".replace("ö", "\\u00f6") in log4j_properties(
        Path("/ö/spark.log")
    )


def test_properties_of_the_operator_win(tmp_path: Path) -> None:
    """The operator can set every Spark property, including those that the loader sets itself."""
    given = properties(settings(spark_conf={"spark.ui.enabled": "true", "x": "y"}), tmp_path)
    assert (given["spark.ui.enabled"], given["x"]) == ("true", "y")
    assert given["spark.master"] == "local[*]"
    assert (tmp_path / "log4j2.properties").read_text().startswith("status = error")


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*, 3]"])
def test_on_one_host_nobody_else_can_connect(tmp_path: Path, master: str) -> None:
    """If Spark runs on the loader's host alone, it listens on loopback and demands authentication,
    unless the operator says otherwise."""
    given = properties(settings(spark_master=master), tmp_path)
    assert given["spark.driver.host"] == given["spark.driver.bindAddress"] == "127.0.0.1"
    assert given["spark.authenticate"] == "true"
    assert not is_open(settings(spark_master=master))
    wished = {"spark.driver.bindAddress": "0.0.0.0", "spark.authenticate": "false"}
    given = properties(settings(spark_master=master, spark_conf=wished), tmp_path)
    assert wished.items() <= given.items()


def test_a_cluster_gets_its_secret_from_a_file(tmp_path: Path) -> None:
    """On a cluster, Spark authenticates with the secret in the file. Neither this secret nor others
    of `spark.conf` are among the properties of the command line."""
    (tmp_path / "secret").write_text("s3cret\n")
    own = {"spark.ssl.keyPassword": "p", "spark.hadoop.fs.s3a.access.key": "k"}
    told = settings(
        output_url="hdfs://h:1/x",
        spark_master="spark://h:7077",
        spark_authenticate_secret_file=tmp_path / "secret",
        spark_conf=own,
    )
    given = properties(told, tmp_path)
    assert given["spark.authenticate"] == given["spark.network.crypto.enabled"] == "true"
    assert given["spark.io.encryption.enabled"] == "true"
    assert secrets(told) == {"spark.authenticate.secret": "s3cret", **own}
    assert not given.keys() & secrets(told).keys()
    assert not is_open(told)


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "No such file"), (b"", "is empty"), (b"\xff", "not UTF-8")]
)
def test_a_secret_that_cannot_be_read_is_refused(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    """A secret's file that is missing, empty or no text is refused with one sentence."""
    if content is not None:
        (tmp_path / "secret").write_bytes(content)
    told = settings(
        spark_master="spark://h:7077", spark_authenticate_secret_file=tmp_path / "secret"
    )
    with pytest.raises(ConfigurationRefused, match=f"spark.authenticate.secret.file: .*{reason}"):
        secrets(told)


@pytest.mark.parametrize("master", ["spark://h:7077", "yarn", "k8s://https://h:443"])
def test_an_open_cluster_is_noticed(master: str) -> None:
    """A cluster whose processes do not authenticate each other is called open, unless the operator
    has set up its authentication in `spark.conf`."""
    assert is_open(settings(spark_master=master))
    assert not is_open(settings(spark_master=master, spark_conf={"spark.authenticate": "TRUE"}))


def test_the_drivers_jvm_is_told_that_its_life_is_brief(tmp_path: Path) -> None:
    """The driver's JVM gets options that suit a process that runs only briefly. The operator may
    replace these options."""
    name = "spark.driver.defaultJavaOptions"
    assert "-XX:TieredStopAtLevel=1" in properties(settings(), tmp_path)[name].split()
    assert properties(settings(spark_conf={name: "-Xss2m"}), tmp_path)[name] == "-Xss2m"


def test_tasks_are_our_user_for_hdfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks write to HDFS as the driver's user, even on Spark workers on other machines. The driver
    moves the files that the tasks wrote, and HDFS may let only a file's owner move the file."""
    name = "spark.executorEnv.HADOOP_USER_NAME"
    monkeypatch.delenv("HADOOP_USER_NAME", raising=False)
    assert properties(settings(), tmp_path)[name] == pwd.getpwuid(os.geteuid()).pw_name
    monkeypatch.setenv("HADOOP_USER_NAME", "etl")
    assert properties(settings(), tmp_path)[name] == "etl"
    assert properties(settings(spark_conf={name: "x"}), tmp_path)[name] == "x"


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({"HADOOP_CONF_DIR": "/etc/h", "HADOOP_HOME": "/opt/h"}, "HADOOP_CONF_DIR", "/etc/h"),
        ({"HADOOP_HOME": "/opt/h"}, "HADOOP_HOME", "/opt/h"),
    ],
)
def test_tasks_know_the_name_services_that_the_loader_knows(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, str],
    name: str,
    value: str,
) -> None:
    """Tasks find HDFS with the configuration with which the loader finds it, even on Spark workers
    on other machines. The operator can name another directory for them."""
    for each in ("HADOOP_CONF_DIR", "HADOOP_HOME"):
        monkeypatch.delenv(each, raising=False)
    assert not any("HADOOP_CONF" in each for each in properties(settings(), tmp_path))
    for each, text in given.items():
        monkeypatch.setenv(each, text)
    property_ = f"spark.executorEnv.{name}"
    assert properties(settings(), tmp_path)[property_] == value
    assert properties(settings(spark_conf={property_: "x"}), tmp_path)[property_] == "x"


def test_the_python_of_sparks_workers_may_be_named() -> None:
    """If a Spark property sets a Python interpreter for the workers, this interpreter runs the
    tasks. Without this property, tasks run with the driver's interpreter."""
    assert workers_python(settings()) == sys.executable
    named = settings(spark_conf={"spark.pyspark.python": "/opt/python"})
    assert workers_python(named) == "/opt/python"


def test_the_directories_of_temporary_files_are_those_that_spark_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages name the directories that Spark uses: those of SPARK_LOCAL_DIRS, otherwise those of
    spark.local.dir, otherwise the loader's own directory."""
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    assert temporary_directories(settings(), tmp_path) == [str(tmp_path)]
    chosen = settings(spark_conf={"spark.local.dir": "/a,/b"})
    assert temporary_directories(chosen, tmp_path) == ["/a", "/b"]
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/c")
    assert temporary_directories(chosen, tmp_path) == ["/c"]

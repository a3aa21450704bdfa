"""A start of Spark that fails or never ends. What needs a cluster is in test_spark_cluster.py."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
from collections.abc import Mapping
from pathlib import Path
from unittest.mock import patch

import pytest

from skidway.errors import SkidwayError
from support.processes import eventually
from support.small_disks import small_disk
from support.spark_cluster import java_children
from tests.crash.loader.conftest import (
    ON_SPARK,
    Cluster,
    Loading,
    SharedSpark,
    fill,
    identities,
    lines,
    loading_of,
)

pytestmark = [pytest.mark.java, pytest.mark.foreign]

CONF = "spark.conf.spark"
MISSING = "/missing/skidway.tar.gz"
BROKEN = f"{CONF}.archives={MISSING}"
NOT_STARTED = "Spark did not start on local[2]: "


@pytest.mark.parametrize(
    ("more", "environment", "cause"),
    [
        (f"{CONF}.driver.bindAddress=203.0.113.1", {}, "Cannot assign requested address"),
        (f"{CONF}.driver.defaultJavaOptions=-Xss1", {}, "stack size specified is too small"),
        ("slice.records=10", {"SPARK_HOME": "/missing"}, "/missing/bin/spark-submit"),
        (f"{CONF}.local.dir=/proc/missing/x", {}, "Failed to create local dir in /proc/missing/x"),
    ],
    ids=["address", "java", "home", "directory"],
)
def test_what_keeps_spark_from_starting_is_one_sentence(
    loading: Loading, more: str, environment: Mapping[str, str], cause: str
) -> None:
    """If Spark does not start, the run says so in one sentence with the master and the cause, ends
    with status 1, and commits nothing."""
    fill(loading, 0, 10)
    said = _refused(loading, more, env=environment)
    assert said.startswith(NOT_STARTED)
    assert cause in said


def test_a_broken_file_of_hadoops_configuration_is_named(loading: Loading, tmp_path: Path) -> None:
    """If Spark does not start because a file in HADOOP_CONF_DIR is broken, the run and `load
    validate` name the file."""
    fill(loading, 0, 10)
    environment, file = {"HADOOP_CONF_DIR": str(tmp_path)}, tmp_path / "yarn-site.xml"
    file.write_text("<configuration><prop")
    assert f"{file}" in (said := _refused(loading, env=environment))
    assert said.startswith(NOT_STARTED)
    with patch.dict(os.environ, environment):
        validate = loading.spark.run(loading.arguments(verb="validate"))
    assert (validate.returncode, str(file) in validate.stderr) == (1, True)


@pytest.mark.root
def test_a_full_disk_of_sparks_temporary_files_is_named(loading: Loading, tmp_path: Path) -> None:
    """If the disk of Spark's temporary files is full, the run names their directory."""
    fill(loading, 0, 10)
    with small_disk("tmpfs", tmp_path, 8 << 20) as disk:
        disk.fill()
        said = _refused(loading, f"{CONF}.local.dir={disk.path}")
    assert said.endswith(f" in {disk.path} (spark.local.dir)")


def _refused(loading: Loading, *more: str, env: Mapping[str, str] | None = None) -> str:
    """Runs a load on Spark, which fails and commits nothing. Returns the only sentence that the run
    says."""
    loading.way = ON_SPARK
    program = loading.start(*more, env=env)
    assert program.wait() == SkidwayError.exit_code
    (said,) = re.findall("^skidway load: (.*)$", program.output(), re.MULTILINE)
    assert "Traceback" not in program.output()
    assert loading.state("*.json") == []
    assert loading.state("staging/*") == []
    return str(said)


def test_topics_that_need_no_spark_are_loaded_without_it(
    cluster: Cluster, spark: SharedSpark, tmp_path: Path
) -> None:
    """If Spark does not start, a resident loader goes on: in each run it names the topic that needs
    Spark, and loads the topics that come later and need none."""
    large, small = sorted(
        (loading_of(cluster, spark, tmp_path) for _ in range(2)), key=lambda each: each.topic
    )
    fill(large, 0, 100)
    topics = f"topics={large.topic},{small.topic}"
    program = large.start_resident(topics, "spark.above.offsets=150", BROKEN)
    for count in (10, 20):
        fill(small, count - 10, 10)
        program.wait_until(lambda: len(small.rows()) == 2 * count)  # noqa: B023
    program.wait_until(lambda: program.output().count(NOT_STARTED) >= 2)
    assert re.search(f"{re.escape(NOT_STARTED)}.*{MISSING}", program.output())
    program.stop()
    assert program.returncode == 0, program.output()
    assert "Traceback" not in program.output()
    assert identities(small.rows()) == lines(20)
    assert large.rows() == []


def test_a_start_that_does_not_end_can_be_ended(loading: Loading) -> None:
    """If a run gets SIGTERM while Spark starts, it ends and commits nothing, although the start
    itself would not end. No Java process is left."""
    loading.way = ON_SPARK
    fill(loading, 0, 10)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/skidway.tar.gz"
        program = loading.start(f"{CONF}.archives={url}", f"{CONF}.files.fetchTimeout=1h")
        connection, _ = silent.accept()
        with connection:
            (java,) = java_children(program.pid)
            program.signal(signal.SIGTERM)
            assert program.wait() == 1
    assert "interrupted" in program.output()
    assert "Traceback" not in program.output()
    eventually(lambda: not Path(f"/proc/{java}").exists())
    assert loading.state("*.json") == []


def test_validate_refuses_what_a_run_refuses(loading: Loading) -> None:
    """`skidway load validate` refuses every configuration that `skidway load run` refuses, with the
    same sentence and status 78."""
    for more in (
        "schema.registry.url=http://jane:secret@127.0.0.1:1",
        "schema.registry.url=127.0.0.1:8081",
        "schema.registry.basic.auth.user.info.location=/dev/null/jane",
        "bootstrap.servers=127.0.0.1:x",
        "metrics.listener=here",
        "collector.url=127.0.0.1:8088",
        "output=s3://bucket/logs",
        "output=hdfs:///logs",
        "output=hdfs://namenode:port/logs",
        "output=/dev/null/logs",
        "spark.master=spark://127.0.0.1:7077",
    ):
        run = loading.spark.run(loading.arguments(more))
        validate = loading.spark.run(loading.arguments(more, verb="validate"))
        assert (run.returncode, validate.returncode) == (78, 78)
        assert run.stderr.splitlines()[-1:] == validate.stderr.splitlines()
        assert "secret" not in run.stderr
    missing = ("schema.registry.url=https://127.0.0.1:1", "schema.registry.ssl.ca.location=/no.pem")
    validate = loading.spark.run(loading.arguments(*missing, verb="validate"))
    assert (validate.returncode, "/no.pem" in validate.stderr) == (78, True)
    bad = loading.spark.run(loading.arguments(f"{CONF}.local.dir=/dev/null/x", verb="validate"))
    assert (bad.returncode, "cannot create files in /dev/null: " in bad.stderr) == (78, True)
    with patch("skidway.files.tempfile.TemporaryFile", side_effect=OSError(30, "Read-only")):
        bad = loading.spark.run(loading.arguments(verb="validate"))
    assert (bad.returncode, ": Read-only" in bad.stderr) == (78, True)
    good = loading.spark.run(loading.arguments(verb="validate"))
    assert (good.returncode, json.loads(good.stdout)) == (0, {"ok": True})

"""A start of Spark that fails or never ends. What needs a cluster is in test_spark_cluster.py."""

from __future__ import annotations

import json
import re
import signal
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from skidway.errors import SkidwayError
from support.processes import eventually
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

pytestmark = pytest.mark.java

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
    ],
    ids=["address", "java", "home"],
)
def test_what_keeps_spark_from_starting_is_one_sentence(
    loading: Loading, more: str, environment: Mapping[str, str], cause: str
) -> None:
    """If Spark does not start, the run says so in one sentence with the master and the cause, ends
    with status 1, and commits nothing."""
    loading.way = ON_SPARK
    fill(loading, 0, 10)
    program = loading.start(more, env=environment)
    assert program.wait() == SkidwayError.exit_code
    said = [line for line in program.output().splitlines() if line.startswith("skidway load: ")]
    assert len(said) == 1
    assert said[0].startswith(f"skidway load: {NOT_STARTED}")
    assert cause in said[0]
    assert "Traceback" not in program.output()
    assert loading.state("*.json") == []
    assert loading.state("staging/*") == []


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
        "schema.registry.basic.auth.user.info=jane",
        "bootstrap.servers=127.0.0.1:x",
        "metrics.listener=here",
        "collector.url=127.0.0.1:8088",
        "output=s3://bucket/logs",
        "output=hdfs:///logs",
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
    good = loading.spark.run(loading.arguments(verb="validate"))
    assert (good.returncode, json.loads(good.stdout)) == (0, {"ok": True})

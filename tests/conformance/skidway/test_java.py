from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from skidway import java
from skidway.java import DROPPED_OPTION
from support import jvm
from support.processes import running
from support.zookeeper import ZooKeeper

pytestmark = pytest.mark.java

SPARK_JOB = f"""
from pyspark.sql import SparkSession
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .config(map={dict(jvm.SPARK)})
    .getOrCreate()
)
rows = spark.range(1000).selectExpr("id % 7 as k").groupBy("k").count().collect()
print("java", spark._jvm.System.getProperty("java.version"))
print("sum", sum(row["count"] for row in rows))
spark.stop()
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Environment variables with which programs use the bundled Java, even if the machine has
    another Java."""
    kept = {k: v for k, v in os.environ.items() if k not in ("JAVA_HOME", "SPARK_HOME")}
    return {**kept, "SKIDWAY_JAVA": "bundled", "XDG_CACHE_HOME": str(tmp_path / "cache")}


def test_bundled_java_really_starts(environ: dict[str, str]) -> None:
    """Skidway finds the bundled Java. This Java starts even with DROPPED_OPTION, an option that
    Spark sets and this Java does not know."""
    found = java.find(environ)
    assert found.source == "bundled"
    assert found.version >= java.VERSION_MIN
    started = subprocess.run(
        [found.command, DROPPED_OPTION, "-version"], capture_output=True, text=True, check=False
    )
    assert started.returncode == 0, started.stderr
    assert f'version "{found.version}' in started.stderr


def test_without_a_java_on_the_machine_the_bundled_one_is_used(tmp_path: Path) -> None:
    """If a machine has no Java of its own, Skidway uses the bundled Java without any
    configuration."""
    found = java.find({"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)})
    assert found.source == "bundled"
    assert java.probe(found.command) is not None


@pytest.mark.slow
def test_zookeeper_serves_on_the_bundled_java(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real ZooKeeper can run on the bundled Java, which pip has installed."""
    for name in ("SKIDWAY_JAVA", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, environ[name])
    server = ZooKeeper(tmp_path)
    with running(server.program, server.ready):
        assert '"java_source": "bundled"' in server.program.output()


@pytest.mark.slow
def test_spark_computes_on_the_bundled_java(environ: dict[str, str], tmp_path: Path) -> None:
    """A Spark job with a shuffle can run on the bundled Java, which pyspark's own launcher
    starts."""
    found = java.find(environ)
    job = subprocess.run(
        [sys.executable, "-c", SPARK_JOB],
        env={**environ, **java.environment(found)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert job.returncode == 0, job.stderr[-4000:]
    assert f"java {found.version}" in job.stdout
    assert "sum 1000" in job.stdout

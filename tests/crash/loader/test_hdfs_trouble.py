"""Loads survive problems of a real HDFS, such as safe mode, quotas and dead DataNodes.

Every run that fails prints one sentence and exits with the status for this kind of error. After the
problem is solved, each line becomes one row, the audit counts each row once, and no file is left in
the folder `staging` (the folder of uncommitted files).
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from skidway.errors import SkidwayError
from skidway.loader.store import StoreConnection
from support import telemetry
from support.hdfs import Hdfs
from support.processes import eventually, free_port
from support.promises import promise
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

UNREACHABLE = 3
HOURS = 10
SLICE = 1000
"""The maximum number of offsets that one task on Spark reads (the setting `slice.records`)."""


@pytest.fixture(scope="module")
def three_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """An HDFS with three DataNodes, which stores each block on two DataNodes."""
    folder = tmp_path_factory.mktemp("three-nodes")
    with Hdfs(folder, data_nodes=3, settings={"dfs.replication": "2"}).running() as made:
        yield made


class Troubled:
    """A load into HDFS, and a problem of HDFS that begins while the load's tasks read."""

    def __init__(self, behind_proxy: BehindProxy, loading: Loading, hdfs: Hdfs) -> None:
        self._behind_proxy, self.hdfs = behind_proxy, hdfs
        self.loading = loading
        loading.output = f"{hdfs.url}/{loading.topic}"
        self.folder = urlsplit(loading.output).path
        self.count = 0

    def fill(self) -> None:
        """Sends 2000 more lines of each of the files 1 and 2. A load on Spark reads these lines
        with two tasks for each file."""
        fill(self.loading, self.count, 2 * SLICE)
        self.count += 2 * SLICE

    def run_while(self, trouble: Callable[[], object]) -> subprocess.CompletedProcess[str]:
        """Runs a load. When a task begins to read the newest lines, calls `trouble`, and then lets
        the task continue. Returns the run's output and exit status."""
        held = self._behind_proxy.held(self.loading.topic, first=self.count - SLICE)

        def act() -> None:
            try:
                held.wait_for_hit()
                trouble()
            finally:
                held.release()

        with ThreadPoolExecutor(1) as thread:
            acting = thread.submit(act)
            done = self.loading.run()
        acting.result()
        return done

    def rows(self) -> list[tuple[int, int]]:
        return hdfs_identities(self.loading)

    def manifests(self) -> list[str]:
        found = StoreConnection(self.loading.output).store().names(f"_skidway/{self.loading.topic}")
        return [name for name in found if name.endswith(".json")]

    def staged(self) -> list[str]:
        state = f"_skidway/{self.loading.topic}"
        return StoreConnection(self.loading.output).store().names(f"{state}/staging")

    def check(self, expected: list[tuple[int, int]] | None = None) -> None:
        """Runs the loader twice after the problem. Asserts that the second run has nothing to load.
        Also asserts that each line has one row, that the loader has counted each row once, and that
        no uncommitted file is left in the folder `staging`."""
        self.loading.loaded()
        assert self.loading.loaded()["rows"] == 0
        expected = expected or lines(self.count)
        assert self.rows() == expected
        assert counted(self.loading) == len(expected)
        assert self.staged() == []


@pytest.fixture
def loading(behind_proxy: BehindProxy, spark: SharedSpark, tmp_path: Path) -> Loading:
    return loading_of(behind_proxy.cluster, spark, tmp_path)


@pytest.fixture
def troubled(behind_proxy: BehindProxy, loading: Loading, hdfs: Hdfs) -> Troubled:
    return Troubled(behind_proxy, loading, hdfs)


def check_sentence(done: subprocess.CompletedProcess[str], status: int, *words: str) -> None:
    """Asserts that a run of the loader exited with this status and printed one sentence, which
    contains these words."""
    assert done.returncode == status, done.stderr
    (sentence,) = [line for line in done.stderr.splitlines() if line.startswith("skidway")]
    for word in words:
        assert word in sentence
    assert "Traceback" not in done.stderr
    assert "org.apache.hadoop" not in done.stderr


@promise("5 real loader")
def test_safe_mode_before_a_run(troubled: Troubled) -> None:
    """If HDFS is in safe mode, a run of the loader loads nothing and exits with the status for an
    unreachable service."""
    troubled.fill()
    with troubled.hdfs.safe_mode():
        check_sentence(troubled.loading.run(), UNREACHABLE, "safe mode")
    troubled.loading.loaded()
    troubled.fill()
    with troubled.hdfs.safe_mode():
        check_sentence(troubled.loading.run(), UNREACHABLE, "safe mode")
    troubled.check()


@promise("5 real loader")
def test_safe_mode_in_the_middle_of_a_load(troubled: Troubled) -> None:
    """If HDFS enters safe mode while tasks read, the load is not committed."""
    troubled.loading.way = ON_SPARK
    troubled.fill()
    with contextlib.ExitStack() as safe:
        done = troubled.run_while(lambda: safe.enter_context(troubled.hdfs.safe_mode()))
        check_sentence(done, UNREACHABLE, "safe mode")
        assert troubled.rows() == []
    troubled.check()


@promise("5 real loader")
def test_a_quota_of_space_is_exceeded(troubled: Troubled) -> None:
    """If the output's directory has reached its space quota, a run of the loader commits nothing,
    and its error names the quota and the directory."""
    troubled.fill()
    done = troubled.run_while(lambda: troubled.hdfs.admin("-setSpaceQuota", "1m", troubled.folder))
    check_sentence(done, 1, "quota", troubled.folder)
    assert troubled.rows() == []
    troubled.hdfs.admin("-clrSpaceQuota", troubled.folder)
    troubled.check()


@promise("5 real loader", "5 manifest")
def test_a_quota_of_names_is_exceeded_at_each_step(troubled: Troubled) -> None:
    """A quota on the number of files and directories can stop a run of the loader before or after
    its commit. After the commit, the run still has to create a directory for each hour of its rows.
    At whatever step the run stops, no line is lost or doubled."""
    loading = troubled.loading
    fill(loading, 0, 10)
    loading.loaded()
    for hour in range(1, HOURS):
        loading.cluster.send(loading.topic, 0, 3600 * hour, 1)
    expected = sorted([*lines(10), *((1, 3600 * hour) for hour in range(1, HOURS))])
    failed_at = []
    for more in range(4, 60, 5):
        names = names_below(troubled.hdfs, troubled.folder)
        troubled.hdfs.admin("-setQuota", str(names + more), troubled.folder)
        done = loading.run()
        rows = troubled.rows()
        assert len(rows) == len(set(rows))
        assert set(rows) <= set(expected)
        if done.returncode == 0:
            break
        check_sentence(done, 1, "quota", troubled.folder)
        failed_at.append(len(troubled.manifests()))
    assert sorted(set(failed_at)) == [1, 2], "a run fails before its commit, and another after it"
    troubled.hdfs.admin("-clrQuota", troubled.folder)
    troubled.check(expected)


def names_below(hdfs: Hdfs, folder: str) -> int:
    """Returns the number that HDFS compares with the quota: the number of files and directories in
    `folder`."""
    found = StoreConnection(f"{hdfs.url}{folder}").store()._client.get_content_summary(folder)  # type: ignore[attr-defined]
    return int(found.file_count + found.directory_count)


@promise("5 real loader")
def test_the_only_data_node_dies_in_the_middle(troubled: Troubled) -> None:
    """If the only DataNode dies while the loader's tasks read, the loader's run exits with the
    status for an unreachable service. The next run exits with the same status, because it cannot
    even read the manifest. When the DataNode runs again, loads succeed."""
    troubled.loading.way = ON_SPARK
    troubled.fill()
    troubled.loading.loaded()
    troubled.fill()
    node = troubled.hdfs.data_node
    try:
        done = troubled.run_while(node.kill)
        check_sentence(done, UNREACHABLE, "DataNode")
        check_sentence(troubled.loading.run(), UNREACHABLE, "DataNode")
    finally:
        node.start()
    eventually(lambda: readable(troubled))
    troubled.check()


def readable(troubled: Troubled) -> bool:
    """Returns whether the rows of the output can be read."""
    try:
        troubled.rows()
    except SkidwayError:
        return False
    return True


@promise("5 real loader")
def test_one_of_three_data_nodes_dies_in_the_middle(
    behind_proxy: BehindProxy, loading: Loading, three_nodes: Hdfs
) -> None:
    """If one of three DataNodes dies while tasks read, the load continues with the other two
    DataNodes."""
    troubled = Troubled(behind_proxy, loading, three_nodes)
    troubled.fill()
    troubled.loading.loaded()
    troubled.fill()
    done = troubled.run_while(three_nodes.data_node.kill)
    assert done.returncode == 0, done.stderr
    assert troubled.rows() == lines(troubled.count)
    troubled.fill()
    troubled.check()


@promise("5 real loader")
def test_a_resident_loader_outlives_the_trouble(troubled: Troubled) -> None:
    """A resident loader is a process that makes one run after another. If HDFS is in safe mode or
    the only DataNode dies, a resident loader reports the problem on /health. When the problem is
    solved, the loader continues to load without help."""
    port = free_port()
    troubled.fill()
    program = troubled.loading.start_resident(f"metrics.listener=127.0.0.1:{port}")
    program.wait_until(lambda: readable(troubled) and troubled.rows() == lines(2000))
    with troubled.hdfs.safe_mode():
        troubled.fill()
        program.wait_until(lambda: "safe mode" in problem(port))
    program.wait_until(lambda: troubled.rows() == lines(4000))
    troubled.hdfs.data_node.kill()
    try:
        troubled.fill()
        program.wait_until(lambda: "DataNode" in problem(port))
    finally:
        troubled.hdfs.data_node.start()
    program.wait_until(lambda: readable(troubled) and troubled.rows() == lines(6000))
    program.wait_until(lambda: not problem(port))
    assert program.stop() == 0, program.output()
    troubled.check()


def problem(port: int) -> str:
    """Asks for /health. Returns the problem that the answer names, or ""."""
    return str(telemetry.health(port)[1].get("problem") or "")

"""`skidway load run --every` works with its own Spark, and without Spark."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from support.processes import eventually
from support.promises import promise
from support.spark_cluster import java_children
from tests.crash.loader.conftest import ON_SPARK, Loading, identities, lines

pytestmark = pytest.mark.java


def rows(loading: Loading) -> int:
    files = (Path(loading.output) / loading.topic).rglob("*.parquet")
    return sum(pq.read_metadata(each).num_rows for each in files)


@pytest.mark.foreign
@promise("5 real loader")
def test_a_resident_loader_outlives_its_spark(loading: Loading) -> None:
    """A resident loader (`--every`) starts Spark once, and loads new records in run after run. If
    Spark's Java process is killed with kill -9, the loader starts Spark again, and every row exists
    once. After SIGTERM the loader exits with status 0, and leaves behind no Java process, and no
    uncommitted file in the folder `staging`."""
    loading.way = ON_SPARK
    program = loading.start_resident()
    seen: list[int] = []
    for first in (0, 100, 200):
        for partition in (0, 1):
            loading.cluster.send(loading.topic, partition, first, 100)
        program.wait_until(lambda: rows(loading) >= 2 * (first + 100))  # noqa: B023
        assert identities(loading.rows()) == lines(first + 100)
        seen += java_children(program.pid)
        if first == 100:
            os.kill(seen[-1], signal.SIGKILL)
    assert len(set(seen)) == 2
    assert seen[0] == seen[1]
    program.stop()
    assert program.returncode == 0, program.output()
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in seen))
    assert loading.state("staging/*") == []


@promise("5 real loader", "5 host and path")
def test_small_loads_need_no_spark(loading: Loading) -> None:
    """If the loads are small, a resident loader (`--every`) starts no Java process. It loads new
    records, even those of files that an agent has announced only since the previous run. If the
    loader is killed with kill -9, the next loader continues, and every row exists once."""
    program = loading.start_resident()
    for first in (0, 1000, 2000):
        loading.cluster.announce(loading.topic, 3 + first)
        for partition in (0, 1):
            loading.cluster.send(loading.topic, partition, first, 1000)
        loading.cluster.send(loading.topic, 0, first, 1000, file=3 + first)
        if first < 2000:
            program.wait_until(lambda: rows(loading) >= 3 * (first + 1000))  # noqa: B023
        assert java_children(program.pid) == []
    eventually(lambda: loading.state("staging/*/rows-*") or rows(loading) == 9000)
    program.kill()
    program = loading.start_resident()
    program.wait_until(lambda: rows(loading) >= 9000)
    others = [(3 + first, first + line) for first in (0, 1000, 2000) for line in range(1000)]
    assert identities(loading.rows()) == sorted(lines(3000) + others)
    assert java_children(program.pid) == []
    # The run that follows this load deletes the uncommitted files that the killed loader left in
    # the folder `staging`.
    program.wait_until(lambda: not loading.state("staging/*"))
    program.stop()
    assert program.returncode == 0, program.output()

"""`skidway load run --every` with a Spark of its own."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from support.processes import eventually
from support.promises import promise
from support.spark_cluster import java_children
from tests.crash.loader.conftest import Loading, identities, lines

pytestmark = [pytest.mark.crash, pytest.mark.java]


def rows(loading: Loading) -> int:
    files = (Path(loading.output) / loading.topic).rglob("*.parquet")
    return sum(pq.read_metadata(each).num_rows for each in files)


@promise("5 real loader")
def test_a_resident_loader_outlives_its_spark(loading: Loading) -> None:
    """A resident loader loads what arrives, run after run, on one Spark. After a kill -9 of Spark's
    Java process, it starts Spark again, and every row exists once. After SIGTERM it ends with
    status 0, and leaves no Java process and no staged file."""
    program = loading.start_resident()
    seen: list[int] = []
    for first in (0, 100, 200, 300):
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

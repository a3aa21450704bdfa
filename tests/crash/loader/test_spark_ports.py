"""Spark's processes let no stranger in: on one host they listen only on loopback, and they
authenticate each other. No command line shows a secret."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from support.spark_cluster import java_children
from tests.crash.loader.conftest import ON_SPARK, Loading, fill

pytestmark = pytest.mark.java

PASSWORD = {"spark.conf.spark.ssl.keyPassword": "confidential"}


def family(pid: int) -> set[int]:
    """Returns the ids of a process and of all processes that it or its children have started."""
    children = [
        int(child)
        for task in Path(f"/proc/{pid}/task").glob("*/children")
        for child in task.read_text().split()
    ]
    return {pid}.union(*map(family, children))


def listening(pids: set[int]) -> list[str]:
    """Returns the addresses on which these processes accept connections, as `ss` shows them."""
    lines = subprocess.run(
        ["ss", "-Hltnp"], capture_output=True, text=True, check=True, timeout=60
    ).stdout.splitlines()
    owned = [x for x in lines if pids.intersection(map(int, re.findall(r"pid=(\d+)", x)))]
    return [line.split()[3].rpartition(":")[0] for line in owned]


def test_nothing_listens_on_other_addresses(loading: Loading) -> None:
    """While a resident loader has its own Spark, its processes listen only on loopback, the
    driver's ports demand authentication, and no command line shows a password of `spark.conf`."""
    loading.way = ON_SPARK | PASSWORD
    fill(loading, 0, 100)
    program = loading.start_resident("metrics.listener=127.0.0.1:0")
    program.wait_until(lambda: len(loading.rows()) == 200)
    pids = family(program.pid)
    assert java_children(program.pid)
    addresses = listening(pids)
    assert len(addresses) >= 3  # the metrics, and the driver's ports
    assert all(re.fullmatch(r"127\.0\.0\.1|\[::ffff:127\.0\.0\.1\]|\[::1\]", x) for x in addresses)
    (java,) = java_children(program.pid)
    words = Path(f"/proc/{java}/cmdline").read_bytes().decode().split("\0")
    assert "spark.authenticate=true" in words
    assert not any("confidential" in word for word in words)
    program.stop()
    assert program.returncode == 0, program.output()

"""`skidway zookeeper run` starts a ZooKeeper in a JVM. Neither the command nor the JVM outlives the
other."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from skidway import java
from skidway.coordination import Coordinator, Versioned
from support.processes import eventually, free_port, run_skidway, running
from support.zookeeper import ZooKeeper

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ZooKeeper]:
    """A ZooKeeper (`skidway zookeeper run` with its JVM) that only one test uses, so the test may
    kill it."""
    zookeeper = ZooKeeper(tmp_path)
    with running(zookeeper.program, zookeeper.ready):
        yield zookeeper


def jvm_of(server: ZooKeeper) -> int:
    """Returns the process id of the JVM that `skidway zookeeper run` has started."""
    pid = server.program.pid
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


def ended(pid: int) -> bool:
    """Returns whether a process has ended. A zombie process counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def test_terminated_server_stops_cleanly_and_keeps_its_data(server: ZooKeeper) -> None:
    """After SIGTERM, `skidway zookeeper run` ends its JVM and exits with status 0. After a restart
    all written data exists."""
    with Coordinator(server.address) as session:
        session.create_if_absent("/kept", b"1")
    jvm = jvm_of(server)
    assert server.program.stop() == 0
    assert ended(jvm)
    server.program.start().wait_until(server.ready)
    with Coordinator(server.address) as session:
        assert session.get("/kept") == Versioned(b"1", 0)


def test_death_of_the_jvm_ends_the_program(server: ZooKeeper) -> None:
    """If ZooKeeper's JVM dies, `skidway zookeeper run` exits with a status that says how the JVM
    died."""
    os.kill(jvm_of(server), signal.SIGKILL)
    assert server.program.wait() == 128 + signal.SIGKILL
    assert "the server ended with signal 9" in server.program.output()


@pytest.mark.quick
def test_death_of_the_program_kills_the_jvm(server: ZooKeeper) -> None:
    """When `skidway zookeeper run` is killed, its JVM dies too, and the data directory is free for
    the next server."""
    with Coordinator(server.address) as session:
        session.create_if_absent("/kept", b"1")
    jvm = jvm_of(server)
    server.program.kill()
    eventually(lambda: ended(jvm), what="the JVM to be gone")
    server.program.start().wait_until(server.ready)
    with Coordinator(server.address) as session:
        assert session.get("/kept") == Versioned(b"1", 0)


def test_second_server_is_refused_by_directory_and_by_port(
    server: ZooKeeper, tmp_path: Path
) -> None:
    """`skidway zookeeper run` does not start if its data directory or its port is in use. The error
    names the process that uses the directory or the port."""
    data = tmp_path / "data"
    same_directory = run_skidway(
        "zookeeper", "run", "--set", f"dataDir={data}", "--set", f"clientPort={free_port()}"
    )
    assert same_directory.returncode == 65
    assert f"in use by process {server.program.pid}" in same_directory.stderr
    other = tmp_path / "other"
    same_port = run_skidway(
        "zookeeper", "run", "--set", f"dataDir={other}", "--set", f"clientPort={server.port}"
    )
    assert same_port.returncode == 1
    assert "address already in use by process" in same_port.stderr
    assert same_port.stderr.count("\n") == 1


def test_refused_configuration_is_status_78(tmp_path: Path) -> None:
    """If the configuration contains a mistyped key, `skidway zookeeper run` exits with status 78
    and does not start ZooKeeper."""
    refused = run_skidway("zookeeper", "run", "--set", f"dataDirr={tmp_path}")
    assert refused.returncode == 78
    assert "the nearest known one is 'dataDir'" in refused.stderr


def test_validate_says_what_would_run(tmp_path: Path) -> None:
    """For a valid configuration, `skidway zookeeper validate` says that the configuration is valid,
    names the configured data directory and the Java that would run, and exits with status 0. It
    creates no files."""
    good = run_skidway("zookeeper", "validate", "--set", f"dataDir={tmp_path / 'x'}")
    assert good.returncode == 0, good.stderr
    found = java.find()
    words = f"dataDir {tmp_path / 'x'}, Java {found.version} ({found.source})"
    assert good.stdout == f"good: {words}\n"
    assert not (tmp_path / "x").exists()

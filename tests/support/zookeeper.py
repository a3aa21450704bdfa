"""A real ZooKeeper for tests. Each test run starts one `skidway zookeeper run`, and each test gets
its own chroot."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.places import LOOPBACK, Place
from support.processes import Program, free_port, running, skidway, suspend


class ZooKeeper:
    """The running ZooKeeper and its address, with methods that stop and restart it."""

    def __init__(self, folder: Path, *settings: str, place: Place = LOOPBACK) -> None:
        """settings: further settings of the server, KEY=VALUE."""
        self._place = place
        self.port, self.metrics_port = free_port(), free_port()
        self.address = f"{place.host}:{self.port}"
        self.program = Program(
            place.command(
                skidway(
                    *("zookeeper", "run"),
                    *("--set", f"dataDir={folder / 'data'}"),
                    *("--set", f"clientPort={self.port}"),
                    *("--set", f"clientPortAddress={place.host}"),
                    *("--set", f"insecure.listeners={str(place is not LOOPBACK).lower()}"),
                    *("--set", f"metrics.listener=127.0.0.1:{self.metrics_port}"),
                    *(word for each in settings for word in ("--set", each)),
                )
            ),
            folder / "zookeeper.out",
        )

    def ready(self) -> bool:
        return self._place.read(f"http://127.0.0.1:{self.metrics_port}/health") is not None

    def freeze(self) -> None:
        """Suspends the server's process (SIGSTOP). The connections stay open, but the server
        answers no request."""
        for pid in self._servers():
            suspend(pid)

    def thaw(self) -> None:
        """Lets the suspended server run again."""
        for pid in self._servers():
            os.kill(pid, signal.SIGCONT)

    def _servers(self) -> list[int]:
        """The process ids of the program's children. Its only child is ZooKeeper's JVM."""
        pid = self.program.pid
        found = [
            int(each)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for each in (task / "children").read_text().split()
        ]
        assert found, "a server that runs has a JVM"
        return found

    def restart(self) -> None:
        """Stops the server cleanly and starts it again on the same data."""
        self.program.stop()
        self.program.start().wait_until(self.ready)


@pytest.fixture(scope="session")
def zookeeper_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    """One real ZooKeeper for the whole test run. A test that stops ZooKeeper starts another
    ZooKeeper, which only this test uses."""
    server = ZooKeeper(tmp_path_factory.mktemp("zookeeper"))
    with running(server.program, server.ready):
        yield server


@pytest.fixture
def zookeeper(zookeeper_server: ZooKeeper) -> str:
    """The connect string of ZooKeeper, with a chroot that only one test uses."""
    return f"{zookeeper_server.address}/{uuid.uuid4().hex}"

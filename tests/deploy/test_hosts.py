"""The test hosts, on which the other tests in this directory run, work like real servers."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import pytest

from support import hosts
from support.processes import Program, eventually

pytestmark = pytest.mark.deploy


def test_hosts_are_servers_that_see_each_other_and_nothing_else() -> None:
    """A test host has a name and runs systemd as PID 1. It can connect to the other test host of
    the run, but to nothing outside the network of the test hosts. After a shutdown it can start
    again, and its files still exist."""
    with hosts.running(["one", "two"]) as run:
        one, two = run.hosts["one"], run.hosts["two"]
        assert one.read("cat /proc/1/comm; hostname; systemctl is-system-running") == (
            "systemd\none\nrunning"
        )
        routes = one.read("ip route").splitlines()
        assert [route.split()[:3] for route in routes] == [
            [f"{hosts.NETWORK}.0/24", "dev", "host0"]
        ]
        one.run(f"bash -c 'exec 3<>/dev/tcp/{two.name}/22 && read -u 3 line'")
        one.run("echo kept >/var/tmp/file")
        one.power_off()
        one.boot()
        one.wait()
        assert one.read("cat /var/tmp/file") == "kept"


def test_a_killed_run_leaves_nothing_that_the_next_does_not_remove(tmp_path: Path) -> None:
    """If a test run is killed, its hosts die too, and the next test run removes the killed run's
    directory. If another test run is still active, its directory is not removed."""
    command = [sys.executable, "-m", "support.hosts", "alone"]
    paths = {"PYTHONPATH": f"{Path(hosts.__file__).parents[1]}:{Path(hosts.__file__).parents[2]}"}
    killed = Program(command, tmp_path / "killed", env=paths).start()
    killed.wait_until(killed.output)
    folder = Path(killed.output().strip())
    machines = _processes(folder)
    assert machines
    killed.kill()
    eventually(lambda: not _processes(folder), within_s=20, what="its hosts ended")

    with hosts.running(["next"]) as run:
        assert not folder.exists()
        assert run.folder.exists()
        with hosts.running(["other"]):
            assert run.hosts["next"].read("echo alive") == "alive"
    assert not list(hosts.CGROUPS.glob(f"*/{folder.name}"))


def _processes(folder: Path) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in found if f"{folder}/" in line]

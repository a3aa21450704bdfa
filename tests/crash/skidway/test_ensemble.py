from __future__ import annotations

import contextlib
import json
import urllib.request
from pathlib import Path

import pytest

from skidway.coordination import Coordinator, Versioned
from support.processes import Program, answers, eventually, free_port, running, skidway

pytestmark = [pytest.mark.crash, pytest.mark.java, pytest.mark.slow]


class Member:
    """One of three servers, configured like the others but for its number and ports."""

    def __init__(self, number: int, servers: dict[int, str], folder: Path) -> None:
        self.number = number
        self.port, self.metrics_port = free_port(), free_port()
        path = folder / f"zookeeper-{number}.yml"
        path.write_text(
            json.dumps(
                {
                    "dataDir": str(folder / f"data-{number}"),
                    "clientPort": self.port,
                    "metrics.listener": f"127.0.0.1:{self.metrics_port}",
                    "tickTime": 500,
                    "myid": number,
                    "server": servers,
                }
            )
        )
        command = skidway("zookeeper", "run", "--config", str(path))
        self.program = Program(command, folder / f"zookeeper-{number}.out")

    def ready(self) -> bool:
        return answers(f"http://127.0.0.1:{self.metrics_port}/health")

    def mode(self) -> str:
        url = f"http://127.0.0.1:{self.metrics_port}/health"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return str(json.load(answer)["mode"])


def test_ensemble_serves_on_when_its_leader_is_killed(tmp_path: Path) -> None:
    """Three servers elect a leader; killed it is replaced, and nothing written is lost."""
    servers = {n: f"127.0.0.1:{free_port()}:{free_port()}" for n in (1, 2, 3)}
    members = [Member(number, servers, tmp_path) for number in servers]
    with contextlib.ExitStack() as stack:
        for member in members:
            # The first one is not ready before there is a second: await them all together.
            stack.enter_context(running(member.program, lambda: True))
        eventually(lambda: all(member.ready() for member in members), within_s=90)
        modes = {member.mode(): member for member in members}
        assert set(modes) == {"leader", "follower"}
        connect = ",".join(f"127.0.0.1:{member.port}" for member in members)
        with Coordinator(f"{connect}/dc1", session_timeout_s=20) as session:
            session.create_if_absent("/kept", b"1")
            modes["leader"].program.kill()
            assert session.get("/kept") == Versioned(b"1", 0)
            assert session.set_versioned("/kept", b"2", 0)
        left = [member for member in members if member is not modes["leader"]]
        eventually(lambda: all(member.ready() for member in left), within_s=60)
        assert sorted(member.mode() for member in left) == ["follower", "leader"]

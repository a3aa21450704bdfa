"""An agent reports its readiness and its status to a service manager."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.agent_process import AgentProcess
from support.brokers import SkidwayBroker
from support.processes import Program
from support.service_manager import service_manager

pytestmark = pytest.mark.java


def test_an_agent_is_up_while_it_waits_for_its_cluster(
    own_broker: SkidwayBroker, agent: Callable[..., AgentProcess], tmp_path: Path
) -> None:
    """Even if its brokers cannot be reached, the agent reports that it is ready. So a host can boot
    without waiting for brokers. At first the status text says what the agent waits for. Later it
    says that the agent tails files. Until it tails files, /health answers 503."""
    made = agent({"topic": "logs", "paths": [str(tmp_path / "*.log")]})
    own_broker.program.stop()
    with service_manager(tmp_path) as manager:
        program = Program(made.command(), tmp_path / "agent.out", env=manager.environment).start()
        try:
            assert manager.wait_for("READY")["STATUS"].startswith("waiting: ")
            assert not made.healthy()
            own_broker.start()
            while (status := manager.wait_for("READY")["STATUS"]).startswith("waiting: "):
                pass
            assert status == "tailing for 1 topics"
            assert program.stop() == 0
            assert manager.waiting()[-1]["STOPPING"] == "1"
        finally:
            program.kill()


BAD_PATTERN = {"topic": "logs", "paths": ["/x"], "parser": {"type": "regex", "pattern": "(["}}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sources": [BAD_PATTERN]}, "source of topic logs"),
        ({"idle.flush.ms": "soon"}, "idle.flush.ms"),
        ({"idle.flsh.ms": 200}, "the nearest known one is 'idle.flush.ms'"),
    ],
)
def test_a_refused_configuration_ends_before_anything_is_ready(
    tmp_path: Path, settings: dict[str, Any], words: str
) -> None:
    """If the configuration is refused, `skidway agent run` reports nothing to the service manager,
    creates no state directory, says which setting is wrong, and exits with status 78. After this
    status, systemd does not restart the agent."""
    made = AgentProcess(
        tmp_path, "127.0.0.1:1", "http://127.0.0.1:1", [{"topic": "logs", "paths": ["/x"]}]
    )
    made.settings |= settings
    with service_manager(tmp_path) as manager:
        program = Program(made.command(), tmp_path / "agent.out", env=manager.environment).start()
        assert program.wait() == 78
        assert not manager.waiting()
    assert words in program.output()
    assert not made.state.exists()

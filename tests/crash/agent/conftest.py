"""Fixtures: a broker and a registry that only one test uses, and an agent that the test starts."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.agent_process import AgentProcess
from support.brokers import SkidwayBroker, own_broker
from support.processes import free_port, running
from support.proxy import Proxy
from support.registry import Registry

__all__ = ["own_broker"]


@pytest.fixture
def registry(tmp_path: Path, zookeeper: str) -> Iterator[Registry]:
    made = Registry(zookeeper, tmp_path)
    yield made
    if made.program.running:
        made.program.kill()


@pytest.fixture
def proxy(own_broker: SkidwayBroker) -> Iterator[Proxy]:
    """A proxy that is the only way to the broker, because the broker advertises the proxy's
    address."""
    made = Proxy(free_port(), own_broker.port)
    own_broker.settings["advertised.listeners"] = f"PLAINTEXT://127.0.0.1:{made.port}"
    made.start()
    yield made
    made.stop()


@pytest.fixture
def agent(
    tmp_path: Path, own_broker: SkidwayBroker, registry: Registry
) -> Iterator[Callable[..., AgentProcess]]:
    """Yields a function that creates an agent with the given sources, but does not start it. The
    broker and the registry already run."""
    made: list[AgentProcess] = []

    def make(*sources: dict[str, Any]) -> AgentProcess:
        folder = tmp_path / f"agent-{len(made)}"
        folder.mkdir()
        made.append(AgentProcess(folder, own_broker.address, registry.url, sources))
        return made[-1]

    own_broker.start()
    with running(registry.program, registry.ready):
        yield make
        for each in made:
            if each.program.running:
                each.program.kill()

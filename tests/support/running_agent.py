"""The agent's program in the test's process, with a cluster in memory and files in a directory."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from skidway.agent import program
from skidway.agent.cluster import connection
from skidway.agent.cluster.destinations import Cluster
from skidway.agent.configuration import Configuration
from skidway.agent.reloading.preparation import Prepared, check
from skidway.agent.reloading.reloader import Reloader
from skidway.agent.settings import AgentSettings
from skidway.agent.state.database import open_state
from skidway.audit.topic.messages import TOPIC
from skidway.kafka.client import Client, Delivery
from skidway.kafka.types import TopicPartition
from skidway.schemas.client import RegistryClient
from skidway.service import Shutdown
from skidway.telemetry import Health
from support.agent_world import Brokers, MemoryLogs
from support.clock import ManualClock
from support.memory_kafka import MemoryClient, MemoryCluster, MemoryProducer

CLUSTER = Cluster("main", "memory")


class Registry:
    """A schema registry in memory, which gives each schema a number."""

    def __init__(self) -> None:
        self.registered: dict[tuple[str, str], int] = {}

    def register(self, subject: str, schema: str) -> int:
        return self.registered.setdefault((subject, schema), len(self.registered) + 1)


class Sending(MemoryProducer):
    """A producer in memory that also has the attributes and methods which the agent's program uses
    outside the agent's loop. It never delivers the batches of the topic `away`."""

    made_again: frozenset[str] = frozenset()
    away = ""
    refusal = ""

    def __init__(self, cluster: MemoryCluster) -> None:
        super().__init__(cluster)
        self.troubles: dict[TopicPartition, Exception] = {}
        self.bound: dict[str, str] = {}

    @property
    def waiting(self) -> frozenset[TopicPartition]:
        return frozenset(tp for tp, _, _ in self._queue)

    def leader(self, tp: TopicPartition) -> None:
        """Returns None for every partition, as if the producer knew no leader."""

    def failure(self, tp: TopicPartition) -> str:
        """Returns `refusal` for the topic `away`."""
        return self.refusal if tp.topic == self.away else ""

    def poll(self, timeout_ms: int, *wake: int) -> list[Delivery]:
        kept = [each for each in self._queue if each[0].topic == self.away]
        for each in kept:
            self._queue.remove(each)
        found = super().poll(timeout_ms, *wake)
        self._queue.extend(kept)
        return found

    def bind(self, topic_ids: Mapping[str, str]) -> None:
        self.bound = dict(topic_ids)


class Site:
    """A running agent in this process, with a cluster in memory and files in a directory."""

    def __init__(self, folder: Path, **others: Any) -> None:
        self.folder, self.clock = folder, ManualClock()
        self.cluster, self.registry = MemoryCluster(), cast(RegistryClient, Registry())
        self.client = cast(Client, MemoryClient(self.cluster, self.clock))
        self.cluster.create(TOPIC, 1)
        self.document: dict[str, Any] = {
            "bootstrap.servers": "nowhere:1",
            "schema.registry.url": "http://nowhere:1",
            "state.dir": str(folder / "state"),
            "linger.ms": 0,
            "sources": [self.source("logs", "a.log")],
        }
        (folder / "state").mkdir()
        self.write(**others)
        configuration = Configuration(argparse.Namespace(config=self.file, set=[]), "agent")
        self.reloader = Reloader(configuration, configuration.read(), self.clock)
        self.reloader.open()
        prepared = self.prepared(self.reloader.settings)
        found = program.Found(CLUSTER, prepared.destinations, TopicPartition(TOPIC, 0), {})
        self.state = open_state(folder / "state")
        self.agent = program.RunningAgent(
            self.reloader.settings,
            self.state,
            (self.client, self.client),
            self.clock,
            Shutdown(),
            program.Status(Health(False, {})),
            found,
        )
        self.agent.reloader = self.reloader

    @property
    def file(self) -> Path:
        return self.folder / "agent.yml"

    def source(self, topic: str, name: str) -> dict[str, Any]:
        return {"topic": topic, "paths": [str(self.folder / name)]}

    def write(self, **others: Any) -> None:
        self.document |= {key.replace("_", "."): value for key, value in others.items()}
        self.file.write_text(yaml.safe_dump(self.document))

    def prepared(self, settings: AgentSettings) -> Prepared:
        connection.ensure_topics(self.client, settings, False, self.clock.advance)
        schemas = connection.schemas_of(self.registry, settings)
        found = connection.resolve(self.client, schemas, settings, CLUSTER)
        return Prepared(settings, found, {})

    def prepare(self, configuration: Configuration, running: AgentSettings, *_: object) -> Prepared:
        new = configuration.read()
        check(running, new)
        return self.prepared(new)

    def turns(self, count: int = 30) -> None:
        for _ in range(count):
            self.clock.advance(0.3)
            self.agent._mind(self.clock.monotonic())
            self.agent._turn()

    def reload(self) -> None:
        self.reloader.ask()
        self.turns(1)
        preparation = self.reloader._preparation
        if preparation is not None:  # it has not ended yet
            preparation.wait(60)
        self.turns()

    def lines(self, topic: str) -> int:
        return self.cluster.log(TopicPartition(topic, 0)).end


@contextmanager
def running(folder: Path, monkeypatch: pytest.MonkeyPatch, **others: Any) -> Iterator[Site]:
    """Runs an agent until the `with` block ends. `others` are further settings of the agent, with
    underscores in place of dots."""
    monkeypatch.setattr(program, "Producer", lambda client, **_: Sending(client.cluster))
    monkeypatch.setattr(program, "FetchedLogs", lambda *_: MemoryLogs(Brokers()))
    made = Site(folder, **others)
    monkeypatch.setattr(program, "prepare", made.prepare)
    with made.agent:
        yield made
    made.state.close()

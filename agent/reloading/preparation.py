"""Prepares new settings in a thread, because the registry and the cluster may take long to answer.
The thread works on copies: it shares no state with the agent's loop.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from skidway import log
from skidway.agent.cluster import connection
from skidway.agent.cluster.destinations import Cluster, Destination
from skidway.agent.configuration import Configuration, SourcesRefused
from skidway.agent.good_files import keep
from skidway.agent.reloading.difference import needs_restart
from skidway.agent.settings import AgentSettings
from skidway.agent.validation.checks import check_settings, reserved_fields
from skidway.agent.validation.report import of_reserved
from skidway.dataclass import dataclass
from skidway.errors import UNEXPECTED_EXIT_CODE, ConfigurationRefused, SkidwayError, Unreachable
from skidway.kafka.client import READ_UNCOMMITTED
from skidway.kafka.errors import KafkaError
from skidway.kafka.types import TopicPartition

TIMEOUT_S: Final = 5.0

_log = log.get(__name__)


@dataclass(frozen=True, slots=True)
class Prepared:
    """New settings, and everything that the loop needs to apply them. ends: for topics that are new
    to the agent, the log end offsets of their partitions.
    """

    settings: AgentSettings
    destinations: list[Destination]
    ends: dict[TopicPartition, int]

    @property
    def warnings(self) -> list[str]:
        """Sentences that warn the operator: the agent can run with the new settings, but the loader
        would refuse a topic, because fields have the names of the loader's columns."""
        schemas = {each.data.topic: each.recipe.schema.text for each in self.destinations}
        return [
            f"source of topic {topic}: {words}"
            for topic, schema in schemas.items()
            for words in of_reserved(reserved_fields(schema))
        ]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why new settings cannot be applied. status: the exit status of the command that asked for the
    reload. public: what everybody may know of the reason, if not all.
    """

    reason: str
    status: int
    public: str | None = None


def check(running: AgentSettings, new: AgentSettings) -> None:
    """Raises ConfigurationRefused if the new settings cannot work, or need a restart."""
    check_settings(new)
    if keys := needs_restart(running, new):
        raise ConfigurationRefused(
            f"{', '.join(keys)}: the agent can take this only when it starts; restart it"
        )


def prepare(
    configuration: Configuration, running: AgentSettings, cluster: Cluster, known: frozenset[str]
) -> Prepared:
    """Reads and checks the new settings, registers their schemas, and creates their topics. Files
    of `sources.dir` that cannot be used are refused alone. Raises SkidwayError or KafkaError if the
    agent cannot take the settings.

    known: the topics that the agent knows already.
    """
    return configuration.taken(lambda new: _prepared(new, running, cluster, known))


def _prepared(
    settings: AgentSettings, running: AgentSettings, cluster: Cluster, known: frozenset[str]
) -> Prepared:
    check(running, settings)
    registry = settings.registry.client(timeout_s=TIMEOUT_S, pause=_pause)
    kafka = settings.kafka.within(round(TIMEOUT_S * 1000))
    with kafka.client(isolation_level=READ_UNCOMMITTED) as client:
        found, is_kafka = connection.cluster_of(client, settings.cluster_name)
        if found != cluster:
            raise ConfigurationRefused(
                f"bootstrap.servers leads to cluster {found.name} ({found.id}) now, and the agent"
                f" sends to {cluster.name} ({cluster.id}); restart it"
            )
        schemas = connection.schemas_of(registry, settings)
        connection.ensure_topics(client, settings, is_kafka, _pause)
        destinations = connection.resolve(client, schemas, settings, found)
        ends = connection.ends_of(client, _partitions(destinations, known))
    keep(settings)
    return Prepared(settings, destinations, ends)


class Preparation:
    """Prepares new settings once, on a thread of its own."""

    def __init__(self, work: Callable[[], Prepared]) -> None:
        self._work = work
        self._result: Prepared | Refusal | None = None
        self._thread = threading.Thread(target=self._run, name="reload", daemon=True)
        self._thread.start()

    def result(self) -> Prepared | Refusal | None:
        """Returns the prepared settings, or why they are refused; None while the thread works."""
        return None if self._thread.is_alive() else self._result

    def wait(self, timeout_s: float) -> None:
        """Waits for the thread's end, at most `timeout_s` seconds."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            self._result = self._work()
        except SourcesRefused as error:
            self._result = Refusal(str(error), error.exit_code, error.public)
        except SkidwayError as error:
            self._result = Refusal(str(error), error.exit_code)
        except KafkaError as error:
            self._result = Refusal(str(error), Unreachable.exit_code)
        except Exception as error:  # noqa: BLE001 - the thread's outermost function
            # If Skidway's code fails with an unexpected error, only the reload is refused; the
            # agent continues to deliver.
            _log.error("unexpected_failure", exc=error)
            self._result = Refusal(f"unexpected: {error!r}", UNEXPECTED_EXIT_CODE)


def _partitions(destinations: list[Destination], known: frozenset[str]) -> list[TopicPartition]:
    snapshots = {
        topic.name: topic.partitions
        for each in destinations
        for topic in (each.recipe.data, each.recipe.rejected)
        if topic.name not in known
    }
    return [TopicPartition(name, index) for name, n in snapshots.items() for index in range(n)]


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

import pytest

from skidway.cli import main, topics
from skidway.kafka.client import Broker, Cluster, NewTopic
from skidway.kafka.errors import ErrorCode, KafkaError
from support.clock import ManualClock
from support.memory_kafka import MemoryClient, MemoryCluster


class Deleting(MemoryClient):
    """A client in memory that can delete topics."""

    def __enter__(self) -> Deleting:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def delete_topics(self, names: list[str]) -> dict[str, KafkaError | None]:
        known = self.cluster.topics
        unknown = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return {name: None if known.pop(name, None) else unknown for name in names}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> MemoryCluster:
    """A cluster with the topic `logs`, to which the commands connect."""
    found = MemoryCluster()
    found.create("logs", 2)
    monkeypatch.setattr(topics, "connect", lambda _: Deleting(found, ManualClock()))
    return found


def test_a_topic_that_does_not_exist_is_not_planned_to_be_deleted(
    cluster: MemoryCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """If a given topic does not exist, `skidway topics delete` prints an error before it asks the
    user anything, and ends with the same exit status as with --yes. The list of what the command
    would delete has only topics that exist."""
    command = ["topics", "delete", "--bootstrap-server", "nowhere:1"]
    for options in ([], ["--dry-run"], ["--yes"]):
        assert main([*command, "nosuch", *options]) == 1
        said = capsys.readouterr()
        assert "nosuch: UNKNOWN_TOPIC_OR_PARTITION" in said.err
        assert ("nosuch" in said.out) == (options == ["--yes"])
    assert main([*command, "nosuch", "logs", "--dry-run"]) == 1
    said = capsys.readouterr()
    assert "there is no topic nosuch" in said.err
    assert said.out.split()[-3:] == ["logs", "2", "0"]
    assert main([*command, "logs", "--dry-run"]) == 0
    assert main([*command, "logs", "--yes"]) == 0
    assert not cluster.topics


@pytest.mark.parametrize("as_json", [False, True])
def test_a_topic_without_known_partitions_is_described(
    capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    """If the partitions of a topic are not known yet, `skidway topics describe` shows the topic
    without a table of partitions."""
    document = {
        "topic": "logs", "topic_id": None, "configs": {}, "config_sources": {}, "partitions": [],
    }  # fmt: skip
    topics._show([document], argparse.Namespace(json=as_json, all=False))
    said = capsys.readouterr().out
    assert "logs" in said
    assert ("partitions are not known" in said) != as_json


@pytest.mark.parametrize("count", ["32768", "-2", "many"])
def test_a_number_of_replicas_that_the_protocol_lacks_is_a_usage_error(
    count: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A number of replicas that is not between -1 and 32,767 ends the command with status 2."""
    assert main(["topics", "create", "logs", "--replication-factor", count]) == 2
    assert f"{count} is " in capsys.readouterr().err


class Growing(Deleting):
    """A client of a cluster with one broker. The broker lists new partitions only a second after
    they were created."""

    def __init__(self, cluster: MemoryCluster, clock: ManualClock) -> None:
        super().__init__(cluster, clock)
        self._changes: list[tuple[float, Callable[[], object]]] = []

    def create_topics(self, new: Sequence[NewTopic]) -> dict[str, KafkaError | None]:
        for topic in new:
            self._later(lambda topic=topic: self.cluster.create(topic.name, topic.partitions))
        return {topic.name: None for topic in new}

    def create_partitions(
        self, counts: dict[str, int], *, validate_only: bool
    ) -> dict[str, KafkaError | None]:
        for name, count in counts.items():
            self._later(lambda name=name, count=count: self.cluster.create(name, count))
        return dict.fromkeys(counts)

    def metadata(
        self, topics: Sequence[str] | None = None, broker: Broker | None = None
    ) -> Cluster:
        while self._changes and self._changes[0][0] <= self.clock.monotonic():
            self._changes.pop(0)[1]()
        return replace(super().metadata(topics), brokers={7: Broker(7, "b", 9092)})

    def pause(self, seconds: float) -> None:
        cast(ManualClock, self.clock).advance(seconds)

    def _later(self, change: Callable[[], object]) -> None:
        self._changes.append((self.clock.monotonic() + 1, change))


def test_a_change_is_known_to_the_brokers_when_the_command_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """When `skidway topics create` or `alter` ends, the brokers list the new topic and partitions,
    so the next command of a script can use them. If a broker does not list them in time, the
    command names this broker. Its exit status stays 0, because the change is made."""
    cluster, clock = MemoryCluster(), ManualClock()
    monkeypatch.setattr(topics, "connect", lambda _: Growing(cluster, clock))
    at = ["--bootstrap-server", "nowhere:1"]
    assert main(["topics", "create", "new", "--partitions", "2", *at]) == 0
    assert len(cluster.topics["new"].logs) == 2
    assert main(["topics", "alter", "new", "--partitions", "5", *at]) == 0
    assert len(cluster.topics["new"].logs) == 5
    assert not capsys.readouterr().err
    monkeypatch.setattr(Growing, "_later", lambda *_: None)
    assert main(["topics", "alter", "new", "--partitions", "9", *at]) == 0
    said = capsys.readouterr()
    assert "altered new" in said.out
    assert said.err == "skidway topics: broker 7 (b:9092) does not list the change to new yet\n"

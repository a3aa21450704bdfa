from __future__ import annotations

import argparse

import pytest

from skidway.cli import main, topics
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

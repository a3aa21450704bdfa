"""The loader commits the loaded offsets to the brokers under its consumer group, unless the topic
was deleted and created again since it was loaded. The tests also check what happens if such a
commit fails."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from skidway.errors import SkidwayError
from skidway.kafka.errors import BadValue, BrokerUnreachable
from skidway.kafka.types import TopicPartition
from skidway.loader.runs.group_offsets import GroupOffsets


class Brokers:
    """Brokers that note each commit of offsets. If `error` is given, each noted commit fails with
    it."""

    def __init__(self, error: SkidwayError | None = None) -> None:
        self.asked: list[tuple[str, dict[TopicPartition, int]]] = []
        self._error = error

    def commit_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        self.asked.append((group, dict(offsets)))
        if self._error is not None:
            raise self._error


def tell(told: GroupOffsets, name: str, topic_id: str = "id") -> None:
    """Asks `told` to commit the offsets at which the newest load of the topic `name` ended. The
    topic had the id `id` when it was loaded, and has the id `topic_id` now."""
    partitions = [SimpleNamespace(partition=at, end=end) for at, end in enumerate((7, 9))]
    wanted: Any = SimpleNamespace(name=name, topic_id=topic_id)
    newest: Any = SimpleNamespace(topic_id="id", partitions=partitions)
    told.tell(wanted, newest)


def test_the_ends_of_the_newest_load_are_committed() -> None:
    """The offsets at which the newest load ended are committed for all partitions of a topic. If
    the topic was not loaded yet, or was deleted and created again since, nothing is committed."""
    brokers = Brokers()
    told = GroupOffsets(brokers, "group")  # type: ignore[arg-type]
    never: Any = SimpleNamespace(name="never", topic_id="id")
    told.tell(never, None)
    tell(told, "again", "another id")
    assert brokers.asked == []
    for name in ("good", "logs"):
        tell(told, name)
    assert brokers.asked == [
        ("group", {TopicPartition(name, 0): 7, TopicPartition(name, 1): 9})
        for name in ("good", "logs")
    ]


@pytest.mark.parametrize("error", [BrokerUnreachable("away"), BadValue("no answer of Kafka's")])
def test_how_far_it_is_is_told_in_vain_once_a_run(error: SkidwayError) -> None:
    """If a commit of loaded offsets to the brokers fails, the run does not try to commit offsets
    again, for any topic. Each attempt might have to wait for the group's coordinator. No load
    depends on these offsets."""
    silent = Brokers(error)
    told = GroupOffsets(silent, "group")  # type: ignore[arg-type]
    for name in ("good", "logs", "good"):
        tell(told, name)
    assert len(silent.asked) == 1

"""The loader commits the loaded offsets to the brokers under its consumer group. The test checks
what happens if such a commit fails."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from skidway.errors import SkidwayError
from skidway.kafka.errors import BadValue, BrokerUnreachable
from skidway.kafka.types import TopicPartition
from skidway.loader.runs.group_offsets import GroupOffsets


class Silent:
    """A cluster that refuses every commit of offsets."""

    def __init__(self, error: SkidwayError) -> None:
        self.asked = 0
        self._error = error

    def commit_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        self.asked += 1
        raise self._error


@pytest.mark.parametrize("error", [BrokerUnreachable("away"), BadValue("no answer of Kafka's")])
def test_how_far_it_is_is_told_in_vain_once_a_run(error: SkidwayError) -> None:
    """If a commit of loaded offsets to the brokers fails, the run does not try to commit offsets
    again, for any topic. Each attempt might have to wait for the group's coordinator. No load
    depends on these offsets."""
    silent = Silent(error)
    told = GroupOffsets(silent, "group")  # type: ignore[arg-type]
    partition = SimpleNamespace(partition=0, end=7)
    newest: Any = SimpleNamespace(topic_id="id", partitions=[partition])
    for name in ("good", "logs", "good"):
        wanted: Any = SimpleNamespace(name=name, topic_id="id")
        told.tell(wanted, newest)
    assert silent.asked == 1

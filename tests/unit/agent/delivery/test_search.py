"""Tests how long the agent searches the partitions for records that it sent and whose
acknowledgement it does not have."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from skidway.agent.delivery.read_back import Found, Rows
from skidway.agent.delivery.search import Search
from skidway.agent.values.intents import Intent
from skidway.audit.topic.messages import Certainty
from skidway.kafka.types import TopicPartition
from support.promises import promise

TP = TopicPartition("logs", 0)
AGENT, FILE = 7, 5


class Logs:
    """The log of one partition. The agent reads this log up to the high watermark that it has asked
    for. If records are added, the agent learns of the new high watermark only when it asks
    again."""

    def __init__(self) -> None:
        self.records: list[tuple[int, int]] = []  # the first byte and the length of each record
        self._at = 0
        self._told: int | None = None

    def begin(self, floors: Mapping[TopicPartition, int]) -> None:
        self._at = floors[TP]

    def poll(self) -> list[Rows]:
        if self._told is None:
            self._told = len(self.records)
        found = self.records[self._at : self._told]
        self._at = self._told
        if not found:
            return []
        first, length = np.array(found, np.int64).T
        return [Rows(TP, first * 0 + AGENT, first * 0 + FILE, first, length, first * 0)]

    def ask_anew(self) -> None:
        self._told = None

    def read_up(self) -> set[TopicPartition]:
        return {TP} if self._told is not None and self._at >= self._told else set()

    def end(self) -> None:
        pass


@promise("2 read back")
def test_the_watermark_is_asked_for_anew_once_nothing_can_arrive_any_more() -> None:
    """The agent searches a partition for its records up to the high watermark. Batches that it sent
    earlier may arrive during the search. When no such batch can arrive any more, the agent asks for
    the high watermark again, and so finds a batch that arrived late, above the first high
    watermark."""
    logs = Logs()
    search = Search(logs, Found(AGENT, []))
    search.begin(Found(AGENT, [Intent(1, FILE, 0, 8, 0, 0, b"")]), {TP: 0}, 0.0)
    logs.records.append((0, 4))
    search.turn(1.0, is_past=False)
    assert logs.read_up() == {TP}
    assert not search.knows([TP])
    logs.records.append((4, 4))
    for now in (2.0, 3.0, 4.0):
        search.turn(now, is_past=True)
    assert search.is_over
    assert search.found.bytes == 8


def test_where_the_new_watermark_is_reached_what_is_missing_is_lost() -> None:
    """While the agent searches a partition for its records, batches that it sent earlier may still
    arrive. When no such batch can arrive any more, the agent asks for the high watermark again.
    When it has read up to this high watermark, records that it has not found count as lost."""
    logs = Logs()
    search = Search(logs, Found(AGENT, []))
    search.begin(Found(AGENT, [Intent(1, FILE, 0, 8, 0, 0, b"")]), {TP: 0}, 0.0)
    logs.records.append((0, 4))
    search.turn(1.0, is_past=False)
    search.turn(2.0, is_past=True)
    assert not search.is_over
    search.turn(3.0, is_past=True)
    assert search.is_over
    assert search.found.bytes == 4
    assert search.verdict([TP])[0] is Certainty.LOST

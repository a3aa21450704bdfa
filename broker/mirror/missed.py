"""Finds out how many records a source has of the topics and partitions that are stopped. Nobody
fetches them, so the mirror asks where their logs begin and end, once in each round.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import islice
from typing import Final

from skidway.broker.mirror.bounds import Bounds
from skidway.broker.mirror.surroundings import Ask
from skidway.kafka.client.cluster import EARLIEST, LATEST, Address, ListedOffset
from skidway.kafka.client.connection import Answer
from skidway.kafka.client.requests import list_offsets_call, listed_offsets
from skidway.kafka.protocol.fetch import READ_UNCOMMITTED
from skidway.kafka.types import TopicPartition

PARTITIONS_MAX: Final = 1000
"""A round asks about at most this many partitions."""


class Missed:
    """Where the logs of stopped partitions begin and end in one source. Other threads may read
    `bounds`, which is replaced and never changed.
    """

    def __init__(self, ask: Ask, leader: Callable[[TopicPartition], Address | None]) -> None:
        self.bounds: dict[TopicPartition, Bounds] = {}
        self._ask = ask
        self._leader = leader
        self._unanswered = 0

    def begin_round(self, stopped: Collection[TopicPartition]) -> None:
        """Asks about these partitions, and forgets all others. If an earlier question is not
        answered yet, asks nothing."""
        self.bounds = {tp: each for tp, each in self.bounds.items() if tp in stopped}
        if self._unanswered:
            return
        by_leader: dict[Address, list[TopicPartition]] = {}
        for tp in islice(stopped, PARTITIONS_MAX):
            leader = self._leader(tp)
            if leader is not None:
                by_leader.setdefault(leader, []).append(tp)
        self._unanswered = len(by_leader)
        for leader, tps in by_leader.items():
            self._ask_leader(leader, tps)

    def records(self, tp: TopicPartition, known_to: int = 0) -> int | None:
        """Returns how many offsets the source has from `known_to` on; None if this is unknown."""
        bounds = self.bounds.get(tp)
        return None if bounds is None else max(bounds.end - max(bounds.first, known_to), 0)

    def _ask_leader(self, leader: Address, tps: Collection[TopicPartition]) -> None:
        def first_told(answer: Answer) -> None:
            firsts = _offsets(answer, beginnings)
            if firsts:
                call = list_offsets_call(dict.fromkeys(firsts, LATEST), READ_UNCOMMITTED)
                self._ask(call, lambda last: ends_told(firsts, last), leader)
            else:
                self._unanswered -= 1

        def ends_told(firsts: dict[TopicPartition, int], answer: Answer) -> None:
            self._unanswered -= 1
            ends = _offsets(answer, dict.fromkeys(firsts, LATEST))
            found = {tp: Bounds(firsts[tp], end) for tp, end in ends.items()}
            self.bounds = {**self.bounds, **found}

        beginnings = dict.fromkeys(tps, EARLIEST)
        self._ask(list_offsets_call(beginnings, READ_UNCOMMITTED), first_told, leader)


def _offsets(answer: Answer, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    if answer.error is not None:
        return {}
    listed = listed_offsets(answer.response, times)
    return {tp: each.offset for tp, each in listed.items() if isinstance(each, ListedOffset)}

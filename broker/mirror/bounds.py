"""Asks the leader of partitions in the source at which offsets the partitions begin and end, with
two ListOffsets requests, one after the other. The mirror sends these requests if the source refuses
a fetch because its log does not have the wanted offset. The requests are necessary because some
brokers do not report both offsets when they refuse a fetch. The mirror also sends them for topics
and partitions that are stopped, once in each round, because nobody fetches these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Final, NamedTuple

from skidway.broker.mirror.partition import Attempt
from skidway.broker.mirror.surroundings import Ask
from skidway.kafka.client.cluster import EARLIEST, LATEST, Address, ListedOffset
from skidway.kafka.client.connection import Answer
from skidway.kafka.client.requests import list_offsets_call, listed_offsets
from skidway.kafka.protocol.fetch import READ_UNCOMMITTED
from skidway.kafka.types import TopicPartition

STOPPED_MAX: Final = 1000
"""A round asks about at most this many stopped partitions."""


class Bounds(NamedTuple):
    """The offset of the first record (log start offset), and the first offset that consumers cannot
    read yet (high watermark)."""

    first: int
    end: int


class BoundsQuestion(NamedTuple):
    """Where do these partitions begin and end? attempt: the fetching of the partition that was
    refused; None for stopped partitions. firsts: where they begin, once the leader has said so."""

    tps: Sequence[TopicPartition]
    leader: Address | None
    attempt: Attempt | None = None
    firsts: Mapping[TopicPartition, int] = MappingProxyType({})


class Missed:
    """How many records a source has of its stopped partitions: where their logs begin and end.
    Other threads may read `bounds`, which is replaced and never changed.
    """

    def __init__(self) -> None:
        self.bounds: dict[TopicPartition, Bounds] = {}
        self._unanswered = 0

    def begin_round(
        self, stopped: Mapping[TopicPartition, Address | None]
    ) -> list[Ask[BoundsQuestion]]:
        """Asks about these partitions, each with its leader, and forgets all others. If an earlier
        question is not answered yet, asks nothing."""
        self.bounds = {tp: each for tp, each in self.bounds.items() if tp in stopped}
        if self._unanswered:
            return []
        by_leader: dict[Address, list[TopicPartition]] = {}
        for tp, leader in islice(stopped.items(), STOPPED_MAX):
            if leader is not None:
                by_leader.setdefault(leader, []).append(tp)
        self._unanswered = len(by_leader)
        return [ask_bounds(BoundsQuestion(tps, leader)) for leader, tps in by_leader.items()]

    def answered(self, question: BoundsQuestion, answer: Answer) -> list[Ask[BoundsQuestion]]:
        """Takes the source's answer to a question, and returns the next question."""
        told = answered_bounds(question, answer)
        if isinstance(told, Ask):
            return [told]
        self._unanswered -= 1
        found = {tp: each for tp, each in told.items() if isinstance(each, Bounds)}
        self.bounds = {**self.bounds, **found}
        return []

    def records(self, tp: TopicPartition, known_to: int = 0) -> int | None:
        """Returns how many offsets the source has from `known_to` on; None if this is unknown."""
        bounds = self.bounds.get(tp)
        return None if bounds is None else max(bounds.end - max(bounds.first, known_to), 0)


def ask_bounds(question: BoundsQuestion) -> Ask[BoundsQuestion]:
    """Returns the next of the two requests."""
    call = list_offsets_call(_times(question), READ_UNCOMMITTED)
    return Ask(call, question, question.leader)


def answered_bounds(
    question: BoundsQuestion, answer: Answer
) -> Ask[BoundsQuestion] | dict[TopicPartition, Bounds | str]:
    """Returns the second request; after the answer to it, or if no partition's beginning is known,
    returns for each partition the bounds, or a sentence that says why they are unknown."""
    if answer.error is not None:
        return dict.fromkeys(question.tps, str(answer.error))
    times, firsts = _times(question), question.firsts
    listed = listed_offsets(answer.response, times)
    found = {tp: each.offset for tp, each in listed.items() if isinstance(each, ListedOffset)}
    if found and not firsts:
        return ask_bounds(question._replace(firsts=found))
    unknown = "the source does not say where the log begins or ends"
    return {
        tp: Bounds(firsts[tp], found[tp]) if tp in found else str(listed.get(tp, unknown))
        for tp in times
    }


def _times(question: BoundsQuestion) -> dict[TopicPartition, int]:
    if question.firsts:
        return dict.fromkeys(question.firsts, LATEST)
    return dict.fromkeys(question.tps, EARLIEST)

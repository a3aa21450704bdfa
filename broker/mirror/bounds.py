"""Asks the leader of a partition in the source at which offsets the partition begins and ends, with
two ListOffsets requests, one after the other. The mirror sends these requests if the source refuses
a fetch because its log does not have the wanted offset. The requests are necessary because some
brokers do not report both offsets when they refuse a fetch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from skidway.broker.mirror.surroundings import Ask
from skidway.kafka.client.cluster import EARLIEST, LATEST, Address, ListedOffset
from skidway.kafka.client.connection import Answer
from skidway.kafka.client.requests import list_offsets_call, listed_offsets
from skidway.kafka.protocol.fetch import READ_UNCOMMITTED
from skidway.kafka.types import TopicPartition


class Bounds(NamedTuple):
    """The offset of the first record (log start offset), and the first offset that consumers cannot
    read yet (high watermark)."""

    first: int
    end: int


def ask_bounds(
    ask: Ask,
    tp: TopicPartition,
    leader: Address | None,
    *,
    is_stale: Callable[[], bool],
    told: Callable[[Bounds | str], None],
) -> None:
    """Sends the two requests to `leader`, then calls `told` with the bounds, or with a sentence
    that says why the bounds are unknown. If `is_stale()` is true when an answer arrives, ignores
    the answer and does not call `told`.
    """

    def first_listed(answer: Answer) -> None:
        first = _listed(answer, tp, EARLIEST)
        if is_stale():
            return
        if isinstance(first, str):
            told(first)
        else:
            offset = first.offset
            ask(
                list_offsets_call({tp: LATEST}, READ_UNCOMMITTED),
                lambda last: end_listed(offset, last),
                leader,
            )

    def end_listed(first: int, answer: Answer) -> None:
        end = _listed(answer, tp, LATEST)
        if not is_stale():
            told(end if isinstance(end, str) else Bounds(first, end.offset))

    ask(list_offsets_call({tp: EARLIEST}, READ_UNCOMMITTED), first_listed, leader)


def _listed(answer: Answer, tp: TopicPartition, time_ms: int) -> ListedOffset | str:
    if answer.error is not None:
        return str(answer.error)
    found = listed_offsets(answer.response, {tp: time_ms}).get(tp)
    if isinstance(found, ListedOffset):
        return found
    return "the source does not say where the log begins or ends" if found is None else str(found)

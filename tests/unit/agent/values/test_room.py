"""Tests the room of a topic: how many bytes of the topic's files the agent may read in one turn of
its loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from skidway.agent.values.room import Room

MEMORY = 1_000


def filled(topics: Sequence[str], held: Counter[str]) -> Counter[str]:
    """Counts one more unacknowledged byte for each topic that has room, again and again, until no
    topic has room. `held` contains the unacknowledged bytes of each topic at the beginning, and the
    result those at the end."""
    held = Counter(held)
    while True:
        room = Room(MEMORY - held.total(), held)
        able = [topic for topic in topics if room.has(topic)]
        if not able:
            return held
        held.update(able)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_topics_without_acknowledgements_leave_room_for_another(count: int) -> None:
    """However many topics get no acknowledgements, a topic without unacknowledged bytes still has
    room."""
    dead = [f"dead-{number}" for number in range(count)]
    held = filled(dead, Counter())
    assert Room(MEMORY - held.total(), held).has("good")
    assert abs(MEMORY - held.total() - MEMORY // (count + 1)) <= count


def test_a_later_topic_without_acknowledgements_takes_half_of_what_is_left() -> None:
    """If a topic gets no acknowledgements, it takes at most half of the bytes that were free
    before. So a second topic of this kind takes half of the bytes that the first one has left."""
    held = filled(["second"], filled(["first"], Counter()))
    assert held == {"first": 500, "second": 250}


def test_what_a_turn_takes_counts_at_once() -> None:
    """The bytes that a turn has read of a topic's files reduce the room of all topics at once. A
    topic has no more room when it has taken half of the bytes that were free at first. The last
    range that the turn reads may exceed this half. Other topics then have less room."""
    room = Room(MEMORY, {})
    room.take("logs", 499)
    assert room.has("logs")
    room.take("logs", 400)
    assert (room.has("logs"), room.has("other")) == (False, True)
    room.take("other", 101)
    assert not room.has("third")

"""The room of a turn: how many bytes of each topic's files the agent may read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from skidway.agent.values.room import Room

MEMORY = 1_000


def filled(topics: Sequence[str], held: Counter[str]) -> Counter[str]:
    """Reads the topics' files in turn, one byte at a time, until no topic has room. Nothing is ever
    acknowledged."""
    held = Counter(held)
    while True:
        room = Room(MEMORY - held.total(), held)
        able = [topic for topic in topics if room.has(topic)]
        if not able:
            return held
        held.update(able)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_topics_without_acknowledgements_leave_room_for_another(count: int) -> None:
    """However many topics get no acknowledgements, a topic that does has room."""
    dead = [f"dead-{number}" for number in range(count)]
    held = filled(dead, Counter())
    assert Room(MEMORY - held.total(), held).has("good")
    assert abs(MEMORY - held.total() - MEMORY // (count + 1)) <= count


def test_a_later_topic_without_acknowledgements_takes_half_of_what_is_left() -> None:
    """A topic that gets no acknowledgements takes half of what earlier such topics have left."""
    held = filled(["second"], filled(["first"], Counter()))
    assert held == {"first": 500, "second": 250}


def test_what_a_turn_takes_counts_at_once() -> None:
    """Within a turn, a topic has room until it has taken half of the free bytes. A last range of
    bytes may exceed this, and the other topics have only what is left."""
    room = Room(MEMORY, {})
    room.take("logs", 499)
    assert room.has("logs")
    room.take("logs", 400)
    assert (room.has("logs"), room.has("other")) == (False, True)
    room.take("other", 101)
    assert not room.has("third")

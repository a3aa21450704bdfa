"""Tests which readings the agent combines into one group before it makes batches from the group. A
reading is a range of bytes that the agent has read from a file."""

from __future__ import annotations

from typing import Any

import pytest

from skidway.agent.delivery.presses import TOGETHER_BYTES, _groups
from skidway.agent.files.reading import Taken
from skidway.agent.parsing.framing import READ_LINES, count_lines
from skidway.agent.values.intents import Reading
from support.agent_press import reading


def taken(size: int, file: int) -> Taken:
    nothing: Any = None  # these fields have no effect on the groups
    return Taken(nothing, reading(b"a" * size, file), nothing)


def weight(reading: Reading) -> int:
    return count_lines(reading.data)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], []),
        ([1, 2, 3], [[1, 2, 3]]),
        ([TOGETHER_BYTES, TOGETHER_BYTES], [[TOGETHER_BYTES], [TOGETHER_BYTES]]),
        ([TOGETHER_BYTES - 1, 1, 1, 5], [[TOGETHER_BYTES - 1, 1], [1, 5]]),
        ([1, TOGETHER_BYTES, 1], [[1], [TOGETHER_BYTES], [1]]),
    ],
)
def test_readings_are_pressed_together_up_to_a_size(
    sizes: list[int], expected: list[list[int]]
) -> None:
    """The agent combines small readings into groups of at most TOGETHER_BYTES. Groups are limited
    because each rejected line needs memory until its whole group is processed."""
    groups = _groups((taken(size, file) for file, size in enumerate(sizes)), weight)
    assert [[len(one.reading.data) for one in group] for group in groups] == expected


def test_readings_are_pressed_together_up_to_a_number_of_lines() -> None:
    """The agent combines readings of short lines into groups of at most READ_LINES lines."""
    nothing: Any = None
    sizes = [READ_LINES - 1, 1, 1, READ_LINES]
    made = (Taken(nothing, reading(b"\n" * size, at), nothing) for at, size in enumerate(sizes))
    groups = [[len(one.reading.data) for one in group] for group in _groups(made, weight)]
    assert groups == [[READ_LINES - 1, 1], [1], [READ_LINES]]

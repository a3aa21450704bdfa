"""When the agent makes its next look."""

from __future__ import annotations

import pytest

from skidway.agent.loop.schedule import Schedule


@pytest.mark.parametrize(
    ("took_s", "next_s"), [(0.001, 1.0), (0.1, 40.0), (1.0, 60.0), (20.0, 60.0), (90.0, 180.0)]
)
def test_looks_leave_half_of_the_time(took_s: float, next_s: float) -> None:
    """Looks that take longer than the longest interval between them leave as much time for reading
    as they take."""
    looks = Schedule(60.0)
    looks.took(0.0, took_s)
    assert not looks.is_due(next_s - 0.01)
    assert looks.is_due(next_s)

"""Decides when a wait has lasted so long that an operator should know of it."""

from __future__ import annotations

from skidway.loader.spark.patience import SECONDS, Patience


def test_it_ends_once_in_each_time_without_a_move() -> None:
    """A wait in which nothing moves is told once, after 30 seconds. After a move, the next time
    without a move is told again."""
    now = [0.0]
    patience = Patience(lambda: now[0])

    def told(at: float, is_moving: bool = False) -> bool:
        now[0] = at
        return patience.ends(is_moving)

    assert SECONDS == 30
    assert [told(at) for at in (100, 129.9, 130, 131, 500)] == [False, False, True, False, False]
    assert not told(501, is_moving=True)
    assert [told(at) for at in (530, 531, 600)] == [False, True, False]

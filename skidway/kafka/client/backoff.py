"""The waits between two attempts to send a request or to connect."""

from __future__ import annotations

from collections.abc import Callable

FIRST_S = 0.05
MOST_S = 1.0
_JITTER = 0.2


class Backoff:
    """Waiting times that double from 50 ms to 1 s. Each wait has 20 % jitter, so that clients do
    not retry at the same moment.

    `random` returns numbers in 0..1; it is a parameter so that tests can repeat a run.
    """

    __slots__ = ("_next_s", "_random")

    def __init__(self, random: Callable[[], float]) -> None:
        self._random = random
        self._next_s = FIRST_S

    def next_s(self) -> float:
        """Returns how many seconds to wait after the failure that has just happened."""
        wait_s = self._next_s * (1 - _JITTER + 2 * _JITTER * self._random())
        self._next_s = min(2 * self._next_s, MOST_S)
        return wait_s

    def reset(self) -> None:
        """Makes the next wait short again, after a success."""
        self._next_s = FIRST_S

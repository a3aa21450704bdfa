"""How long a rebalance waits for members to join (KIP-134): pure, times are values.

A group that has members waits for them, at most as long as the most patient of them asks for. One
that was empty waits `group.initial.rebalance.delay.ms` for more to come, and as long again as some
did, up to the same time.
"""

from __future__ import annotations


class JoinWindow:
    """Open while a group prepares its next generation; times in seconds, monotonic."""

    __slots__ = ("_delay_s", "_left_s", "_newcomers", "is_delaying", "until")

    def __init__(self, initial_delay_s: float) -> None:
        self.until = 0.0
        self.is_delaying = False
        """It waits for members that nobody knows of yet, also when all known ones have joined."""
        self._delay_s = initial_delay_s
        self._left_s = 0.0
        self._newcomers = False

    def open(self, now: float, timeout_s: float, *, was_empty: bool) -> None:
        """A rebalance begins; `timeout_s` is the longest that a member asks for."""
        self.is_delaying = was_empty
        self._newcomers = False
        wait_s = self._delay_s if was_empty else timeout_s
        self._left_s = max(timeout_s - wait_s, 0.0)
        self.until = now + wait_s

    def arrived(self) -> None:
        """A new member has come."""
        self._newcomers = True

    def is_prolonged(self, now: float) -> bool:
        """It is over by the clock: whether it goes on for those who may follow the newcomers."""
        if not (self.is_delaying and self._newcomers and self._left_s > 0):
            return False
        wait_s = min(self._delay_s, self._left_s)
        self._newcomers = False
        self._left_s -= wait_s
        self.until = now + wait_s
        return wait_s > 0

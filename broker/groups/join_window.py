"""Decides how long a rebalance waits for members to join (KIP-134). Pure: every method gets the
present time as a value.

A group with members waits until all of them have joined, at most for the longest of their rebalance
timeouts. A group that was empty waits `group.initial.rebalance.delay.ms` for more members. If new
members came in that time, it waits for the same delay again; all its delays together are at most
the longest rebalance timeout.
"""

from __future__ import annotations


class JoinWindow:
    """The window is open while a group prepares its next generation. Times are monotonic
    seconds.
    """

    __slots__ = ("_delay_s", "_left_s", "_newcomers", "is_delaying", "until")

    def __init__(self, initial_delay_s: float) -> None:
        self.until = 0.0
        self.is_delaying = False
        """Whether the group waits for unknown members even when all known ones have joined."""
        self._delay_s = initial_delay_s
        self._left_s = 0.0
        self._newcomers = False

    def open(self, now: float, timeout_s: float, *, was_empty: bool) -> None:
        """Opens for a rebalance; `timeout_s` is the longest rebalance timeout of a member."""
        self.is_delaying = was_empty
        self._newcomers = False
        wait_s = self._delay_s if was_empty else timeout_s
        self._left_s = max(timeout_s - wait_s, 0.0)
        self.until = now + wait_s

    def arrived(self) -> None:
        """Notes that a new member has come."""
        self._newcomers = True

    def is_prolonged(self, now: float) -> bool:
        """Called when the window's time is over. If new members have come, prolongs the window.
        Returns whether it was prolonged.
        """
        if not (self.is_delaying and self._newcomers and self._left_s > 0):
            return False
        wait_s = min(self._delay_s, self._left_s)
        self._newcomers = False
        self._left_s -= wait_s
        self.until = now + wait_s
        return wait_s > 0

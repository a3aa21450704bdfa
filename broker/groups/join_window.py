"""Decides how long a rebalance waits for members to join (KIP-134). Reads no clock: methods get the
present time as an argument.

A group with members waits until all members have joined, but not longer than the longest of the
members' rebalance timeouts. A group that was empty waits `group.initial.rebalance.delay.ms` for
more members. If new members have arrived in that time, the group waits again, for the same time.
All this waiting together is not longer than the longest rebalance timeout, unless the first wait
alone is longer.
"""

from __future__ import annotations


class JoinWindow:
    """The time in which members may join the next generation of a group. The window is open while
    the group prepares this generation. Times are monotonic seconds.
    """

    __slots__ = ("_delay_s", "_left_s", "_newcomers", "is_delaying", "until")

    def __init__(self, initial_delay_s: float) -> None:
        self.until = 0.0
        self.is_delaying = False
        """A group that was empty waits for further members, even if all known members have joined.
        `is_delaying` is true during this wait.
        """
        self._delay_s = initial_delay_s
        self._left_s = 0.0
        self._newcomers = False

    def open(self, now: float, timeout_s: float, *, was_empty: bool) -> None:
        """Opens the window for a rebalance. `timeout_s` is the longest rebalance timeout of a
        member."""
        self.is_delaying = was_empty
        self._newcomers = False
        wait_s = self._delay_s if was_empty else timeout_s
        self._left_s = max(timeout_s - wait_s, 0.0)
        self.until = now + wait_s

    def arrived(self) -> None:
        """Notes that a new member has arrived."""
        self._newcomers = True

    def is_prolonged(self, now: float) -> bool:
        """Called when the window's time is over. If the group was empty before and new members have
        arrived, prolongs the window, but not beyond the longest rebalance timeout. Returns whether
        the window was prolonged.
        """
        if not (self.is_delaying and self._newcomers and self._left_s > 0):
            return False
        wait_s = min(self._delay_s, self._left_s)
        self._newcomers = False
        self._left_s -= wait_s
        self.until = now + wait_s
        return wait_s > 0

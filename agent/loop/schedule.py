"""Decides when the agent makes its next look, in which it goes once through the directories of all
sources. The agent looks often if there are few files, and seldom if there are many. The agent also
looks soon after an event has shown that files may have changed.
"""

from __future__ import annotations

from typing import Final

SHARE: Final = 400
"""Without events, the looks together may take at most 1/SHARE of the agent's time. But at least
once in `reconcile.interval.ms`, the agent looks even if the looks then take a larger share, up to
half of its time."""

SHARE_ASKED: Final = 20
"""If events show that files may have changed, the looks together may take at most 1/SHARE_ASKED of
the agent's time."""

INTERVAL_MIN_S: Final = 1.0
ASKED_AFTER_S: Final = 0.1
"""How many seconds after an event the look begins. Events come in bursts; after this delay, one
look finds the changes of a whole burst.
"""


class Schedule:
    """Owns the time of the next look. Times are those of the monotonic clock, in seconds."""

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._at = 0.0
        self._not_before = 0.0

    def is_due(self, now: float) -> bool:
        """Whether it is time for the next look."""
        return now >= self._at

    def in_s(self, now: float) -> float:
        """Returns the time until the next look (s)."""
        return self._at - now

    def ask(self, now: float) -> None:
        """Makes the next look due soon, because an event has shown that files may have changed."""
        self._at = min(self._at, max(now + ASKED_AFTER_S, self._not_before))

    def take_longest(self, longest_s: float) -> None:
        """Sets the longest time between two looks, and makes the next look due at once."""
        self._longest_s = longest_s
        self._at = 0.0

    def took(self, begin: float, end: float) -> None:
        """Notes when a look began and ended. The longer the look took, the later the next look is
        due.
        """
        took_s = end - begin
        interval_s = min(max(took_s * SHARE, INTERVAL_MIN_S), self._longest_s)
        self._at = begin + max(interval_s, 2 * took_s)
        self._not_before = begin + took_s * SHARE_ASKED

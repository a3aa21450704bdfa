"""How long our session with ZooKeeper may be believed in.

A session ends when ZooKeeper has heard nothing of us for the session timeout. So the moment at
which we asked something that was answered later proves the session for one timeout more, whatever
has happened to the answer or to us since. We believe three quarters of it: an ensemble's follower
tells its leader what it has heard up to half a tick later, and clocks differ.

No clock: times (monotonic seconds) come in as values.
"""

from __future__ import annotations

_BELIEVED = 0.75
_RENEWED = 0.4


class Lease:
    """The proven time of one registration; none before the first `proven`."""

    __slots__ = ("_timeout_s", "until")

    def __init__(self, session_timeout_s: float) -> None:
        self._timeout_s = session_timeout_s
        self.until = float("-inf")

    def proven(self, asked_at: float) -> None:
        """Our registration was there when a question of this time was answered."""
        self.until = max(self.until, asked_at + _BELIEVED * self._timeout_s)

    def end(self) -> None:
        """The registration is gone."""
        self.until = float("-inf")

    def holds(self, now: float) -> bool:
        """Whether nobody can own what we own."""
        return now < self.until

    @property
    def renew_at(self) -> float:
        """When to ask again, so that it never ends while everybody is well."""
        return self.until - _RENEWED * self._timeout_s

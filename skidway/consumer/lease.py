"""How long we may trust our session with ZooKeeper.

A session ends when ZooKeeper has heard nothing from us for the session timeout. So an answered
request proves the session for one timeout from the moment at which it was sent, whatever has
happened to the answer or to us since. We trust three quarters of that, because an ensemble's
follower tells its leader what it has heard up to half a tick later, and clocks differ.

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
        """A request sent at this time was answered: our registration was there."""
        self.until = max(self.until, asked_at + _BELIEVED * self._timeout_s)

    def end(self) -> None:
        """The registration is gone."""
        self.until = float("-inf")

    def holds(self, now: float) -> bool:
        """Whether nobody else can own what we own."""
        return now < self.until

    @property
    def renew_at(self) -> float:
        """When to ask again, so that the lease does not end while all goes well."""
        return self.until - _RENEWED * self._timeout_s

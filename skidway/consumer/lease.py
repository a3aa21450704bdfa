"""Computes how long a consumer can rely on its session with ZooKeeper.

ZooKeeper ends a session when it has heard nothing from the client for the session timeout. So if
ZooKeeper answers a request, the session exists for at least one session timeout after the request
was sent, however late the answer comes. The consumer relies on the session only for three quarters
of the session timeout. This time is the lease. The last quarter is a margin, for two reasons. A
follower of the ensemble may tell its leader half a tick late that it has heard from the client. And
clocks run at different speeds.

This module reads no clock: its callers pass times (monotonic seconds).
"""

from __future__ import annotations

_BELIEVED = 0.75
_RENEWED = 0.4


class Lease:
    """Knows until when one registration (an ephemeral node of the session) is certain to exist.
    Before the first call of `proven`, it is not certain that the registration exists."""

    __slots__ = ("_timeout_s", "until")

    def __init__(self, session_timeout_s: float) -> None:
        self._timeout_s = session_timeout_s
        self.until = float("-inf")

    def proven(self, asked_at: float) -> None:
        """Extends the lease. Called when ZooKeeper's answer to a request shows that the
        registration existed. `asked_at` is the time when the request was sent."""
        self.until = max(self.until, asked_at + _BELIEVED * self._timeout_s)

    def end(self) -> None:
        """Ends the lease, because the registration is gone."""
        self.until = float("-inf")

    def holds(self, now: float) -> bool:
        """Returns whether the registration is certain to exist at the time `now`. As long as the
        registration exists, nobody else owns this member's partitions."""
        return now < self.until

    @property
    def renew_at(self) -> float:
        """Returns the time at which to send the next request to ZooKeeper. This is early enough
        that the answer extends the lease before the lease ends."""
        return self.until - _RENEWED * self._timeout_s

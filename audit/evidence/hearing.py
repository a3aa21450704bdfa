"""Collects at which offsets and times the audit read the records of the audit topics, and what
these offsets and times show about the senders of the records. In this module, "we" and "our clock"
mean the reader of the topics.

A message contains its sender's time, but a sender's clock may be wrong. Three values about a sender
do not depend on its clock alone:

    heard     the time of its last delta, seal or heartbeat: the time by its own clock when it sent
              the message, or the time by our clock when we read the message, whichever is earlier
    offsets   the least and greatest offset of an agent's messages in a log, for each name that its
              host had: offsets show in which order agents of one host began and ended, even if
              their clocks are wrong
    reading   the difference of its clock from ours, as far as it is known

A lag is the time of our clock when we read a record, minus the time of the sender's clock when it
sent the record. We divide the time of our clock into windows. The reading of a window is the least
lag in the window. Each wait of a record on its way to us makes its lag greater, so the least lag is
nearest to the difference of the clocks. A lag below zero always counts: no record is sent after it
was read, so the sender's clock must be ahead. A lag above zero counts only if the record came live:
it arrived while we were at the end of its log. A record that did not come live was in a backlog, or
we are reading the topic again from its beginning. We also keep the readings of the two windows
before the newest window. One window is not enough: if records wait in a mirror or for a broker
during a window, their sender's clock looks slow in this window.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import NamedTuple

from skidway.audit.topic.messages import Tier

WINDOW_MS = 120_000
"""The length of a window. By default, running agents and counters send messages more often than
this, so each of them can have a reading in each window."""

WINDOWS_KEPT = 3
"""For each of at most this many windows, a `Reading` has the least lag of the window."""

SenderName = tuple[Tier, str]
"""The tier and the producer name of a sender, without the epoch."""


class Heard(NamedTuple):
    """Where and when we read a record.

    topic, topic_id, partition, offset: where the record is in an audit topic.
    sent_ms: the time by the sender's clock at which it sent the record; None if the broker writes
        its own time into records (LogAppendTime).
    taken_ms: the time by our clock at which we read the record.
    is_live: whether we had been at the end of the log just before we read the record.
    appended_ms: the time by the broker's clock at which it appended the record; None if the broker
        does not write this time into records.
    signature: the record's signature; None if it has none.
    """

    topic: str
    topic_id: str
    partition: int
    offset: int
    sent_ms: int | None
    taken_ms: int
    is_live: bool
    appended_ms: int | None = None
    signature: bytes | None = None

    @property
    def arrived_ms(self) -> int:
        """Returns a time at which the record had certainly been sent already: the time by our clock
        when we read it, or the time by the broker's clock when the broker appended it, whichever is
        earlier.
        """
        return self.taken_ms if self.appended_ms is None else min(self.taken_ms, self.appended_ms)


class Log(NamedTuple):
    """A partition of an audit topic. If the topic was deleted and created again, a partition of the
    new topic is a new log."""

    topic: str
    topic_id: str
    partition: int


class Offsets(NamedTuple):
    """The least and the greatest offset of a sender's messages in a log."""

    first: int
    last: int

    def or_wider(self, other: Offsets) -> Offsets:
        """Returns the smallest range of offsets that contains this range and `other`."""
        return Offsets(min(self.first, other.first), max(self.last, other.last))


class Spoken(NamedTuple):
    """An agent, and the log and the offset of one of its messages. host: the host's name in the
    message."""

    agent: int
    host: str
    log: Log
    offset: int


class Reading(NamedTuple):
    """The difference of a sender's clock from ours. The difference is computed from lags: the lag
    of a record is the time by our clock at which we read it, minus the time by the sender's clock
    at which it was sent. The module's docstring says which lags count. window: the number of the
    last window of our time that has such a lag. least_ms: the least lag in that window. earlier_ms:
    the least lag in the window before `window`; None if no lag of that window counts. earliest_ms:
    the least lag in the window two before `window`; None if no lag of that window counts, or if
    earlier_ms is None.
    """

    window: int
    least_ms: int
    earlier_ms: int | None = None
    earliest_ms: int | None = None


def after(known: Reading | None, found: Iterable[Reading]) -> Reading | None:
    """Merges readings of single windows of a sender's clock, one after the other, into the known
    reading. So the result does not depend on how many readings one call merges."""
    return reduce(then, found, known)


def then(known: Reading | None, new: Reading) -> Reading:
    """Merges a new reading of a single window into the known reading of a sender's clock. If the
    window of the new reading is neither the window of the known reading nor the window after it,
    for example because our own clock was set, drops the known reading."""
    if known is None or new.window not in (known.window, known.window + 1):
        return new
    if new.window == known.window:
        return known._replace(least_ms=min(known.least_ms, new.least_ms))
    return Reading(new.window, new.least_ms, known.least_ms, known.earlier_ms)

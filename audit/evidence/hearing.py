"""Collects where and when the audit read the records of the audit topics, and what these offsets
and times show about the senders of the records. In this module, "we" and "our clock" mean the
reader of the topics.

A message contains its sender's time, but a sender's clock may be wrong. Three values about a sender
do not depend on its clock alone:

    heard     the time of its last message: the time by its own clock when it sent the message, or
              the time by our clock when we read the message, whichever is earlier
    offsets   the least and greatest offset of its messages in a log: offsets show in which order
              senders of one log began and ended, even if their clocks are wrong
    reading   the difference of its clock from ours, as far as it is known

A lag is the time of our clock when we read a record, minus the time of the sender's clock when it
sent the record. We divide the time of our clock into windows. The reading of a window is the least
lag in the window. Each wait of a record on its way to us makes its lag greater, so the least lag is
nearest to the difference of the clocks. A lag below zero always counts: no record is sent after it
was read, so the sender's clock must be ahead. A lag above zero counts only if the record came live:
it arrived while we were at the end of its log. Otherwise the record was in a backlog, or we are
reading the topic again from its beginning. We also keep the readings of the two windows before the
newest window. One window is not enough: if records wait in a mirror or for a broker during a
window, their sender's clock looks slow in this window.
"""

from __future__ import annotations

from typing import NamedTuple

from skidway.audit.counts.counts import NO_AGENT
from skidway.audit.topic.messages import Tier

WINDOW_MS = 120_000
"""The length of a window. A sender sends two heartbeats in this time, so every running sender has a
reading in each window."""

_LAG_MAX_MS = 1 << 61

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
    """

    topic: str
    topic_id: str
    partition: int
    offset: int
    sent_ms: int | None
    taken_ms: int
    is_live: bool
    appended_ms: int | None = None

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
        """The range that contains both ranges of offsets."""
        return Offsets(min(self.first, other.first), max(self.last, other.last))


class Spoken(NamedTuple):
    """An agent, and the log and the offset of one of its messages."""

    agent: int
    log: Log
    offset: int


class Reading(NamedTuple):
    """The difference of a sender's clock from ours. It is computed from lags: the lag of a record
    is the time by our clock at which we read it, minus the time by the sender's clock at which it
    was sent. The module's docstring says which lags count. window: the number of the last window of
    our time that has such a lag. least_ms: the least lag in that window. earlier_ms: the least lag
    in the window before `window`; None if no lag of that window counts. earliest_ms: the least lag
    in the window two before `window`; None if no lag of that window counts."""

    window: int
    least_ms: int
    earlier_ms: int | None = None
    earliest_ms: int | None = None


class Hearings:
    """Collects what messages show about their senders. The dictionaries have one entry for each
    sender; `offsets` has one entry for each agent and log. spoken: one entry for each message of an
    agent, in the order in which the messages were read."""

    def __init__(self) -> None:
        self.heard: dict[SenderName, int] = {}
        self.readings: dict[SenderName, Reading] = {}
        self.offsets: dict[tuple[int, Log], Offsets] = {}
        self.spoken: list[Spoken] = []
        self.sealed: dict[tuple[int, int], int] = {}

    def take(self, sender: SenderName, time_ms: int, where: Heard | None) -> None:
        """Notes a message that proves that its sender is alive. time_ms: the time by the sender's
        clock at which it made the message. where: None if it is not known where and when the
        message was read."""
        at_ms = time_ms if where is None else min(time_ms, where.taken_ms)
        self.heard[sender] = max(self.heard.get(sender, at_ms), at_ms)

    def place(self, agent: int, where: Heard) -> None:
        """Notes the log and the offset of a message of an agent."""
        if agent != NO_AGENT:
            log, offset = Log(where.topic, where.topic_id, where.partition), where.offset
            self.spoken.append(Spoken(agent, log, offset))
            known = self.offsets.get((agent, log))
            if known is None or not known.first <= offset <= known.last:
                here = Offsets(offset, offset)
                self.offsets[agent, log] = here if known is None else known.or_wider(here)

    def seal(self, agent: int, epoch: int, where: Heard) -> None:
        """Notes a seal that an agent sent in one of its epochs other than its first epoch. `sealed`
        gets the time at which the first seal of this epoch arrived. If that seal came live, this is
        the time by our clock; otherwise it is the time by the broker's clock.
        """
        came_ms = where.taken_ms if where.is_live else where.appended_ms
        if came_ms is not None:
            key = agent, epoch
            self.sealed[key] = min(self.sealed.get(key, came_ms), came_ms)

    def read(self, sender: SenderName, sent_ms: int, where: Heard) -> None:
        """Compares our clock with the sender's clock, which showed `sent_ms` when the record was
        sent."""
        lag_ms = where.taken_ms - sent_ms
        if lag_ms < 0 or where.is_live:
            least_ms = max(-_LAG_MAX_MS, min(lag_ms, _LAG_MAX_MS))
            window, known = where.taken_ms // WINDOW_MS, self.readings.get(sender)
            if known is None or known.window != window or least_ms < known.least_ms:
                self.readings[sender] = then(known, Reading(window, least_ms))


def then(known: Reading | None, new: Reading) -> Reading:
    """Merges a new reading of a sender's clock into the known reading. If the window of the new
    reading is neither the window of the known reading nor the window after it, for example because
    our own clock was set, drops the known reading."""
    if known is None or new.window not in (known.window, known.window + 1):
        return new
    if new.window == known.window:
        return known._replace(least_ms=min(known.least_ms, new.least_ms))
    return Reading(new.window, new.least_ms, known.least_ms, known.earlier_ms)

"""Where and when records of the audit topics were taken, and what follows for their senders.

A message carries its sender's time, and a sender's clock may be wrong. Three things about a sender do
not rest on it alone:

    heard     when it was heard last: its own clock, but never later than ours when we took it
    offsets   between which offsets of a log its messages lie: the order in which senders of one log
              began and ended, whatever their clocks say
    reading   its clock compared with ours

A reading is the least lag in a window of our time. A lag is our clock when a record was taken,
minus the sender's when it was sent. Waiting only makes a lag greater, so the least one is nearest
to the difference of the clocks. A lag below zero always counts: nothing is sent after it was taken.
A lag above zero counts only if the record came live, that is while we stood at the end of its log:
otherwise it was in a backlog, or the topic is being read again from its beginning. The two windows
before are kept as well, because within one window a record that waited elsewhere, in a mirror or
for a broker, looks like a slow clock.
"""

from __future__ import annotations

from typing import NamedTuple

from skidway.audit.counts.counts import NO_AGENT
from skidway.audit.topic.messages import Tier

WINDOW_MS = 120_000
"""Two heartbeats: every sender that lives is read in each window."""

_LAG_MAX_MS = 1 << 61

SenderName = tuple[Tier, str]
"""Tier and producer, whatever its epoch."""


class Heard(NamedTuple):
    """Where and when a record was taken. topic, topic_id, partition, offset: where it lies.
    sent_ms: the sender's clock when it sent the record; None if the broker writes its own clock
    into records (LogAppendTime). taken_ms: our clock when we took it. is_live: we had stood at the
    end of the log just before. appended_ms: the broker's clock when it took the record, if it
    writes that into records."""

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
        """When it had certainly been sent, by whichever of the two clocks is earlier."""
        return self.taken_ms if self.appended_ms is None else min(self.taken_ms, self.appended_ms)


class Log(NamedTuple):
    """A partition of an audit topic; one that was made again is another log."""

    topic: str
    topic_id: str
    partition: int


class Offsets(NamedTuple):
    """The least and the greatest offset of a sender's messages in a log."""

    first: int
    last: int

    def or_wider(self, other: Offsets) -> Offsets:
        """The offsets of both together."""
        return Offsets(min(self.first, other.first), max(self.last, other.last))


class Spoken(NamedTuple):
    """Where a message of an agent lies."""

    agent: int
    log: Log
    offset: int


class Reading(NamedTuple):
    """A sender's clock compared with ours. window: the number of the last window of our time in
    which it was read. least_ms: the least lag in it. earlier_ms, earliest_ms: the least lag in the
    window before, and in the one before that; None: not read."""

    window: int
    least_ms: int
    earlier_ms: int | None = None
    earliest_ms: int | None = None


class Hearings:
    """What was heard from senders, over any number of messages; one entry per sender (and log).
    spoken: the messages of agents in the order in which they were taken; one entry per message."""

    def __init__(self) -> None:
        self.heard: dict[SenderName, int] = {}
        self.readings: dict[SenderName, Reading] = {}
        self.offsets: dict[tuple[int, Log], Offsets] = {}
        self.spoken: list[Spoken] = []
        self.sealed: dict[tuple[int, int], int] = {}

    def take(self, sender: SenderName, time_ms: int, where: Heard | None) -> None:
        """Notes a message that proves life, made at `time_ms` by its sender's clock."""
        at_ms = time_ms if where is None else min(time_ms, where.taken_ms)
        self.heard[sender] = max(self.heard.get(sender, at_ms), at_ms)

    def place(self, agent: int, where: Heard) -> None:
        """Notes where a message of an agent lies."""
        if agent != NO_AGENT:
            log = Log(where.topic, where.topic_id, where.partition)
            self.spoken.append(Spoken(agent, log, where.offset))
            key = agent, log
            here = Offsets(where.offset, where.offset)
            self.offsets[key] = self.offsets.get(key, here).or_wider(here)

    def seal(self, agent: int, epoch: int, where: Heard) -> None:
        """Notes a seal of an epoch that is not the agent's first. `sealed` has when the epoch's
        first one came: by our clock if it came live, else by the broker's."""
        came_ms = where.taken_ms if where.is_live else where.appended_ms
        if came_ms is not None:
            key = agent, epoch
            self.sealed[key] = min(self.sealed.get(key, came_ms), came_ms)

    def read(self, sender: SenderName, sent_ms: int, where: Heard) -> None:
        """Reads the sender's clock, which said `sent_ms` when the record was sent."""
        lag_ms = where.taken_ms - sent_ms
        if lag_ms < 0 or where.is_live:
            least_ms = max(-_LAG_MAX_MS, min(lag_ms, _LAG_MAX_MS))
            new = Reading(where.taken_ms // WINDOW_MS, least_ms)
            self.readings[sender] = then(self.readings.get(sender), new)


def then(known: Reading | None, new: Reading) -> Reading:
    """What is known after a new reading. If our own clock was set, no reading from before holds."""
    if known is None or new.window not in (known.window, known.window + 1):
        return new
    if new.window == known.window:
        return known._replace(least_ms=min(known.least_ms, new.least_ms))
    return Reading(new.window, new.least_ms, known.least_ms, known.earlier_ms)

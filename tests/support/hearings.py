"""A model of what messages show about their senders (see audit.evidence.hearing). It takes one
message after the other. The ledger (sender_rows) takes many messages at once, in columns, and must
come to the same result."""

from __future__ import annotations

from functools import lru_cache

from skidway.audit.counts.counts import NO_AGENT
from skidway.audit.evidence.evidence import agent_named, agent_of
from skidway.audit.evidence.hearing import (
    WINDOW_MS,
    WINDOWS_KEPT,
    Heard,
    Log,
    Offsets,
    Reading,
    SenderName,
    Spoken,
)
from skidway.audit.topic.decisions import Acceptance, Disownment, Retirement, Revocation
from skidway.audit.topic.messages import Announcement, Heartbeat, Message, Seal, Tier
from skidway.audit.topic.notes import Note
from skidway.audit.topic.recount_result import RecountResult

_LAG_MAX_MS = 1 << 61

_PROVES_NO_LIFE = (
    Acceptance, Retirement, Disownment, Revocation, RecountResult, Note, Announcement
)  # fmt: skip
"""These messages do not prove that a sender is alive. Most of them come from commands. Agents,
counters and loaders, which send notes and announcements, also send messages that prove that they
are alive."""

_SENT_AT_ONCE = Seal, Heartbeat
"""Senders send these messages as soon as they make them."""


class Hearings:
    """Collects what messages show about their senders. The dictionaries have one entry for each
    sender; but `offsets` has one entry for each agent, host name and log, and `sealed` one for each
    agent and epoch. readings: each `Reading` says by how much the sender's clock differed from ours
    in one window of time. There are at most the last WINDOWS_KEPT readings of a sender, in the
    order of time. `after` merges them into what was known before. spoken: one entry for each
    message of an agent, in the order in which the messages were read."""

    def __init__(self) -> None:
        self.heard: dict[SenderName, int] = {}
        self.readings: dict[SenderName, list[Reading]] = {}
        self.offsets: dict[tuple[int, str, Log], Offsets] = {}
        self.spoken: list[Spoken] = []
        self.sealed: dict[tuple[int, int], int] = {}

    def take(self, sender: SenderName, time_ms: int, where: Heard | None) -> None:
        """Notes a message that proves that its sender is alive. time_ms: the time that the sender's
        clock showed when the sender made the message. where: None if it is not known where and when
        the message was read."""
        at_ms = time_ms if where is None else min(time_ms, where.taken_ms)
        self.heard[sender] = max(self.heard.get(sender, at_ms), at_ms)

    def place(self, agent: int, host: str, where: Heard) -> None:
        """Notes the log and the offset of a message of an agent. host: the host's name in the
        message."""
        if agent != NO_AGENT:
            log, offset = _log(where.topic, where.topic_id, where.partition), where.offset
            self.spoken.append(Spoken(agent, host, log, offset))
            key = agent, host, log
            known = self.offsets.get(key)
            if known is None:
                self.offsets[key] = Offsets(offset, offset)
            elif offset > known.last:
                self.offsets[key] = Offsets(known.first, offset)
            elif offset < known.first:
                self.offsets[key] = Offsets(offset, known.last)

    def seal(self, agent: int, epoch: int, where: Heard) -> None:
        """Notes a seal that an agent sent in an epoch after its first epoch. `sealed` gets the time
        at which the first seal of this epoch arrived. If that seal was read as soon as it arrived
        (`is_live`), this is the time by our clock. If it was read later, this is the time by the
        broker's clock, if known.
        """
        came_ms = where.taken_ms if where.is_live else where.appended_ms
        if came_ms is not None:
            key = agent, epoch
            self.sealed[key] = min(self.sealed.get(key, came_ms), came_ms)

    def read(self, sender: SenderName, sent_ms: int, where: Heard) -> None:
        """Compares our clock with the sender's clock, which showed `sent_ms` when the record was
        sent. Keeps only the last WINDOWS_KEPT readings (differences of the clocks) of the sender:
        they alone determine the result of `after`, whatever was known before.
        """
        lag_ms = where.taken_ms - sent_ms
        if lag_ms < 0 or where.is_live:
            least_ms = max(-_LAG_MAX_MS, min(lag_ms, _LAG_MAX_MS))
            window, known = where.taken_ms // WINDOW_MS, self.readings.setdefault(sender, [])
            if not known or known[-1].window != window:
                known.append(Reading(window, least_ms))
                del known[:-WINDOWS_KEPT]
            elif least_ms < known[-1].least_ms:
                known[-1] = Reading(window, least_ms)


@lru_cache(maxsize=1024)
def _log(topic: str, topic_id: str, partition: int) -> Log:
    """Returns the `Log` with these values. Equal logs share one object, which saves memory because
    nearly all messages come from a few logs."""
    return Log(topic, topic_id, partition)


def hear(
    hearings: Hearings, message: Message, where: Heard | None, *, is_repeated: bool = False
) -> None:
    """Records what the log position and the times of a message show about its sender.

    A record's time shows the sender's clock. If the broker writes its own time into records, the
    function uses the time in the message instead, but only in seals and heartbeats, because senders
    send these two kinds of messages as soon as they make them. A delta may wait before it is sent;
    a loader's delta, for example, may wait for a day. is_repeated: whether the message was sent
    before, or is a heartbeat that was sent before a later one.
    """
    if isinstance(message, _PROVES_NO_LIFE) or is_repeated:
        return
    name, host = (message.sender.tier, message.sender.producer), message.sender.host
    hearings.take(name, message.time_ms, where)
    if where is None:
        return
    if name[0] is Tier.AGENT:
        hearings.place(agent_named(name[1]), host, where)
    if isinstance(message, Seal) and message.sender.epoch > 1:
        hearings.seal(agent_of(message.sender), message.sender.epoch, where)
    if where.sent_ms is not None:
        hearings.read(name, where.sent_ms, where)
    elif isinstance(message, _SENT_AT_ONCE):
        hearings.read(name, message.time_ms, where)

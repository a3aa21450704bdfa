"""What the messages of one transaction show about their senders, in columns, without I/O: when and
where the messages were read, and the clocks, hosts and bounds of their senders (see modules hearing
and messages).

Most of these values are a minimum or a maximum over the messages of one sender. So the messages are
put into columns, and each value is computed for all senders together.

In this module, two messages have the same sender only if all fields of `Sender` are equal: host,
epoch and bounds, too. If the host of an agent gets another name, for example, the agent counts as
two senders here. In this case, the rows of both senders are combined when they are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from skidway.audit.counts.counts import NO_AGENT
from skidway.audit.evidence.evidence import agent_named
from skidway.audit.evidence.hearing import (
    WINDOW_MS,
    WINDOWS_KEPT,
    Heard,
    Log,
    Reading,
    SenderName,
    Spoken,
)
from skidway.audit.topic.messages import Sender, Tier

Row = tuple[object, ...]

_LAG_MAX_MS: Final = 1 << 61

Int64s = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Kind(IntEnum):
    """The kinds of messages from which this module learns about their senders. Announcements, and
    messages that were sent before, do not prove that their senders are alive."""

    DELTA = 0
    SEAL = 1
    HEARTBEAT = 2
    ANNOUNCEMENT = 3
    REPEATED = 4


class KnownSender(NamedTuple):
    """A sender, with values that follow from it. name: its tier and its producer. agent: the
    agent's id; for the sender of an announcement, the number that the announcement gives as the id.
    heard: the agent's id, taken from the name of the producer; NO_AGENT if the sender is no agent,
    or if this name is no valid id.
    """

    sender: Sender
    name: SenderName
    agent: int
    heard: int

    @classmethod
    def of(cls, sender: Sender, agent: int) -> Self:
        """Returns the values of this sender. agent: see `agent` in the docstring of the class."""
        is_agent = sender.tier is Tier.AGENT
        heard = agent_named(sender.producer) if is_agent else NO_AGENT
        return cls(sender, (sender.tier, sender.producer), agent, heard)


class SenderColumns(NamedTuple):
    """The messages of one transaction, in the order in which they were read. senders: the senders
    of these messages. sender: for each message, the index of its sender in `senders`.

    The methods whose names end with `rows` return rows of tables. If a table has a row with the
    same key already, the caller combines both rows: it keeps, for example, the later time."""

    senders: Sequence[KnownSender]
    sender: Int64s
    kind: Int64s
    number: Int64s
    time_ms: Int64s
    places: _Places

    @classmethod
    def of(
        cls,
        senders: Sequence[KnownSender],
        said: Sequence[tuple[int, int, int, int]],
        places: Sequence[Heard | None],
    ) -> Self:
        sender, kind, number, time_ms = np.array(said, np.int64).T
        own, sender = np.unique(sender, return_inverse=True)
        present = [senders[x] for x in own.tolist()]
        return cls(present, sender, kind, number, time_ms, _Places.of(places))

    def heard_rows(self) -> Iterator[Row]:
        """The time at which each sender was heard last (see hearing). Announcements do not
        count."""
        heard_ms = self.time_ms.copy()
        heard_ms[self.places.at] = np.minimum(heard_ms[self.places.at], self.places.taken_ms)
        return self._latest(heard_ms, self._alive)

    def seen_rows(self) -> Iterator[Row]:
        """The latest time in the messages of each sender, by the sender's clock. Announcements do
        not count."""
        return self._latest(self.time_ms, self._said)

    def bounds_rows(self) -> Iterator[Row]:
        """The bounds for event times that each agent announced."""
        for sender, *_ in (self.senders[x] for x in np.unique(self.sender[self._said]).tolist()):
            if sender.tier is Tier.AGENT:
                bounds = sender.bounds
                yield agent_named(sender.producer), bounds.lateness_ms, bounds.ahead_ms

    def host_rows(self) -> Iterator[tuple[Row, Row]]:
        """For each sender that is an agent, its rows in two tables: the host in its message with
        the greatest number, and its first time with this host."""
        is_agent = np.array([x.sender.tier is Tier.AGENT for x in self.senders], np.bool_)
        own = np.flatnonzero(is_agent[self.sender])
        own = own[np.lexsort((self.time_ms[own], self.number[own], self.sender[own]))]
        groups = _Groups.of(self.sender[own])
        newest = own[groups.ends - 1]
        for index, number, time_ms, first_ms in zip(
            groups.keys,
            self.number[newest].tolist(),
            self.time_ms[newest].tolist(),
            groups.least(self.time_ms[own]),
            strict=True,
        ):
            sender, _, agent, _ = self.senders[index]
            yield (
                (agent, sender.epoch, number, time_ms, sender.host),
                (agent, sender.host, first_ms),
            )

    def resumed_rows(self) -> Iterator[Row]:
        """For each epoch of an agent except the first: the earliest known time at which one of its
        seals arrived. For a seal that came live (while we were at the end of its log), this is the
        time by our clock. For any other seal, it is the time by the broker's clock; if the broker
        does not write this time into records, the seal does not count.
        """
        places = self.places
        came_ms = np.where(places.is_live, places.taken_ms, places.appended_ms)
        found = (self.kind[places.at] == Kind.SEAL) & (places.is_live | places.is_appended)
        groups = _Groups.of(self.sender[places.at[found]])
        for sender, taken_ms in zip(groups.keys, groups.least(came_ms[found]), strict=True):
            known = self.senders[sender]
            if known.sender.epoch > 1:
                yield known.agent, known.sender.epoch, taken_ms

    def offset_rows(self) -> Iterator[Row]:
        """The least and the greatest offset of each agent's messages in each log, for each name
        that its host had."""
        logs, at = self.places.logs, self.places.at
        groups = _Groups.of(self.sender[at] * len(logs) + self.places.log)
        least, greatest = groups.least(self.places.offset), groups.greatest(self.places.offset)
        for key, first, last in zip(groups.keys, least, greatest, strict=True):
            sender, log = divmod(key, len(logs))
            known = self.senders[sender]
            if known.heard != NO_AGENT:
                yield known.sender.host, known.heard, *logs[log], first, last

    def agents_heard(self) -> Iterator[tuple[int, str]]:
        """Yields each agent that sent a message whose place in a log is known, and the host in this
        message.
        """
        for sender in np.unique(self.sender[self.places.at]).tolist():
            known = self.senders[sender]
            if known.heard != NO_AGENT:
                yield known.heard, known.sender.host

    def spoken(self, hosts: Mapping[str, object]) -> Iterator[Spoken]:
        """Yields where the messages of the agents with these host names were read, in the order in
        which they were read."""
        is_meant = [x.heard != NO_AGENT and x.sender.host in hosts for x in self.senders]
        sender, places = self.sender[self.places.at], self.places
        for index in np.flatnonzero(np.array(is_meant, np.bool_)[sender]).tolist():
            said = self.senders[sender[index]]
            log, offset = places.logs[places.log[index]], int(places.offset[index])
            yield Spoken(said.heard, said.sender.host, log, offset)

    def readings(self) -> dict[SenderName, list[Reading]]:
        """Compares our clock with the clocks of the senders. The clock of a sender showed `sent_ms`
        when it sent a record. If the broker writes its own time into records, the time in the
        message counts instead, but only in seals and heartbeats, because senders send these two
        kinds of messages as soon as they make them. A delta may wait before it is sent; a loader's
        delta, for example, may wait for a day.

        Returns at most the last WINDOWS_KEPT readings of each sender, one for each window, in the
        order in which the windows came. Readings before these do not change the result of
        `hearing.after`."""
        places, kind = self.places, self.kind[self.places.at]
        sent_ms = np.where(places.is_sent, places.sent_ms, self.time_ms[places.at])
        nearest, farthest = places.taken_ms - _LAG_MAX_MS, places.taken_ms + _LAG_MAX_MS
        lag_ms = places.taken_ms - np.clip(sent_ms, nearest, farthest)
        is_told = places.is_sent | (kind == Kind.SEAL) | (kind == Kind.HEARTBEAT)
        counts = np.flatnonzero(is_told & ((lag_ms < 0) | places.is_live))
        names: dict[SenderName, int] = {}
        number_of = [names.setdefault(x.name, len(names)) for x in self.senders]
        name = np.array(number_of, np.int64)[self.sender[places.at[counts]]]
        order = np.argsort(name, kind="stable")
        window = places.taken_ms[counts][order] // WINDOW_MS
        groups = _Groups.of_runs(name[order], window)
        found: dict[SenderName, list[Reading]] = {}
        known = list(names)
        least = groups.least(lag_ms[counts][order])
        for number, at, lag in zip(groups.keys, window[groups.begins].tolist(), least, strict=True):
            readings = found.setdefault(known[number], [])
            readings.append(Reading(at, lag))
            del readings[:-WINDOWS_KEPT]
        return found

    @property
    def _alive(self) -> Int64s:
        """The indexes of the messages that prove that their senders are alive."""
        found: Int64s = np.flatnonzero(self.kind < Kind.ANNOUNCEMENT)
        return found

    @property
    def _said(self) -> Int64s:
        """The indexes of all messages but announcements."""
        found: Int64s = np.flatnonzero(self.kind != Kind.ANNOUNCEMENT)
        return found

    def _latest(self, times_ms: Int64s, rows: Int64s) -> Iterator[Row]:
        """For each sender with one of these messages: its tier, its producer, and the latest time
        of these messages. times_ms: a time for each message. rows: indexes of messages."""
        groups = _Groups.of(self.sender[rows])
        for sender, time_ms in zip(groups.keys, groups.greatest(times_ms[rows]), strict=True):
            tier, producer = self.senders[sender].name
            yield tier.value, producer, time_ms


class _Places(NamedTuple):
    """Where and when messages were read. Messages of which this is not known are left out. at: for
    each message that is not left out, its index among all messages of the transaction. log: indexes
    into `logs`. sent_ms, appended_ms: 0 where `is_sent` or `is_appended` is false, because the
    value is not known.
    """

    at: Int64s
    logs: Sequence[Log]
    log: Int64s
    offset: Int64s
    taken_ms: Int64s
    is_sent: Flags
    sent_ms: Int64s
    is_live: Flags
    is_appended: Flags
    appended_ms: Int64s

    @classmethod
    def of(cls, places: Sequence[Heard | None]) -> Self:
        at = [index for index, where in enumerate(places) if where is not None]
        found = [where for where in places if where is not None]
        topics, topic_ids, partitions, offsets, sent, taken, live, appended, _ = (
            zip(*found, strict=True) if found else ((),) * 9
        )
        logs: dict[tuple[str, str, int], int] = {}
        log = [
            logs.setdefault(x, len(logs)) for x in zip(topics, topic_ids, partitions, strict=True)
        ]
        return cls(
            np.array(at, np.int64),
            [Log(*x) for x in logs],
            np.array(log, np.int64),
            np.array(offsets, np.int64),
            np.array(taken, np.int64),
            *_known(sent),
            np.array(live, np.bool_),
            *_known(appended),
        )


class _Groups(NamedTuple):
    """Rows of an array, in groups with equal keys. order: the indexes of the rows, group by group.
    begins, ends: where each group begins and ends in `order`. keys: the key of each group."""

    order: Int64s
    begins: Int64s
    ends: Int64s
    keys: list[int]

    @classmethod
    def of(cls, keys: Int64s) -> Self:
        """Groups the rows by their keys. Rows with equal keys keep their order."""
        order = np.argsort(keys, kind="stable")
        return cls._make_runs(order, keys[order], keys[order])

    @classmethod
    def of_runs(cls, keys: Int64s, others: Int64s) -> Self:
        """Makes a group of each run of successive rows that have the same key and the same value in
        `others`."""
        return cls._make_runs(np.arange(len(keys)), keys, others)

    @classmethod
    def _make_runs(cls, order: Int64s, keys: Int64s, others: Int64s) -> Self:
        changes = (keys[1:] != keys[:-1]) | (others[1:] != others[:-1])
        begins = np.flatnonzero(np.concatenate((np.ones(min(len(keys), 1), np.bool_), changes)))
        ends = np.concatenate((begins[1:], [len(keys)])) if len(keys) else begins
        return cls(order, begins, ends, keys[begins].tolist())

    def least(self, values: Int64s) -> list[int]:
        """The least value of each group. values: a value for each row."""
        return self._reduced(np.minimum, values)

    def greatest(self, values: Int64s) -> list[int]:
        """The greatest value of each group. values: a value for each row."""
        return self._reduced(np.maximum, values)

    def _reduced(self, function: np.ufunc, values: Int64s) -> list[int]:
        if not len(self.begins):
            return []
        found: list[int] = function.reduceat(values[self.order], self.begins).tolist()
        return found


def _known(values: Sequence[int | None]) -> tuple[Flags, Int64s]:
    """Returns two arrays: which of the values are not None, and the values with 0 in place of
    None."""
    is_known = np.array([x is not None for x in values], np.bool_)
    return is_known, np.array([x or 0 for x in values], np.int64)

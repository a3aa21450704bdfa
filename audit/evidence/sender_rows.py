"""Writes what the messages of one transaction show about their senders (see sender_columns).

Only the readings of clocks and the overlaps of agents depend on the order in which the messages
were read. All other rows do not depend on this order.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any, Final

from skidway.audit.evidence.evidence import agent_named
from skidway.audit.evidence.hearing import Heard, Log, Offsets, Reading, SenderName, after
from skidway.audit.evidence.overlaps import OTHERS_MAX, Pair, overlaps
from skidway.audit.evidence.sender_columns import Kind, KnownSender, SenderColumns
from skidway.audit.topic.messages import Announcement, Delta, Heartbeat, Seal, Sender, Tier

SENDERS_MAX: Final = 1 << 16
"""At most about this many senders stay in memory between two transactions."""

_HEARD: Final = """
INSERT INTO heard VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET time = max(time, excluded.time)
"""

_LAST_SEEN: Final = """
INSERT INTO last_seen VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET time = max(time, excluded.time)
"""

_HOST_NAMES: Final = """
INSERT INTO host_names VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    epoch = excluded.epoch, number = excluded.number, time = excluded.time, host = excluded.host
    WHERE (excluded.epoch, excluded.number, excluded.time, excluded.host)
    > (epoch, number, time, host)
"""

_BEGINNINGS: Final = """
INSERT INTO beginnings VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET
    time = excluded.time WHERE excluded.time < time
"""

_BOUNDS: Final = """
INSERT INTO bounds VALUES (?, max(?, 0), max(?, 0)) ON CONFLICT DO UPDATE SET
    lateness = max(lateness, excluded.lateness), ahead = max(ahead, excluded.ahead)
    WHERE excluded.lateness > lateness OR excluded.ahead > ahead
"""

_RESUMED: Final = """
INSERT INTO resumed VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET taken = min(taken, excluded.taken)
"""

_OFFSETS: Final = """
INSERT INTO offsets VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    first = min(first, excluded.first), last = max(last, excluded.last)
"""

_OFFSETS_OF_HOST: Final = """
SELECT host, agent, topic, topic_id, partition, first, last FROM offsets WHERE host = ?
"""

_PARTNERS: Final = """
SELECT other FROM overlaps WHERE agent = ?1 UNION SELECT agent FROM overlaps WHERE other = ?1
"""

_KINDS: Final = {Delta: Kind.DELTA, Seal: Kind.SEAL, Heartbeat: Kind.HEARTBEAT}


class SenderRows:
    """Writes the rows about senders. The same object serves one transaction after the other; after
    a failed transaction, the object must not be used any more."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._senders: list[KnownSender] = []
        self._indexes: dict[int, int] = {}
        """For each object `Sender`, by Python's `id` of the object: the index of the sender in
        `_senders`. `_senders` keeps these objects in memory, so no other object gets one of the
        ids. For equal senders, the decoder mostly returns the same object. If it returns another
        object, `_senders` has the sender twice, which does no harm."""
        self._said: list[tuple[int, int, int, int]] = []
        self._places: list[Heard | None] = []
        self._readings: dict[SenderName, Reading] = {}
        self._partners: dict[int, set[int]] = {}
        self._alone: dict[str, set[int]] = {}
        """Host names of which only one agent has rows in the table `offsets`, and this agent."""

    def add(self, message: Delta | Seal | Heartbeat, where: Heard | None) -> None:
        """Adds a message. where: where and when it was read; None if this is not known."""
        sender = message.sender
        index = self._indexes.get(id(sender))
        if index is None:
            index = self._add_sender(sender, agent_named(sender.producer))
        self._said.append((index, _KINDS[type(message)], message.number, message.time_ms))
        self._places.append(where)

    def repeat(self, message: Delta | Seal | Heartbeat) -> None:
        """Adds a message that was sent before, or a heartbeat that was sent before a later one.
        Anybody can repeat a message, so it shows neither that its sender is alive nor its clock."""
        self.add(message, None)
        self._said[-1] = (self._said[-1][0], Kind.REPEATED, *self._said[-1][2:])

    def announce(self, message: Announcement) -> None:
        """Adds an announcement. It shows the host of its agent. It shows neither that the agent is
        alive nor the clock of the host, because anybody can repeat it."""
        sender = _announcer(message.agent, message.host)
        index = self._indexes.get(id(sender))
        if index is None:
            index = self._add_sender(sender, message.agent)
        self._said.append((index, Kind.ANNOUNCEMENT, 0, message.time_ms))
        self._places.append(None)

    def write(self) -> None:
        """Writes the rows of all messages that were added since the last call."""
        if self._said:
            said = SenderColumns.of(self._senders, self._said, self._places)
            self._said, self._places = [], []
            self._write_rows(said)
            self._write_readings(said.readings())
            self._write_overlaps(said)
            self._connection.executemany(_OFFSETS, said.offset_rows())
        if len(self._senders) > SENDERS_MAX:
            self._senders, self._indexes, self._partners, self._alone = [], {}, {}, {}
            self._readings = {}

    def _add_sender(self, sender: Sender, agent: int) -> int:
        self._indexes[id(sender)] = len(self._senders)
        self._senders.append(KnownSender.of(sender, agent))
        return len(self._senders) - 1

    def _write_rows(self, said: SenderColumns) -> None:
        of_hosts = list(said.host_rows())
        for statement, rows in (
            (_HEARD, said.heard_rows()),
            (_LAST_SEEN, said.seen_rows()),
            (_BOUNDS, said.bounds_rows()),
            (_HOST_NAMES, (name for name, _ in of_hosts)),
            (_BEGINNINGS, (beginning for _, beginning in of_hosts)),
            (_RESUMED, said.resumed_rows()),
        ):
            self._connection.executemany(statement, rows)

    def _write_readings(self, readings: Mapping[SenderName, Iterable[Reading]]) -> None:
        """Adds new readings (differences of clocks, see hearing) to the stored readings, and writes
        those that have changed."""
        rows = []
        for name, new in readings.items():
            known = self._reading(name)
            found = after(known, new)
            if found is not None and found != known:
                self._readings[name] = found
                rows.append((name[0].value, name[1], *found))
        self._connection.executemany(
            "INSERT OR REPLACE INTO readings VALUES (?, ?, ?, ?, ?, ?)", rows
        )

    def _reading(self, name: SenderName) -> Reading | None:
        if name in self._readings:
            return self._readings[name]
        row = self._connection.execute(
            "SELECT window, least, earlier, earliest FROM readings WHERE (tier, producer) = (?, ?)",
            (name[0].value, name[1]),
        ).fetchone()
        return None if row is None else Reading(*row)

    def _write_overlaps(self, said: SenderColumns) -> None:
        """Finds agents that had the same host name and were alive at the same time, and writes each
        pair of them. For this, it compares the offsets of new messages with the stored offsets of
        earlier messages. So the caller must store the offsets of new messages after this call."""
        named: dict[str, set[int]] = {}
        for agent, host in said.agents_heard():
            named.setdefault(host, set()).add(agent)
        asked = [host for host, agents in named.items() if self._alone.get(host) != agents]
        stored = self._offsets_of(asked)
        for host, agent, *_ in stored:
            named[host].add(agent)
        for host in asked:
            self._alone.pop(host, None)
            if len(named[host]) == 1:
                self._alone[host] = named[host]
        shared = {host: agents for host, agents in named.items() if len(agents) > 1}
        known = {
            (agent, host, Log(*place)): Offsets(first, last)
            for host, agent, *place, first, last in stored
            if host in shared
        }
        pairs = overlaps(known, said.spoken(shared), shared)
        needed = [pair for pair in sorted(pairs) if self._is_needed(pair)]
        self._connection.executemany("INSERT INTO overlaps VALUES (?, ?)", needed)

    def _is_needed(self, pair: Pair) -> bool:
        """Whether a pair is new, and one of its agents has few partners yet. So there are not more
        pairs than OTHERS_MAX for each agent."""
        one, other = (self._partners_of(agent) for agent in pair)
        if pair[1] in one or min(len(one), len(other)) >= OTHERS_MAX:
            return False
        one.add(pair[1])
        other.add(pair[0])
        return True

    def _partners_of(self, agent: int) -> set[int]:
        """The agents that were alive at the same time as this one, as far as they are stored."""
        if agent not in self._partners:
            rows = self._connection.execute(_PARTNERS, (agent,))
            self._partners[agent] = {other for (other,) in rows}
        return self._partners[agent]

    def _offsets_of(self, hosts: Iterable[str]) -> list[tuple[Any, ...]]:
        """Returns the rows of the table `offsets` for these host names."""
        found = (self._connection.execute(_OFFSETS_OF_HOST, (host,)) for host in hosts)
        return list(chain.from_iterable(found))


@lru_cache(SENDERS_MAX)
def _announcer(agent: int, host: str) -> Sender:
    """The sender of an agent's announcements, which have no epoch and no bounds."""
    return Sender(Tier.AGENT, "", str(agent), host, 0)

"""Reads from the ledger the seals that a judgement can use.

For each agent, epoch and topic, these are the first and the newest seal; the last seal before a
clone (a message that has the number of another message); the last seal before each loss; and the
last seal before and the first seal after each rereading. (A rereading is a time in which the agent
may have read what another agent had read already.)
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from skidway.audit.database import storable
from skidway.audit.evidence.evidence import (
    NEVER_AHEAD_MS,
    LossNote,
    Numbers,
    SealNote,
    TopicEvidence,
    agent_named,
)
from skidway.audit.evidence.rereading import Rereading
from skidway.audit.evidence.seal_blocks import BLOCK, Row, unpack
from skidway.audit.evidence.tallies import SenderKey
from skidway.audit.topic.messages import Tier

NO_LIMIT = 1 << 62
_BEYOND = 1 << 64
"""A bound for seals: greater than every number of a message, and later than every time."""

_OF_TOPICS = "SELECT seal_topics.id FROM seal_topics, json_each(sources) WHERE value = :source"
_BLOCKS = f"""
SELECT block, packed FROM seals
WHERE agent = :agent AND epoch = :epoch AND topics IN ({_OF_TOPICS})
    AND block BETWEEN :first AND :last AND least <= :until AND newest >= :since
"""  # noqa: S608 - inserts only constants
_UPWARDS = f"{_BLOCKS} ORDER BY block"
_DOWNWARDS = f"{_BLOCKS} ORDER BY block DESC"


class _Whose(NamedTuple):
    """Says which seals to read: those of one topic in one epoch of an agent. source: the topic's id
    in the ledger.
    """

    agent: int
    epoch: int
    source: int


class _Bounds(NamedTuple):
    """Bounds for seals: a seal is within them if its number is above `behind` and below `before`,
    and its `sealed_until` is above `since` and below `until`."""

    behind: int = -_BEYOND
    before: int = _BEYOND
    since: int = -_BEYOND
    until: int = _BEYOND

    def hold(self, row: Row) -> bool:
        return self.behind < row.number < self.before and self.since < row.sealed_until < self.until


class Asked(NamedTuple):
    """A topic whose seals are read. source: the topic's id in the ledger. losses: the losses that
    agents declared in this topic, in the topic of its rejects, and in earlier topics with these
    names. If the topic is itself a topic of rejects, `losses` also has the losses in the topic
    whose lines were rejected."""

    source: int
    topic: TopicEvidence
    losses: Sequence[LossNote]


class LedgerSeals:
    """The seals in the ledger. senders: what is known about the message numbers of each sender.
    last_heard: a function that returns the time at which an agent was last heard.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        senders: Mapping[SenderKey, Numbers],
        last_heard: Callable[[int], int],
    ) -> None:
        self._connection = connection
        self._senders = senders
        self._last_heard = last_heard
        rows = connection.execute("SELECT agent, epoch, number, taken FROM seals_ahead")
        self._cloned = {key for key, x in senders.items() if x.cloned_at is not None}
        self._cloned_agents = {agent_named(key.producer) for key in self._cloned}
        self._epochs: dict[int, list[SenderKey]] = {}
        for key in senders:
            if key.tier is Tier.AGENT:
                self._epochs.setdefault(agent_named(key.producer), []).append(key)
        self._ahead = {tuple(key): taken_ms for *key, taken_ms in rows}

    def read(self, asked: Iterable[Asked]) -> None:
        """Adds the seals to the evidence of these topics, oldest first."""
        ends, sets = self._ends(), self._sets()
        for each in asked:
            own = [ends[number] for number in sets.get(each.source, ()) if number in ends]
            further: dict[int, list[SealNote]] = {}
            for key, seal in self._further(each):
                further.setdefault(agent_named(key.producer), []).append(seal)
            parts = [*own, *([further] if further else [])]
            each.topic.seals = parts[0] if len(parts) == 1 else _joined(parts)

    def _ends(self) -> dict[int, dict[int, list[SealNote]]]:
        """Returns a list for each set of topics (by its id) and each agent. The list has the first
        and the newest seal of each epoch, in ascending order. All topics of a set share these
        values.
        """
        found: dict[int, dict[int, list[SealNote]]] = {}
        rows = self._connection.execute("SELECT * FROM seal_ends ORDER BY agent, epoch")
        for agent, epoch, number, *ends in rows:
            seals = found.setdefault(number, {}).setdefault(agent, [])
            seals.append(self._note(agent, epoch, *ends[:4]))
            if ends[4:] != ends[:4]:
                seals.append(self._note(agent, epoch, *ends[4:]))
        return found

    def _sets(self) -> dict[int, list[int]]:
        """Maps the id of each topic to the ids of those sets of topics that contain the topic."""
        found: dict[int, list[int]] = {}
        for number, sources in self._connection.execute("SELECT id, sources FROM seal_topics"):
            for source in json.loads(sources):
                found.setdefault(source, []).append(number)
        return found

    def _further(self, asked: Asked) -> Iterator[tuple[SenderKey, SealNote]]:
        """Yields the seals that the judgement needs because of a clone, a loss or a rereading (see
        the module's docstring), in addition to the first and the newest seal.
        """
        by_agent: dict[int, list[LossNote]] = {}
        for note in asked.losses:
            by_agent.setdefault(note.loss.agent, []).append(note)
        wanted = by_agent.keys() | asked.topic.rereadings.keys()
        agents = (wanted | self._cloned_agents) & asked.topic.agents
        for agent, key in ((x, key) for x in sorted(agents) for key in self._epochs.get(x, ())):
            if agent not in wanted and key not in self._cloned:
                continue
            limits = [x.number for x in by_agent.get(agent, ()) if x.epoch == key.epoch]
            clone = self._senders[key].cloned_at or NO_LIMIT
            whose = _Whose(agent, key.epoch, asked.source)
            for limit in {*limits, clone}:
                for seal in self._last(whose, _Bounds(before=limit)):
                    yield key, seal
            for each in asked.topic.rereadings.get(agent, ()):
                for seal in self._around(whose, clone, each):
                    yield key, seal

    def _around(self, whose: _Whose, clone: int, each: Rereading) -> Iterator[SealNote]:
        """In the time of a rereading, an agent read files again that another agent may have
        delivered already. Yields at most two seals of the agent that read the files again: its last
        seal before the rereading, and its first seal after the rereading. The module
        rules.doublings needs both seals."""
        behind = 0
        if each.since_ms is not None:
            for seal in self._last(whose, _Bounds(before=clone, until=each.since_ms)):
                behind = seal.number
                yield seal
        if self._last_heard(whose.agent) > each.until_ms:
            yield from self._first(whose, _Bounds(behind, clone, each.until_ms))

    def _last(self, whose: _Whose, bounds: _Bounds) -> Iterator[SealNote]:
        """The seal with the greatest number within these bounds, if there is one."""
        for rows in self._blocks(_DOWNWARDS, whose, bounds):
            yield self._note(whose.agent, whose.epoch, *max(rows))
            return

    def _first(self, whose: _Whose, bounds: _Bounds) -> Iterator[SealNote]:
        """The seal with the least number within these bounds, if there is one."""
        for rows in self._blocks(_UPWARDS, whose, bounds):
            yield self._note(whose.agent, whose.epoch, *min(rows))
            return

    def _blocks(self, query: str, whose: _Whose, bounds: _Bounds) -> Iterator[list[Row]]:
        """Yields the seals within these bounds. Each list has the seals of one block (of 64
        successive numbers). A block may have several rows in the ledger: an agent seals sets of
        topics, each set has its own row, and the topic that is read may be in several sets."""
        values = {
            **whose._asdict(),
            "until": storable(bounds.until - 1), "since": storable(bounds.since + 1),
            "first": bounds.behind // BLOCK, "last": bounds.before // BLOCK,
        }  # fmt: skip
        found = self._connection.execute(query, values)
        for _, same in groupby(found, key=lambda x: x[0]):
            rows = [row for each in same for row in unpack(*each) if bounds.hold(row)]
            if rows:
                yield rows

    def _note(
        self, agent: int, epoch: int, number: int, sealed_until: int, at: int, final: int
    ) -> SealNote:
        ahead = self._ahead
        taken_ms = ahead.get((agent, epoch, number), NEVER_AHEAD_MS) if ahead else NEVER_AHEAD_MS
        return SealNote.of(epoch, number, sealed_until, at, bool(final), taken_ms)


def _joined(parts: Sequence[Mapping[int, list[SealNote]]]) -> dict[int, list[SealNote]]:
    found: dict[int, set[SealNote]] = {}
    for part in parts:
        for agent, seals in part.items():
            found.setdefault(agent, set()).update(seals)
    return {agent: sorted(seals) for agent, seals in found.items()}

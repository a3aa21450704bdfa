"""Reads from the ledger the seals that a judgement can use.

For each agent, epoch and topic, these are the first and the newest seal, the last seal before a
clone (a message that has the number of another message), the last seal before each loss, and the
two seals around each rereading.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from skidway.audit.evidence.evidence import (
    NEVER_AHEAD_MS,
    LossNote,
    Numbers,
    SealNote,
    TopicEvidence,
    agent_named,
)
from skidway.audit.evidence.rereading import Rereading
from skidway.audit.evidence.tallies import SenderKey
from skidway.audit.topic.messages import Tier

NO_LIMIT = 1 << 62

_OF_TOPICS = "SELECT seal_topics.id FROM seal_topics, json_each(sources) WHERE value = :source"
_HISTORY = f"""
SELECT epoch, number, sealed_until, at, final FROM seals
WHERE agent = :agent AND epoch = :epoch AND topics IN ({_OF_TOPICS}) AND number < :before
"""  # noqa: S608 - our own text
_LAST = f"{_HISTORY} ORDER BY number DESC LIMIT 1"
_LAST_UNTIL = f"{_HISTORY} AND sealed_until < :until ORDER BY number DESC LIMIT 1"
_FIRST_SINCE = f"""
{_HISTORY} AND number > :behind AND sealed_until > :since ORDER BY number LIMIT 1
"""


class Asked(NamedTuple):
    """A topic whose seals are read. source: the topic's id in the ledger. losses: the losses of all
    topics with the topic's name."""

    source: int
    topic: TopicEvidence
    losses: Sequence[LossNote]


class LedgerSeals:
    """The seals in the ledger. senders: the numbers of all senders. last_heard: the time at which
    an agent was last heard."""

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
        self._ahead = {tuple(key): taken_ms for *key, taken_ms in rows}

    def read(self, asked: Iterable[Asked]) -> None:
        """Adds the seals to the evidence of these topics, oldest first."""
        topics = {each.source: each for each in asked}
        found: dict[int, dict[int, set[SealNote]]] = {source: {} for source in topics}
        self._read_ends(topics, found)
        for source, each in topics.items():
            for key, seal in self._further(each):
                found[source].setdefault(agent_named(key.producer), set()).add(seal)
            each.topic.seals = {agent: sorted(seals) for agent, seals in found[source].items()}

    def _read_ends(
        self, topics: Mapping[int, Asked], found: dict[int, dict[int, set[SealNote]]]
    ) -> None:
        """The first and the newest seal of each agent, epoch and set of topics."""
        rows = self._connection.execute("SELECT id, sources FROM seal_topics")
        sets = {
            number: [(found[x], topics[x].topic.agents) for x in json.loads(sources) if x in topics]
            for number, sources in rows
        }
        for agent, epoch, number, *ends in self._connection.execute("SELECT * FROM seal_ends"):
            seals = {self._note(agent, epoch, *ends[:4]), self._note(agent, epoch, *ends[4:])}
            for by_agent, agents in sets.get(number, ()):
                if agent in agents:
                    by_agent.setdefault(agent, set()).update(seals)

    def _further(self, asked: Asked) -> Iterator[tuple[SenderKey, SealNote]]:
        """The seals that a clone, a loss or a rereading asks for."""
        by_agent: dict[int, list[LossNote]] = {}
        for note in asked.losses:
            by_agent.setdefault(note.loss.agent, []).append(note)
        cloned = {key for key, numbers in self._senders.items() if numbers.cloned_at is not None}
        wanted = by_agent.keys() | asked.topic.rereadings.keys()
        for key in self._senders:
            agent = agent_named(key.producer)
            if key.tier is not Tier.AGENT or agent not in asked.topic.agents:
                continue
            if agent not in wanted and key not in cloned:
                continue
            limits = [x.number for x in by_agent.get(agent, ()) if x.epoch == key.epoch]
            clone = self._senders[key].cloned_at or NO_LIMIT
            whose = {"agent": agent, "epoch": key.epoch, "source": asked.source}
            for limit in {*limits, clone}:
                for seal in self._history(_LAST, whose | {"before": limit}):
                    yield key, seal
            for each in asked.topic.rereadings.get(agent, ()):
                for seal in self._around(agent, whose | {"before": clone}, each):
                    yield key, seal

    def _around(self, agent: int, whose: Mapping[str, int], each: Rereading) -> Iterator[SealNote]:
        """In the time of a rereading, an agent may have delivered lines that another agent had
        delivered already. Yields the agent's last seal before that time and its first seal after
        that time, because the module rules.doublings needs both seals."""
        behind = 0
        if each.since_ms is not None:
            for seal in self._history(_LAST_UNTIL, {**whose, "until": each.since_ms}):
                behind = seal.number
                yield seal
        if self._last_heard(agent) > each.until_ms:
            values = {**whose, "behind": behind, "since": each.until_ms}
            yield from self._history(_FIRST_SINCE, values)

    def _history(self, query: str, values: Mapping[str, int]) -> Iterator[SealNote]:
        for epoch, *seal in self._connection.execute(query, values):
            yield self._note(values["agent"], epoch, *seal)

    def _note(
        self, agent: int, epoch: int, number: int, sealed_until: int, at: int, final: int
    ) -> SealNote:
        taken_ms = self._ahead.get((agent, epoch, number), NEVER_AHEAD_MS)
        if taken_ms >= sealed_until:
            taken_ms = NEVER_AHEAD_MS
        return SealNote(epoch, number, sealed_until, at, bool(final), taken_ms)

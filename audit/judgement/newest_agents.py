"""Finds, without I/O, the agents of a host that count as its newest agents. The verdict waits for
the seals of these agents (a seal says that all lines up to a time are counted), and `skidway audit
wait` demands a proof for each of these agents.

An agent is heard when a message of it arrives. Normally only one agent counts: the agent that was
heard last. Call it A. But A may run on an old state that was restored, although another agent B of
the host began later. So B counts as well, until it is silent. B is silent if two things are true:
by the audit's clock, at least `silence_ms` have passed since B's last message, and A has sent a
message at least `silence_ms` after B's last message. Two machines may also have the same name. In
this case, all agents that were alive at the same time (`evidence.overlaps`) count, because each has
its own files. These agents count even while they are silent, until they are retired or report
another host name.

Only messages with the host's present name count: if an agent's host had another name before, the
agent begins with its first message under the present name. So if a running machine gets the name of
a machine that is gone, the running machine's agent replaces the other machine's agent, although it
has not read the other machine's files.

The order of messages in the log shows which agent was heard last and which began later. Clocks
cannot show this order, because a host's clock may have been set by any amount between two messages.
The audit messages of two agents of a host are normally in one log. The messages may be in different
logs if the audit topic has several partitions or was created again. In this case B counts until it
is silent, even if it began before A.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate

from skidway.audit.evidence.evidence import Evidence
from skidway.audit.evidence.hearing import Log, Offsets
from skidway.audit.topic.messages import Tier


def newest_agents(
    evidence: Evidence, agents: Iterable[int], silence_ms: int, now_ms: int
) -> list[int]:
    """The agents of one host that count as its newest. The list begins with the agent that was
    heard last."""
    found = set(agents)
    if len(found) < 2:
        return [*found]
    ranked = sorted(found, key=lambda x: (evidence.last_heard(x), x), reverse=True)
    heard_last = _heard_last(evidence, ranked)
    last = next((x for x in ranked if not _is_before(evidence, x, heard_last)), ranked[0])
    later = [
        agent
        for agent in ranked
        if agent != last
        and _may_have_begun_later(evidence, agent, last)
        and not _is_silent(evidence, agent, last, silence_ms, now_ms)
    ]
    counting = {*later, *namesakes(evidence, ranked)}
    return [last, *(x for x in ranked if x != last and x in counting)]


def namesakes(evidence: Evidence, agents: Iterable[int]) -> set[int]:
    """Returns those of `agents` that were alive at the same time as another of `agents`. All
    `agents` have the same host name.
    """
    here = set(agents)
    if len(here) < 2:
        return set()
    known = evidence.overlaps
    return {agent for agent in here if agent in known and not here.isdisjoint(known[agent])}


class Successors:
    """The agents of one host, and when the next of them began after the last message of each. One
    host may have made up thousands, so they are sorted once."""

    def __init__(self, evidence: Evidence, of_host: Iterable[int]) -> None:
        self._evidence = evidence
        self._began: list[int] = []
        """When the agents began, ascending."""
        firsts: dict[Log, list[tuple[int, int]]] = {}
        for agent in of_host:
            own, began = evidence.offsets.get(agent, {}), _began(evidence, agent)
            self._began.append(began)
            for log, offsets in own.items():
                firsts.setdefault(log, []).append((offsets.first, began))
        self._began.sort()
        self._behind = {log: _least_behind(found) for log, found in firsts.items()}

    def unread_until(self, agent: int, silence_ms: int) -> int:
        """Returns a time (ms, by the host's clock). `agent`, which another agent of the host
        replaced, may have left lines unread that were written before this time.

        Normally the result is the time at which the next agent of the host began to send. If the
        clock was set back, this may be earlier than the time in the last message of `agent`. In
        this case the result is the time in that message plus `silence_ms`, because a running agent
        is never silent for so long. If no other agent of the host began to send after `agent` had
        sent its last message, neither in a log nor by the host's clock (somebody may have copied
        the messages in another order), the result is 0: the audit expects no unread lines.
        """
        heard_ms = heard(self._evidence, agent)
        began = min(self._began_behind(agent, heard_ms), default=None)
        if began is None:
            return 0
        return began if began > heard_ms else heard_ms + silence_ms

    def _began_behind(self, agent: int, heard_ms: int) -> Iterator[int]:
        """Yields the earliest times at which other agents began after the last message of `agent`,
        by the order of messages in each log, and by the clock of the host."""
        for log, offsets in self._evidence.offsets.get(agent, {}).items():
            firsts, least = self._behind[log]
            place = bisect_right(firsts, offsets.last)
            yield from least[place : place + 1]
        place = bisect_right(self._began, heard_ms)
        yield from self._began[place : place + 1]


def _least_behind(found: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Returns the first offsets of agents, ascending, and for each of them the earliest time at
    which one of the agents from it on began. found: first offset and beginning of each agent."""
    found.sort()
    least = accumulate((began for _, began in reversed(found)), min)
    return [first for first, _ in found], [*least][::-1]


def heard(evidence: Evidence, agent: int) -> int:
    """The time (ms, by the agent's clock) at which an agent was last heard, even if its only
    message is an announcement."""
    return max(evidence.last_heard(agent), _began(evidence, agent))


def _heard_last(evidence: Evidence, agents: Iterable[int]) -> dict[Log, int]:
    """Returns, for each log (of an audit topic's partition), the offset of the last message of any
    of these agents."""
    found: dict[Log, int] = {}
    for agent in agents:
        for log, offsets in evidence.offsets.get(agent, {}).items():
            found[log] = max(found.get(log, offsets.last), offsets.last)
    return found


def _is_before(evidence: Evidence, agent: int, heard_last: Mapping[Log, int]) -> bool:
    """Whether another agent has a later message than `agent` in the same log."""
    own = evidence.offsets.get(agent, {})
    return any(offsets.last < heard_last[log] for log, offsets in own.items())


def _may_have_begun_later(evidence: Evidence, agent: int, last: int) -> bool:
    both = _in_one_log(evidence, agent, last)
    return not both or any(mine.first > theirs.first for mine, theirs in both)


def _is_silent(evidence: Evidence, agent: int, last: int, silence_ms: int, now_ms: int) -> bool:
    behind_ms = evidence.last_heard(last) - heard(evidence, agent)
    ours_ms = now_ms - max(evidence.heard_ms((Tier.AGENT, str(agent))), _capped(evidence, agent))
    return min(behind_ms, ours_ms) >= silence_ms


def _capped(evidence: Evidence, agent: int) -> int:
    """Returns the time at which the agent began, by its host's clock. If this is later than the
    time at which the audit last read a record, the host's clock is ahead, and the time of that read
    is returned.
    """
    began = _began(evidence, agent)
    return min(began, evidence.taken_ms) if evidence.taken_ms else began


def _in_one_log(evidence: Evidence, one: int, other: int) -> list[tuple[Offsets, Offsets]]:
    mine, theirs = evidence.offsets.get(one, {}), evidence.offsets.get(other, {})
    return [(mine[log], theirs[log]) for log in mine.keys() & theirs.keys()]


def _began(evidence: Evidence, agent: int) -> int:
    return evidence.began_here.get(agent, 0)

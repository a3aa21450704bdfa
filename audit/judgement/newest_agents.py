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

from collections.abc import Iterable, Sequence

from skidway.audit.evidence.evidence import Evidence
from skidway.audit.evidence.hearing import Offsets
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
    last = next((x for x in ranked if not _is_before_any(evidence, x, ranked)), ranked[0])
    later = [
        agent
        for agent in ranked
        if agent != last
        and _may_have_begun_later(evidence, agent, last)
        and not _is_silent(evidence, agent, last, silence_ms, now_ms)
    ]
    beside = namesakes(evidence, ranked)
    return [last, *(x for x in ranked if x != last and (x in later or x in beside))]


def namesakes(evidence: Evidence, agents: Iterable[int]) -> set[int]:
    """Returns those of `agents` that were alive at the same time as another of `agents`. All
    `agents` have the same host name.
    """
    here = set(agents)
    if len(here) < 2:
        return set()
    return {agent for pair in evidence.overlaps if here.issuperset(pair) for agent in pair}


def unread_until(evidence: Evidence, agent: int, of_host: Iterable[int], silence_ms: int) -> int:
    """Returns a time (ms, by the host's clock). `agent`, which another agent of the host replaced,
    may have left lines unread that were written before this time.

    Normally the result is the time at which the next agent of the host began to send. If the clock
    was set back, this may be earlier than the time in the last message of `agent`. In this case the
    result is the time in that message plus `silence_ms`, because a running agent is never silent
    for so long. If no other agent of the host began to send after `agent` had sent its last
    message, neither in the log nor by the host's clock (somebody may have copied the messages in
    another order), the result is 0: the audit expects no unread lines.
    """
    heard_ms = heard(evidence, agent)
    began = [_began(evidence, x) for x in of_host if _began_behind(evidence, x, agent)]
    if not began:
        return 0
    return min(began) if min(began) > heard_ms else heard_ms + silence_ms


def heard(evidence: Evidence, agent: int) -> int:
    """The time (ms, by the agent's clock) at which an agent was last heard, even if its only
    message is an announcement."""
    return max(evidence.last_heard(agent), _began(evidence, agent))


def _is_before_any(evidence: Evidence, agent: int, others: Sequence[int]) -> bool:
    """Whether any of `others` has a later message than `agent` in the same log (of an audit topic's
    partition).
    """
    return any(
        mine.last < theirs.last
        for other in others
        for mine, theirs in _in_one_log(evidence, agent, other)
    )


def _may_have_begun_later(evidence: Evidence, agent: int, last: int) -> bool:
    both = _in_one_log(evidence, agent, last)
    return not both or any(mine.first > theirs.first for mine, theirs in both)


def _began_behind(evidence: Evidence, agent: int, before: int) -> bool:
    """Whether an agent began after the last message of agent `before`."""
    both = _in_one_log(evidence, agent, before)
    is_behind = any(mine.first > theirs.last for mine, theirs in both)
    return is_behind or _began(evidence, agent) > heard(evidence, before)


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

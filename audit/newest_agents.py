"""The agents of a host that count as its newest: the verdict waits for their seals, and the gate
asks each of them for proof. Pure.

Normally it is one, the agent that was heard last. But that one's clock may have been ahead when it
died, or its state was brought back: so an agent that began later counts as well until it is silent,
both behind the one heard last and by our own clock.
"""

from __future__ import annotations

from collections.abc import Iterable

from audit.evidence import Evidence


def newest_agents(
    evidence: Evidence, agents: Iterable[int], silence_ms: int, now_ms: int
) -> list[int]:
    """Those of one host's agents that count, first the one that was heard last."""
    ranked = sorted(agents, key=lambda x: (evidence.last_heard(x), x), reverse=True)
    if not ranked:
        return []
    last, *others = ranked
    present_ms = min(evidence.last_heard(last), now_ms)
    later = [
        agent
        for agent in others
        if _began(evidence, agent) > _began(evidence, last)
        and present_ms - heard(evidence, agent) < silence_ms
    ]
    return [last, *later]


def _began(evidence: Evidence, agent: int) -> int:
    return evidence.began.get(agent, 0)


def heard(evidence: Evidence, agent: int) -> int:
    """When an agent was heard last (ms), by an announcement alone, too."""
    return max(evidence.last_heard(agent), _began(evidence, agent))

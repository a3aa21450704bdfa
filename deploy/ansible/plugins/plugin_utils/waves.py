"""Decides whether a wave was successful. A wave is a group of agents that Ansible upgrades or
restarts together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .inventory import HostVars

NAMED = 20
"""`wave_problems` returns at most this many messages. If there are more, it adds a message with the
number of the others. A limit is needed because a wave may contain all agents of the fleet."""


def wave_problems(
    hosts: Mapping[str, HostVars],
    wave: Iterable[str],
    left: Sequence[str],
    verdict: Iterable[str] = (),
) -> list[str]:
    """Returns the reasons to roll back the wave; an empty list if the wave was successful.

    `left` has those hosts of the wave that Ansible still reaches; their variable `agent_failure`
    says what went wrong. `verdict` has the messages of the audit. Use this filter once for each
    wave, not once for each host, because it reads the variables of every host in `left`.
    """
    reached = set(left)
    problems = [str(each) for name in left for each in hosts[name].get("agent_failure") or []]
    problems += [f"{name}: cannot be reached any more" for name in wave if name not in reached]
    problems += map(str, verdict)
    more = len(problems) - NAMED
    return [*problems[:NAMED], *([f"and {more} more"] if more > 0 else [])]

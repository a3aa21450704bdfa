"""What became of a wave of agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .inventory import HostVars

NAMED = 20
"""So many sentences are told; a wave may be a whole fleet."""


def wave_problems(
    hosts: Mapping[str, HostVars],
    wave: Iterable[str],
    left: Sequence[str],
    verdict: Iterable[str] = (),
) -> list[str]:
    """Why the wave has to go back, some sentences; empty if it is good.

    `left`: those of the wave that are still reached, who have said in `agent_failure` what went
    wrong on them; `verdict`: what the audit says. Reads the variables of every host that is left:
    asked once a wave, not once a host.
    """
    reached = set(left)
    problems = [str(each) for name in left for each in hosts[name].get("agent_failure") or []]
    problems += [f"{name}: cannot be reached any more" for name in wave if name not in reached]
    problems += map(str, verdict)
    more = len(problems) - NAMED
    return [*problems[:NAMED], *([f"and {more} more"] if more > 0 else [])]

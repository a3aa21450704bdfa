"""The steps of the roles, by the tags that they are asked for with."""

from __future__ import annotations

from collections.abc import Iterable

from .addresses import METRICS_LISTENERS

STEPS = ("install", "configure", "run")
ROSTER = "audit_roster"
"""The tag of the one step that is of no program."""


def touches(tags: Iterable[str], program: str) -> bool:
    """Whether a run with these tags (`ansible_run_tags`) may do a step of the program.

    Not so where every one of them is another's: all other words, also those of somebody's own
    playbook, may mean each step.
    """
    others = {f"{each}_{step}" for each in (*METRICS_LISTENERS, "common") for step in STEPS}
    others -= {f"{program}_{step}" for step in STEPS}
    return not set(tags) <= others | {ROSTER}

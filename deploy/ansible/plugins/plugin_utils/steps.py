"""Finds out which steps of the roles can be part of a run of Ansible with certain tags."""

from __future__ import annotations

from collections.abc import Iterable

from .addresses import METRICS_LISTENERS

STEPS = ("install", "configure", "run")
ROSTER = "audit_roster"
"""The tag of the step that writes the audit's roster."""
KEYS = "audit_keys"
"""The tag of the steps that make and place the keys of the audit's messages."""


def touches(tags: Iterable[str], program: str) -> bool:
    """Whether a run with these tags (`ansible_run_tags`) can include a step of the program.

    The result is False only if every tag belongs to a step of another program, to the step of the
    roster or to those of the keys, which belong to no version of a program. All other tags,
    including those of a user's own playbook, may select any step.
    """
    others = {f"{each}_{step}" for each in (*METRICS_LISTENERS, "common") for step in STEPS}
    others -= {f"{program}_{step}" for step in STEPS}
    return not set(tags) <= others | {ROSTER, KEYS}

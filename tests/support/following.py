"""Runs `skidway audit trace` in stories (long end-to-end tests), and reads what it says about a
line.
"""

from __future__ import annotations

import json
import socket
from typing import Any, Final

from support.processes import call_skidway
from support.trials import Trial

HOST: Final = socket.gethostname()
EVERYWHERE: Final = {"host": "found", "broker": "found", "mirror": "found", "hdfs": "found"}


def traced(trial: Trial, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Runs `skidway audit trace`, with options that let it ask all tiers of the pipeline. Returns
    its exit status and its JSON document."""
    site = trial.pipeline.site
    done = call_skidway(
        "audit", "trace", *arguments, "--json",
        "--config", str(site.config("audit")),
        "--cluster", site.address("broker-dc1"),
        "--output", trial.output,
        "--agent-config", str(site.config("agent")),
        "--registry", site.url("registry"),
    )  # fmt: skip
    assert done.returncode in (0, 1), f"{done.stdout}\n{done.stderr}"
    return done.returncode, dict(json.loads(done.stdout))


def states(line: dict[str, Any]) -> dict[str, str]:
    """Returns, for each tier, whether the tier has the line, or why it does not have the line."""
    return {each["tier"]: each["state"] for each in line["tiers"]}


def follows(trial: Trial, place: str, wanted: dict[str, str]) -> bool:
    """Returns whether a line has these states. False also until the collector has read of it."""
    try:
        return states(traced(trial, place)[1]["lines"][0]) == wanted
    except AssertionError:
        return False


def begins_of(lines: list[str]) -> list[int]:
    """Returns the byte position at which each line begins in a file with only these lines."""
    return [sum(len(line.encode()) + 1 for line in lines[:number]) for number in range(len(lines))]

"""Reads from an agent's /health, without I/O, why the agent does not deliver lines or send
seals."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skidway.audit.judgement.cause import Cause, Run

_REGISTRY = re.compile(r"No schema registry answers \((https?://(?:\[[^]]+\]|[^:/\s]+)(?::\d+)?)")
_DIRECTORY = re.compile(r"cannot append to (/.+)/[^/]+: ")
_STORAGE_ERROR = "KAFKA_STORAGE_ERROR"
_STATE = Run("agent", "agent state show")


@dataclass(frozen=True, slots=True)
class Obstacle:
    """The reason why an agent makes no progress. path: the file that the agent cannot read; "" if
    the reason is another one. run: the command to run next. line: a command of the system that
    stands in its place; "" if there is none. address: the address of the server on whose host to
    run it, as the agent knows it; "" for the agent's own host."""

    cause: Cause
    words: str
    run: Run = _STATE
    line: str = ""
    address: str = ""
    path: str = ""


def obstacle(document: Mapping[str, Any], topic: str) -> Obstacle | None:
    """Returns the obstacle that the document of an agent's /health names for a topic, or None if
    the document names no obstacle.
    """
    paths = dict(document.get("unreadable") or {}).get(topic) or {}
    for path, reason in paths.items():
        return unreadable(path, reason)
    if reason := document.get("reason"):
        words = f"the agent waits: {reason}"
        if match := _REGISTRY.search(words):
            return Obstacle(Cause.AGENT_HELD_UP, words, Run("registry"), address=match[1])
        return Obstacle(Cause.AGENT_HELD_UP, words)
    return _of_troubles(document, topic)


def unreadable(path: str, reason: str) -> Obstacle:
    """Returns the obstacle that an agent cannot read a path."""
    words = f"the agent cannot read {path}: {reason}"
    return Obstacle(Cause.FILE_UNREADABLE, words, line=f"ls -ld {shlex.quote(path)}", path=path)


def _of_troubles(document: Mapping[str, Any], topic: str) -> Obstacle | None:
    """Returns the obstacle of one of the topic's partitions. If these partitions have no obstacle,
    returns the obstacle of any other partition, or None if no partition has one.
    """
    troubles = dict(document.get("troubles") or {})
    if not troubles:
        return None
    own = (name for name in troubles if name.rpartition("-")[0] == topic)
    name = next(own, next(iter(troubles)))
    more = f" (and {len(troubles) - 1} more partitions)" if len(troubles) > 1 else ""
    words = f"the agent cannot deliver to {name}{more}: {troubles[name]}"
    leader = str(dict(document.get("leaders") or {}).get(name, ""))
    if _STORAGE_ERROR in words:
        match = _DIRECTORY.search(words)
        line = f"df -h {shlex.quote(match[1])}" if match else "df -h"
        return Obstacle(Cause.AGENT_HELD_UP, words, line=line, address=leader)
    if leader:
        return Obstacle(Cause.AGENT_HELD_UP, words, Run("broker"), address=leader)
    return Obstacle(Cause.AGENT_HELD_UP, words)

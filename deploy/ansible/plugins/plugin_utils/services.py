"""Finds out when services of systemd were started."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

RUNS = frozenset({"active", "activating", "reloading"})
"""States of a service in which systemd's `start` does nothing."""


def started_before(
    status: Mapping[str, Any], files: Iterable[Mapping[str, Any]], moment: str = ""
) -> bool:
    """Whether a service runs and was started before `moment`, or before one of `files` was written.

    `status` has the service's properties from systemd, with times in UTC. `files` has results of
    Ansible's module `find`. `moment` is a time in the form of RFC 3339.
    """
    if status.get("ActiveState") not in RUNS:
        return False  # a service that does not run will read the current files when it starts
    began = _seconds(str(status.get("ExecMainStartTimestamp", "")))
    times = [each["mtime"] for each in files]
    if moment:
        times.append(datetime.fromisoformat(moment).timestamp())
    return began is not None and any(int(time) > began for time in times)


def runs_since_before(status: Mapping[str, Any], moment: float) -> bool:
    """Whether a service is active and was started before the moment (seconds since 1970)."""
    began = _seconds(str(status.get("ExecMainStartTimestamp", "")))
    return status.get("ActiveState") == "active" and began is not None and began < int(moment)


def _seconds(timestamp: str) -> float | None:
    """Converts a time such as "Fri 2026-11-20 20:44:43 UTC" to seconds since 1970."""
    try:
        return datetime.strptime(f"{timestamp} +0000", "%a %Y-%m-%d %H:%M:%S UTC %z").timestamp()
    except ValueError:
        return None

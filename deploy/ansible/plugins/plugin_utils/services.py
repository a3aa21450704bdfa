"""Finds out when services of systemd were started, and whether a running service can use changed
files without a restart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

RUNS = frozenset({"active", "activating", "reloading"})
"""States of a service in which systemd's `start` does nothing."""

REFUSED = 78
"""The exit status of `skidway agent reload` if the agent refuses the configuration."""


def started_before(
    status: Mapping[str, Any], files: Iterable[Mapping[str, Any]], moment: str = ""
) -> bool:
    """Whether a service runs, and was started either before `moment` or before one of `files` was
    written.

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


def taken_by_reload(names: Iterable[str]) -> list[str]:
    """Returns those of the files `names` that an agent reads again when it reloads its settings:
    schemas, and files with further sources. If keys or certificates have changed, the agent must be
    restarted.

    names: the files that the agent's configuration names."""
    return [name for name in names if name.endswith((".avsc", ".yml"))]


def needs_restart(reload: Mapping[str, Any]) -> bool:
    """Whether an agent refused a reload only because the changed settings need a restart.

    `reload` is the result of Ansible's module `command` for `skidway agent reload`. If the command
    did not run, the result is False.
    """
    said = str(reload.get("stderr") or "")
    return reload.get("rc") == REFUSED and bool(re.search("; restart it$", said, re.MULTILINE))


def _seconds(timestamp: str) -> float | None:
    """Converts a time such as "Fri 2026-11-20 20:44:43 UTC" to seconds since 1970."""
    try:
        return datetime.strptime(f"{timestamp} +0000", "%a %Y-%m-%d %H:%M:%S UTC %z").timestamp()
    except ValueError:
        return None

"""Finds the order in which Ansible starts the servers of a ZooKeeper ensemble. The functions are
pure.

A server of an ensemble serves clients only while a quorum runs. So Ansible starts the first servers
without waiting until each server is healthy. Servers without data must never form a quorum while
another server has the ensemble's data. Such a quorum would elect a leader without data, and the
server with the data would drop its data to follow this leader. So Ansible first starts the servers
with data, and then only as many new servers as a quorum needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Seen = Mapping[str, Any]
FIRST = "first"
SECOND = "second"
NEW = "new"
REST = "rest"


def servers_in(zoo_cfg: str) -> int:
    """Returns the number of server.N keys in the zoo.cfg that a server wrote at its last start. The
    result is 0 for a single server, because its zoo.cfg has no such keys."""
    return sum(line.lstrip().startswith("server.") for line in zoo_cfg.splitlines())


def ensemble(members: Sequence[str], hosts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Returns `steps` (for each member that was seen, when to start it) and `problem` (a message if
    starting the members is not safe, else "").

    The decision uses the variable `zookeeper_seen` of each member: `runs`, `has_data`, and
    `servers` (the number of servers of the ensemble when the member was last started; 0 if it was a
    single server). A member without this variable is not among the hosts of this run of Ansible, or
    Ansible cannot reach it.

    The steps, in their order:

        first   servers that have data, and that either do not run or run alone
        second  the new servers that complete a quorum with the servers of the step `first`
        new     the other new servers, once a quorum runs
        rest    servers that run already; and the only server of an ensemble, even if it is stopped
    """
    seen: dict[str, Seen] = {
        name: hosts[name]["zookeeper_seen"] for name in members if hosts[name].get("zookeeper_seen")
    }
    running = [name for name in seen if seen[name]["runs"]]
    stopped = [name for name in seen if not seen[name]["runs"]]
    quorum = len(members) // 2 + 1
    first: list[str] = []
    second: list[str] = []
    problem = ""
    alone = [name for name in seen if seen[name]["has_data"] and not seen[name]["servers"]]
    if len(members) > 1 and (alone or stopped):
        holders = [name for name in stopped if seen[name]["has_data"] and name not in alone]
        keeping = [name for name in running if name not in alone] + holders
        fresh = [name for name in stopped if not seen[name]["has_data"]]
        first = alone + holders
        second = fresh[: max(0, quorum - len(keeping) - len(alone))]
        problem = _problem(members, seen, alone, keeping, fresh)
    steps = dict.fromkeys(seen, REST)
    if len(members) > 1:
        steps |= dict.fromkeys(stopped, NEW)
    steps |= dict.fromkeys(first, FIRST) | dict.fromkeys(second, SECOND)
    return {"steps": steps, "problem": problem}


def _problem(
    members: Sequence[str],
    seen: Mapping[str, Seen],
    alone: Sequence[str],
    others: Sequence[str],
    fresh: Sequence[str],
) -> str:
    if len(alone) > 1 or (alone and others):
        return (
            f"{', '.join([*alone, *others])} have data, and {', '.join(alone)} was a server of its "
            "own: only one server's data can become the ensemble's. Empty dataDir on the others."
        )
    missing = [name for name in members if name not in seen]
    if missing and (alone or fresh):
        return (
            f"{', '.join(missing)}: not part of this run, or not reached. Where an ensemble gets "
            "new servers, all of it has to be seen: new ones alone would elect an empty leader."
        )
    before = max((int(each["servers"]) for each in seen.values()), default=0)
    if 1 < before < len(members) and len(others) < len(members) // 2 + 1:
        return (
            f"The ensemble has {before} servers, and {len(others)} of them hold data: too few for "
            f"a quorum of {len(members)}. Add fewer at once, or bring the others up."
        )
    return ""

"""Makes the audit's roster, the list of the inventory's agents and of former agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .inventory import Clusters, HostVars, cluster_of
from .settings import Settings

NAMED = 5
"""The message about hosts that are missing from the inventory names at most this many of them."""


def roster(
    before: Mapping[str, Any] | None, agents: Iterable[HostVars], clusters: Clusters
) -> Settings:
    """Returns the audit's new roster: it lists the agents of the inventory. It also lists, as
    retired, the hosts that only the previous roster `before` has."""
    hosts: dict[str, Settings] = {}
    for each in (before or {}).get("hosts") or []:
        hosts[each["host"]] = {**each, "retired": True}
    for agent in agents:
        name = str(agent["inventory_hostname"])
        hosts[name] = {
            "host": name,
            "cluster": cluster_of(agent, clusters),
            "topics": sorted({str(source["topic"]) for source in sources(agent)}),
        }
    return {"hosts": [hosts[name] for name in sorted(hosts)]}


def retirement_problem(
    before: Mapping[str, Any] | None, agents: Iterable[HostVars], most: int | str
) -> str:
    """Returns a message if more than `most` expected hosts of the roster are missing from the
    inventory and would be retired, else "".

    `most` is a number of hosts, or a percentage "N%" of the expected hosts, which allows at least
    one host. Without this limit, an incomplete inventory (for example, of only one datacenter)
    would retire all hosts that are missing from it.
    """
    there = {str(agent["inventory_hostname"]) for agent in agents}
    expected = {each["host"] for each in (before or {}).get("hosts") or [] if not _retired(each)}
    gone = sorted(expected - there)
    share = str(most).strip()
    if share.endswith("%"):
        allowed = max(1, int(len(expected) * float(share[:-1]) / 100))
    else:
        allowed = int(share)
    if len(gone) <= allowed:
        return ""
    listed = ", ".join(gone[:NAMED]) + (f" and {len(gone) - NAMED} more" if gone[NAMED:] else "")
    return (
        f"{len(gone)} of the {len(expected)} hosts that the audit expects are not in the group "
        f"agents of this inventory ({listed}); skidway_retire_max ({share}) allows {allowed} at "
        "once. If the inventory is whole and they are gone for good, run again with "
        f"-e skidway_retire_max={len(gone)}. The roster was not changed."
    )


def _retired(entry: Mapping[str, Any]) -> bool:
    return bool(entry.get("retired"))


def sources(agent: HostVars) -> Sequence[Mapping[str, Any]]:
    """Returns the sources that a host's variables give to its agent."""
    given = agent.get("agent_settings") or {}
    return list(given.get("sources") or agent.get("agent_sources") or [])

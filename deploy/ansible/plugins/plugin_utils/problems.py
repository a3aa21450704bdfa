"""Mistakes in an inventory, a sentence each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from .inventory import Clusters, Groups, HostVars
from .roster import sources
from .settings import flat

GROUPS = {
    "zookeeper": "zookeeper",
    "broker": "brokers",
    "registry": "registry",
    "agent": "agents",
    "audit": "audit",
}
"""The groups of the inventory by the program that is asked for its health there."""

_CLUSTER = re.compile(r"[A-Za-z0-9_-]+")


def inventory_problems(
    clusters: Clusters,
    groups: Groups,
    hosts: Mapping[str, HostVars],
) -> list[str]:
    """What cannot work, a sentence each; nothing is installed while there is one."""
    return [
        *_cluster_problems(clusters),
        *_host_problems(clusters, groups, hosts),
        *_number_problems(groups, hosts),
        *_settings_problems(groups, hosts),
    ]


def _cluster_problems(clusters: Clusters) -> Iterable[str]:
    if not clusters:
        yield "skidway_clusters is empty: name at least one cluster, as in {main: {}}."
    for name, cluster in clusters.items():
        if not _CLUSTER.fullmatch(str(name)):
            yield f"skidway_clusters: {name!r} is no name for a cluster; it takes a-z A-Z 0-9 _ -."
        for source in (cluster or {}).get("mirrors", []):
            if source == name or source not in clusters:
                yield f"skidway_clusters: {name} mirrors {source}, which is no other cluster there."


def _host_problems(
    clusters: Clusters,
    groups: Groups,
    hosts: Mapping[str, HostVars],
) -> Iterable[str]:
    for group in ("brokers", "agents", "loaders"):
        for name in groups.get(group, []):
            cluster = hosts[name].get("skidway_cluster")
            if cluster not in clusters:
                yield (
                    f"{name} is in the group {group}, and its skidway_cluster is "
                    f"{cluster!r}: it must be one of {', '.join(map(str, clusters))}."
                )
    for name in groups.get("agents", []):
        if not sources(hosts[name]):
            yield f"{name} is in the group agents, and has no agent_sources."
    for name in groups.get("brokers", []):
        cluster = clusters.get(str(hosts[name].get("skidway_cluster"))) or {}
        if cluster.get("bootstrap_servers"):
            yield (
                f"{name} is a broker of {hosts[name].get('skidway_cluster')}, which has "
                "bootstrap_servers of an existing Kafka: a cluster is one or the other."
            )


def _settings_problems(groups: Groups, hosts: Mapping[str, HostVars]) -> Iterable[str]:
    for program, group in GROUPS.items():
        for name in groups.get(group, []):
            settings = flat(hosts[name].get(f"{program}_settings") or {})
            if "metrics.listener" in settings and not settings["metrics.listener"]:
                yield (
                    f"{name}: {program}_settings sets metrics.listener to nothing, where its "
                    "health is asked after each change: give it an address, as 127.0.0.1:PORT."
                )
    for name in groups.get("agents", []):
        settings = flat(hosts[name].get("agent_settings") or {})
        cluster = hosts[name].get("skidway_cluster")
        for key, ours in (("host.name", name), ("cluster.name", cluster)):
            if settings.get(key, ours) != ours:
                yield (
                    f"{name}: agent_settings sets {key} to {settings[key]}, and roster and gate "
                    f"know it as {ours}: leave {key} to the role (it is the host's name in the "
                    "inventory, and its skidway_cluster)."
                )
    if len(groups.get("audit", [])) > 1:
        yield (
            f"The group audit has {len(groups['audit'])} hosts ({', '.join(groups['audit'])}): two "
            "counters of one cluster would break each other's sums, so it takes one."
        )


def _number_problems(groups: Groups, hosts: Mapping[str, HostVars]) -> Iterable[str]:
    ids: Counter[tuple[str, Any]] = Counter()
    for name in groups.get("brokers", []):
        if hosts[name].get("broker_id") is None:
            yield f"{name} is in the group brokers, and has no broker_id: give it one for good."
        else:
            ids[str(hosts[name].get("skidway_cluster")), int(hosts[name]["broker_id"])] += 1
    for (cluster, number), times in ids.items():
        if times > 1:
            yield f"broker_id {number} is given to {times} brokers of {cluster}."
    members = groups.get("zookeeper", [])
    numbers = [hosts[name].get("zookeeper_id") for name in members]
    if len(members) > 1 and None in numbers:
        yield "every host of the group zookeeper needs a zookeeper_id of its own, for good."
    elif len({*numbers}) < len(numbers):
        yield "two hosts of the group zookeeper have the same zookeeper_id."

"""Finds mistakes in an inventory, and describes each mistake in one sentence."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .addresses import DASHBOARD_LISTENER, address, bootstrap_servers, is_loopback
from .identities import MODES, identity
from .inventory import Clusters, Groups, HostVars, cluster_of, listed
from .roster import sources
from .settings import flat, texts

GROUPS = {
    "zookeeper": "zookeeper",
    "broker": "brokers",
    "registry": "registry",
    "agent": "agents",
    "audit": "audit",
}
"""For each program with a health check, the group of the inventory that contains its hosts."""

COUNTERS_OWN = frozenset(
    {"bootstrap.servers", "cluster.name", "metrics.listener", "producer", "state.dir", "tier"}
)
"""Settings that must have a different value in each counter of the audit."""
NAMED = (
    ("agent", "agents"), ("broker", "brokers"), ("audit", "audit"), ("audit_counter", "audit"),
    ("loader", "loaders"),
)  # fmt: skip
"""The programs that have the setting host.name, each with its group of the inventory."""
SIGNING = ("audit", "agents", "loaders")
"""The groups of the inventory whose programs sign their messages to the audit."""
MEMBERS = ("brokers", "agents", "loaders")
"""The groups of the inventory in which each host belongs to one cluster."""

SERVICES = (
    (
        "zookeeper",
        "skidway_zookeeper_connect",
        (("brokers", "broker", "zookeeper.connect"), ("registry", "registry", "zookeeper.connect")),
    ),
    (
        "registry",
        "skidway_schema_registry_url",
        (
            ("agents", "agent", "schema.registry.url"),
            ("loaders", "loader", "schema.registry.url"),
        ),
    ),
)
"""Groups of the inventory that may be empty, because the site uses an existing service instead.
Each entry has the group, the variable that names the service for all hosts, and the programs that
use the service. For each program, the entry has the program's group, its name, and the setting that
names the service for one host."""

_CLUSTER = re.compile(r"[A-Za-z0-9_-]+")
_EVERY = re.compile(r"0*[1-9][0-9]{0,5}[smhd]")
"""Matches the times that `skidway load run --every` accepts, except some very long ones."""


def inventory_problems(
    clusters: Clusters,
    groups: Groups,
    hosts: Mapping[str, HostVars],
) -> list[str]:
    """Describes all mistakes of the inventory, each in one sentence. While the inventory has
    mistakes, the roles install nothing."""
    return [
        *_cluster_problems(clusters),
        *_host_problems(clusters, groups, hosts),
        *_missing_servers(clusters, groups, hosts),
        *_missing_services(groups, hosts),
        *_number_problems(clusters, groups, hosts),
        *_settings_problems(clusters, groups, hosts),
        *_name_problems(clusters, groups, hosts),
        *_loader_problems(groups, hosts),
        *_insecure_listeners(groups, hosts),
        *_signature_problems(groups, hosts),
    ]


def _cluster_problems(clusters: Clusters) -> Iterable[str]:
    if not clusters:
        yield "skidway_clusters is empty: name at least one cluster, as in {main: {}}."
    for name, cluster in clusters.items():
        if not _CLUSTER.fullmatch(str(name)):
            yield f"skidway_clusters: {name!r} is no name for a cluster; it takes a-z A-Z 0-9 _ -."
        for key in ("mirrors", "mirrored_topics"):
            value = (cluster or {}).get(key) or []
            if isinstance(value, str) or not isinstance(value, Sequence):
                yield (
                    f"skidway_clusters: {key} of {name} is {value!r}, which is no list: "
                    f"write {key}: [{value}]."
                )
        for source in listed(clusters, name, "mirrors"):
            if source == name or source not in clusters:
                yield f"skidway_clusters: {name} mirrors {source}, which is no other cluster there."


def _host_problems(
    clusters: Clusters,
    groups: Groups,
    hosts: Mapping[str, HostVars],
) -> Iterable[str]:
    for name in dict.fromkeys(name for group in MEMBERS for name in groups.get(group, [])):
        its = [each for each in clusters if name in groups.get(f"cluster_{each}", [])]
        if len(its) > 1:
            yield (
                f"{name} is in the groups cluster_{' and cluster_'.join(its)}: it can belong to "
                f"one cluster, and would be of {cluster_of(hosts[name], clusters)}."
            )
    for group in MEMBERS:
        for name in groups.get(group, []):
            cluster = cluster_of(hosts[name], clusters)
            if cluster not in clusters:
                yield (
                    f"{name} is in the group {group}, and its skidway_cluster is "
                    f"{cluster!r}: it must be one of {', '.join(map(str, clusters))}."
                )
    for name in groups.get("agents", []):
        if not sources(hosts[name]):
            yield f"{name} is in the group agents, and has no agent_sources."
    for name in groups.get("brokers", []):
        cluster = cluster_of(hosts[name], clusters)
        if (clusters.get(cluster) or {}).get("bootstrap_servers"):
            yield (
                f"{name} is a broker of {cluster}, which has bootstrap_servers of an existing "
                "Kafka: a cluster is one or the other."
            )


def _missing_servers(
    clusters: Clusters, groups: Groups, hosts: Mapping[str, HostVars]
) -> Iterable[str]:
    """Yields one message for each cluster that agents, loaders or a mirroring cluster need, but
    that has neither hosts in the group `brokers` nor an existing Kafka cluster."""
    needed: dict[str, str] = {}
    for group in ("agents", "loaders"):
        for name in groups.get(group, []):
            needed.setdefault(cluster_of(hosts[name], clusters), f"{name} of the group {group}")
    for name in clusters:
        for source in listed(clusters, name, "mirrors"):
            needed.setdefault(source, f"{name}, which mirrors it,")
    served = bootstrap_servers(clusters, [hosts[name] for name in groups.get("brokers", [])])
    for cluster_name, who in needed.items():
        if cluster_name in clusters and cluster_name not in served:
            yield (
                f"{who} needs the cluster {cluster_name}, which has neither hosts in the group "
                "brokers nor bootstrap_servers in skidway_clusters."
            )


def _missing_services(groups: Groups, hosts: Mapping[str, HostVars]) -> Iterable[str]:
    """Yields one message for each group that has no hosts although its service is needed. The
    service is needed if hosts of other groups use it, and no variable names an existing service."""
    for service, variable, users in SERVICES:
        if groups.get(service):
            continue
        lacking = [
            f"{name} of the group {group}"
            for group, program, key in users
            for name in groups.get(group, [])
            if not hosts[name].get(variable)
            and not flat(hosts[name].get(f"{program}_settings") or {}).get(key)
        ]
        if lacking:
            more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
            yield (
                f"The group {service} has no hosts, and {variable} names no existing service, "
                f"which {lacking[0]}{more} needs: fill the one, or set the other."
            )


def _settings_problems(
    clusters: Clusters, groups: Groups, hosts: Mapping[str, HostVars]
) -> Iterable[str]:
    for program, group in GROUPS.items():
        for name in groups.get(group, []):
            settings = flat(hosts[name].get(f"{program}_settings") or {})
            if "metrics.listener" in settings and not settings["metrics.listener"]:
                yield (
                    f"{name}: {program}_settings sets metrics.listener to nothing, where its "
                    "health is asked after each change: give it an address, as 127.0.0.1:PORT."
                )
    for name in groups.get("audit", []):
        shared = COUNTERS_OWN & flat(hosts[name].get("audit_counter_settings") or {}).keys()
        if shared and len(hosts[name].get("audit_counters") or clusters) > 1:
            yield (
                f"{name}: audit_counter_settings sets {', '.join(sorted(shared))} for all counters,"
                " and each needs its own: say it in audit_counters."
            )
    if len(groups.get("audit", [])) > 1:
        yield (
            f"The group audit has {len(groups['audit'])} hosts ({', '.join(groups['audit'])}): two "
            "counters of one cluster would break each other's sums, so it takes one."
        )


def _name_problems(
    clusters: Clusters, groups: Groups, hosts: Mapping[str, HostVars]
) -> Iterable[str]:
    for name in groups.get("agents", []):
        ours = cluster_of(hosts[name], clusters)
        given = flat(hosts[name].get("agent_settings") or {}).get("cluster.name", ours)
        if given != ours:
            yield (
                f"{name}: agent_settings sets cluster.name to {given}, and roster and gate know it "
                f"as {ours}: leave cluster.name to the role (it is the host's skidway_cluster)."
            )
    for program, group in NAMED:
        for name in groups.get(group, []):
            given = flat(hosts[name].get(f"{program}_settings") or {}).get("host.name", name)
            if given != name:
                yield (
                    f"{name}: {program}_settings sets host.name to {given}, and roster, gate and "
                    f"printed commands know it as {name}: leave host.name to the role (it is the "
                    "host's name in the inventory)."
                )


def _loader_problems(groups: Groups, hosts: Mapping[str, HostVars]) -> Iterable[str]:
    for name in groups.get("loaders", []):
        every = hosts[name].get("loader_every")
        if every not in (None, "") and not _EVERY.fullmatch(str(every)):
            yield (
                f"{name}: loader_every is {every!r}, which is no time between runs: write 60s, 5m "
                "or 1h, or leave it empty for single runs by the timer."
            )


def _insecure_listeners(groups: Groups, hosts: Mapping[str, HostVars]) -> Iterable[str]:
    """Yields one message if a program would listen for other hosts without authentication, and the
    inventory does not allow it."""
    found = [
        f"{program} of {name} ({listens})"
        for program, group in (
            ("zookeeper", "zookeeper"), ("broker", "brokers"), ("registry", "registry"),
            ("audit", "audit"),
        )
        for name in groups.get(group, [])
        if (listens := _listens_insecurely(hosts[name], program))
    ]  # fmt: skip
    if found:
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        yield (
            f"The {found[0]}{more} would listen for other hosts without authentication: whoever "
            "reaches the port may do everything there. If only hosts that you trust reach it, set "
            "skidway_insecure_listeners: true; if everything runs on one host, set "
            "skidway_address: 127.0.0.1."
        )


def _listens_insecurely(host: HostVars, program: str) -> str:
    """Returns the address on which a program would listen for other hosts without authentication
    and without leave; "" if there is none."""
    settings = flat(host.get(f"{program}_settings") or {})
    if _is_true(settings.get("insecure.listeners", host.get("skidway_insecure_listeners"))):
        return ""
    if program == "registry" and settings.get("authentication.method", "NONE") != "NONE":
        return ""
    bound = host.get(f"{program}_bind_address") or address(host)
    if program == "audit":
        listeners = [settings.get("listener") or DASHBOARD_LISTENER]
    elif program == "zookeeper":
        listeners = [f"{settings.get('clientPortAddress') or bound}:"]
    else:
        listeners = texts(settings.get("listeners") or f"//{bound}:")
    for each in listeners:
        name = each.rpartition("//")[2].rpartition(":")[0].strip("[]")
        if not is_loopback(name or ("" if program == "audit" else "0.0.0.0")):  # noqa: S104
            return name or "every address"
    return ""


def _signature_problems(groups: Groups, hosts: Mapping[str, HostVars]) -> Iterable[str]:
    audits = groups.get("audit", [])
    default = "require" if audits else "off"
    found: dict[str, str] = {}
    for name in (name for group in SIGNING for name in groups.get(group, [])):
        mode = hosts[name].get("skidway_signatures", default)
        found.setdefault("off" if mode is False else str(mode), name)
    for mode, name in found.items():
        if mode not in MODES:
            yield f"{name}: skidway_signatures is {mode!r}: it must be {', '.join(MODES)}."
        elif mode != "off" and not audits:
            yield (
                f"{name}: skidway_signatures is {mode}, and the group audit has no host, where the "
                "keys would be made: leave it off, or fill the group."
            )
    if len(found) > 1:
        both = " and ".join(f"{mode} for {name}" for mode, name in found.items())
        yield f"skidway_signatures is {both}: set it for all hosts."
    if found.keys() <= {"off"}:
        return
    for name in audits:
        shared = flat(hosts[name].get("audit_counter_settings") or {})
        for counter, settings in (hosts[name].get("audit_counters") or {}).items():
            try:
                identity(flat(settings) | shared, "counter")
            except ValueError as error:
                yield f"{name}: audit_counters has {counter}: {error}."


def _is_true(value: Any) -> bool:
    return str(value).lower() in ("true", "yes", "1", "on")


def _number_problems(
    clusters: Clusters, groups: Groups, hosts: Mapping[str, HostVars]
) -> Iterable[str]:
    ids: Counter[tuple[str, Any]] = Counter()
    for name in groups.get("brokers", []):
        if hosts[name].get("broker_id") is None:
            yield f"{name} is in the group brokers, and has no broker_id: give it one for good."
        else:
            ids[cluster_of(hosts[name], clusters), int(hosts[name]["broker_id"])] += 1
    for (cluster, number), times in ids.items():
        if times > 1:
            yield f"broker_id {number} is given to {times} brokers of {cluster}."
    members = groups.get("zookeeper", [])
    numbers = [hosts[name].get("zookeeper_id") for name in members]
    if len(members) > 1 and None in numbers:
        yield "every host of the group zookeeper needs a zookeeper_id of its own, for good."
    elif len({*numbers}) < len(numbers):
        yield "two hosts of the group zookeeper have the same zookeeper_id."

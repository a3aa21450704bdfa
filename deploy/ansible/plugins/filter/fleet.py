"""What the roles derive from the inventory: addresses, settings, the roster. Pure functions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

HostVars = Mapping[str, Any]
Settings = dict[str, Any]

BROKER_PORT = 9092
REGISTRY_PORT = 8081
ZOOKEEPER_PORT = 2181
LOOPBACK = "127.0.0.1"
METRICS_LISTENERS = {
    "agent": "127.0.0.1:9101",
    "broker": "127.0.0.1:9102",
    "registry": "127.0.0.1:9103",
    "audit": "127.0.0.1:9104",
    "loader": "127.0.0.1:9105",
    "zookeeper": "127.0.0.1:9106",
}
"""Where the programs answer without being told (their settings' own defaults)."""
NAMED = 5
"""So many names are in a sentence."""
RUNS = frozenset({"active", "activating", "reloading"})
"""States of a service in which systemd's `start` does nothing."""
WILDCARDS = frozenset({"", "*", "0.0.0.0", "::"})  # noqa: S104 - compared with, not bound to

GROUPS = {
    "zookeeper": "zookeeper",
    "broker": "brokers",
    "registry": "registry",
    "agent": "agents",
    "audit": "audit",
}
"""The groups of the inventory by the program that is asked for its health there."""

_CLUSTER = re.compile(r"[A-Za-z0-9_-]+")
_SECRET = re.compile(r"password|secret|user\.info|credential|token", re.IGNORECASE)
_VERSION = re.compile(
    r"\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+(\.[a-z0-9]+)*)?"
)
"""A normalized version (PEP 440), as `make wheels` names its folders."""
_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*==\s*([^\s;]+)")


class FilterModule:
    """The filters, as `skidway.fleet.<name>`."""

    def filters(self) -> dict[str, Any]:
        """By name."""
        return {
            "address": address,
            "bootstrap_servers": bootstrap_servers,
            "counters": counters,
            "drop_in": drop_in,
            "health_of": health_of,
            "health_url": health_url,
            "holds_secret": holds_secret,
            "inventory_problems": inventory_problems,
            "mirror_sources": mirror_sources,
            "not_named_by": not_named_by,
            "of_cluster": of_cluster,
            "outside": outside,
            "over": over,
            "python_problem": python_problem,
            "registry_url": registry_url,
            "retirement_problem": retirement_problem,
            "roster": roster,
            "runs_since_before": runs_since_before,
            "started_before": started_before,
            "superfluous": superfluous,
            "texts": texts,
            "unit_text": unit_text,
            "wheels_for": wheels_for,
            "zookeeper_connect": zookeeper_connect,
            "zookeeper_servers": zookeeper_servers,
        }


# Addresses


def address(host: HostVars) -> str:
    """How others reach a host: `skidway_address`, else what Ansible reaches it by."""
    for key in ("skidway_address", "ansible_host", "inventory_hostname"):
        if host.get(key):
            return str(host[key])
    raise ValueError("a host without a name")


def bootstrap_servers(
    clusters: Mapping[str, Mapping[str, Any] | None], brokers: Iterable[HostVars]
) -> dict[str, str]:
    """By cluster: the brokers' addresses, or those of an existing Kafka that the inventory names.

    A cluster without either is left out.
    """
    ours: dict[str, list[str]] = {}
    for host in brokers:
        where = f"{address(host)}:{host.get('broker_port', BROKER_PORT)}"
        ours.setdefault(str(host.get("skidway_cluster", "")), []).append(where)
    found = {}
    for name, cluster in clusters.items():
        servers = (cluster or {}).get("bootstrap_servers") or ",".join(ours.get(name, []))
        if servers:
            found[name] = str(servers)
    return found


def zookeeper_connect(hosts: Iterable[HostVars]) -> str:
    """The ensemble's addresses for clients, without chroot."""
    return ",".join(
        f"{address(host)}:{host.get('zookeeper_port', ZOOKEEPER_PORT)}" for host in hosts
    )


def zookeeper_servers(hosts: Sequence[HostVars]) -> Settings:
    """The server.N keys of an ensemble; none for a single server."""
    if len(hosts) < 2:
        return {}
    return {
        f"server.{host['zookeeper_id']}": ":".join(
            (
                address(host),
                str(host.get("zookeeper_peer_port", 2888)),
                str(host.get("zookeeper_election_port", 3888)),
            )
        )
        for host in hosts
    }


def registry_url(hosts: Iterable[HostVars]) -> str:
    """The registry's URLs, comma-separated."""
    return ",".join(
        f"{host.get('registry_scheme', 'http')}://{address(host)}"
        f":{host.get('registry_port', REGISTRY_PORT)}"
        for host in hosts
    )


def health_url(listener: str) -> str:
    """Where a program with this metrics.listener answers on its own host."""
    host, _, port = str(listener).rpartition(":")
    return f"http://{LOOPBACK if host in WILDCARDS else host}:{port}/health"


def health_of(host: HostVars, program: str) -> str:
    """The same, by the variables of the host."""
    settings = _flat(host.get(f"{program}_settings") or {})
    return health_url(settings.get("metrics.listener") or METRICS_LISTENERS[program])


def of_cluster(names: Iterable[str], hosts: Mapping[str, HostVars], cluster: str) -> list[str]:
    """Those of these hosts that belong to the cluster."""
    return [name for name in names if hosts[name].get("skidway_cluster") == cluster]


# Settings


def over(given: Mapping[str, Any], derived: Mapping[str, Any]) -> Settings:
    """The settings of a program: those given over those derived, keys flat or nested alike.

    Sections become flat keys, as the programs read them; lists are taken whole.
    """
    return dict(sorted((_flat(derived) | _flat(given)).items()))


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Settings:
    flat: Settings = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def texts(value: Any) -> list[str]:
    """A list, or the comma-separated text that the programs take in its place."""
    if isinstance(value, str):
        return [each.strip() for each in value.split(",")]
    return [str(each) for each in value]


def holds_secret(settings: Mapping[str, Any]) -> bool:
    """Whether a key of these settings is one that nobody should read in Ansible's output."""
    return any(_SECRET.search(key) for key in _flat(settings))


def mirror_sources(
    clusters: Mapping[str, Mapping[str, Any] | None], cluster: str, servers: Mapping[str, str]
) -> list[Settings]:
    """`mirror.sources` of a cluster's brokers: every cluster that it mirrors."""
    own = clusters.get(cluster) or {}
    found = []
    for source in own.get("mirrors", []):
        if source not in servers:
            raise ValueError(f"{cluster} mirrors {source}, which has no brokers")
        each: Settings = {"cluster": source, "bootstrap.servers": servers[source]}
        topics = (clusters.get(source) or {}).get("mirrored_topics")
        if topics:
            each["topics"] = list(topics)
        found.append(each)
    return found


def counters(
    clusters: Mapping[str, Mapping[str, Any] | None],
    servers: Mapping[str, str],
    first_port: int,
    agents: Iterable[HostVars] = (),
) -> dict[str, Settings]:
    """The audit's counters by name: what each counts, where it answers.

    One for each cluster, which counts what it mirrors, or else what is published to it. A cluster
    that mirrors and has agents of its own gets a second one, `<cluster>.broker`; ports of the
    second ones come last, so that they move no others.
    """
    published = {str(agent.get("skidway_cluster", "")) for agent in agents}
    mirrors = [name for name, cluster in clusters.items() if (cluster or {}).get("mirrors")]
    places = [(name, name, "mirror" if name in mirrors else "broker") for name in clusters]
    places += [(f"{name}.broker", name, "broker") for name in mirrors if name in published]
    return {
        name: {
            "bootstrap.servers": servers[cluster],
            "cluster.name": cluster,
            "tier": tier,
            "state.dir": f"/var/lib/skidway/audit-count-{name}",
            "metrics.listener": f"{LOOPBACK}:{int(first_port) + number}",
        }
        for number, (name, cluster, tier) in enumerate(places)
        if cluster in servers
    }


def not_named_by(directories: Iterable[str], settings: Mapping[str, Any]) -> list[str]:
    """Those directories that these settings do not use yet."""
    values = [value for value in _flat(settings).values() if isinstance(value, str | list)]
    named = {path for value in values for path in texts(value)}
    return [directory for directory in directories if directory not in named]


def outside(directories: Iterable[str], folder: str) -> list[str]:
    """Those directories that do not lie in `folder`: the unit must be allowed to write there."""
    inside = folder.rstrip("/") + "/"
    return sorted({d for d in directories if d and not f"{d.rstrip('/')}/".startswith(inside)})


# Files


def unit_text(sections: Mapping[str, Mapping[str, Any]]) -> str:
    """A drop-in of systemd from {section: {key: value}}; a list is the same key several times."""
    lines = []
    for section, entries in sections.items():
        lines += ["", f"[{section}]"]
        for key, value in entries.items():
            values = value if isinstance(value, list | tuple) else [value]
            lines += [f"{key}={_systemd(each)}" for each in values]
    return "\n".join(lines)


def drop_in(given: Mapping[str, Mapping[str, Any]], **service: Any) -> Settings:
    """The sections of a service's drop-in: what the role derives, and over it what was given."""
    derived = {key: value for key, value in service.items() if value not in (None, "", [])}
    sections = {name: dict(entries) for name, entries in given.items()}
    sections["Service"] = derived | sections.get("Service", {})
    return {name: entries for name, entries in sections.items() if entries}


def _systemd(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def wheels_for(requirements: str, files: Iterable[str], installed: Iterable[str] = ()) -> list[str]:
    """Those wheels that a requirements file asks for, and pip's own.

    `installed`: the requirements that the virtual environment has been given before; their wheels
    are left out. Raises ValueError if one is missing, or was of the same version but other content.
    """
    by_release: dict[tuple[str, str], list[str]] = {}
    for path in files:
        name, version = path.rsplit("/", 1)[-1].split("-")[:2]
        by_release.setdefault((_canonical(name), version), []).append(path)
    there = {release: line for text in installed for release, line in _releases(text).items()}
    wanted = {release for release in by_release if release[0] == "pip"}
    for release, line in _releases(requirements).items():
        title = "==".join(release)
        if there.get(release, line) != line:
            raise ValueError(
                f"{title} on this host was made of another wheel: new wheels need a new version"
            )
        if release not in by_release:
            raise ValueError(f"there is no wheel of {title}")
        if release not in there:
            wanted.add(release)
    return sorted(path for release in wanted for path in by_release[release])


def _releases(requirements: str) -> dict[tuple[str, str], str]:
    """A requirements file by package and version: the lines, with their hashes."""
    lines = requirements.replace("\\\n", " ").splitlines()
    return {
        (_canonical(found[1]), found[2]): " ".join(line.split())
        for line in lines
        if (found := _REQUIREMENT.match(line))
    }


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def python_problem(found: str, manifest: Mapping[str, Any], path: str) -> str:
    """A sentence when the wheels are not for the host's Python, else "".

    `found`: version, implementation and platform of the host's; `manifest`: wheels.json.
    """
    needed = " ".join(str(manifest[key]) for key in ("python", "implementation", "platform"))
    if found.split() == needed.split():
        return ""
    return (
        f"The wheels of {manifest['version']} are for {needed}, and {path} here is "
        f"{found.strip()}: make wheels with the Python that the hosts have, or set skidway_python. "
        "Nothing was changed."
    )


def superfluous(
    versions: Iterable[Mapping[str, Any]], links: Iterable[str], kept: int
) -> list[str]:
    """Directories of versions that may go: not in use, and not among the newest `kept`.

    `versions`: results of find; what is not named as a version is somebody else's and stays.
    `links`: what the links in use point at.
    """
    in_use = {link.rstrip("/").rsplit("/", 1)[-1] for link in links}
    newest_first = sorted(versions, key=lambda each: float(each["mtime"]), reverse=True)
    named = [(each["path"], each["path"].rsplit("/", 1)[-1]) for each in newest_first]
    idle = [path for path, name in named if _VERSION.fullmatch(name) and name not in in_use]
    return idle[max(0, int(kept) - len(in_use)) :]


def roster(before: Mapping[str, Any] | None, agents: Iterable[HostVars]) -> Settings:
    """The audit's roster: the inventory's agents; who was in it `before` stays, as retired."""
    hosts: dict[str, Settings] = {}
    for each in (before or {}).get("hosts") or []:
        hosts[each["host"]] = {**each, "retired": True}
    for agent in agents:
        name = str(agent["inventory_hostname"])
        hosts[name] = {
            "host": name,
            "cluster": str(agent.get("skidway_cluster", "")),
            "topics": sorted({str(source["topic"]) for source in sources(agent)}),
        }
    return {"hosts": [hosts[name] for name in sorted(hosts)]}


def retirement_problem(
    before: Mapping[str, Any] | None, agents: Iterable[HostVars], most: int | str
) -> str:
    """A sentence when the inventory would retire more hosts of the roster than it may, else "".

    `most`: a number, or "N%" of the hosts that are expected (then at least one): an inventory of
    one datacenter, or one that was read by half, must not silence the audit for all the others.
    """
    after = roster(before, agents)["hosts"]
    expected = {each["host"] for each in (before or {}).get("hosts") or [] if not _retired(each)}
    gone = [each["host"] for each in after if each["host"] in expected and _retired(each)]
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
    """What an agent tails, by its variables."""
    given = agent.get("agent_settings") or {}
    return list(given.get("sources") or agent.get("agent_sources") or [])


# Mistakes


def inventory_problems(
    clusters: Mapping[str, Mapping[str, Any] | None],
    groups: Mapping[str, Sequence[str]],
    hosts: Mapping[str, HostVars],
) -> list[str]:
    """What cannot work, a sentence each; nothing is installed while there is one."""
    return [
        *_cluster_problems(clusters),
        *_host_problems(clusters, groups, hosts),
        *_number_problems(groups, hosts),
        *_settings_problems(groups, hosts),
    ]


def _cluster_problems(clusters: Mapping[str, Mapping[str, Any] | None]) -> Iterable[str]:
    if not clusters:
        yield "skidway_clusters is empty: name at least one cluster, as in {main: {}}."
    for name, cluster in clusters.items():
        if not _CLUSTER.fullmatch(str(name)):
            yield f"skidway_clusters: {name!r} is no name for a cluster; it takes a-z A-Z 0-9 _ -."
        for source in (cluster or {}).get("mirrors", []):
            if source == name or source not in clusters:
                yield f"skidway_clusters: {name} mirrors {source}, which is no other cluster there."


def _host_problems(
    clusters: Mapping[str, Mapping[str, Any] | None],
    groups: Mapping[str, Sequence[str]],
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


def _settings_problems(
    groups: Mapping[str, Sequence[str]], hosts: Mapping[str, HostVars]
) -> Iterable[str]:
    for program, group in GROUPS.items():
        for name in groups.get(group, []):
            settings = _flat(hosts[name].get(f"{program}_settings") or {})
            if "metrics.listener" in settings and not settings["metrics.listener"]:
                yield (
                    f"{name}: {program}_settings sets metrics.listener to nothing, where its "
                    "health is asked after each change: give it an address, as 127.0.0.1:PORT."
                )
    for name in groups.get("agents", []):
        settings = _flat(hosts[name].get("agent_settings") or {})
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


def _number_problems(
    groups: Mapping[str, Sequence[str]], hosts: Mapping[str, HostVars]
) -> Iterable[str]:
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


# Services


def started_before(
    status: Mapping[str, Any], files: Iterable[Mapping[str, Any]], moment: str = ""
) -> bool:
    """Whether a service runs since before the moment, or before one of these files was written.

    `status`: properties of systemd, times in UTC; `files`: results of stat; `moment`: RFC 3339.
    """
    if status.get("ActiveState") not in RUNS:
        return False  # a start will read them
    began = _seconds(str(status.get("ExecMainStartTimestamp", "")))
    times = [each["stat"]["mtime"] for each in files if each.get("stat", {}).get("exists")]
    if moment:
        times.append(datetime.fromisoformat(moment).timestamp())
    return began is not None and any(int(time) > began for time in times)


def runs_since_before(status: Mapping[str, Any], moment: float) -> bool:
    """Whether a service is up, and was started before the moment (seconds since 1970)."""
    began = _seconds(str(status.get("ExecMainStartTimestamp", "")))
    return status.get("ActiveState") == "active" and began is not None and began < int(moment)


def _seconds(timestamp: str) -> float | None:
    """ "Fri 2026-11-20 20:44:43 UTC" in seconds since 1970."""
    try:
        return datetime.strptime(f"{timestamp} +0000", "%a %Y-%m-%d %H:%M:%S UTC %z").timestamp()
    except ValueError:
        return None

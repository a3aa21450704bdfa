"""Finds the addresses at which Prometheus scrapes the programs of the inventory, and adds them to
Prometheus' configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .addresses import (
    LOOPBACK,
    METRICS_LISTENERS,
    WILDCARDS,
    bootstrap_servers,
    is_loopback,
    reached_at,
)
from .clusters import counters
from .inventory import Clusters, Groups, HostVars, cluster_of
from .settings import flat

GROUPS = {
    "zookeeper": "zookeeper",
    "broker": "brokers",
    "registry": "registry",
    "agent": "agents",
    "audit": "audit",
    "loader": "loaders",
}
"""For each program that serves metrics, the group of the inventory that contains its hosts."""
OF_A_CLUSTER = ("broker", "agent", "loader")
"""The programs to whose targets this module adds the label `cluster`. The metrics of the audit have
this label already."""
COUNTER = "audit-count"
COUNTERS_FIRST_PORT = 9114
JOB = "skidway"
"""The job in Prometheus' configuration that reads the targets. Each target has a job label of its
own, `skidway-<program>`."""


class _Place(NamedTuple):
    """A program that Prometheus may scrape, on one host. listener: the program's setting
    metrics.listener."""

    program: str
    host: HostVars
    listener: str

    @property
    def port(self) -> str:
        return self.listener.rpartition(":")[2]

    def is_reached_from(self, name: str) -> bool:
        """Whether the host of this name can scrape the program."""
        listens = self.listener.rpartition(":")[0].strip("[]")
        return self.host.get("inventory_hostname") == name or not is_loopback(listens)

    def address_for(self, name: str) -> str:
        listens = self.listener.rpartition(":")[0].strip("[]")
        if self.host.get("inventory_hostname") != name:
            return reached_at(self.host, self.port)
        here = f"[{listens}]" if ":" in listens else listens
        return f"{WILDCARDS.get(listens, here or LOOPBACK)}:{self.port}"


def scrape_targets(
    clusters: Clusters, groups: Groups, hosts: Mapping[str, HostVars], prometheus: str
) -> list[dict[str, Any]]:
    """Returns the targets that the host `prometheus` can scrape, in the format of Prometheus'
    `file_sd_configs`. The label `instance` has the host's name in the inventory, and the port."""
    return [
        {
            "targets": [each.address_for(prometheus)],
            "labels": {
                "job": f"skidway-{each.program}",
                "instance": f"{each.host['inventory_hostname']}:{each.port}",
                **_cluster_label(each, clusters),
            },
        }
        for each in _places(clusters, groups, hosts)
        if each.is_reached_from(prometheus)
    ]


def unscraped(
    clusters: Clusters, groups: Groups, hosts: Mapping[str, HostVars], prometheus: str
) -> list[str]:
    """Returns one sentence for each kind of program (broker, agent, ...) that the host `prometheus`
    cannot scrape everywhere, because on some hosts the program serves its metrics on loopback
    only."""
    left: dict[str, list[str]] = {}
    for each in _places(clusters, groups, hosts):
        if not each.is_reached_from(prometheus):
            left.setdefault(each.program, []).append(str(each.host["inventory_hostname"]))
    return [
        f"{prometheus} cannot scrape {len(names)} of the programs {program} (the first is on"
        f" {names[0]}), which serve metrics on loopback only: set {_remedy(program)}."
        for program, names in left.items()
    ]


def with_skidway(config: Mapping[str, Any] | None, rules: str, targets: str) -> dict[str, Any]:
    """Returns Prometheus' configuration with two additions: the rule files, and a job that reads
    the file of targets. rules: the path of the rule files. targets: the path of the file of
    targets."""
    found = without_skidway(config, rules)
    job = {"job_name": JOB, "file_sd_configs": [{"files": [targets]}]}
    return {
        **found,
        "rule_files": [*found.get("rule_files", []), rules],
        "scrape_configs": [*found.get("scrape_configs", []), job],
    }


def without_skidway(config: Mapping[str, Any] | None, rules: str) -> dict[str, Any]:
    """Returns Prometheus' configuration without the additions of `with_skidway`."""
    found = dict(config or {})
    if "rule_files" in found:
        found["rule_files"] = [each for each in found["rule_files"] or [] if each != rules]
    if "scrape_configs" in found:
        jobs = found["scrape_configs"] or []
        found["scrape_configs"] = [each for each in jobs if each.get("job_name") != JOB]
    return found


def _remedy(program: str) -> str:
    """Returns the name of the setting with which an operator lets other hosts reach the program's
    metrics."""
    if program == COUNTER:
        return "audit_counter_bind_address"
    return f"metrics.listener in {program}_settings"


def _cluster_label(place: _Place, clusters: Clusters) -> dict[str, str]:
    if place.program not in OF_A_CLUSTER:
        return {}
    return {"cluster": cluster_of(place.host, clusters)}


def _places(clusters: Clusters, groups: Groups, hosts: Mapping[str, HostVars]) -> Iterator[_Place]:
    for program, group in GROUPS.items():
        for name in groups.get(group, []):
            if program == "loader" and not hosts[name].get("loader_every"):
                continue  # a loader that runs once ends before Prometheus could scrape it
            settings = flat(hosts[name].get(f"{program}_settings") or {})
            listener = settings.get("metrics.listener") or METRICS_LISTENERS[program]
            yield _Place(program, hosts[name], str(listener))
    for name in groups.get("audit", []):
        for each in _counters(clusters, groups, hosts, hosts[name]):
            yield _Place(COUNTER, hosts[name], str(each["metrics.listener"]))


def _counters(
    clusters: Clusters, groups: Groups, hosts: Mapping[str, HostVars], audit: HostVars
) -> Sequence[Mapping[str, Any]]:
    """Returns the settings of the audit's counters: those in the variable `audit_counters`, or else
    the role's default. Defaults of a role are not visible in the variables of other hosts, so this
    function repeats the role's default."""
    given = audit.get("audit_counters")
    brokers = [hosts[name] for name in groups.get("brokers", [])]
    agents = [hosts[name] for name in groups.get("agents", [])]
    first = audit.get("audit_counter_first_port", COUNTERS_FIRST_PORT)
    address = str(audit.get("audit_counter_bind_address", LOOPBACK))
    servers = bootstrap_servers(clusters, brokers)
    found = given or counters(clusters, servers, int(first), agents, address)
    shared = flat(audit.get("audit_counter_settings") or {})
    return [{**flat(each), **shared} for each in found.values()]

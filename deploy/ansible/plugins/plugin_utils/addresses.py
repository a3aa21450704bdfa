"""Where programs are reached, and where their health is asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .inventory import Clusters, HostVars
from .settings import Settings, flat

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
WILDCARDS = frozenset({"", "*", "0.0.0.0", "::"})  # noqa: S104 - compared with, not bound to


def address(host: HostVars) -> str:
    """How others reach a host: `skidway_address`, else what Ansible reaches it by."""
    for key in ("skidway_address", "ansible_host", "inventory_hostname"):
        if host.get(key):
            return str(host[key])
    raise ValueError("a host without a name")


def bootstrap_servers(clusters: Clusters, brokers: Iterable[HostVars]) -> dict[str, str]:
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
    settings = flat(host.get(f"{program}_settings") or {})
    return health_url(settings.get("metrics.listener") or METRICS_LISTENERS[program])

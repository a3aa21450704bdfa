"""Where programs are reached, and where their health is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .inventory import Clusters, HostVars, cluster_of
from .settings import Settings, flat, texts

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
WILDCARDS = {"": LOOPBACK, "*": LOOPBACK, "0.0.0.0": LOOPBACK, "::": "[::1]"}  # noqa: S104
"""Where one asks who listens everywhere."""


def address(host: HostVars) -> str:
    """How others reach a host: `skidway_address`, else what Ansible reaches it by."""
    for key in ("skidway_address", "ansible_host", "inventory_hostname"):
        if host.get(key):
            return str(host[key])
    raise ValueError("a host without a name")


def broker_address(host: HostVars) -> str:
    """What clients are told of a broker, host:port, by its variables or its settings."""
    settings = flat(host.get("broker_settings") or {})
    for told in texts(settings.get("advertised.listeners") or []):
        return told.partition("://")[2]
    return _at(host, _port(settings.get("listeners")) or host.get("broker_port", BROKER_PORT))


def bootstrap_servers(clusters: Clusters, brokers: Iterable[HostVars]) -> dict[str, str]:
    """By cluster: the brokers' addresses, or those of an existing Kafka that the inventory names.

    A cluster without either is left out.
    """
    ours: dict[str, list[str]] = {}
    for host in brokers:
        ours.setdefault(cluster_of(host, clusters), []).append(broker_address(host))
    found = {}
    for name, cluster in clusters.items():
        servers = (cluster or {}).get("bootstrap_servers") or ",".join(ours.get(name, []))
        if servers:
            found[name] = str(servers)
    return found


def zookeeper_connect(hosts: Iterable[HostVars]) -> str:
    """The ensemble's addresses for clients, without chroot."""
    return ",".join(_at(host, _client_port(host)) for host in hosts)


def zookeeper_servers(hosts: Sequence[HostVars]) -> Settings:
    """The server.N keys of an ensemble; none for a single server."""
    if len(hosts) < 2:
        return {}
    return {
        f"server.{host['zookeeper_id']}": (
            f"{_at(host, host.get('zookeeper_peer_port', 2888))}"
            f":{host.get('zookeeper_election_port', 3888)}"
        )
        for host in hosts
    }


def registry_url(hosts: Iterable[HostVars]) -> str:
    """The registry's URLs, comma-separated."""
    return ",".join(_registry_url(host) for host in hosts)


def health_url(listener: str) -> str:
    """Where a program with this metrics.listener answers on its own host."""
    host, _, port = str(listener).rpartition(":")
    return f"http://{WILDCARDS.get(host.strip('[]'), host)}:{port}/health"


def health_of(host: HostVars, program: str, in_use: Mapping[str, Any] | None = None) -> str:
    """The same, by the settings that the program has `in_use`, or else by the host's variables.

    The two differ while a change of the inventory goes from host to host, and after one went back.
    """
    settings = flat(in_use or host.get(f"{program}_settings") or {})
    return health_url(settings.get("metrics.listener") or METRICS_LISTENERS[program])


def _at(host: HostVars, port: Any) -> str:
    """host:port, with an IPv6 address in brackets."""
    name = address(host)
    return f"[{name}]:{port}" if ":" in name and not name.startswith("[") else f"{name}:{port}"


def _port(listeners: Any) -> str:
    """The port of the first listener, PROTOCOL://host:port; "" for none."""
    return texts(listeners)[0].rpartition(":")[2] if listeners else ""


def _client_port(host: HostVars) -> Any:
    settings = flat(host.get("zookeeper_settings") or {})
    return settings.get("clientPort") or host.get("zookeeper_port", ZOOKEEPER_PORT)


def _registry_url(host: HostVars) -> str:
    listeners = flat(host.get("registry_settings") or {}).get("listeners")
    if listeners:
        return f"{texts(listeners)[0].partition('://')[0]}://{_at(host, _port(listeners))}"
    scheme, port = host.get("registry_scheme", "http"), host.get("registry_port", REGISTRY_PORT)
    return f"{scheme}://{_at(host, port)}"

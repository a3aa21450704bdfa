"""Finds the addresses where programs listen for clients, and where they serve /health."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from .inventory import Clusters, HostVars, cluster_of
from .settings import Settings, flat, texts

BROKER_PORT = 9092
REGISTRY_PORT = 8081
ZOOKEEPER_PORT = 2181
LOOPBACK = "127.0.0.1"
_NAMES = ("skidway_address", "ansible_host", "inventory_hostname")
"""The variables with the names of a host; the first that is set is the one others use."""
METRICS_LISTENERS = {
    "agent": "127.0.0.1:9101",
    "broker": "127.0.0.1:9102",
    "registry": "127.0.0.1:9103",
    "audit": "127.0.0.1:9104",
    "loader": "127.0.0.1:9105",
    "zookeeper": "127.0.0.1:9106",
}
"""The address where each program serves /metrics and /health by default."""
DASHBOARD_LISTENER = "127.0.0.1:8088"
"""The default of the collector's setting `listener`: the address where the audit's collector
listens."""
WILDCARDS = {"": LOOPBACK, "*": LOOPBACK, "0.0.0.0": LOOPBACK, "::": "[::1]"}  # noqa: S104
"""Each key is the host part of a listener, but is not an address to which a client can connect: it
is empty (the program then listens on loopback), or means all addresses. The value is the address at
which the program's own host reaches such a listener."""


def address(host: HostVars) -> str:
    """Returns the name or address by which other hosts reach a host: the variable
    `skidway_address`, or else `ansible_host`, or else the host's name in the inventory."""
    for key in _NAMES:
        if host.get(key):
            return str(host[key])
    raise ValueError("a host without a name")


def broker_address(host: HostVars) -> str:
    """Returns the address (host:port) that a broker tells its clients. The address comes from the
    setting `advertised.listeners` in the variables of the broker's host, or else from the host's
    `address` and the broker's port."""
    settings = flat(host.get("broker_settings") or {})
    for told in texts(settings.get("advertised.listeners") or []):
        return told.partition("://")[2]
    return reached_at(
        host, _port(settings.get("listeners")) or host.get("broker_port", BROKER_PORT)
    )


def bootstrap_servers(clusters: Clusters, brokers: Iterable[HostVars]) -> dict[str, str]:
    """Returns {cluster: addresses of its brokers, comma-separated}. For an existing Kafka cluster,
    the addresses are those that the inventory names.

    The result leaves out a cluster that has neither brokers nor an existing Kafka cluster.
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
    """Returns the addresses at which clients reach the ZooKeeper ensemble, comma-separated and
    without a chroot."""
    return ",".join(reached_at(host, _client_port(host)) for host in hosts)


def zookeeper_servers(hosts: Sequence[HostVars]) -> Settings:
    """Returns the keys server.N of ZooKeeper's configuration, which name all servers of an
    ensemble. The result is empty if the ensemble has a single server."""
    if len(hosts) < 2:
        return {}
    return {
        f"server.{host['zookeeper_id']}": (
            f"{reached_at(host, host.get('zookeeper_peer_port', 2888))}"
            f":{host.get('zookeeper_election_port', 3888)}"
        )
        for host in hosts
    }


def registry_url(hosts: Iterable[HostVars]) -> str:
    """Returns the registry's URLs, comma-separated."""
    return ",".join(_registry_url(host) for host in hosts)


def collector_url(hosts: Iterable[HostVars], asking: HostVars) -> str:
    """Returns the URL at which a program on the host `asking` reaches the audit's collector. The
    result is "" if there is no collector, or if the collector listens only on the loopback
    interface of another host.

    `hosts` has the hosts of the group `audit`. If the collector listens only on loopback, the roles
    do not make it listen on another address, because neither a password nor TLS protects its pages.
    """
    for host in hosts:
        settings = flat(host.get("audit_settings") or {})
        name, _, port = str(settings.get("listener") or DASHBOARD_LISTENER).rpartition(":")
        name = name.strip("[]")
        if host.get("inventory_hostname") == asking.get("inventory_hostname"):
            here = f"[{name}]" if ":" in name else name
            return f"http://{WILDCARDS.get(name, here)}:{port}"
        if not is_loopback(name):
            return f"http://{reached_at(host, port)}"
    return ""


def allowed_hosts(host: HostVars, asking: Iterable[HostVars] = ()) -> list[str]:
    """Returns the value of the setting `allowed.hosts`: the names of a host, and all names in the
    URLs of registry and collector that the inventory gives to the hosts `asking`. An alias or a
    load balancer in such a URL reaches one of our programs, which must answer for its name."""
    found = [str(host.get(key) or "") for key in _NAMES]
    for each in (host, *asking):
        found += [urlsplit(url).hostname or "" for url in _urls(each)]
    return sorted({name.strip("[]") for name in found if name})


def health_url(listener: str) -> str:
    """Returns the URL of /health for requests from the program's own host. `listener` is the
    program's setting metrics.listener."""
    host, _, port = str(listener).rpartition(":")
    return f"http://{WILDCARDS.get(host.strip('[]'), host)}:{port}/health"


def health_of(host: HostVars, program: str, in_use: Mapping[str, Any] | None = None) -> str:
    """Returns the URL of a program's /health. The URL comes from `in_use`, which has the settings
    with which the program runs. If `in_use` is None or empty, the URL comes from the host's
    variables.

    The settings in use differ from the variables while Ansible applies a changed inventory host by
    host, and also after a roll-back.
    """
    settings = flat(in_use or host.get(f"{program}_settings") or {})
    return health_url(settings.get("metrics.listener") or METRICS_LISTENERS[program])


def is_loopback(name: str) -> bool:
    """Whether a program that listens on the address `name` can be reached only from its own host.
    This is also true if the address is empty, because programs then listen on loopback."""
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name in ("", "localhost")


def reached_at(host: HostVars, port: Any) -> str:
    """Returns `<address of the host>:<port>`, with brackets around an IPv6 address."""
    name = address(host)
    return f"[{name}]:{port}" if ":" in name and not name.startswith("[") else f"{name}:{port}"


def _port(listeners: Any) -> str:
    """Returns the port of the first listener, which has the form PROTOCOL://host:port. The result
    is "" if there are no listeners."""
    return texts(listeners)[0].rpartition(":")[2] if listeners else ""


def _client_port(host: HostVars) -> Any:
    settings = flat(host.get("zookeeper_settings") or {})
    return settings.get("clientPort") or host.get("zookeeper_port", ZOOKEEPER_PORT)


def _registry_url(host: HostVars) -> str:
    listeners = flat(host.get("registry_settings") or {}).get("listeners")
    if listeners:
        return f"{texts(listeners)[0].partition('://')[0]}://{reached_at(host, _port(listeners))}"
    scheme, port = host.get("registry_scheme", "http"), host.get("registry_port", REGISTRY_PORT)
    return f"{scheme}://{reached_at(host, port)}"


def _urls(host: HostVars) -> list[str]:
    settings = [flat(host.get(f"{program}_settings") or {}) for program in ("agent", "loader")]
    found = [host.get(key) for key in ("skidway_schema_registry_url", "loader_collector_url")]
    found += [
        each.get(key) for each in settings for key in ("schema.registry.url", "collector.url")
    ]
    return [url.strip() for text in found if text for url in texts(text)]

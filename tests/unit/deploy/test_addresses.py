"""Tests how the Ansible roles derive the addresses at which the programs reach each other."""

from __future__ import annotations

from typing import Any

import pytest
from kazoo.hosts import collect_hosts

from deploy.ansible.plugins.plugin_utils import addresses
from skidway.agent.settings import AgentSettings
from skidway.audit.settings import DASHBOARD_LISTENER, AuditSettings
from skidway.broker.listener_settings import parse_endpoint
from skidway.broker.settings import BrokerSettings
from skidway.coordination import check_connect
from skidway.http.hosts import KEY, AllowedHosts
from skidway.kafka.client.cluster import parse_bootstrap
from skidway.loader.settings import LoaderSettings
from skidway.schemas.registry.settings import RegistrySettings
from skidway.zookeeper import ZookeeperSettings
from support.role_variables import RoleVariables

CLUSTERS: dict[str, Any] = {"dc1": {}, "dc2": None, "offline": {"mirrors": ["dc1", "dc2"]}}

OF_HOST = ("broker", "zookeeper")
"""The roles that have the settings of one host in a variable of their own."""


def host(name: str, **variables: Any) -> dict[str, Any]:
    return {"inventory_hostname": name, **variables}


def test_brokers_are_found_by_cluster_and_reached_by_the_address_they_have() -> None:
    """An agent is given only the brokers of its own cluster, under the addresses at which other
    hosts reach them."""
    brokers = [
        host("b1", skidway_cluster="dc1"),
        host("b2", skidway_cluster="dc1", ansible_host="10.0.0.2", broker_port=9192),
        host("b3", skidway_cluster="dc2", ansible_host="10.0.0.3", skidway_address="b3.internal"),
    ]
    assert addresses.bootstrap_servers(CLUSTERS, brokers) == {
        "dc1": "b1:9092,10.0.0.2:9192",
        "dc2": "b3.internal:9092",
    }


def test_an_existing_kafka_stands_in_for_brokers() -> None:
    """If the inventory sets `bootstrap_servers` of a cluster (an existing Kafka cluster), programs
    are given these addresses unchanged."""
    clusters = {"dc1": {"bootstrap_servers": "k1:9092,k2:9092"}}
    assert addresses.bootstrap_servers(clusters, []) == {"dc1": "k1:9092,k2:9092"}


def test_one_zookeeper_is_no_ensemble_and_three_are() -> None:
    """The server.N keys of ZooKeeper's configuration are written only if there are several servers.
    N is the server's number from the inventory."""
    alone = [host("z1")]
    three = [host(f"z{n}", zookeeper_id=n * 10) for n in (1, 2, 3)]
    assert addresses.zookeeper_servers(alone) == {}
    assert addresses.zookeeper_servers(three)["server.20"] == "z2:2888:3888"
    assert addresses.zookeeper_connect(three) == "z1:2181,z2:2181,z3:2181"


def test_health_is_asked_where_the_settings_say() -> None:
    """If the inventory sets a program's metrics.listener, the health check uses this address. If
    the inventory does not set it, the health check uses the program's default address. If the
    listener means all addresses of the host, the health check uses loopback."""
    settings: dict[str, Any] = {
        "agent": AgentSettings, "broker": BrokerSettings, "registry": RegistrySettings,
        "audit": AuditSettings, "loader": LoaderSettings, "zookeeper": ZookeeperSettings,
    }  # fmt: skip
    listening = {x: y.__dataclass_fields__["metrics_listener"] for x, y in settings.items()}
    assert {x: y.default for x, y in listening.items()} == addresses.METRICS_LISTENERS
    assert addresses.health_of(host("b"), "broker") == "http://127.0.0.1:9102/health"
    moved = host("b", broker_settings={"metrics": {"listener": "0.0.0.0:9999"}})
    assert addresses.health_of(moved, "broker") == "http://127.0.0.1:9999/health"


@pytest.mark.parametrize("brokers", [[], [host("b", skidway_cluster="elsewhere")]])
def test_a_cluster_without_brokers_has_no_addresses(brokers: list[dict[str, Any]]) -> None:
    """An inventory group without hosts counts as a missing group, so no program is given an empty
    address."""
    assert addresses.bootstrap_servers(CLUSTERS, brokers) == {}
    assert addresses.zookeeper_connect([]) == addresses.registry_url([]) == ""
    assert addresses.zookeeper_servers([]) == {}


def test_a_broker_without_a_cluster_is_of_the_first_one() -> None:
    """A broker whose host does not set skidway_cluster belongs to the first cluster of
    skidway_clusters. The Ansible filter that derives the addresses has this default in its code,
    because Ansible does not pass the role's defaults of other hosts to a filter."""
    assert addresses.bootstrap_servers(CLUSTERS, [host("b1")]) == {"dc1": "b1:9092"}


V6 = {"ansible_host": "fd00::1"}


def test_an_ipv6_address_stands_in_brackets() -> None:
    """An IPv6 address is written in brackets, so that the programs can parse it."""
    brokers = [host("b1", **V6), host("b2", skidway_address="[fd00::2]")]
    servers = addresses.bootstrap_servers(CLUSTERS, brokers)["dc1"]
    assert servers == "[fd00::1]:9092,[fd00::2]:9092"
    assert [str(each.host) for each in parse_bootstrap(servers)] == ["fd00::1", "fd00::2"]
    told = parse_endpoint(f"PLAINTEXT://{addresses.broker_address(brokers[0])}", "x")
    assert (told.host, told.port) == ("fd00::1", 9092)
    servers = [host("z1", zookeeper_id=1, **V6), host("z2", zookeeper_id=2)]
    connect = addresses.zookeeper_connect(servers)
    assert collect_hosts(check_connect(f"{connect}/dc1")[0])[0] == [("fd00::1", 2181), ("z2", 2181)]
    assert addresses.zookeeper_servers(servers)["server.1"] == "[fd00::1]:2888:3888"
    assert addresses.registry_url([host("r1", **V6)]) == "http://[fd00::1]:8081"


@pytest.mark.parametrize(
    ("listener", "url"),
    [
        ("[::]:9102", "http://[::1]:9102/health"),
        (":::9102", "http://[::1]:9102/health"),
        ("[fd00::1]:9102", "http://[fd00::1]:9102/health"),
        (":9102", "http://127.0.0.1:9102/health"),
        ("9102", "http://127.0.0.1:9102/health"),
        ("*:9102", "http://127.0.0.1:9102/health"),
    ],
)
def test_health_is_asked_at_a_listener_of_any_form(listener: str, url: str) -> None:
    """If a program listens on all addresses, the health check asks on the loopback address of the
    same address family (IPv4 or IPv6)."""
    assert addresses.health_url(listener) == url


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"listeners": ["PLAINTEXT://0.0.0.0:19092"]}, "b1.dc1.example.com:19092"),
        ({"listeners": "PLAINTEXT://0.0.0.0:19092"}, "b1.dc1.example.com:19092"),
        ({"advertised": {"listeners": ["PLAINTEXT://public:29092"]}}, "public:29092"),
        (
            {"listeners": ["PLAINTEXT://:1"], "advertised.listeners": "PLAINTEXT://p:2"},
            "p:2",
        ),
        ({"log.retention.hours": 1}, "b1.dc1.example.com:9192"),
    ],
)
def test_who_moves_a_broker_by_its_settings_moves_what_others_are_told(
    settings: dict[str, Any], told: str
) -> None:
    """The listener in the variable broker_settings overrides the variable broker_port. Agents,
    mirrors and the broker itself are given the address that follows from broker_settings."""
    moved = host("b1.dc1.example.com", broker_port=9192, broker_settings=settings)
    assert addresses.broker_address(moved) == told
    assert addresses.bootstrap_servers(CLUSTERS, [moved]) == {"dc1": told}


def test_who_moves_zookeeper_or_registry_by_their_settings_moves_what_others_are_told() -> None:
    """If the inventory sets clientPort in zookeeper_settings, or listeners in registry_settings,
    the roles give other programs the changed address of ZooKeeper or of the registry."""
    moved = host("z1", zookeeper_port=1, zookeeper_settings={"clientPort": 12181})
    assert addresses.zookeeper_connect([moved, host("z2")]) == "z1:12181,z2:2181"
    moved = host("r1", registry_settings={"listeners": ["https://0.0.0.0:8443"]})
    assert addresses.registry_url([moved, host("r2")]) == "https://r1:8443,http://r2:8081"


def test_health_is_asked_where_the_program_is_and_not_where_it_will_be() -> None:
    """If the metrics.listener of the brokers is changed in the inventory, each broker uses the new
    address only after its restart, and the brokers restart one at a time. So the health check asks
    each broker at the address that the broker uses at the moment."""
    moved = host("b2", broker_settings={"metrics.listener": "127.0.0.1:9999"})
    for in_use in ({"metrics.listener": "127.0.0.1:9111"}, {"metrics": {"listener": ":9111"}}):
        assert addresses.health_of(moved, "broker", in_use) == "http://127.0.0.1:9111/health"
    assert addresses.health_of(moved, "broker", {"broker.id": 2}) == "http://127.0.0.1:9102/health"
    assert addresses.health_of(moved, "broker", None) == "http://127.0.0.1:9999/health"


@pytest.mark.parametrize(
    ("listener", "here", "elsewhere"),
    [
        (None, "http://127.0.0.1:8088", ""),
        ("127.0.0.1:9000", "http://127.0.0.1:9000", ""),
        ("localhost:9000", "http://localhost:9000", ""),
        ("[::1]:9000", "http://[::1]:9000", ""),
        (":9000", "http://127.0.0.1:9000", ""),
        (9000, "http://127.0.0.1:9000", ""),
        ("0.0.0.0:9000", "http://127.0.0.1:9000", "http://m.internal:9000"),
        ("[::]:9000", "http://[::1]:9000", "http://m.internal:9000"),
        ("10.0.0.5:9000", "http://10.0.0.5:9000", "http://m.internal:9000"),
        ("[fd00::5]:9000", "http://[fd00::5]:9000", "http://m.internal:9000"),
    ],
)
def test_a_collector_is_asked_where_its_listener_can_be_reached(
    listener: Any, here: str, elsewhere: str
) -> None:
    """A program on the audit collector's own host uses the address of the collector's listener, or
    loopback if the collector listens on all addresses. A program on another host uses the name
    under which other hosts reach the collector, or gets no address if the collector listens on
    loopback."""
    settings = {} if listener is None else {"audit_settings": {"listener": listener}}
    audit = [host("m", skidway_address="m.internal", **settings)]
    assert addresses.collector_url(audit, host("m")) == here
    assert addresses.collector_url(audit, host("l")) == elsewhere


def test_without_a_collector_nobody_is_asked() -> None:
    """If the inventory has no group `audit`, the roles give no program the address of a
    collector."""
    assert addresses.collector_url([], host("l")) == ""


def test_the_collector_listens_where_its_settings_say_by_default() -> None:
    """If the inventory does not set the collector's listener, the roles use the collector's own
    default."""
    assert addresses.DASHBOARD_LISTENER == DASHBOARD_LISTENER


def test_programs_answer_for_every_name_in_the_urls_of_the_inventory() -> None:
    """The roles tell registry and collector all names under which the inventory's URLs reach them,
    also an alias that only one team's agents or the loader use; a program without such URLs
    answers for the names of its host."""
    hosts = {
        "reg": host("reg", ansible_host="10.0.0.5", skidway_schema_registry_url="http://reg:8081"),
        "app": host(
            "app", agent_settings={"schema": {"registry.url": "http://schemas.bank:8081, x"}}
        ),
        "loads": host("loads", loader_collector_url="http://[2001:db8::8]:8088"),
        "audits": host("audits", skidway_address="audits.internal"),
    }
    groups = {"agents": ["app"], "loaders": ["loads"], "registry": ["reg"], "audit": ["audits"]}

    def allowed(role: str, name: str) -> AllowedHosts:
        given = {"skidway_clusters": {"dc1": {}}, "zookeeper_id": 1, "broker_id": 1, **hosts[name]}
        variables = RoleVariables(role, given, hosts, groups)
        return AllowedHosts(
            variables[f"{role}_of_host" if role in OF_HOST else f"{role}_derived"][KEY]
        )

    for name in ("reg:8081", "10.0.0.5", "schemas.bank:8081"):
        assert allowed("registry", "reg").allows(name)
    for name in ("audits.internal:8088", "[2001:db8::8]:8088"):
        assert allowed("audit", "audits").allows(name)
    for role in ("agent", "broker", "zookeeper"):
        assert allowed(role, "audits").allows("audits.internal:9101")
        assert not allowed(role, "audits").allows("schemas.bank:9101")

"""Where programs are reached."""

from __future__ import annotations

from typing import Any

from deploy.ansible.plugins.plugin_utils import addresses

CLUSTERS: dict[str, Any] = {"dc1": {}, "dc2": None, "offline": {"mirrors": ["dc1", "dc2"]}}
SERVERS = {"dc1": "b1:9092", "dc2": "b2:9092", "offline": "b3:9092"}


def host(name: str, **variables: Any) -> dict[str, Any]:
    return {"inventory_hostname": name, **variables}


def test_brokers_are_found_by_cluster_and_reached_by_the_address_they_have() -> None:
    """An agent is told the brokers of its own cluster only, by the names that others reach them."""
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
    """`bootstrap_servers` of a cluster in the inventory is used as it is."""
    clusters = {"dc1": {"bootstrap_servers": "k1:9092,k2:9092"}}
    assert addresses.bootstrap_servers(clusters, []) == {"dc1": "k1:9092,k2:9092"}


def test_one_zookeeper_is_no_ensemble_and_three_are() -> None:
    """server.N keys are written for several servers, under the numbers that the inventory gives."""
    alone = [host("z1")]
    three = [host(f"z{n}", zookeeper_id=n * 10) for n in (1, 2, 3)]
    assert addresses.zookeeper_servers(alone) == {}
    assert addresses.zookeeper_servers(three)["server.20"] == "z2:2888:3888"
    assert addresses.zookeeper_connect(three) == "z1:2181,z2:2181,z3:2181"


def test_health_is_asked_where_the_settings_say() -> None:
    """A metrics.listener of the inventory moves the question; a wildcard is asked on loopback."""
    assert addresses.health_of(host("b"), "broker") == "http://127.0.0.1:9102/health"
    moved = host("b", broker_settings={"metrics": {"listener": "0.0.0.0:9999"}})
    assert addresses.health_of(moved, "broker") == "http://127.0.0.1:9999/health"

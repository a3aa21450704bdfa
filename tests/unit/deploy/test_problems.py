"""Mistakes in an inventory."""

from __future__ import annotations

from typing import Any

import pytest

from deploy.ansible.plugins.plugin_utils import problems as mistakes


def host(name: str, **variables: Any) -> dict[str, Any]:
    return {"inventory_hostname": name, **variables}


def problems(groups: dict[str, list[str]], hosts: list[dict[str, Any]], **clusters: Any) -> str:
    by_name = {each["inventory_hostname"]: each for each in hosts}
    return " ".join(mistakes.inventory_problems(clusters, groups, by_name))


def test_a_good_inventory_has_no_problems() -> None:
    """Two clusters may each have a broker 1."""
    brokers = [host("b1", skidway_cluster="dc1", broker_id=1)]
    brokers.append(host("b2", skidway_cluster="dc2", broker_id=1))
    assert problems({"brokers": ["b1", "b2"]}, brokers, dc1={}, dc2={"mirrors": ["dc1"]}) == ""
    same = {"host.name": "a", "cluster.name": "dc1", "metrics.listener": "0.0.0.0:9999"}
    agent = host("a", skidway_cluster="dc1", agent_settings=same, agent_sources=[{"topic": "t"}])
    assert problems({"agents": ["a"], "audit": ["m"]}, [agent, host("m")], dc1={}) == ""


@pytest.mark.parametrize(
    ("group", "hosts", "clusters", "said"),
    [
        ("agents", [], {}, "skidway_clusters is empty"),
        ("agents", [], {"d.c": {}}, "is no name"),
        ("agents", [], {"dc1": {"mirrors": ["dc9"]}}, "mirrors dc9"),
        ("agents", [host("a", skidway_cluster="dcl")], {"dc1": {}}, "must be one of dc1"),
        ("agents", [host("a", skidway_cluster="dc1")], {"dc1": {}}, "no agent_sources"),
        ("brokers", [host("b", skidway_cluster="dc1")], {"dc1": {}}, "no broker_id"),
        (
            "brokers",
            [host(n, skidway_cluster="dc1", broker_id=1) for n in ("b1", "b2")],
            {"dc1": {}},
            "given to 2 brokers",
        ),
        (
            "brokers",
            [host("b", skidway_cluster="dc1", broker_id=1)],
            {"dc1": {"bootstrap_servers": "k:9092"}},
            "one or the other",
        ),
        ("zookeeper", [host("z1"), host("z2")], {"dc1": {}}, "zookeeper_id of its own"),
        ("audit", [host("m1"), host("m2")], {"dc1": {}}, "audit has 2 hosts (m1, m2)"),
        (
            "brokers",
            [
                host(
                    "b",
                    skidway_cluster="dc1",
                    broker_id=1,
                    broker_settings={"metrics.listener": ""},
                )
            ],
            {"dc1": {}},
            "b: broker_settings sets metrics.listener to nothing",
        ),
        (
            "agents",
            [host("a", skidway_cluster="dc1", agent_settings={"host": {"name": "x"}})],
            {"dc1": {}},
            "a: agent_settings sets host.name to x",
        ),
        (
            "agents",
            [host("a", skidway_cluster="dc1", agent_settings={"cluster.name": "dc2"})],
            {"dc1": {}},
            "a: agent_settings sets cluster.name to dc2",
        ),
        (
            "zookeeper",
            [host("z1", zookeeper_id=1), host("z2", zookeeper_id=1)],
            {"dc1": {}},
            "the same zookeeper_id",
        ),
    ],
)
def test_a_mistake_in_the_inventory_is_one_sentence(
    group: str, hosts: list[dict[str, Any]], clusters: dict[str, Any], said: str
) -> None:
    """Nothing is installed then; the sentence names the host and the variable."""
    assert said in problems({group: [h["inventory_hostname"] for h in hosts]}, hosts, **clusters)

"""Tests which clusters each cluster mirrors, and which counters run for each cluster. A counter is
a program of the audit that counts records."""

from __future__ import annotations

from typing import Any

import pytest

from deploy.ansible.plugins.plugin_utils import clusters

CLUSTERS: dict[str, Any] = {"dc1": {}, "dc2": None, "offline": {"mirrors": ["dc1", "dc2"]}}
SERVERS = {"dc1": "b1:9092", "dc2": "b2:9092", "offline": "b3:9092"}


def host(name: str, **variables: Any) -> dict[str, Any]:
    return {"inventory_hostname": name, **variables}


def test_the_offline_cluster_mirrors_what_the_inventory_says() -> None:
    """The broker setting mirror.sources has one entry for each cluster that the broker's own
    cluster mirrors according to the inventory's skidway_clusters."""
    assert clusters.mirror_sources(CLUSTERS, "offline", SERVERS) == [
        {"cluster": "dc1", "bootstrap.servers": "b1:9092"},
        {"cluster": "dc2", "bootstrap.servers": "b2:9092"},
    ]
    assert clusters.mirror_sources(CLUSTERS, "dc1", SERVERS) == []


def test_a_mirrored_cluster_without_brokers_is_refused() -> None:
    """If another cluster mirrors a cluster without brokers, ValueError is raised, because the
    mirror would silently copy nothing."""
    with pytest.raises(ValueError, match="dc2"):
        clusters.mirror_sources(CLUSTERS, "offline", {"dc1": "b1:9092"})


def test_every_cluster_has_a_counter_of_its_own() -> None:
    """Mirrored records are counted in the cluster that has the copies. Each counter has its own
    port and directory."""
    counters = clusters.counters(CLUSTERS, SERVERS, 9114)
    assert {name: each["tier"] for name, each in counters.items()} == {
        "dc1": "broker",
        "dc2": "broker",
        "offline": "mirror",
    }
    assert len({each["metrics.listener"] for each in counters.values()}) == 3
    assert counters["dc2"]["state.dir"] == "/var/lib/skidway/audit-count-dc2"


def test_a_cluster_that_mirrors_and_has_agents_is_counted_twice() -> None:
    """If a mirroring cluster has agents of its own, it gets a second counter, which counts the
    records that these agents publish. The other counters keep their ports."""
    agents = [host("a", skidway_cluster="offline"), host("b", skidway_cluster="dc1")]
    before, after = (clusters.counters(CLUSTERS, SERVERS, 9114, each) for each in ([], agents))
    second = after.pop("offline.broker")
    assert after == before
    assert second == {
        "bootstrap.servers": "b3:9092",
        "cluster.name": "offline",
        "tier": "broker",
        "state.dir": "/var/lib/skidway/audit-count-offline.broker",
        "metrics.listener": "127.0.0.1:9117",
    }


def test_only_servers_of_the_same_cluster_are_waited_for() -> None:
    """If a role must wait until servers answer, it waits only for the servers of the host's own
    cluster. A server without a cluster in the inventory belongs to the first cluster."""
    hosts = {"b1": host("b1"), "b2": host("b2", skidway_cluster="dc1"), "b3": host("b3")}
    hosts["b3"]["skidway_cluster"] = "dc2"
    assert clusters.of_cluster(hosts, hosts, "dc1", CLUSTERS) == ["b1", "b2"]
    assert clusters.of_cluster([], hosts, "dc1", CLUSTERS) == []


def test_an_empty_list_of_mirrors_mirrors_nothing() -> None:
    """`mirrors:` without a value means the same as `mirrors: []`."""
    for nothing in (None, []):
        found = clusters.counters({"dc1": {"mirrors": nothing}}, SERVERS, 9114)
        assert found["dc1"]["tier"] == "broker"
        assert clusters.mirror_sources({"dc1": {"mirrors": nothing}}, "dc1", SERVERS) == []


def test_a_text_in_place_of_a_list_is_not_read_letter_by_letter() -> None:
    """A string in place of a list is split at commas, as the programs split it. In a run of a
    playbook this does not happen, because the check of the inventory refuses such a string first
    (see test_problems)."""
    texts = {"dc1": {"mirrored_topics": "nginx, auth"}, "offline": {"mirrors": "dc1"}}
    assert clusters.mirror_sources(texts, "offline", SERVERS) == [
        {"cluster": "dc1", "bootstrap.servers": "b1:9092", "topics": ["nginx", "auth"]}
    ]
    assert clusters.counters(texts, SERVERS, 9114)["offline"]["tier"] == "mirror"

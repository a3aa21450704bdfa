"""Tests which mistakes in an inventory the playbooks report before they change a host."""

from __future__ import annotations

from typing import Any

import pytest

from deploy.ansible.plugins.plugin_utils import problems as mistakes
from skidway.cli.moments import parse_duration
from skidway.loader.runs.resident import LEAST_EVERY_S


def host(name: str, **variables: Any) -> dict[str, Any]:
    return {"inventory_hostname": name, "skidway_insecure_listeners": True, **variables}


THERE = {
    "skidway_zookeeper_connect": "z:2181",
    "skidway_schema_registry_url": "http://r:8081",
}
"""Variables that each host needs. Tests of other problems set these variables, so that only the
tested problem is reported."""


def problems(groups: dict[str, list[str]], hosts: list[dict[str, Any]], **clusters: Any) -> str:
    return sentences(groups, [{**THERE, **each} for each in hosts], **clusters)


def sentences(groups: dict[str, list[str]], hosts: list[dict[str, Any]], **clusters: Any) -> str:
    by_name = {each["inventory_hostname"]: each for each in hosts}
    return " ".join(mistakes.inventory_problems(clusters, groups, by_name))


def test_a_good_inventory_has_no_problems() -> None:
    """No problem is found in a valid inventory. For example, it is no problem if two clusters each
    have a broker with the id 1."""
    brokers = [host("b1", skidway_cluster="dc1", broker_id=1)]
    brokers.append(host("b2", skidway_cluster="dc2", broker_id=1))
    assert problems({"brokers": ["b1", "b2"]}, brokers, dc1={}, dc2={"mirrors": ["dc1"]}) == ""
    same = {"host.name": "a", "cluster.name": "dc1", "metrics.listener": "0.0.0.0:9999"}
    agent = host("a", skidway_cluster="dc1", agent_settings=same, agent_sources=[{"topic": "t"}])
    groups = {"agents": ["a"], "audit": ["m"], "loaders": [], "cluster_dc1": ["a", "b1"]}
    kafka = {"bootstrap_servers": "k:9092"}
    assert problems(groups, [agent, host("m")], dc1=kafka) == ""
    assert problems({**groups, "brokers": ["b1"]}, [agent, host("m"), brokers[0]], dc1={}) == ""


def test_a_host_without_a_cluster_is_of_the_first_one() -> None:
    """A host without skidway_cluster belongs to the first cluster, so an inventory with only one
    cluster need not set this variable."""
    hosts = [host("a", agent_sources=[{"topic": "t"}]), host("b", broker_id=1), host("c")]
    hosts[2] |= {"broker_id": 1, "skidway_cluster": "dc2"}
    groups = {"agents": ["a"], "brokers": ["b", "c"], "loaders": ["b"]}
    assert problems(groups, hosts, dc1={}, dc2={}) == ""
    assert "given to 2 brokers of dc1" in problems(
        groups, [*hosts[:2], host("c", broker_id=1)], dc1={}
    )


def test_a_host_is_of_one_cluster() -> None:
    """A host in two groups cluster_<name> is reported, because Ansible would silently use the
    cluster whose name sorts last."""
    hosts = [host("a.b", skidway_cluster="dc2", agent_sources=[{"topic": "t"}])]
    hosts += [host("b1", skidway_cluster="dc1", broker_id=1)]
    groups = {"agents": ["a.b"], "cluster_dc1": ["a.b", "b1"], "cluster_dc2": ["a.b"]}
    said = problems({**groups, "brokers": ["b1"]}, hosts, dc1={}, dc2={"bootstrap_servers": "k:1"})
    assert said.count("a.b is in the groups cluster_dc1 and cluster_dc2") == 1
    assert "would be of dc2" in said
    assert "b1" not in said


def test_settings_that_each_counter_needs_for_itself_are_not_for_all() -> None:
    """A host may have several counters (the audit's programs that count records). If the inventory
    sets one port or one directory for all of them, a problem is reported, because only one counter
    could use this port or directory."""
    monitor = host("m", audit_counter_settings={"metrics": {"listener": "0.0.0.0:1"}, "tier": "x"})
    said = problems({"audit": ["m"]}, [monitor], dc1={}, dc2={})
    assert "audit_counter_settings sets metrics.listener, tier for all counters" in said
    assert problems({"audit": ["m"]}, [monitor], dc1={}) == ""  # there is only one counter
    two = {**monitor, "audit_counters": {"a": {}, "b": {}}}
    assert problems({"audit": ["m"]}, [two], dc1={}) != ""
    assert (
        problems(
            {"audit": ["m"]}, [host("m", audit_counter_settings={"bucket.ms": 1})], dc1={}, dc2={}
        )
        == ""
    )


KAFKA = {"bootstrap_servers": "k:9092"}


def test_a_service_that_is_needed_is_a_group_or_an_existing_one() -> None:
    """A program may need a service (ZooKeeper or the registry). If the inventory has neither a
    group nor an address for this service, a problem is reported before the playbook begins. Without
    this check, the program would refuse its configuration in the middle of the playbook."""
    hosts = [host("b", broker_id=1), host("r"), host("a", agent_sources=[{"topic": "t"}])]
    groups = {"brokers": ["b"], "registry": ["r"], "agents": ["a"]}
    lacking = sentences(groups, hosts, dc1={})
    assert lacking == (
        "The group zookeeper has no hosts, and skidway_zookeeper_connect names no existing "
        "service, which b of the group brokers and 1 more needs: fill the one, or set the other."
    )
    assert sentences({**groups, "zookeeper": ["z"]}, [*hosts, host("z")], dc1={}) == ""
    named = [{**each, "skidway_zookeeper_connect": "z:2181"} for each in hosts]
    assert sentences(groups, named, dc1={}) == ""

    loader = host("l")
    assert (
        "skidway_schema_registry_url names no existing service, which l of the group loaders needs"
        in sentences({"loaders": ["l"]}, [loader], dc1=KAFKA)
    )
    own = {**loader, "loader_settings": {"schema": {"registry.url": "http://r"}}}
    assert sentences({"loaders": ["l"]}, [own], dc1=KAFKA) == ""
    assert sentences({"loaders": ["l"]}, [{**loader, **THERE}], dc1=KAFKA) == ""
    assert sentences({"audit": ["m"]}, [host("m")], dc1=KAFKA) == ""  # the audit needs no registry


@pytest.mark.parametrize(
    ("group", "hosts", "clusters", "sentence"),
    [
        ("agents", [], {}, "skidway_clusters is empty: name "),
        ("agents", [], {"d.c": {}}, "skidway_clusters: 'd.c' is no name"),
        ("agents", [], {"dc1": {"mirrors": ["dc9"]}}, "skidway_clusters: dc1 mirrors dc9, which"),
        (
            "agents",
            [],
            {"dc1": {}, "dc2": {"mirrors": "dc1"}},
            "skidway_clusters: mirrors of dc2 is 'dc1', which is no list",
        ),
        (
            "agents",
            [],
            {"dc1": {"mirrored_topics": "nginx"}},
            "skidway_clusters: mirrored_topics of dc1 is 'nginx', which is no list",
        ),
        (
            "agents",
            [],
            {"dc1": {}, "dc2": {"mirrors": {"dc1": 1}}},
            "skidway_clusters: mirrors of dc2 is {'dc1': 1}, which is no list",
        ),
        (
            "agents",
            [host("a", skidway_cluster="dcl")],
            {"dc1": {}},
            "a is in the group agents, and its skidway_cluster is 'dcl': it must be one of dc1.",
        ),
        (
            "agents",
            [host("a", skidway_cluster="dc1")],
            {"dc1": {}},
            "a is in the group agents, and has no agent_sources.",
        ),
        (
            "brokers",
            [host("b", skidway_cluster="dc1")],
            {"dc1": {}},
            "b is in the group brokers, and has no broker_id",
        ),
        ("agents", [host("a")], {"dc1": {}}, "a of the group agents needs the cluster dc1"),
        ("loaders", [host("l")], {"dc1": {}}, "l of the group loaders needs the cluster dc1"),
        ("audit", [], {"dc1": {}, "dc2": {"mirrors": ["dc1"]}}, "dc2, which mirrors it, needs"),
        (
            "brokers",
            [host(n, skidway_cluster="dc1", broker_id=1) for n in ("b1", "b2")],
            {"dc1": {}},
            "broker_id 1 is given to 2 brokers of dc1.",
        ),
        (
            "brokers",
            [host("b", skidway_cluster="dc1", broker_id=1)],
            {"dc1": {"bootstrap_servers": "k:9092"}},
            "b is a broker of dc1, which has bootstrap_servers of an existing Kafka",
        ),
        (
            "zookeeper",
            [host("z1"), host("z2")],
            {"dc1": {}},
            "every host of the group zookeeper needs a zookeeper_id of its own",
        ),
        ("audit", [host("m1"), host("m2")], {"dc1": {}}, "The group audit has 2 hosts (m1, m2)"),
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
            "brokers",
            [host("b", skidway_cluster="dc1", broker_id=1, broker_settings={"host.name": "x"})],
            {"dc1": {}},
            "b: broker_settings sets host.name to x",
        ),
        (
            "audit",
            [host("m", audit_counter_settings={"host.name": "x"})],
            {"dc1": {}},
            "m: audit_counter_settings sets host.name to x",
        ),
        (
            "agents",
            [host("a", skidway_cluster="dc1", agent_settings={"cluster.name": "dc2"})],
            {"dc1": {}},
            "a: agent_settings sets cluster.name to dc2",
        ),
        (
            "audit",
            [host("m", skidway_signatures=True)],
            {"dc1": {}},
            "m: skidway_signatures is 'True': it must be off, warn, require.",
        ),
        (
            "loaders",
            [host("l", skidway_signatures="require")],
            {"dc1": {"bootstrap_servers": "k:9092"}},
            "l: skidway_signatures is require, and the group audit has no host",
        ),
        (
            "loaders",
            [host("l1", skidway_signatures=False), host("l2", skidway_signatures="warn")],
            {"dc1": {"bootstrap_servers": "k:9092"}},
            "skidway_signatures is off for l1 and warn for l2: set it for all hosts.",
        ),
        (
            "audit",
            [host("m", audit_counters={"one": {"tier": "broker"}})],
            {"dc1": {}},
            "m: audit_counters has one: the settings of the counter have no cluster.name",
        ),
        (
            "zookeeper",
            [host("z1", zookeeper_id=1), host("z2", zookeeper_id=1)],
            {"dc1": {}},
            "two hosts of the group zookeeper have the same zookeeper_id.",
        ),
    ],
)
def test_a_mistake_in_the_inventory_is_one_sentence(
    group: str, hosts: list[dict[str, Any]], clusters: dict[str, Any], sentence: str
) -> None:
    """A mistake in the inventory is reported before anything is installed, in one sentence. The
    sentence says what is wrong, and names the host, group or cluster, and the variable."""
    by_name = {each["inventory_hostname"]: {**THERE, **each} for each in hosts}
    found = mistakes.inventory_problems(clusters, {group: list(by_name)}, by_name)
    assert len([each for each in found if each.startswith(sentence)]) == 1


@pytest.mark.parametrize("every", [None, "", "1s", "60s", "090s", "5m", "2h", "1d"])
def test_a_loader_s_time_between_runs_is_one_that_the_loader_takes(every: str | None) -> None:
    """No problem is reported if loader_every is a time that `skidway load run --every` accepts, or
    if loader_every is not set."""
    found = problems({"loaders": ["l"]}, [host("l", loader_every=every)], dc1=KAFKA)
    assert found == ""
    if every:
        assert parse_duration(every, "--every") >= LEAST_EVERY_S


@pytest.mark.parametrize("every", [60, "60", "0s", "1 m", "1min", "-5s", True])
def test_another_time_between_runs_is_reported(every: Any) -> None:
    """If loader_every is a time that the loader would refuse, a problem is reported before anything
    is changed. The problem names the host."""
    found = problems({"loaders": ["l"]}, [host("l", loader_every=every)], dc1=KAFKA)
    assert found.startswith(f"l: loader_every is {every!r}")


@pytest.mark.parametrize(
    ("program", "group", "variables"),
    [
        ("zookeeper", "zookeeper", {}),
        ("zookeeper", "zookeeper", {"zookeeper_settings": {"clientPortAddress": "0.0.0.0"}}),
        ("broker", "brokers", {}),
        ("broker", "brokers", {"broker_settings": {"listeners": "PLAINTEXT://127.0.0.1:9,X://:9"}}),
        ("broker", "brokers", {"broker_bind_address": "::"}),
        ("registry", "registry", {}),
        ("registry", "registry", {"registry_settings": {"listeners": ["https://r:8081"]}}),
        ("audit", "audit", {"audit_settings": {"listener": "10.0.0.7:8088"}}),
    ],
)
def test_listeners_without_authentication_need_a_word(
    program: str, group: str, variables: dict[str, Any]
) -> None:
    """If a program would listen for other hosts without authentication, the playbook stops with one
    sentence that says what to set. With skidway_insecure_listeners it goes on."""
    its = {"broker_id": 1, "skidway_zookeeper_connect": "z:2181", **variables}
    its["skidway_insecure_listeners"] = False
    groups = {group: ["x"]}
    said = sentences(groups, [host("x", **its)], dc1={})
    assert f"The {program} of x (" in said
    assert "set skidway_insecure_listeners: true" in said
    assert (
        sentences(groups, [host("x", **{**its, "skidway_insecure_listeners": "yes"})], dc1={}) == ""
    )
    word = {**(its.get(f"{program}_settings") or {}), "insecure.listeners": True}
    assert sentences(groups, [host("x", **{**its, f"{program}_settings": word})], dc1={}) == ""


def test_listeners_that_strangers_cannot_use_need_no_word() -> None:
    """A program on loopback, a registry that asks for a password, and the dashboard with its
    defaults need no leave."""
    everything = {group: ["x"] for group in ("zookeeper", "brokers", "registry", "audit")}
    no = {"skidway_insecure_listeners": False}
    alone = host("x", broker_id=1, skidway_address="127.0.0.1", **no)
    assert sentences(everything, [alone], dc1={}) == ""
    password = {"authentication": {"method": "BASIC", "users.file": "/x"}}
    safe = host("r", registry_settings=password, **THERE, **no)
    assert sentences({"registry": ["r"], "audit": ["r"]}, [safe], dc1={}) == ""

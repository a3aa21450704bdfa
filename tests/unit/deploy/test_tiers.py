"""If a topic is exempt from a tier (agent, broker, mirror or hdfs), the audit does not expect the
topic in this tier. The roles derive the exempt topics from the inventory."""

from __future__ import annotations

from typing import Any

import pytest

from deploy.ansible.plugins.plugin_utils import settings, tiers
from skidway.audit.settings import AuditSettings
from skidway.kafka.source import Source
from skidway.settings import load

OFFLINE: dict[str, Any] = {"mirrors": ["dc1", "dc2"]}


def exempt(
    clusters: dict[str, Any], loaders: list[dict[str, Any]] | None = None, agents: str = ""
) -> dict[str, list[str]]:
    """Returns, for each tier, the exempt topics: the topics that the audit does not expect in this
    tier. `agents` lists the cluster of each agent; the names of the clusters are separated by
    blanks."""
    hosts: dict[str, Any] = {f"a{n}": {"skidway_cluster": c} for n, c in enumerate(agents.split())}
    groups = {"agents": list(hosts)}
    if loaders is not None:
        groups["loaders"] = [f"l{n}" for n in range(len(loaders))]
        hosts |= dict(zip(groups["loaders"], loaders, strict=True))
    return tiers.exempt_topics(clusters, groups, hosts)


def expected(topic: str, found: dict[str, list[str]]) -> str:
    """Returns the tiers in which the audit itself expects the topic <cluster>.<topic>, if the
    topics in `found` are exempt. Each tier is given by its first letter: agent, broker, mirror,
    hdfs."""
    derived = settings.over({}, {"exempt": found})
    given = [f"{key}={','.join(patterns)}" for key, patterns in derived.items()]
    policy = load(AuditSettings, None, ["bootstrap.servers=a:1", *given]).policy()
    cluster, _, name = topic.partition(".")
    return "".join(tier.value[0].lower() for tier in policy.tiers_of(Source(cluster, "", name, "")))


def at(cluster: str, **variables: Any) -> dict[str, Any]:
    return {"skidway_cluster": cluster, **variables}


def test_where_every_cluster_is_mirrored_and_loaded_nothing_is_exempt() -> None:
    """With the example inventory, audit.yml exempts no topic from any tier. With an inventory
    without a mirror or without loaders, audit.yml exempts no topic either, because the audit then
    does not compare the tier mirror or hdfs at all."""
    clusters = {"dc1": {}, "dc2": None, "offline": OFFLINE}
    assert exempt(clusters, [at("offline")], "dc1 dc2") == {}
    assert exempt({"dc1": {}}, [at("dc1")], "dc1") == {}
    assert exempt({"dc1": {}, "dc2": {}}, None, "dc1") == {}


def test_an_agent_of_a_cluster_that_nobody_mirrors_is_complete_without_mirror() -> None:
    """If a cluster is not mirrored, the audit does not expect its topics in the tier mirror.
    Otherwise the report would never call these topics complete, and a wave (agents that are
    upgraded together) with an agent of this cluster would never pass."""
    clusters = {"dc1": {}, "dc2": {}, "dc3": {}, "offline": OFFLINE}
    found = exempt(clusters, [at("offline")], "dc1 dc3")
    assert found == {"mirror": [r"dc3\..+"], "hdfs": [r"dc3\..+"]}
    assert expected("dc3.nginx", found) == "ab"
    assert expected("dc3.nginx.rejected", found) == "ab"
    assert expected("dc1.nginx", found) == expected("dc31.nginx", found) == "abmh"


def test_topics_that_a_mirror_leaves_out_are_exempt() -> None:
    """Patterns in mirrored_topics match whole names. So the pattern `nginx` does not match
    `nginx.rejected`, the topic of the rejected records. A topic that is not mirrored cannot be
    loaded from the mirror either, so this topic is exempt from the tiers mirror and hdfs (the audit
    does not expect the topic there)."""
    clusters = {"dc1": {"mirrored_topics": ["nginx", "auth.*"]}, "offline": {"mirrors": ["dc1"]}}
    found = exempt(clusters, [at("offline")], "dc1")
    for topic in ("nginx", "auth", "auth.rejected"):
        assert expected(f"dc1.{topic}", found) == "abmh", topic
    for topic in ("nginx.rejected", "nginx2", "debug", "x.nginx"):
        assert expected(f"dc1.{topic}", found) == "ab", topic


def test_what_agents_publish_to_a_mirroring_cluster_is_loaded_there() -> None:
    """If a mirroring cluster has agents of its own, their topics are not mirrored, but the
    cluster's loader loads them. So these topics are exempt only from the tier mirror (the audit
    does not expect them there). If the mirroring cluster has no agents, nothing is exempt."""
    clusters = {"dc1": {}, "offline": {"mirrors": ["dc1"]}}
    found = exempt(clusters, [at("offline")], "dc1 offline")
    assert expected("offline.nginx", found) == "abh"
    assert expected("dc1.nginx", found) == "abmh"
    assert exempt(clusters, [at("offline")], "dc1") == {}
    found = exempt(clusters, [at("offline", loader_topics=[r"dc1\..*"])], "dc1 offline")
    assert expected("offline.nginx", found) == "ab"
    assert expected("dc1.nginx", found) == "abmh"


@pytest.mark.parametrize(
    "variables",
    [
        {"loader_topics": ["dc1.nginx", r"dc1\.a.*"]},
        {"loader_settings": {"topics": r"dc1.nginx, dc1\.a.*"}, "loader_topics": [".*"]},
    ],
)
def test_topics_that_nobody_loads_are_exempt_from_hdfs(variables: dict[str, Any]) -> None:
    """Topics that no loader loads are exempt from the tier hdfs (the audit does not expect them
    there), whichever setting leaves them out. If a topic is exempt, the topic of its rejected
    records is exempt as well."""
    clusters = {"dc1": {}, "offline": {"mirrors": ["dc1"]}}
    found = exempt(clusters, [at("offline", **variables)], "dc1")
    assert found.keys() == {"hdfs"}
    for topic in ("nginx", "nginx.rejected", "auth", "auth.rejected"):
        assert expected(f"dc1.{topic}", found) == "abmh", topic
    for topic in ("nginx2", "debug", "nginx-rejected"):
        assert expected(f"dc1.{topic}", found) == "abm", topic


def test_what_one_of_two_loaders_loads_is_loaded() -> None:
    """One loader may load from a cluster itself, and another loader from the cluster that mirrors
    the first cluster. A topic then counts as loaded if at least one of the two loaders loads the
    topic."""
    clusters = {"dc1": {}, "offline": {"mirrors": ["dc1"]}}
    loaders = [at("dc1", loader_topics=["a"]), at("offline", loader_topics=["dc1.b"])]
    found = exempt(clusters, loaders, "dc1")
    assert [expected(f"dc1.{t}", found) for t in "abc"] == ["abmh", "abmh", "abm"]
    assert exempt(clusters, [*loaders, at("dc1")], "dc1") == {}
    assert exempt(clusters, [*loaders[:1], at("offline")], "dc1") == {}
    elsewhere = {**clusters, "dc9": {}}
    found = exempt(elsewhere, [at("dc9"), *loaders], "dc1")
    assert [expected(f"dc1.{t}", found) for t in "abc"] == ["abmh", "abmh", "abm"]


def test_clusters_that_mirror_each_other_have_all_tiers() -> None:
    """If two clusters with agents mirror each other, the audit expects all topics in all tiers,
    unless a loader's settings leave topics out."""
    both = {"dc1": {"mirrors": ["dc2"]}, "dc2": {"mirrors": ["dc1"]}}
    assert exempt(both, None, "dc1 dc2") == {}
    assert exempt(both, [at("dc1")], "dc1 dc2") == {}
    assert exempt(both, [at("dc1", loader_topics=["dc2.*"])], "dc1 dc2")["hdfs"]


@pytest.mark.parametrize("groups", [{}, {"agents": [], "loaders": []}])
def test_empty_groups_are_as_those_that_are_not_there(groups: dict[str, list[str]]) -> None:
    """An inventory group without hosts counts as a missing group, because an inventory may name a
    group before the group has hosts."""
    clusters = {"dc1": {}, "dc3": {}, "offline": {"mirrors": ["dc1"]}}
    assert tiers.exempt_topics(clusters, groups, {}) == {"mirror": [r"dc3\..+"]}


def test_a_loader_loads_what_its_cluster_mirrors_or_else_all() -> None:
    """By default a loader loads the topics that its cluster mirrors. If agents publish to that
    cluster, or if the cluster mirrors nothing, the loader loads all topics."""
    clusters = {"dc1": {}, "offline": OFFLINE}
    assert tiers.topics_to_load(clusters, "offline") == [r"dc1\..*", r"dc2\..*"]
    assert tiers.topics_to_load(clusters, "dc1") == [".*"]
    assert tiers.topics_to_load(clusters, "offline", [at("dc1")]) == [r"dc1\..*", r"dc2\..*"]
    assert tiers.topics_to_load(clusters, "offline", [at("dc1"), at("offline")]) == [".*"]


def test_a_text_in_place_of_a_list_exempts_no_more_than_the_list() -> None:
    """If the inventory gives one string in place of a list with one element, the same topics are
    exempt. If the string were read letter by letter, all topics would silently be exempt."""
    lists = {"dc1": {"mirrored_topics": ["nginx"]}, "offline": {"mirrors": ["dc1"]}}
    texts = {"dc1": {"mirrored_topics": "nginx"}, "offline": {"mirrors": "dc1"}}
    assert exempt(texts, [], "dc1") == exempt(lists, [], "dc1")
    assert tiers.topics_to_load(texts, "offline") == tiers.topics_to_load(lists, "offline")


def test_a_tier_is_not_lost_without_a_word() -> None:
    """If an inventory has no mirrors or no loaders any more, this is reported as a problem.
    Otherwise the audit would call buckets (spans of event time) complete although, for example, no
    loader has loaded their records."""
    all_four = {"tiers": ["agent", "broker", "mirror", "hdfs"]}
    said = tiers.lost_tiers_problem(all_four, ["agent", "broker"], [])
    assert "not for mirror, hdfs any more" in said
    assert "-e audit_retired_tiers=mirror,hdfs" in said
    assert "not for hdfs any more" in tiers.lost_tiers_problem(
        {"tiers": "agent, broker, hdfs"}, ["agent", "broker"], ["mirror"]
    )


def test_tiers_may_come_and_those_that_are_named_may_go() -> None:
    """An operator can add tiers without a confirmation. To drop a tier that the audit has compared
    until now, an operator names the tier with Ansible's option -e (several tiers are separated by
    commas). If no audit was installed before, there is no tier that could be dropped."""
    two = ["agent", "broker"]
    assert tiers.lost_tiers_problem({"tiers": two}, [*two, "hdfs"], []) == ""
    assert tiers.lost_tiers_problem({"tiers": [*two, "hdfs"]}, two, "hdfs") == ""
    assert tiers.lost_tiers_problem({"tiers": [*two, "mirror", "hdfs"]}, two, "mirror,hdfs") == ""
    for nothing in (None, {}, {"store.dir": "/x"}):
        assert tiers.lost_tiers_problem(nothing, two, []) == ""

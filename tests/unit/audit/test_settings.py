"""Tests the settings of the collector and of the counters."""

from __future__ import annotations

from pathlib import Path

import pytest

from skidway import settings
from skidway.audit.settings import AuditSettings, CounterSettings
from skidway.audit.topic.messages import Tier
from skidway.errors import ConfigurationRefused
from skidway.kafka.source import Source

AUDIT = ["bootstrap.servers=a:1"]
COUNT = ["bootstrap.servers=a:1", "state.dir=/x"]


def test_the_policy_follows_the_settings() -> None:
    """The policy, by which the audit judges buckets, contains the tiers, the lateness, the roster
    and the retired hosts that the settings name."""
    loaded = settings.load(
        AuditSettings,
        None,
        [*AUDIT, "tiers=agent,hdfs", "lateness.ms=5", "roster.logs=web1, web2", "retired=web3"],
    )
    policy = loaded.policy()
    assert policy.tiers == (Tier.AGENT, Tier.HDFS)
    assert policy.lateness_ms == 5
    assert policy.roster.hosts("dc1", "logs") == {"web1", "web2"}
    assert policy.roster.is_retired("dc1", "web3")


def test_topics_are_exempt_from_a_tier_by_name_or_pattern() -> None:
    """The setting exempt.mirror contains names or patterns of the topics that are not mirrored. The
    setting exempt.hdfs contains those of the topics that are not loaded."""
    loaded = settings.load(
        AuditSettings, None, [*AUDIT, "exempt.mirror=dc3\\..+", "exempt.hdfs=dc1.debug,dc3\\..+"]
    )
    policy = loaded.policy()
    expected = {
        ("dc1", "logs"): (Tier.AGENT, Tier.BROKER, Tier.MIRROR, Tier.HDFS),
        ("dc1", "debug"): (Tier.AGENT, Tier.BROKER, Tier.MIRROR),
        ("dc3", "logs"): (Tier.AGENT, Tier.BROKER),
    }
    found = {key: policy.tiers_of(Source(key[0], "", key[1], "")) for key in expected}
    assert found == expected
    assert settings.load(AuditSettings, None, AUDIT).policy().exemptions == ()


def test_places_are_retired_beside_hosts(tmp_path: Path) -> None:
    """`retired` and `retired.places` are two different keys of the settings, although the second
    begins with the first."""
    path = tmp_path / "audit.yml"
    path.write_text(
        "bootstrap.servers: a:1\nretired: [web3]\nretired.places: ['hdfs /old', mirror]\n"
        "loads.every.ms: 90000000\n"
    )
    policy = settings.load(AuditSettings, path, []).policy()
    assert policy.retired_places == ("hdfs /old", "mirror")
    assert policy.roster.is_retired("dc1", "web3")
    assert policy.loads_every_ms == 90_000_000
    assert settings.load(AuditSettings, None, AUDIT).policy().loads_every_ms is None


def test_topics_have_targets_of_freshness(tmp_path: Path) -> None:
    """`freshness.targets` sets, by names or patterns of topics, the time within which 99 of 100
    buckets should be complete. The first entry that matches a topic is used. A topic that no entry
    matches has no target."""
    path = tmp_path / "audit.yml"
    path.write_text(
        "bootstrap.servers: a:1\nfreshness.targets: {dc1.orders: 300000, 'dc1\\..+': 600000}\n"
    )
    policy = settings.load(AuditSettings, path, []).policy()
    found = [
        policy.freshness_target_ms(Source(cluster, "", topic, ""))
        for cluster, topic in (("dc1", "orders"), ("dc1", "logs"), ("dc2", "logs"))
    ]
    assert found == [300_000, 600_000, None]


def test_without_a_roster_every_agent_is_expected() -> None:
    """If the settings have no roster, the audit expects every agent to report."""
    assert settings.load(AuditSettings, None, AUDIT).policy().roster.is_silent


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("tiers=agent", "at least two"),
        ("tiers=agent,agent", "at least two"),
        ("tiers=agent,kafka", "'kafka' is none of"),
        ("retired.places=/lake", r"retired\.places: '/lake' names no place"),
        ("retired.places=cluster", "names no place"),
        ("exempt.mirror=dc1(", r"exempt\.mirror: 'dc1\(' is neither"),
        ("freshness.targets.dc1=soon", r"freshness\.targets: dc1: 'soon' is no number"),
        ("freshness.targets.dc1=0", r"freshness\.targets: dc1: '0' is no number"),
    ],
)
def test_what_cannot_work_is_refused(override: str, words: str) -> None:
    """Settings that cannot work are refused with one sentence before the program starts its
    work."""
    with pytest.raises(ConfigurationRefused, match=words):
        settings.load(AuditSettings, None, [*AUDIT, override])


def test_exemptions_leave_two_tiers_to_compare() -> None:
    """Settings that exempt a topic from tiers must leave at least two tiers to compare for this
    topic. Otherwise the agent's counts alone would make the topic complete."""
    given = [*AUDIT, "tiers=agent,mirror,hdfs", "exempt.mirror=a.b", "exempt.hdfs=a.b"]
    with pytest.raises(ConfigurationRefused, match=r"exempt\.mirror, exempt\.hdfs: .*two"):
        settings.load(AuditSettings, None, given)
    settings.load(AuditSettings, None, given[:-1])


@pytest.mark.parametrize(
    ("override", "words"),
    [("topics=a(", "regular expression"), ("tier=agent", "tier"), ("cluster.name=a.b", "dot")],
)
def test_a_counter_that_cannot_work_is_refused(override: str, words: str) -> None:
    """Settings with which a counter cannot work are refused with one sentence before the counter
    starts."""
    with pytest.raises(ConfigurationRefused, match=words):
        settings.load(CounterSettings, None, [*COUNT, override])


def test_a_counters_name_follows_tier_and_cluster() -> None:
    """A counter's default name contains its tier and its cluster. So two counters of a site never
    send messages with the same name and numbers by accident."""
    loaded = settings.load(CounterSettings, None, [*COUNT, "tier=mirror", "cluster.name=offline"])
    assert loaded.producer_name == "mirror-offline"

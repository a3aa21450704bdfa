"""Tests the rule that every expected tier must have counted the same records."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skidway.audit.judgement.policy import Exemption
from skidway.audit.judgement.verdict import Status
from skidway.audit.topic.messages import (
    Delta,
    Gap,
    Heartbeat,
    Tier,
)
from support.audit_senders import BROKER, LOGS, REJECTED
from support.one_bucket import (
    COUNTERS,
    DUE,
    END,
    HDFS,
    MIRROR,
    POLICY,
    count,
    delta,
    good,
    verdict,
)
from support.promises import promise

UNMIRRORED = [*good()[:2], good()[4]]
"""Messages about a bucket of a topic that is not mirrored, and so not loaded either. The agent and
the brokers have counted the same records."""


@promise("6 missing tier")
@pytest.mark.parametrize("topics", [("dc1.logs",), ("dc1\\..+",), ("dc9.logs", "dc1\\.l.*")])
def test_a_topic_that_nobody_mirrors_or_loads_is_complete_without(topics: tuple[str, ...]) -> None:
    """If a setting exempts a topic, by its name or by a pattern, from the tiers mirror and hdfs,
    buckets of the topic are complete without counts of these tiers. If the topic is exempt only
    from the tier mirror, counts of the tier hdfs are still expected."""
    exempt = tuple(Exemption(tier, topics) for tier in (Tier.MIRROR, Tier.HDFS))
    found = verdict(UNMIRRORED, replace(POLICY, exemptions=exempt))
    assert (found.status, found.reasons) == (Status.COMPLETE, ())
    assert found.count(Tier.MIRROR) is None
    found = verdict(UNMIRRORED, replace(POLICY, exemptions=exempt[:1]))
    assert found.reasons == ("web1: tier hdfs never reported this topic",)


def test_an_exempt_topic_is_still_compared_where_it_is_expected() -> None:
    """If a topic is exempt from the tiers mirror and hdfs, its counts of the tiers agent and broker
    are still compared."""
    exempt = tuple(Exemption(tier, ("dc1.logs",)) for tier in (Tier.MIRROR, Tier.HDFS))
    short = [UNMIRRORED[0], delta(BROKER, 1, count(4)), UNMIRRORED[2]]
    found = verdict(short, replace(POLICY, exemptions=exempt))
    assert (found.status, found.reasons) == (
        Status.INCOMPLETE,
        ("web1: broker dc1 is short by 1 of 5",),
    )


@promise("6 missing tier")
@pytest.mark.parametrize("topics", ["dc2.logs", "dc1.log", "logs", "dc1.logs.+", "dc2\\..+"])
def test_other_topics_are_not_exempt(topics: str) -> None:
    """If an exemption does not match the whole name of a topic, including the cluster's name, the
    topic must be counted in every tier. If a part of the name sufficed, the audit could call a
    topic complete that should be mirrored but is not."""
    exempt = tuple(Exemption(tier, (topics,)) for tier in (Tier.MIRROR, Tier.HDFS))
    found = verdict(UNMIRRORED, replace(POLICY, exemptions=exempt))
    assert found.status is Status.INCOMPLETE
    assert any("tier mirror never reported this topic" in reason for reason in found.reasons)


def test_what_was_rejected_of_an_exempt_topic_is_exempt() -> None:
    """An exemption of a topic also applies to the topic of its rejected lines."""
    assert Exemption(Tier.MIRROR, ("dc1.logs",)).holds(REJECTED)
    assert not Exemption(Tier.MIRROR, ("dc1.logs",)).holds(replace(LOGS, topic="logs2"))


@promise("6 checksum")
@pytest.mark.parametrize("field", ["count", "bytes", "checksum"])
def test_tiers_agree_in_count_bytes_and_checksum(field: str) -> None:
    """If two tiers differ only in the count, only in the bytes or only in the checksum of a bucket,
    the bucket is incomplete."""
    other = replace(count(), **{field: getattr(count(), field) + 1})
    messages = [*good()[:3], delta(HDFS, 1, other), good()[4]]
    assert verdict(messages).status is Status.INCOMPLETE


@promise("6 repeats and rejects")
def test_repeats_are_shown_and_are_no_fault() -> None:
    """If a batch was sent again, the verdict shows the repeated records, and the bucket is still
    complete."""
    messages = good()
    messages[1] = delta(BROKER, 1, replace(count(), repeats=3))
    found = verdict(messages)
    assert found.status is Status.COMPLETE
    assert sum(x.repeats for x in found.places().values() if x) == 3


@promise("6 repeats and rejects")
def test_the_loaders_rejects_count_as_arrived() -> None:
    """Records that the loader rejected count as loaded, because the count of the tier hdfs includes
    both rows and rejects."""
    messages = good()
    messages[3] = delta(HDFS, 1, replace(count(), rejects=2))
    assert verdict(messages).status is Status.COMPLETE


def test_a_one_cluster_site_expects_no_mirror() -> None:
    """Only the configured tiers are compared. So a site with one cluster needs no counts of a
    mirror."""
    messages = [x for x in good() if not (isinstance(x, Delta) and x.sender.tier is Tier.MIRROR)]
    policy = replace(POLICY, tiers=(Tier.AGENT, Tier.BROKER, Tier.HDFS))
    assert verdict(messages, policy).status is Status.COMPLETE


def test_two_mirrors_must_each_have_everything() -> None:
    """If there are two mirrors, each of them must have every record. The counts of the two mirrors
    are never added to each other."""
    other = replace(MIRROR, cluster="backup", producer="mirror-backup")
    assert verdict([*good(), delta(other, 1, count())]).status is Status.COMPLETE
    found = verdict([*good(), delta(other, 1, count(4))])
    assert "mirror backup is short by 1 of 5" in found.reasons[0]


def test_a_gap_is_named_where_a_tier_is_short() -> None:
    """If a tier has too few records of a bucket, and its counter has reported a gap (offsets that
    it could not read), the verdict gives this gap as a reason. Of several gaps, it gives the
    newest."""
    messages = good()
    gap = Gap(LOGS, 0, 3, 5, "these offsets expired before they were counted")
    messages[1] = delta(BROKER, 1, count(3), gaps=(gap,))
    found = verdict(messages)
    assert found.status is Status.INCOMPLETE
    assert any("offsets 3 to 5 of partition 0" in reason for reason in found.reasons)
    later = replace(messages[1], number=2, time_ms=END, counts=(), gaps=(replace(gap, first=4),))
    found = verdict([*messages, later])
    named = [reason for reason in found.reasons if " of partition 0" in reason]
    assert len(named) == 1
    assert "offsets 4 to 5" in named[0]


def test_a_gap_is_no_reason_where_another_tier_is_short() -> None:
    """If a tier has too few records, the verdict does not give a gap (offsets that a counter could
    not read) of another tier as a reason."""
    messages = good()
    messages[2] = delta(MIRROR, 1, count(), gaps=(Gap(LOGS, 0, 3, 5, "expired"),))
    messages[3] = delta(HDFS, 1, count(3))
    found = verdict(messages)
    assert found.reasons == ("web1: hdfs /logs/dc1.logs is short by 2 of 5",)


@promise("6 without origin", "6 retired place")
@pytest.mark.parametrize(("has", "checksum"), [(7, 1), (5, 1)], ids=["more", "others"])
@pytest.mark.parametrize("tiers", [POLICY.tiers, POLICY.tiers[1:]], ids=["none", "not asked"])
def test_without_a_seal_what_a_retired_place_has_alone_is_missing(
    tiers: tuple[Tier, ...], has: int, checksum: int
) -> None:
    """A place is a tier of one cluster, or an output of the loader. If no agent has sealed a
    bucket, and a retired place has counted records that the active places have not counted, these
    records are missing: the bucket is incomplete. The counts of the retired place are the only sign
    of these records."""
    agent = 0 if Tier.AGENT in tiers else 7
    policy = replace(POLICY, tiers=tiers, retired_places=("broker dc1", "mirror offline"))
    counted = [delta(sender, 1, count(agent=agent)) for sender in COUNTERS]
    counted[0] = delta(BROKER, 1, count(has, agent=agent, checksum=checksum))
    heard = Heartbeat(BROKER, 1, DUE)
    found = verdict([*counted, heard], policy)
    assert found.status is Status.INCOMPLETE
    assert any("broker dc1 (retired)" in reason for reason in found.reasons)
    fewer = delta(BROKER, 1, count(4, agent=agent, checksum=checksum))
    assert verdict([fewer, *counted[1:], heard], policy).status is Status.COMPLETE
    counted[:2] = delta(BROKER, 1, count(agent=agent)), delta(MIRROR, 1, *counted[0].counts)
    gone = replace(policy, retired_places=(*policy.retired_places, "hdfs"))
    assert verdict([*counted, heard], gone).status is Status.COMPLETE


@promise("6 retired place")
def test_what_a_retired_place_has_alone_of_an_agent_that_sealed_is_a_remark() -> None:
    """If the agent has sealed a bucket, its counts say how many records the bucket has. If the
    active places (tiers of one cluster, or outputs) have these records, and a retired place has
    counted more, the verdict only gets a remark, and the bucket stays complete."""
    policy = replace(POLICY, retired_places=("mirror offline",))
    messages = good()
    messages[2] = delta(MIRROR, 1, count(7))
    found = verdict(messages, policy)
    assert (found.status, found.reasons) == (
        Status.COMPLETE, ("web1: mirror offline (retired) has 2 more than the 5 of agent",)
    )  # fmt: skip

"""Tests the collector's metrics of topics: how complete and how fresh a topic is, and which lines
never became rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from skidway.audit.collector import metrics
from skidway.audit.collector.collector import _Expected, _Loop
from skidway.audit.collector.risks import HostRisk, TierRisk
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.judgement.hosts import HostState, HostStatus
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.standing import Standing, judged
from skidway.audit.settings import AuditSettings
from skidway.audit.topic.backlog import TopicBacklog
from skidway.audit.topic.count_columns import Count, Filtered
from skidway.audit.topic.messages import Certainty, Delta, Loss, Range, Seal, Sender, Tier, encode
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.kafka.source import Source
from support.audit_senders import AGENT, BROKER, LOGS, OTHER, REJECTED
from support.clock import ManualClock
from support.fold import Fold

SIZE = 60_000
NOW = 100 * SIZE
LOADER = Sender(Tier.HDFS, "dc1", "/data/dc1.logs", "l1", 1)
POLICY = Policy(tiers=(Tier.AGENT, Tier.BROKER, Tier.HDFS), lateness_ms=0)
TIERS = ("agent", "broker", "mirror", "hdfs")
AGAIN = Source(LOGS.cluster, LOGS.cluster_id, LOGS.topic, "another id")


@pytest.fixture(autouse=True)
def _nothing_is_left() -> None:
    metrics.tell_topics(Standing((), (), 0), Fold([]).evidence())


def count(source: Source, index: int, records: int = 5, rejects: int = 0, **more: object) -> Count:
    return Count(source, 7, index * SIZE, SIZE, records, 9, 9, rejects, **more)  # type: ignore[arg-type]


def tell(
    agent: list[Count], broker: list[Count], hdfs: list[Count], losses: tuple[Loss, ...] = ()
) -> None:
    """Judges buckets with the given counts, and sets the collector's metrics about topics from the
    verdicts."""
    said = [
        Delta(AGENT, 1, 5, counts=tuple(agent), losses=losses),
        Seal(AGENT, 2, NOW, tuple(SealedTopic(x, NOW, 1) for x in {c.source for c in agent})),
    ]
    for sender, counts in ((BROKER, broker), (LOADER, hdfs)):
        ranges = tuple(Range(x, 0, 0, 5) for x in {c.source for c in counts})
        said.append(Delta(sender, 1, 5, ranges, tuple(counts)))
    evidence = Fold(said).evidence()
    metrics.tell_topics(judged(evidence, POLICY, NOW), evidence)


def metric(name: str, topic: str = "logs", **labels: str) -> float | None:
    labels = {"cluster": "dc1", "topic": topic, **labels}
    return REGISTRY.get_sample_value(f"skidway_audit_{name}", labels)


def at_risk(name: str, topic: str, lacking: str) -> float | None:
    return metric(name, topic, lacking=lacking)


def test_risks_are_told_with_bytes_and_the_time_that_is_left() -> None:
    """One metric has the bytes of a topic that are at risk, for each tier that lacks them. For the
    tier broker, this is the number of bytes that no broker has acknowledged, added up over all
    hosts. Another metric has the time until the first of these bytes will be lost, and no value if
    this time is not known. Both metrics lose their values when no bytes are at risk any more."""
    state = HostState("dc1", "app1", HostStatus.REPORTING, expected=True)
    hosts = [
        HostRisk(state, "dc1", NOW, TopicBacklog("logs", 5, 6, 1, loss_ms))
        for loss_ms in (None, NOW + 90_000, NOW + 120_000)
    ]
    tiers = [
        TierRisk(LOGS, (Tier.MIRROR, Tier.HDFS), 1, 2, 300, None, NOW - 5),
        TierRisk(OTHER, (Tier.HDFS,), 1, 2, 40, None, None),
    ]
    metrics.tell_risks(hosts, tiers, NOW)
    assert at_risk("at_risk_bytes", "logs", "broker") == 33
    assert at_risk("until_loss_seconds", "logs", "broker") == 90
    assert at_risk("at_risk_bytes", "logs", "mirror") == 300
    assert at_risk("until_loss_seconds", "logs", "mirror") == 0
    assert at_risk("at_risk_bytes", OTHER.topic, "hdfs") == 40
    assert at_risk("until_loss_seconds", OTHER.topic, "hdfs") is None
    metrics.tell_risks(hosts[:1], [], NOW)
    assert at_risk("at_risk_bytes", "logs", "broker") == 11
    assert at_risk("until_loss_seconds", "logs", "broker") is None
    metrics.tell_risks([], [], NOW)
    for name in ("at_risk_bytes", "until_loss_seconds"):
        assert [at_risk(name, "logs", x) for x in ("broker", "mirror")] == [None, None]


def loss(reason: str, first: int = 0, end: int | None = 10, source: Source = LOGS) -> Loss:
    return Loss(source, 7, 1, first, end, Certainty.LOST, reason, 0, 0)


def test_each_tier_says_until_when_it_has_records() -> None:
    """The freshness of a tier is the end of the newest bucket of which the tier has records. So
    this time is earlier for a tier that lags behind."""
    sent = [count(LOGS, index) for index in (3, 4, 5)]
    tell(sent, sent[:2], sent[:1])
    found = {tier: metric("written_until_timestamp_seconds", tier=tier) for tier in TIERS}
    assert found == {"agent": 360, "broker": 300, "mirror": None, "hdfs": 240}


def test_the_collector_says_it_of_its_own_judgement(tmp_path: Path) -> None:
    """The collector's metrics come from the judgement that it makes block by block (a block is an
    hour of buckets). These metrics say for each tier up to which time it has records, and change
    with the next judgement."""
    clock, ledger = ManualClock(), Ledger()
    settings = AuditSettings(bootstrap_servers="a:1", store_dir=tmp_path)
    start = clock.time_ms() // SIZE - 90  # so the first and the last bucket are in different hours
    sent = [count(LOGS, start + index) for index in (0, 80)]
    said = [Delta(AGENT, 1, 5, counts=tuple(sent))]
    said.append(Delta(BROKER, 1, 5, (Range(LOGS, 0, 0, 5),), tuple(sent[:1])))
    ledger.take([encode(each) for each in said])
    loop = _Loop(settings, _Expected(settings, clock), ledger, clock)
    ends = {tier: metric("written_until_timestamp_seconds", tier=tier) for tier in TIERS}
    first, last = 60 * (start + 1), 60 * (start + 81)
    assert ends == {"agent": last, "broker": first, "mirror": None, "hdfs": None}
    assert metric("complete_until_timestamp_seconds") == 60 * start
    ledger.take([encode(Delta(BROKER, 2, 5, (Range(LOGS, 0, 5, 10),), tuple(sent[1:])))])
    loop._judge()
    assert metric("written_until_timestamp_seconds", tier="broker") == last


def test_a_line_of_the_future_makes_no_topic_fresh() -> None:
    """A bucket that begins after the time of the judgement does not count for the freshness of a
    topic. Otherwise one line with a wrong time would hide that a tier makes no progress."""
    sent = [count(LOGS, 3), count(LOGS, 101)]
    tell(sent, sent, sent)
    assert metric("written_until_timestamp_seconds", tier="agent") == 240


def test_a_topic_says_until_when_it_is_complete() -> None:
    """The metric of completeness is the time up to which all buckets of the topic are complete. If
    even the oldest bucket should be complete by now and is not, the metric is the start of this
    bucket. So the metric still has a value, and the alert about a value that is too old fires."""
    sent = [count(LOGS, index) for index in (3, 4, 5)]
    tell(sent, sent, [*sent[:2], count(LOGS, 5, 4)])
    assert metric("complete_until_timestamp_seconds") == 300
    assert metric("topic_overdue_buckets", verdict="incomplete") == 1
    tell(sent, sent, sent[1:])
    assert metric("complete_until_timestamp_seconds") == 180
    tell(sent, sent, sent)
    assert metric("complete_until_timestamp_seconds") == 360
    assert metric("topic_overdue_buckets", verdict="incomplete") == 0


def test_a_topic_that_was_made_again_is_complete_only_with_its_earlier_records() -> None:
    """If a topic was deleted and created again, the metric of completeness has one value for the
    old and the new topic together: the time up to which both are complete."""
    old, new = count(LOGS, 3), count(AGAIN, 50)
    tell([old, new], [old, new], [old, new])
    assert metric("complete_until_timestamp_seconds") == 51 * 60
    assert metric("written_until_timestamp_seconds", tier="hdfs") == 51 * 60
    tell([old, new], [old, new], [new])
    assert metric("complete_until_timestamp_seconds") == 180


def test_while_hours_are_unjudged_nothing_is_said_to_be_complete() -> None:
    """While there are hours that the collector has not judged yet, no topic has the metric of
    completeness, because an old bucket may lack records."""
    sent = [count(LOGS, 3)]
    evidence = Fold([Delta(AGENT, 1, 5, counts=tuple(sent))]).evidence()
    (topic,) = judged(evidence, POLICY, NOW).topics
    found = Standing((replace(topic, complete_until=None),), (), NOW, unjudged=1)
    metrics.tell_topics(found, evidence)
    metrics.tell_standing(found)
    assert metric("complete_until_timestamp_seconds") is None
    assert REGISTRY.get_sample_value("skidway_audit_unjudged_hours") == 1


def test_what_became_no_row_is_counted_by_topic() -> None:
    """The metrics count each rejected line under the topic for which the agent read the line,
    whether the agent or the loader rejected the line. Lines that rules left out are counted by
    topic and rule. Topics without rejects have the value 0, so that Prometheus sees an increase
    from the first reject on."""
    sent = [
        count(LOGS, 3, 5, filtered=(Filtered("debug", 3, 30),)),
        count(LOGS, 4, 5, filtered=(Filtered("debug", 4, 40), Filtered("health", 1, 9))),
    ]
    others = [count(REJECTED, 3, 2), count(OTHER, 3)]
    counted = [count(LOGS, 3), count(LOGS, 4), *others]
    tell([*sent, *others], counted, [count(LOGS, 3, 5, 4), *counted[1:]])
    rejected = [metric("topic_rejected_records", by=by) for by in ("agents", "loader")]
    assert (metric("topic_records"), rejected) == (10, [2, 4])
    assert metric("topic_records", "logs.rejected") is None
    filtered = [metric("topic_filtered_records", rule=rule) for rule in ("debug", "health")]
    assert filtered == [7, 1]
    assert metric("topic_rejected_records", "other", by="agents") == 0


def test_losses_are_counted_by_reason_without_numbers_and_paths() -> None:
    """The metric of losses counts losses with the same cause together. File names and numbers are
    removed from the reasons of the losses, because otherwise each loss would have a time series of
    its own."""
    words = "/var/log/app.log.{0}: it was cut to {0} bytes, {1} were there"
    losses = (loss(words.format(1, 50)), loss(words.format(22, "1,000"), 5, None))
    tell([count(LOGS, 3)], [count(LOGS, 3)], [count(LOGS, 3)], losses)
    labels = {"certainty": "lost", "reason": "it was cut to N bytes, N were there"}
    assert metric("topic_lost_ranges", **labels) == 2
    assert metric("topic_lost_bytes", **labels) == 10


def test_rare_reasons_of_losses_are_counted_together() -> None:
    """The metric of lost ranges of bytes has the reason of the loss as a label. Only the
    REASONS_MAX most frequent reasons are values of this label. Ranges with other reasons are
    counted together under one more value."""
    words = [f"reason {letter}" for letter in "abcdefghijklmnopqrstuvwxyz"]
    losses = tuple(loss(each, 10 * at, 10 * at + 10) for at, each in enumerate([words[0], *words]))
    tell([count(LOGS, 3)], [count(LOGS, 3)], [count(LOGS, 3)], losses)
    assert metric("topic_lost_ranges", certainty="lost", reason=words[0]) == 2
    others = len(words) - metrics.REASONS_MAX
    others_found = metric("topic_lost_ranges", certainty="lost", reason=metrics.OTHER_REASONS)
    assert others_found == others


def test_a_scrape_sees_no_topic_of_an_earlier_judgement() -> None:
    """A topic that the audit no longer knows has no metrics any more."""
    tell([count(OTHER, 3)], [count(OTHER, 3)], [count(OTHER, 3)])
    assert metric("topic_records", "other") == 5
    metrics.tell_topics(Standing((), (), 0), Fold([]).evidence())
    assert metric("topic_records", "other") is None

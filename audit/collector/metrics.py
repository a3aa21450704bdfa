"""The collector's metrics: the number of buckets by verdict, the hosts, the clocks, and for each
topic how complete and how fresh it is, and how many of its records never became rows.

The thread that judges passes the numbers to this module after each step of judging. When Prometheus
scrapes /metrics, it gets these numbers. Metrics of a topic have the labels `cluster` and `topic`:
the cluster and topic to which the records were first published. The other labels have a bounded
number of values, too. Tiers, verdicts and the certainty of a loss (lost or uncertain) are fixed
sets, and rules come from the settings of agents. Of the reasons of losses, only the REASONS_MAX
most frequent are values of a label; all other reasons share one value. Only the metrics of clocks
have hosts as labels, and only for the CLOCKS_MAX clocks that differ most from the other clocks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import prometheus_client
from prometheus_client import REGISTRY, Gauge
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from skidway.audit.collector.risks import HostRisk, TierRisk
from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.audit.evidence.evidence import Evidence
from skidway.audit.judgement.clocks import Clocks
from skidway.audit.judgement.hosts import HostState, HostStatus
from skidway.audit.judgement.standing import NOTHING_JUDGED, Standing, TopicStanding
from skidway.audit.judgement.verdict import Status

CLOCKS_MAX: Final = 50
REASONS_MAX: Final = 20
REASON_LENGTH_MAX: Final = 100
OTHER_REASONS: Final = "other reasons"

Name = tuple[str, str]
"""The cluster and the name of a topic. A topic that was deleted and created again keeps its name,
but becomes another `Source` (a topic with its id)."""

Labels = tuple[str, ...]
"""The values of a metric's labels: the cluster, the topic, and the values of the other labels."""

_BUCKETS = Gauge(
    "skidway_audit_buckets", "All buckets in which anything was counted, per verdict.", ["verdict"]
)
_OVERDUE = Gauge(
    "skidway_audit_overdue_buckets",
    "Of these, how many are due or lost, and neither complete nor accepted.",
)
_ACCEPTED = Gauge(
    "skidway_audit_accepted_buckets",
    "Of these, how many are not complete, but accepted by a person.",
)
_WARNED = Gauge(
    "skidway_audit_warned_buckets",
    "Of these, how many are complete with more rejects than rejects.share.max, and nobody has"
    " accepted it.",
)
_UNJUDGED = Gauge(
    "skidway_audit_unjudged_hours",
    "Hours of buckets that are not judged yet; while there are any, no topic is complete until"
    " some time.",
)
_DIFFERING = Gauge(
    "skidway_audit_differing_recounts",
    "Topics of outputs whose newest recount found files or rows that are not what was counted.",
)
_UNCOUNTED = Gauge(
    "skidway_audit_uncounted_offsets",
    "Offsets that counters could not read, such as those that expired before.",
)
_UNREAD = Gauge(
    "skidway_audit_unread_messages",
    "Messages of a schema that this version does not have; while there are any, every bucket is"
    " unknown.",
)
_REFUSED = Gauge(
    "skidway_audit_refused_messages",
    "Messages that were not taken, or would not be with audit.signatures: require; pages and"
    " reports name their senders.",
    ["reason"],
)
_BLOCKED = Gauge(
    "skidway_audit_blocked_partitions",
    "Partitions of audit topics that the collector cannot read, for example because a batch is"
    " damaged.",
)
_REBUILDING = Gauge(
    "skidway_audit_rebuilding_messages",
    "Messages to read until the store is rebuilt from the audit topics; while there are any,"
    " nothing is judged.",
)
_PRUNED = prometheus_client.Counter(
    "skidway_audit_pruned_buckets_total",
    "Buckets older than keep.days that were deleted from the store.",
)
_EXPECTED = Gauge("skidway_audit_expected_hosts", "Hosts that must report.")
_BEHIND = Gauge(
    "skidway_audit_behind_hosts",
    "Of these, how many speak, but would be silent by their own clocks.",
)
_SILENT = Gauge("skidway_audit_silent_hosts", "Of these, how many are silent.")
_NEVER_HEARD = Gauge("skidway_audit_never_heard_hosts", "Of these, how many were never heard.")
_OWN_CLOCK = Gauge(
    "skidway_audit_own_clock_ahead_seconds",
    "How far the clock of this host is ahead of most others, negative: behind; 0 below the bound.",
)
_WRONG_CLOCKS = Gauge(
    "skidway_audit_wrong_clocks",
    "Programs whose clocks differ by more than clock.difference.max.ms.",
)
_CLOCK = Gauge(
    "skidway_audit_clock_ahead_seconds",
    f"How far such a program's clock is ahead, negative: behind; of the {CLOCKS_MAX} that differ"
    " most.",
    ["tier", "host", "producer"],
)


def tell_standing(found: Standing) -> None:
    """Sets the number of buckets with each verdict, of all topics together."""
    for status in Status:
        _BUCKETS.labels(status.word).set(found.by_status.get(status, 0))
    _OVERDUE.set(sum(found.overdue.values()))
    _ACCEPTED.set(sum(found.accepted.values()))
    _WARNED.set(found.warned)
    _UNJUDGED.set(found.unjudged)
    _UNCOUNTED.set(found.uncounted)
    _DIFFERING.set(sum(1 for recount in found.recounts if not recount.is_good))


def tell_topics(found: Standing, evidence: Evidence) -> None:
    """Sets the metrics of topics. evidence: contains the losses of all topics."""
    _TOPICS.families = [*_of_standing(found), *_of_losses(evidence)]


def tell_risks(hosts: Iterable[HostRisk], tiers: Iterable[TierRisk], now_ms: int) -> None:
    """Sets how many bytes and records are at risk, and when they will be lost."""
    _RISKS.families = list(_of_risks(hosts, tiers, now_ms))


def tell_hosts(states: Iterable[HostState]) -> None:
    """Sets how many hosts are expected, and how many of them are behind, silent or were never
    heard."""
    found = Counter(x.status for x in states if x.expected)
    _EXPECTED.set(found.total())
    _BEHIND.set(found[HostStatus.BEHIND])
    _SILENT.set(found[HostStatus.SILENT])
    _NEVER_HEARD.set(found[HostStatus.NEVER_HEARD])


def tell_clocks(found: Clocks) -> None:
    """Sets the metrics about this host's clock, and about the senders whose clocks differ from most
    other clocks."""
    _OWN_CLOCK.set(found.ours_ms / 1000)
    _WRONG_CLOCKS.set(len(found.others))
    _CLOCK.clear()
    for x in found.others[:CLOCKS_MAX]:
        _CLOCK.labels(x.tier.value.lower(), x.host, x.producer).set(x.ahead_ms / 1000)


def tell_refused(by_reason: Mapping[str, int]) -> None:
    """Sets how many messages were refused, by reason."""
    for reason, count in by_reason.items():
        _REFUSED.labels(reason=reason).set(count)


def tell_unread(messages: int) -> None:
    """Sets how many messages of the audit topics this version of Skidway cannot read."""
    _UNREAD.set(messages)


def tell_blocked(partitions: int) -> None:
    """Sets how many partitions of the audit topics cannot be read."""
    _BLOCKED.set(partitions)


def tell_rebuilding(messages: int) -> None:
    """Sets how many messages the collector must still read to rebuild the store."""
    _REBUILDING.set(messages)


def tell_pruned(buckets: int) -> None:
    """Adds to the number of old buckets that the collector has deleted from its store."""
    _PRUNED.inc(buckets)


class _Families(Collector):
    """Yields the metrics in `families`. All of them are replaced together after a step of judging,
    so a scrape never sees values from two steps.
    """

    def __init__(self, families: Iterable[GaugeMetricFamily]) -> None:
        self.families = list(families)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        yield from self.families


def _of_standing(found: Standing) -> Iterator[GaugeMetricFamily]:
    by_name = _by_name(found.counted)
    yield _family(
        "skidway_audit_complete_until_timestamp_seconds",
        "All buckets of the topic before this time are complete or accepted.",
        {name: _complete_until(each) for name, each in by_name.items() if not found.unjudged},
        scale=1000,
    )
    yield _family(
        "skidway_audit_written_until_timestamp_seconds",
        "End of the newest bucket of which the tier has records of the topic.",
        {
            (*name, tier.value.lower()): max(x.written_until.get(tier, 0) for x in each)
            for name, each in by_name.items()
            for tier in sorted({tier for x in each for tier in x.written_until})
        },
        "tier",
        scale=1000,
    )
    yield _family(
        "skidway_audit_topic_overdue_buckets",
        "Buckets of the topic that are due or lost, and neither complete nor accepted.",
        {
            (*name, status.word): sum(x.overdue.get(status, 0) for x in each)
            for name, each in by_name.items()
            for status in Status
            if status is not Status.COMPLETE
        },
        "verdict",
    )
    lines = {name: each for name, each in by_name.items() if not name[1].endswith(REJECTED_SUFFIX)}
    yield _family(
        "skidway_audit_topic_records",
        "Records in all buckets of the topic, without those that agents rejected.",
        {name: sum(x.records for x in each) for name, each in lines.items()},
    )
    yield _family(
        "skidway_audit_topic_rejected_records",
        "Records of the topic that the agents or the loader rejected.",
        _rejected(by_name, lines),
        "by",
    )
    yield _family(
        "skidway_audit_topic_filtered_records",
        "Records of the topic that a rule of the agents left out.",
        _filtered(lines),
        "rule",
    )


def _by_name(topics: Iterable[TopicStanding]) -> dict[Name, list[TopicStanding]]:
    found: dict[Name, list[TopicStanding]] = {}
    for each in topics:
        found.setdefault((each.source.cluster, each.source.topic), []).append(each)
    return found


def _complete_until(topics: Sequence[TopicStanding]) -> int | None:
    """Returns the time in ms before which all buckets of these topics are complete or accepted.
    (Several source topics may have the same name.) For a topic without such a time, uses the start
    of the topic's oldest overdue bucket (a bucket that is due, but neither complete nor accepted).
    Returns None if a topic has neither such a time nor an overdue bucket, although not all of its
    buckets are complete.
    """
    waiting = [x for x in topics if not x.is_complete]
    ends = [x.oldest_overdue if x.complete_until is None else x.complete_until for x in waiting]
    if not waiting:
        return max((x.complete_until for x in topics if x.complete_until is not None), default=None)
    known = [end for end in ends if end is not None]
    return min(known) if len(known) == len(waiting) else None


def _rejected(
    by_name: Mapping[Name, Sequence[TopicStanding]], lines: Mapping[Name, Sequence[TopicStanding]]
) -> dict[Labels, int]:
    found: dict[Labels, int] = {}
    for (cluster, topic), each in lines.items():
        apart = by_name.get((cluster, topic + REJECTED_SUFFIX), ())
        found[cluster, topic, "agents"] = sum(x.records for x in apart)
        found[cluster, topic, "loader"] = sum(x.rejects for x in (*each, *apart))
    return found


def _filtered(lines: Mapping[Name, Sequence[TopicStanding]]) -> dict[Labels, int]:
    found: Counter[Labels] = Counter()
    for name, each in lines.items():
        for rule in (rule for x in each for rule in x.filtered):
            found[(*name, rule.rule)] += rule.records
    return dict(found)


def _of_losses(evidence: Evidence) -> Iterator[GaugeMetricFamily]:
    """Yields the metrics of the ranges of files that agents declared lost or uncertain. Includes
    the ranges whose loss people accepted.
    """
    ranges: Counter[Labels] = Counter()
    sizes: Counter[Labels] = Counter()
    for source, topic in evidence.topics.items():
        for note in (note for notes in topic.losses.values() for note in notes):
            loss = note.loss
            name = source.cluster, source.topic.removesuffix(REJECTED_SUFFIX)
            key = (*name, loss.certainty.value.lower(), _reason(loss.reason))
            ranges[key] += 1
            sizes[key] += 0 if loss.end is None else loss.end - loss.first
    labels = "certainty", "reason"
    yield _family(
        "skidway_audit_topic_lost_ranges",
        "Ranges of files that agents declared lost or uncertain.",
        _with_reasons_bounded(ranges, ranges),
        *labels,
    )
    yield _family(
        "skidway_audit_topic_lost_bytes",
        "Bytes of these ranges, as far as the agents know where a range ends.",
        _with_reasons_bounded(sizes, ranges),
        *labels,
    )


def _of_risks(
    hosts: Iterable[HostRisk], tiers: Iterable[TierRisk], now_ms: int
) -> Iterator[GaugeMetricFamily]:
    sizes: Counter[Labels] = Counter()
    losses: dict[Labels, int] = {}
    for each in hosts:
        key: Labels = (each.cluster, each.topic.topic, "broker")
        sizes[key] += each.topic.bytes
        _soonest(losses, key, each.topic.loss_ms)
    for found in tiers:
        key = (found.source.cluster, found.source.topic, found.tiers[0].value.lower())
        sizes[key] += found.bytes
        _soonest(losses, key, found.loss_ms)
    yield _family(
        "skidway_audit_at_risk_bytes",
        "Bytes that lie only on hosts, or that the tier lacks of the newest buckets.",
        sizes,
        "lacking",
    )
    yield _family(
        "skidway_audit_until_loss_seconds",
        "Time until the first of these bytes are lost, as far as it is known.",
        {key: max(loss_ms - now_ms, 0) for key, loss_ms in losses.items()},
        "lacking",
        scale=1000,
    )


def _soonest(losses: dict[Labels, int], key: Labels, loss_ms: int | None) -> None:
    if loss_ms is not None:
        losses[key] = min(loss_ms, losses.get(key, loss_ms))


def _reason(words: str) -> str:
    """Returns the reason of a loss without its paths and numbers, so that similar losses have the
    same reason."""
    kind = re.sub(r"^/.*?: ", "", words.split(";")[0])
    return re.sub(r"\d[\d,.]*", "N", re.sub(r"(?<!\S)/\S+", "PATH", kind))[:REASON_LENGTH_MAX]


def _with_reasons_bounded(
    found: Mapping[Labels, int], ranges: Counter[Labels]
) -> dict[Labels, int]:
    """Returns the values of the REASONS_MAX most frequent reasons, and adds up the values of all
    other reasons under the reason OTHER_REASONS. found: the values, by their labels; the last label
    is the reason. ranges: how many lost ranges have the same labels; these numbers decide which
    reasons are most frequent.
    """
    frequency: Counter[str] = Counter()
    for key, count in ranges.items():
        frequency[key[-1]] += count
    told = {reason for reason, _ in frequency.most_common(REASONS_MAX)}
    bounded: Counter[Labels] = Counter()
    for key, count in found.items():
        bounded[key if key[-1] in told else (*key[:-1], OTHER_REASONS)] += count
    return dict(bounded)


def _family(
    name: str, words: str, values: Mapping[Any, int | None], *labels: str, scale: int = 1
) -> GaugeMetricFamily:
    """Returns a family (a metric with its name, help text and samples). The family has one sample
    for each value that is not None. values: the values of the samples, by the values of their
    labels (cluster, topic, and the labels in `labels`)."""
    made = GaugeMetricFamily(name, words, labels=["cluster", "topic", *labels])
    for key, value in values.items():
        if value is not None:
            made.add_metric(key, value / scale)
    return made


_TOPICS = _Families([*_of_standing(NOTHING_JUDGED), *_of_losses(Evidence())])
_RISKS = _Families(_of_risks((), (), 0))
for _each in (_TOPICS, _RISKS):
    REGISTRY.register(_each)

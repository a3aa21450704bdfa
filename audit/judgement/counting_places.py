"""Finds, without I/O, which senders count a topic in which places. A place is a cluster or an
output. A sender that starts anew counts again, in a higher epoch. So for each partition, the
verdict uses only the counts of the highest epoch.

Retired places are included: the audit compares their counts, and reports the records that they
lack. If a retired place lacks records, the verdict becomes worse in only two cases: the tier has
another place that is not retired, and that place does not have the topic; or only retired places
could confirm the counts, and none of them does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from skidway.audit.evidence.evidence import Evidence, TopicEvidence
from skidway.audit.evidence.tallies import SenderKey
from skidway.audit.judgement import reasons
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.retired_places import RetiredPlaces
from skidway.audit.judgement.verdict import Finding, Place, Status
from skidway.audit.topic.messages import Tier
from skidway.kafka.source import Source

_SEVERAL_PLACES = (Tier.MIRROR, Tier.HDFS)


@dataclass(frozen=True, slots=True)
class Counting:
    """A place that counts a topic, the senders whose counts are used for this place, and findings
    about doubtful counts."""

    place: Place
    senders: tuple[SenderKey, ...]
    findings: tuple[Finding, ...]


def counting_places(
    evidence: Evidence, topic: TopicEvidence, tiers: Collection[Tier], retired: RetiredPlaces
) -> Iterator[Counting]:
    """Yields, for each place of these tiers, the senders that have the highest epoch in at least
    one partition. The counts of these senders replace those of all other senders. Some findings
    depend on the order in which the first messages of the senders arrived; `evidence.senders` has
    the senders in this order."""
    places: dict[Place, list[SenderKey]] = {}
    for key in sorted(topic.coverage):
        if key.tier in tiers and key in evidence.senders:
            places.setdefault(place_of(key, evidence, retired), []).append(key)
    heard = {key: order for order, key in enumerate(evidence.senders)}
    for place, keys in places.items():
        owners: dict[int, list[SenderKey]] = {}
        for key in keys:
            for partition in topic.coverage[key]:
                owners.setdefault(partition, []).append(key)
        yield _newest_epochs(place, keys, owners, heard, evidence)


def needed_still(
    evidence: Evidence, source: Source, places: Collection[Counting], retired: RetiredPlaces
) -> set[Tier]:
    """Finds the tiers in which only retired places have counted the topic. Of these, returns the
    tiers that also have a place that is not retired, because this place may still begin to count
    the topic. If the topic's own cluster is retired, returns no tier, because no more records leave
    such a cluster.
    """
    if retired.holds_cluster(source.cluster):
        return set()
    here = {tier: [x.place for x in places if x.place.tier is tier] for tier in _SEVERAL_PLACES}
    gone = {tier for tier, found in here.items() if found and all(x.is_retired for x in found)}
    return {
        key.tier
        for key in evidence.senders
        if key.tier in gone and not place_of(key, evidence, retired).is_retired
    }


def place_of(key: SenderKey, evidence: Evidence, retired: RetiredPlaces) -> Place:
    """The place at which a sender counts. The sender must be in `evidence.senders`."""
    cluster = evidence.senders[key].cluster
    name = key.producer if key.tier is Tier.HDFS else cluster
    return Place(key.tier, name, retired.holds(key.tier, name, cluster))


def _newest_epochs(
    place: Place,
    keys: list[SenderKey],
    owners: dict[int, list[SenderKey]],
    heard: Mapping[SenderKey, int],
    evidence: Evidence,
) -> Counting:
    current: dict[SenderKey, None] = {}
    replaced: set[SenderKey] = set()
    findings: list[Finding] = []
    for partition, contenders in owners.items():
        epoch = max(key.epoch for key in contenders)
        newest = [key for key in contenders if key.epoch == epoch]
        current.update(dict.fromkeys(newest))
        older = [key for key in contenders if key.epoch < epoch]
        replaced.update(older)
        findings += _behind_their_time(older, newest, heard)
        findings += _used_again(older, newest, evidence)
        if len(newest) > 1:
            names = " and ".join(reasons.of_sender(key) for key in newest)
            words = f"{names} both count partition {partition}"
            findings.append(Finding(Status.UNKNOWN, words, Cause.COUNTERS_COLLIDE, about=newest[0]))
    for key in keys:
        if key in current and key in replaced:
            words = f"{reasons.of_sender(key)} is replaced in some partitions only"
            findings.append(Finding(Status.UNKNOWN, words, Cause.COUNTER_RESTORED, about=key))
    return Counting(place, tuple(current), tuple(findings))


def _used_again(
    older: list[SenderKey], newest: list[SenderKey], evidence: Evidence
) -> Iterator[Finding]:
    """Yields a finding for each output whose loader used an epoch number for a second time,
    although a higher epoch exists. This happens if an operator started the output anew. The audit
    uses the counts of the higher epoch. But perhaps only the counts that the loader sent after the
    new start are true. Counters get no such finding: if a counter used an epoch number twice, two
    copies of the counter were probably running, and the higher epoch has counted everything again.
    """
    for key in older:
        if key.tier is Tier.HDFS and evidence.senders[key].cloned_at is not None:
            words = f"{reasons.of_sender(key)} used epoch {key.epoch} again, which epoch"
            words = f"{words} {newest[0].epoch} replaces"
            yield Finding(Status.UNKNOWN, words, Cause.COUNTER_RESTORED, about=key)


def _behind_their_time(
    older: list[SenderKey], newest: list[SenderKey], heard: Mapping[SenderKey, int]
) -> Iterator[Finding]:
    """Yields a finding for each epoch whose first message arrived after the first message of a
    higher epoch. A sender that starts anew uses an epoch higher than all epochs that it knows, so
    the sender of the lower epoch did not know the higher epoch. The counts of the higher epoch
    replace those of the lower epoch, although those of the lower epoch may be the only true ones.
    """
    first = min(heard[key] for key in newest)
    for key in older:
        if heard[key] > first:
            words = f"{reasons.of_sender(key)} began epoch {key.epoch} after epoch"
            words = f"{words} {newest[0].epoch}, which replaces what it counts"
            yield Finding(Status.UNKNOWN, words, Cause.COUNTER_RESTORED, about=key)

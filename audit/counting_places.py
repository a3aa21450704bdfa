"""Who counts a topic where: of several epochs the newest, partition by partition. Pure.

A place that is retired is among them: what it has counted is compared, and what it lacks is said.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from audit import reasons
from audit.evidence import Evidence, SenderKey, TopicEvidence
from audit.messages import Tier
from audit.retired_places import RetiredPlaces
from audit.verdict import Finding, Place, Status


@dataclass(frozen=True, slots=True)
class Counting:
    """A place that counts a topic, the senders whose counts hold there, and what is doubtful."""

    place: Place
    senders: tuple[SenderKey, ...]
    findings: tuple[Finding, ...]


def counting_places(
    evidence: Evidence, topic: TopicEvidence, tiers: Collection[Tier], retired: RetiredPlaces
) -> Iterator[Counting]:
    """Per place of these tiers the senders of the highest epoch of each partition: they replace
    all others."""
    places: dict[Place, list[SenderKey]] = {}
    for key in sorted(topic.coverage):
        if key.tier in tiers and key in evidence.senders:
            places.setdefault(place_of(key, evidence, retired), []).append(key)
    for place, keys in places.items():
        owners: dict[int, list[SenderKey]] = {}
        for key in keys:
            for partition in topic.coverage[key]:
                owners.setdefault(partition, []).append(key)
        yield _newest_epochs(place, keys, owners)


def place_of(key: SenderKey, evidence: Evidence, retired: RetiredPlaces) -> Place:
    """Where a known sender counts."""
    cluster = evidence.senders[key].cluster
    name = key.producer if key.tier is Tier.HDFS else cluster
    return Place(key.tier, name, retired.holds(key.tier, name, cluster))


def _newest_epochs(
    place: Place, keys: list[SenderKey], owners: dict[int, list[SenderKey]]
) -> Counting:
    current: dict[SenderKey, None] = {}
    replaced: set[SenderKey] = set()
    findings: list[Finding] = []
    for partition, contenders in owners.items():
        epoch = max(key.epoch for key in contenders)
        newest = [key for key in contenders if key.epoch == epoch]
        current.update(dict.fromkeys(newest))
        replaced.update(key for key in contenders if key.epoch < epoch)
        if len(newest) > 1:
            names = " and ".join(reasons.of_sender(key) for key in newest)
            findings.append(Finding(Status.UNKNOWN, f"{names} both count partition {partition}"))
    for key in keys:
        if key in current and key in replaced:
            words = f"{reasons.of_sender(key)} is replaced in some partitions only"
            findings.append(Finding(Status.UNKNOWN, words))
    return Counting(place, tuple(current), tuple(findings))

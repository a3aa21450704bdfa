"""Finds, without I/O, the offsets that a place has not counted yet, although another place has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from skidway.audit.evidence.evidence import Evidence, TopicEvidence
from skidway.audit.evidence.tallies import SenderKey
from skidway.audit.judgement.counting_places import place_of
from skidway.audit.judgement.retired_places import RetiredPlaces
from skidway.audit.judgement.verdict import Place


class OffsetRange(NamedTuple):
    """Offsets [first, end) of a partition of the source topic."""

    partition: int
    first: int
    end: int


def senders_of(evidence: Evidence, topic: TopicEvidence, place: Place) -> list[SenderKey]:
    """The senders that counted the topic in a place, sorted by the time at which they were last
    heard."""
    found = [
        key
        for key in topic.coverage
        if key.tier is place.tier and key in evidence.senders and _is_at(evidence, key, place)
    ]
    return sorted(found, key=lambda key: (evidence.heard_ms(key[:2]), key))


def offsets_behind(
    evidence: Evidence, topic: TopicEvidence, place: Place
) -> tuple[OffsetRange, ...]:
    """Returns a range of offsets for each partition in which another place has counted further than
    `place`. The range begins at the offset up to which `place` has counted, and ends at the highest
    offset up to which any place has counted.
    """
    own = _ends(topic, senders_of(evidence, topic, place))
    known = _ends(topic, [key for key in topic.coverage if key in evidence.senders])
    return tuple(
        OffsetRange(partition, own.get(partition, 0), end)
        for partition, end in sorted(known.items())
        if own.get(partition, 0) < end
    )


def _ends(topic: TopicEvidence, senders: Iterable[SenderKey]) -> dict[int, int]:
    """Returns, for each partition, the offset up to which these senders have counted. Uses only the
    newest epoch of each producer, because a producer with a new epoch counts again from the start
    of the log.
    """
    newest: dict[tuple[str, str, int], tuple[int, int]] = {}
    for key in senders:
        for partition, covered in topic.coverage[key].items():
            name = key.tier, key.producer, partition
            newest[name] = max(newest.get(name, (0, 0)), (key.epoch, covered.end))
    found: dict[int, int] = {}
    for (_, _, partition), (_, end) in newest.items():
        found[partition] = max(found.get(partition, 0), end)
    return found


def _is_at(evidence: Evidence, key: SenderKey, place: Place) -> bool:
    return place_of(key, evidence, RetiredPlaces()).name == place.name

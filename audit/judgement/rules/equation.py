"""Checks, without I/O, the equation of a bucket: all tiers that must count the bucket have counted
the same records."""

from __future__ import annotations

from collections.abc import Iterator

from skidway.audit.counts.counts import NO_AGENT, Sums
from skidway.audit.judgement import reasons
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.rules.topic_facts import Tallies, TopicFacts, added
from skidway.audit.judgement.verdict import Difference, Finding, Place, Status
from skidway.audit.topic.messages import Tier


def sums_of(facts: TopicFacts, tallies: Tallies) -> dict[Place, Sums | None]:
    """The counts of each place for one agent in a bucket. The value is None if the place's tier
    never reported the topic."""
    sums: dict[Place, Sums | None] = {}
    for tier in facts.tiers:
        if tier is Tier.AGENT:
            keys = [key for key in tallies if key.tier is Tier.AGENT]
            sums[Place(tier, "")] = added(tallies, keys)
            continue
        places = facts.places_of(tier)
        for counting in places:
            sums[counting.place] = added(tallies, counting.senders)
        if not places:
            sums[Place(tier, "", facts.retired.holds_tier(tier))] = None
    return sums


def findings(facts: TopicFacts, agent: int, sums: dict[Place, Sums | None]) -> Iterator[Finding]:
    """Yields findings on one agent: for places whose sums differ from the first place's sums (and
    for the gaps that may explain this), for tiers that never reported the topic, and for counts
    that no place confirms because of retired places.
    """
    if not facts.needed and _are_equal(sums):
        return
    known = [
        (place, x or Sums())
        for place, x in sums.items()
        if not (agent == NO_AGENT and place.tier is Tier.AGENT)
    ]
    known.sort(key=lambda each: each[0].is_retired)  # retired places come last
    silent = [place for place, x in sums.items() if x is None]
    if _all_filtered(sums):
        silent = []  # after filtering, no records are left that a tier could count
    largest = max((x for _, x in known), key=lambda x: x.count, default=Sums())
    for place in silent:
        words = f"tier {reasons.of_place(place)} never reported this topic"
        name = reasons.name_of_lack(words, largest)
        yield Finding(_gravity(place), words, Cause.TIER_ABSENT, name, about=place)
    if not known:
        return
    (first, expected), *others = known
    others = [(place, found) for place, found in others if place not in silent]
    differing = [(p, found) for p, found in others if _content(found) != _content(expected)]
    is_sealed = any(place.tier is Tier.AGENT for place, _ in known)
    for place, found in differing:
        words = reasons.difference(first, expected, place, found)
        name = reasons.name_of_difference(words, expected, found)
        gravity = _gravity(place)
        if not is_sealed and found.count >= expected.count:  # then `first` may lack records
            gravity = max(gravity, _gravity(first))
        about = Difference(first, expected, place, found)
        yield Finding(gravity, words, _cause(expected, found), name, about=about)
        yield from _gap(facts, place)
    lack = {place for place, _ in differing}
    for tier in sorted(facts.needed):
        if all(place in lack for place in sums if place.tier is tier):
            words = reasons.of_needed(tier)
            name = reasons.name_of_lack(words, largest)
            yield Finding(Status.INCOMPLETE, words, Cause.RETIRED, name)
    lacking = [*silent, *(place for place, _ in differing)]
    if lacking and all(x.is_retired for x in lacking) and len(differing) == len(others):
        words = "all that could confirm the counts is retired"
        name = reasons.name_of_lack(words, largest)
        yield Finding(Status.UNKNOWN, words, Cause.RETIRED, name)


def _gap(facts: TopicFacts, place: Place) -> Iterator[Finding]:
    """Yields a finding about the newest gap (offsets that the senders of this place could not
    read), if there is any. The gap may explain why the place lacks records."""
    senders = {key for x in facts.places if x.place == place for key in x.senders}
    gaps = [note for note in facts.topic.gaps if note.sender in senders]
    if gaps:
        newest = max(gaps, key=lambda x: (x.time_ms, x.sender, x.gap.partition, x.gap.first))
        yield Finding(_gravity(place), reasons.of_gap(newest), Cause.GAP, about=newest)


def _cause(expected: Sums, found: Sums) -> Cause:
    if found.count == expected.count:
        return Cause.RECORDS_DIFFER
    return Cause.RECORDS_MISSING if found.count < expected.count else Cause.RECORDS_DOUBLED


def _gravity(place: Place) -> Status:
    """Returns the status of a finding about records that this place lacks. For a retired place, the
    status is COMPLETE, which makes no verdict worse. For any other place, the status is INCOMPLETE.
    """
    return Status.COMPLETE if place.is_retired else Status.INCOMPLETE


def _all_filtered(sums: dict[Place, Sums | None]) -> bool:
    """Whether the agent's rules left out lines of the bucket, and no records are left: neither the
    agent nor any other place counted one."""
    counted = [x for x in sums.values() if x is not None]
    return any(x.filtered for x in counted) and all(_content(x) == (0, 0, 0) for x in counted)


def _are_equal(sums: dict[Place, Sums | None]) -> bool:
    """Whether all places reported the topic and have equal counts."""
    contents = {None if x is None else _content(x) for x in sums.values()}
    return len(contents) == 1 and None not in contents


def _content(sums: Sums) -> tuple[int, int, int]:
    return sums.count, sums.bytes, sums.checksum

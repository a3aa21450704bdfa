"""Decides, without I/O, which findings of which buckets a person can accept, and which messages of
unknown schemas a person can disown. Also makes the messages with the person's decisions.

Only existing findings can be accepted: each acceptance names the findings and warnings that one
bucket has when the acceptance is made. Nobody can accept a bucket that is too young to be due,
because it may still become complete. But if a bucket begins later than an agent's event time can
be, only another producer can have filled it, and it may stay too young for thousands of years: a
person can accept that it is too young. While the audit has messages of a newer version of the
program, and nobody has disowned them, nobody can accept anything, because such messages may concern
any bucket.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from skidway.audit.counts.counts import NO_AGENT
from skidway.audit.judgement import reasons
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.policy import AHEAD_MS
from skidway.audit.judgement.retired_places import check, is_same
from skidway.audit.judgement.verdict import BucketVerdict, Place, Status
from skidway.audit.judgement.verdicts_of_agents import not_complete
from skidway.audit.topic.decisions import (
    Acceptance,
    Disownment,
    FindingName,
    Retirement,
    Revocation,
)
from skidway.errors import ConfigurationRefused, UsageError

ID_BITS = 63
NEAREST_MAX = 5


@dataclass(frozen=True, slots=True)
class Signature:
    """The person who makes a decision, with the time and the reason."""

    time_ms: int
    person: str
    reason: str


def acceptances(found: Sequence[BucketVerdict], signed: Signature) -> list[Acceptance]:
    """Makes an acceptance for each bucket that is due, or far in the future, and has findings or
    warnings that can be accepted now (see `unaccepted`). Raises UsageError if there is no such
    bucket."""
    accepted = [
        Acceptance(
            new_id(), signed.time_ms, signed.person, signed.reason,
            verdict.source, verdict.bucket, verdict.bucket_ms, names,
        )
        for verdict in found
        if verdict.due or verdict.bucket > signed.time_ms + AHEAD_MS
        if (names := unaccepted(verdict, is_far=not verdict.due))
    ]  # fmt: skip
    if not accepted:
        raise UsageError(_nothing_to_accept(found))
    return accepted


def unaccepted(verdict: BucketVerdict, *, is_far: bool = False) -> tuple[FindingName, ...]:
    """The names of the findings and warnings that would be accepted if a person accepted the bucket
    now. Findings with the status OPEN are left out, because time alone may remove them. is_far:
    whether the bucket is so far in the future that its being too young is not left out."""
    found = [(NO_AGENT, x) for x in verdict.findings]
    found += [(agent.agent, x) for agent in not_complete(verdict.agents) for x in agent.findings]
    found = [
        (agent, x)
        for agent, x in found
        if x.status > Status.OPEN or (is_far and x.cause is Cause.TOO_YOUNG)
    ]
    if found or verdict.status is Status.COMPLETE:  # warnings of an open bucket may change
        found += [(NO_AGENT, x) for x in verdict.warnings]
    names = (FindingName(agent, x.name) for agent, x in found if x.acceptance is None)
    return tuple(dict.fromkeys(names))


def revocations(
    found: Sequence[BucketVerdict], accepted: Iterable[Acceptance], signed: Signature
) -> list[Revocation]:
    """Makes a revocation for each acceptance of these buckets, even if the buckets no longer have
    the findings that the acceptance names. accepted: all acceptances that nobody took back. Raises
    UsageError if these buckets have no acceptance."""
    buckets = {(x.source, x.bucket, x.bucket_ms) for x in found}
    ids = [each.id for each in accepted if (each.source, each.bucket, each.bucket_ms) in buckets]
    if not ids:
        raise UsageError("Nothing of these buckets was accepted.")
    said = (signed.time_ms, signed.person, signed.reason)
    return [Revocation(new_id(), *said, each) for each in ids]


def retirement(place: str, known: Sequence[Place], signed: Signature) -> Retirement:
    """Makes the message that retires a place. Raises UsageError if `place` names no place that has
    counted.

    known: the places that have counted. In these objects, `is_retired` marks the places that the
        text `place` means, that is, those that the message retires.
    """
    try:
        check([place], "PLACE")
    except ConfigurationRefused as error:
        raise UsageError(f"{error}.") from error
    if not any(each.is_retired for each in known):
        raise UsageError(f"{place} never counted anything; {_those_that_did(place, known)}.")
    return Retirement(new_id(), signed.time_ms, signed.person, signed.reason, place)


def _those_that_did(place: str, known: Sequence[Place]) -> str:
    """Returns a text that names some of the places that have counted something, and says how many
    others there are. It names the places whose names are most similar to `place`, sorted by
    name."""
    names = [reasons.of_place(each) for each in known]
    nearest = sorted(get_close_matches(place, names, NEAREST_MAX, cutoff=0))
    others = len(names) - len(nearest)
    more = f", and {others} others" if others else ""
    return f"these places did: {', '.join(nearest) or 'none'}{more}"


def reinstatements(
    place: str,
    retirements: Sequence[Retirement],
    signed: Signature,
    others: Mapping[str, Sequence[Place]] | None = None,
) -> list[Revocation]:
    """Makes the messages that take back the retirements of a place. Raises UsageError if no
    decision retires the place. others: the other settings and decisions that also retire the place
    (see other_retirements)."""
    ids = [each.id for each in retirements if is_same(each.place, place)]
    if not ids and others:
        raise UsageError(f"{place} was not retired by these words, but by {_and(others)}.")
    if not ids:
        raise UsageError(
            f"{place} was not retired by this command; if retired.places in audit.yml names it,"
            " remove it there."
        )
    said = (signed.time_ms, signed.person, signed.reason)
    return [Revocation(new_id(), *said, each) for each in ids]


def other_retirements(
    place: str,
    texts: Iterable[str],
    retirements: Iterable[Retirement],
    held: Callable[[str], Sequence[Place]],
) -> dict[str, Sequence[Place]]:
    """Finds the settings and decisions that retire a place or a part of it. Leaves out the
    decisions that name exactly the text `place`. Returns a dictionary: each key describes a setting
    or a decision, and the value is what `held` returns for its text.

    texts: `retired.places` of the settings. held: a function that takes a text. It returns the
    places that the text retires, but only those that are within `place` and have counted anything.
    """
    found: dict[str, Sequence[Place]] = {}
    for text in texts:
        if held(text) or is_same(text, place):
            found[f"{text!r} in retired.places"] = held(text)
    for each in retirements:
        if not is_same(each.place, place) and held(each.place):
            found[f"{each.place!r} of {each.person} ({each.reason})"] = held(each.place)
    return found


def reinstated(place: str, known: Iterable[Place], others: Mapping[str, Sequence[Place]]) -> str:
    """Returns the sentence that the command prints after the retirements of a place were taken
    back. known: the places within `place` that have counted anything.
    """
    if not others:
        return f"{place} counts again."
    left = {each for found in others.values() for each in found}
    if left >= set(known):
        return f"{place} stays retired, by {_and(others)}."
    names = ", ".join(sorted(reasons.of_place(replace(x, is_retired=False)) for x in left))
    return f"{place} counts again, but for {names}: retired by {_and(others)}."


def disownments(
    fingerprints: Iterable[str], unread: Mapping[str, int], signed: Signature
) -> list[Disownment]:
    """Makes the messages that disown the messages of these schemas. Raises UsageError if there are
    none of a schema. unread: how many there are, by the schema's fingerprint."""
    said = (signed.time_ms, signed.person, signed.reason)
    named = list(dict.fromkeys(fingerprints))
    if unknown := [each for each in named if each not in unread]:
        known = ", ".join(sorted(unread)) or "none"
        raise UsageError(f"No message with the schema {unknown[0]} holds verdicts up ({known}).")
    return [Disownment(new_id(), *said, each) for each in named]


def owned_again(
    fingerprints: Iterable[str], disowned: Iterable[Disownment], signed: Signature
) -> list[Revocation]:
    """Makes the messages that take back the disownments of these schemas. Raises UsageError if a
    schema has none."""
    said, found = (signed.time_ms, signed.person, signed.reason), list(disowned)
    ids = []
    for each in dict.fromkeys(fingerprints):
        of_schema = [x.id for x in found if x.fingerprint == each]
        if not of_schema:
            raise UsageError(f"Nobody has disowned messages with the schema {each}.")
        ids += of_schema
    return [Revocation(new_id(), *said, each) for each in ids]


def _and(words: Iterable[str]) -> str:
    return " and ".join(words)


def new_id() -> int:
    """A random id for a new decision, above 0 and below 2^63."""
    return secrets.randbits(ID_BITS) or 1


def _nothing_to_accept(found: Sequence[BucketVerdict]) -> str:
    if not found:
        return "No bucket of this topic and time has any counts: there is nothing to accept."
    if all(x.status is Status.COMPLETE and not x.warnings for x in found):
        return "All of these buckets are complete: there is nothing to accept."
    if any(x.is_accepted or x.is_warned_and_accepted for x in found):
        return "All that can be accepted of these buckets was accepted already."
    young = [x for x in found if not x.due]
    if young:
        when = reasons.of_time(young[0].bucket)
        is_lost = young[0].status is Status.LOST
        more = "more of it may still be lost" if is_lost else "it may still become complete"
        return f"The bucket of {when} is too young: {more}. Accept it once it is due."
    return "These buckets are only open: they may still become complete."

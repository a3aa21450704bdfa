"""The decisions of people about verdicts: accepted findings, retired places and disowned messages.
The module does no I/O.

    Acceptance    accepts findings of a bucket: they stay in the verdict, but the audit no longer
                  counts the bucket as incomplete because of them
    Retirement    retires a place: the audit no longer waits for its counts (see retired_places)
    Disownment    disowns the messages of an unknown schema: verdicts no longer wait for a version
                  of the program that can read them
    Revocation    revokes the decision with a given id

Decisions are messages on the audit topic (schemas/decision.avsc), so a collector that starts with
an empty ledger reads them again. Each decision has a random id. A revocation names the id of
another decision, and revokes that decision even if that decision arrives later. So neither the
order of the messages nor any clock matters. An acceptance lists the findings that the person saw. A
finding that the bucket gets later is not accepted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any, Final, NamedTuple

from skidway.dataclass import dataclass
from skidway.kafka.source import Source

OTHERS: Final = "others"
"""What a disownment names in place of a fingerprint, for messages whose schemas the ledger does not
tell apart."""


class FindingName(NamedTuple):
    """The name of a finding of a bucket. agent: the id of the agent, or 0 if the finding belongs to
    no single agent. finding: the finding's `name` (see judgement.verdict.Finding)."""

    agent: int
    finding: str


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A person accepts some findings of one bucket. is_signed: here and below, whether the audit
    has verified who decided; the message does not say it."""

    id: int
    time_ms: int
    person: str
    reason: str
    source: Source
    bucket: int
    bucket_ms: int
    findings: tuple[FindingName, ...]
    is_signed: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Retirement:
    """A person decides that the audit no longer waits for the counts of a place. place: a text that
    names the place (see the module retired_places).
    """

    id: int
    time_ms: int
    person: str
    reason: str
    place: str
    is_signed: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Disownment:
    """A person decides that the messages of an unknown schema are nobody's. fingerprint: that of
    the schema in hex; OTHERS for all those that the ledger counts together."""

    id: int
    time_ms: int
    person: str
    reason: str
    fingerprint: str
    is_signed: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Revocation:
    """A person revokes the decision with the id `revoked`."""

    id: int
    time_ms: int
    person: str
    reason: str
    revoked: int


Lasting = Acceptance | Retirement | Disownment
"""The decisions that hold until somebody revokes them."""
Decision = Lasting | Revocation


def not_revoked(decisions: Iterable[Decision]) -> list[Lasting]:
    """Returns the decisions that were not revoked, without duplicates and revocations, the oldest
    first."""
    said = sorted(set(decisions), key=_by_age)
    revoked = {each.revoked for each in said if isinstance(each, Revocation)}
    return [x for x in said if not isinstance(x, Revocation) and x.id not in revoked]


def record_of(decision: Decision) -> dict[str, Any]:
    """The decision as a record of the schema Decision."""
    record: dict[str, Any] = {
        "kind": type(decision).__name__.upper(),
        "id": decision.id,
        "time": decision.time_ms,
        "person": decision.person,
        "reason": decision.reason,
    }
    match decision:
        case Acceptance(source=source, bucket=bucket, bucket_ms=bucket_ms, findings=findings):
            record |= {name: getattr(source, name) for name in _SOURCE_FIELDS}
            record |= {"bucket": bucket, "bucket_ms": bucket_ms}
            record["findings"] = [each._asdict() for each in findings]
        case Retirement(place=place):
            record["place"] = place
        case Disownment(fingerprint=fingerprint):
            record["fingerprint"] = fingerprint
        case Revocation(revoked=revoked):
            record["revoked"] = revoked
    return record


def decision_of(record: dict[str, Any], time_ms: int) -> Decision:
    """Decodes a record of the schema Decision."""
    said = (record["id"], time_ms, record["person"], record["reason"])
    if record["kind"] == "RETIREMENT":
        return Retirement(*said, record["place"])
    if record["kind"] == "DISOWNMENT":
        return Disownment(*said, record["fingerprint"])
    if record["kind"] == "REVOCATION":
        return Revocation(*said, record["revoked"])
    source = Source(*(record[name] for name in _SOURCE_FIELDS))
    findings = tuple(FindingName(x["agent"], x["finding"]) for x in record["findings"])
    return Acceptance(*said, source, record["bucket"], record["bucket_ms"], findings)


_SOURCE_FIELDS = ("cluster", "cluster_id", "topic", "topic_id")


def _by_age(decision: Decision) -> tuple[int, int, str]:
    return decision.time_ms, decision.id, repr(decision)

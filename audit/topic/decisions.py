"""The decisions of people about verdicts: accepted findings, retired places. Pure.

    Acceptance    accepts findings of a bucket: they stay in the verdict, but no longer count
                  against the bucket
    Retirement    retires a place: nobody waits for its counts any more (see retired_places)
    Revocation    takes back a decision, by its id

Decisions are messages on the audit topic (schemas/decision.avsc), so a collector that starts over
reads them again. Each decision has a random id and holds until a revocation names that id, so
neither the order of the messages nor any clock matters. An acceptance names the findings that the
person saw, so it covers no later finding.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from skidway.kafka.source import Source


class FindingName(NamedTuple):
    """The name of a finding of a bucket. agent: 0 if the finding concerns no single agent. finding:
    the text of judgement.verdict.Finding.name."""

    agent: int
    finding: str


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Findings of one bucket that a person accepts."""

    id: int
    time_ms: int
    person: str
    reason: str
    source: Source
    bucket: int
    bucket_ms: int
    findings: tuple[FindingName, ...]


@dataclass(frozen=True, slots=True)
class Retirement:
    """A place that nobody waits for any more. place: a text as `retired_places` reads it."""

    id: int
    time_ms: int
    person: str
    reason: str
    place: str


@dataclass(frozen=True, slots=True)
class Revocation:
    """Takes back the decision with the id `revoked`."""

    id: int
    time_ms: int
    person: str
    reason: str
    revoked: int


Decision = Acceptance | Retirement | Revocation


def not_revoked(decisions: Iterable[Decision]) -> list[Acceptance | Retirement]:
    """The decisions that no revocation took back, each once, the oldest first."""
    said = sorted(set(decisions), key=_by_age)
    revoked = {each.revoked for each in said if isinstance(each, Revocation)}
    return [x for x in said if not isinstance(x, Revocation) and x.id not in revoked]


def record_of(decision: Decision) -> dict[str, Any]:
    """The record for the schema Decision."""
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
        case Revocation(revoked=revoked):
            record["revoked"] = revoked
    return record


def decision_of(record: dict[str, Any], time_ms: int) -> Decision:
    """The decision in a record of the schema Decision."""
    said = (record["id"], time_ms, record["person"], record["reason"])
    if record["kind"] == "RETIREMENT":
        return Retirement(*said, record["place"])
    if record["kind"] == "REVOCATION":
        return Revocation(*said, record["revoked"])
    source = Source(*(record[name] for name in _SOURCE_FIELDS))
    findings = tuple(FindingName(x["agent"], x["finding"]) for x in record["findings"])
    return Acceptance(*said, source, record["bucket"], record["bucket_ms"], findings)


_SOURCE_FIELDS = ("cluster", "cluster_id", "topic", "topic_id")


def _by_age(decision: Decision) -> tuple[int, int, str]:
    return decision.time_ms, decision.id, repr(decision)

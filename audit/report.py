"""Verdicts as people and programs read them: a sentence, a table, JSON, an exit status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from audit.counts import Sums
from audit.decisions import Acceptance
from audit.messages import Tier
from audit.verdict import AgentVerdict, BucketVerdict, Place, Status
from skidway.kafka.source import Source

ID_SHOWN = 8
"""Digits of a topic's id, of the 32 that it has."""

REASONS_SHOWN = 3
"""In a line of the table; JSON and the pages have all of them."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What all shown buckets together say. overdue: old enough or lost, and neither complete nor
    accepted. accepted: not complete, and a person has accepted why."""

    shown: int
    by_status: dict[Status, int]
    overdue: int
    accepted: int
    sentence: str

    def exit_status(self, *, everything: bool) -> int:
        """0 when every bucket that is due (with `everything`: every bucket) is complete or
        accepted, and none is lost."""
        if self.shown == 0:
            return 1
        good = self.by_status.get(Status.COMPLETE, 0) + self.accepted
        return int(good < self.shown if everything else self.overdue > 0)


def summarize(verdicts: Sequence[BucketVerdict]) -> Summary:
    """The verdict sentence, and what it is made of."""
    by_status = dict(Counter(verdict.status for verdict in verdicts))
    overdue = sum(1 for x in verdicts if x.is_overdue)
    accepted = sum(1 for x in verdicts if x.is_accepted)
    return Summary(len(verdicts), by_status, overdue, accepted, _sentence(verdicts, by_status))


def table(
    verdicts: Iterable[BucketVerdict], tiers: Sequence[Tier], *, each: bool = False
) -> list[dict[str, Any]]:
    """Rows for a table: buckets that follow one another with the same verdict share one, with the
    sums of their counts; `each`: a row for each bucket."""

    def alike(verdict: BucketVerdict) -> tuple[object, ...]:
        reported = tuple(verdict.count(tier) is not None for tier in tiers)
        return verdict.source, verdict.word, verdict.due, verdict.reasons, reported

    found = list(verdicts)
    names = topic_names(x.source for x in found)
    runs = ([one] for one in found) if each else (list(x) for _, x in groupby(found, alike))
    return [_row(run, tiers, names[run[0].source]) for run in runs]


def _row(run: Sequence[BucketVerdict], tiers: Sequence[Tier], topic: str) -> dict[str, Any]:
    """One row of buckets that have the same verdict and the same tiers."""
    first, last = run[0], run[-1]
    span = f" .. {time_text(last.bucket)} ({len(run):,})" if len(run) > 1 else ""
    row: dict[str, Any] = {
        "topic": topic,
        "buckets": time_text(first.bucket) + span,
    }
    for tier in tiers:
        counts = [count for verdict in run if (count := verdict.count(tier)) is not None]
        row[tier.value.lower()] = sum(counts) if counts else None
    return row | {"verdict": first.word, "why": reasons_text(first.reasons)}


def columns(tiers: Sequence[Tier]) -> list[str]:
    """The columns of `table`."""
    return ["topic", "buckets", *(tier.value.lower() for tier in tiers), "verdict", "why"]


def document(verdicts: Sequence[BucketVerdict]) -> dict[str, Any]:
    """All of it, for programs."""
    summary = summarize(verdicts)
    return {
        "sentence": summary.sentence,
        "buckets_shown": summary.shown,
        "buckets_overdue": summary.overdue,
        "buckets_accepted": summary.accepted,
        "by_verdict": {status.word: summary.by_status.get(status, 0) for status in Status},
        "buckets": [bucket_document(verdict) for verdict in verdicts],
    }


def bucket_document(verdict: BucketVerdict) -> dict[str, Any]:
    """One bucket with its agents."""
    source = verdict.source
    return {
        "topic": source.topic,
        "cluster": source.cluster,
        "cluster_id": source.cluster_id,
        "topic_id": source.topic_id,
        "bucket": verdict.bucket,
        "bucket_ms": verdict.bucket_ms,
        "time": time_text(verdict.bucket),
        "verdict": verdict.status.word,
        "due": verdict.due,
        "accepted": verdict.is_accepted,
        "acceptances": [_acceptance(each) for each in verdict.acceptances],
        "reasons": list(verdict.reasons),
        "places": _places(verdict.places()),
        "agents": [_agent(agent) for agent in verdict.agents],
    }


def topic_name(source: Source) -> str:
    """As a mirror would call it: cluster and topic."""
    return f"{source.cluster}.{source.topic}"


def topic_names(sources: Iterable[Source]) -> dict[Source, str]:
    """By `topic_name`; those of a name that was made again also by the beginning of their ids."""
    ids: dict[str, set[Source]] = {}
    for source in sources:
        ids.setdefault(topic_name(source), set()).add(source)
    return {
        source: name if len(same) == 1 else f"{name} (id {source.topic_id[:ID_SHOWN] or 'none'})"
        for name, same in ids.items()
        for source in same
    }


def reasons_text(reasons: Sequence[str]) -> str:
    """The first reasons in one line."""
    shown = "; ".join(reasons[:REASONS_SHOWN])
    more = len(reasons) - REASONS_SHOWN
    return f"{shown}; and {more} more" if more > 0 else shown


def time_text(time_ms: int) -> str:
    """RFC 3339, UTC, to the second; the number itself for what no calendar holds."""
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)
    except OverflowError:
        return f"{time_ms} ms"
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _sentence(verdicts: Sequence[BucketVerdict], by_status: dict[Status, int]) -> str:
    if not verdicts:
        return "Nothing was counted: there is no bucket to judge."
    topics = len({verdict.source for verdict in verdicts})
    complete = by_status.get(Status.COMPLETE, 0)
    of_topics = f"of {topics} topic{'s' if topics != 1 else ''}"
    if complete == len(verdicts):
        what = "The bucket" if complete == 1 else f"All {complete} buckets"
        return f"{what} {of_topics} {'is' if complete == 1 else 'are'} complete."
    parts = [f"{complete} of {len(verdicts)} buckets {of_topics} are complete"]
    overdue = [x.residue for x in verdicts if x.due and x.is_overdue]
    if overdue:
        parts.append(f"{_are(len(overdue), 'should be and', 'not')} ({_by_status(overdue)})")
    if lost := sum(1 for x in verdicts if not x.due and x.is_overdue):
        parts.append(f"{_are(lost, '', 'too young to be complete, and lost already')}")
    if accepted := [x.status for x in verdicts if x.is_accepted]:
        parts.append(f"{_are(len(accepted), '', 'not, and accepted')} ({_by_status(accepted)})")
    young = len(verdicts) - complete - len(overdue) - lost - len(accepted)
    if young:
        parts.append(_are(young, "", "too young to say"))
    return "; ".join(parts) + "."


def _are(count: int, before: str, behind: str) -> str:
    verb = "is" if count == 1 else "are"
    return " ".join(filter(None, [str(count), before, verb, behind]))


def _by_status(statuses: Iterable[Status]) -> str:
    counts = sorted(Counter(statuses).items(), reverse=True)
    return ", ".join(f"{n} {status.word}" for status, n in counts)


def _acceptance(acceptance: Acceptance) -> dict[str, Any]:
    return {
        "id": acceptance.id,
        "person": acceptance.person,
        "time": time_text(acceptance.time_ms),
        "reason": acceptance.reason,
        "findings": [each._asdict() for each in acceptance.findings],
    }


def _agent(verdict: AgentVerdict) -> dict[str, Any]:
    return {
        "agent": verdict.agent,
        "host": verdict.host,
        "retired": verdict.retired,
        "verdict": verdict.status.word,
        "reasons": list(verdict.reasons),
        "places": _places(verdict.sums),
    }


def _places(places: Any) -> list[dict[str, Any]]:
    return [_place(place, sums) for place, sums in places.items()]


def _place(place: Place, sums: Sums | None) -> dict[str, Any]:
    found: dict[str, Any] = {"tier": place.tier.value.lower(), "place": place.name}
    found["retired"] = place.is_retired
    if sums is None:
        return found | {"reported": False}
    return found | {
        "reported": True,
        "count": sums.count,
        "bytes": sums.bytes,
        "checksum": sums.checksum,
        "rejects": sums.rejects,
        "repeats": sums.repeats,
    }

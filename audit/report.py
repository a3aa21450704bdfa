"""Verdicts as people and programs read them: a sentence, a table, JSON, an exit status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from audit.counts import Sums
from audit.messages import Tier
from audit.verdict import AgentVerdict, BucketVerdict, Place, Status
from skidway.kafka.source import Source

REASONS_SHOWN = 3
"""In a line of the table; JSON and the pages have all of them."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What all shown buckets together say. due: the old enough ones that are not complete."""

    shown: int
    by_status: dict[Status, int]
    overdue: int
    sentence: str

    def exit_status(self, *, everything: bool) -> int:
        """0 when every bucket that is due (with `everything`: every bucket) is complete."""
        if self.shown == 0:
            return 1
        complete = self.by_status.get(Status.COMPLETE, 0)
        return int(complete < self.shown if everything else self.overdue > 0)


def summarize(verdicts: Sequence[BucketVerdict]) -> Summary:
    """The verdict sentence, and what it is made of."""
    by_status = dict(Counter(verdict.status for verdict in verdicts))
    overdue = sum(1 for x in verdicts if x.due and x.status is not Status.COMPLETE)
    return Summary(len(verdicts), by_status, overdue, _sentence(verdicts, by_status, overdue))


def table(
    verdicts: Iterable[BucketVerdict], tiers: Sequence[Tier], *, each: bool = False
) -> list[dict[str, Any]]:
    """Rows for a table: buckets that follow one another with the same verdict share one, with the
    sums of their counts; `each`: a row for each bucket."""

    def alike(verdict: BucketVerdict) -> tuple[object, ...]:
        reported = tuple(verdict.count(tier) is not None for tier in tiers)
        return verdict.source, verdict.status, verdict.due, verdict.reasons, reported

    runs = ([one] for one in verdicts) if each else (list(x) for _, x in groupby(verdicts, alike))
    return [_row(run, tiers) for run in runs]


def _row(run: Sequence[BucketVerdict], tiers: Sequence[Tier]) -> dict[str, Any]:
    """One row of buckets that have the same verdict and the same tiers."""
    first, last = run[0], run[-1]
    span = f" .. {time_text(last.bucket)} ({len(run):,})" if len(run) > 1 else ""
    row: dict[str, Any] = {
        "topic": topic_name(first.source),
        "buckets": time_text(first.bucket) + span,
    }
    for tier in tiers:
        counts = [count for verdict in run if (count := verdict.count(tier)) is not None]
        row[tier.value.lower()] = sum(counts) if counts else None
    return row | {"verdict": first.status.word, "why": reasons_text(first.reasons)}


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
        "reasons": list(verdict.reasons),
        "places": _places(verdict.places()),
        "agents": [_agent(agent) for agent in verdict.agents],
    }


def topic_name(source: Source) -> str:
    """As a mirror would call it: cluster and topic."""
    return f"{source.cluster}.{source.topic}"


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


def _sentence(verdicts: Sequence[BucketVerdict], by_status: dict[Status, int], overdue: int) -> str:
    if not verdicts:
        return "Nothing was counted: there is no bucket to judge."
    topics = len({verdict.source for verdict in verdicts})
    complete = by_status.get(Status.COMPLETE, 0)
    young = sum(1 for x in verdicts if not x.due and x.status is not Status.COMPLETE)
    of_topics = f"of {topics} topic{'s' if topics != 1 else ''}"
    if complete == len(verdicts):
        what = "The bucket" if complete == 1 else f"All {complete} buckets"
        return f"{what} {of_topics} {'is' if complete == 1 else 'are'} complete."
    parts = [f"{complete} of {len(verdicts)} buckets {of_topics} are complete"]
    if overdue:
        bad = Counter(x.status for x in verdicts if x.due and x.status is not Status.COMPLETE)
        words = ", ".join(f"{n} {status.word}" for status, n in sorted(bad.items(), reverse=True))
        parts.append(f"{overdue} should be and {'is' if overdue == 1 else 'are'} not ({words})")
    if young:
        parts.append(f"{young} {'is' if young == 1 else 'are'} too young to say")
    return "; ".join(parts) + "."


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

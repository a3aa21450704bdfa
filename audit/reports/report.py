"""Reports on verdicts: as a sentence, a table and an exit status for people, and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from skidway.audit.counts.checksum import brief
from skidway.audit.counts.counts import Sums
from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.audit.judgement import reasons
from skidway.audit.judgement.standing import Standing, TopicStanding
from skidway.audit.judgement.verdict import AgentVerdict, BucketVerdict, Place, Status
from skidway.audit.reports.topic_names import topic_name, topic_names
from skidway.audit.topic.count_columns import Filtered
from skidway.audit.topic.decisions import Acceptance
from skidway.audit.topic.messages import Tier
from skidway.audit.topic.recount_result import RecountResult
from skidway.kafka.source import Source

NAMES_SHOWN = 3

REASONS_SHOWN = 3
"""A line of the table shows at most this many reasons; JSON and the pages have all of them."""


def exit_status(found: Standing, *, everything: bool) -> int:
    """The exit status, for the case that no clock is wrong: 0 if all of the following statements
    are true; 1 if one of them is false. There are buckets. Every bucket that is due is complete or
    accepted; with `everything`, also every bucket that is not due yet. Every loss and every warning
    was accepted. The buckets of every hour were judged, and the collector is not rebuilding its
    store. The newest recount of every output agrees with the counts.
    """
    buckets = sum(found.by_status.values())
    good = found.by_status.get(Status.COMPLETE, 0) + sum(found.accepted.values())
    short = good < buckets if everything else bool(found.overdue)
    differs = any(not recount.is_good for recount in found.recounts)
    is_whole = not found.unjudged and not found.rebuilding
    return int(buckets == 0 or short or found.warned > 0 or differs or not is_whole)


def sentence(found: Standing) -> str:
    """The verdict on all buckets in one sentence, followed by remarks about rejects, filtered,
    repeated and aborted records, gaps in the counts, and recounts."""
    if found.rebuilding:
        return f"Rebuilding: {reasons.of_rebuilding(found.rebuilding)}."
    judged = [_completeness(found)]
    if found.unjudged:
        judged.append(f"{_counted(found.unjudged, 'hour')} of older buckets not judged yet")
    return "; ".join([*judged, *_remarks(found)]) + "."


def table(
    verdicts: Iterable[BucketVerdict], tiers: Sequence[Tier], *, each: bool = False
) -> list[dict[str, Any]]:
    """The rows of the report's table. Consecutive buckets of a topic share a row if they have the
    same verdict, reasons and warnings, and if the same tiers reported them. The row shows the sums
    of their counts. If `each` is true, every bucket has a row of its own.
    """

    def alike(verdict: BucketVerdict) -> tuple[object, ...]:
        reported = tuple(verdict.count(tier) is not None for tier in tiers)
        return verdict.source, verdict.word, verdict.due, verdict.words, reported

    found = list(verdicts)
    names = topic_names(x.source for x in found)
    runs = ([one] for one in found) if each else (list(x) for _, x in groupby(found, alike))
    return [_row(run, tiers, names[run[0].source]) for run in runs]


def _row(run: Sequence[BucketVerdict], tiers: Sequence[Tier], topic: str) -> dict[str, Any]:
    """The row that the buckets of `run` share. They have the same verdict, and counts of the same
    tiers."""
    first, last = run[0], run[-1]
    span = f" .. {time_text(last.bucket)} ({len(run):,})" if len(run) > 1 else ""
    row: dict[str, Any] = {
        "topic": topic,
        "buckets": time_text(first.bucket) + span,
    }
    for tier in tiers:
        counts = [count for verdict in run if (count := verdict.count(tier)) is not None]
        row[tier.value.lower()] = sum(counts) if counts else None
    return row | {"verdict": first.word, "why": reasons_text(first.words)}


def columns(tiers: Sequence[Tier]) -> list[str]:
    """The columns of `table`."""
    return ["topic", "buckets", *(tier.value.lower() for tier in tiers), "verdict", "why"]


@dataclass(slots=True)
class Bounded:
    """Limits the number of agents in a document. left: how many more agents the document may have.
    If a bucket has more than `left` agents, or if its verdict has only some of them, the document
    has only the agents with the gravest findings, and the URL of a list of all agents of the bucket
    (`agents_at`). `address` returns this URL.
    """

    address: Callable[[BucketVerdict], str]
    left: int = 500

    def agents(self, verdict: BucketVerdict) -> tuple[Sequence[AgentVerdict], str | None]:
        """Returns the agents that the document shows for a bucket, and the URL of a list of all
        agents of the bucket. The URL is None if the document shows all of them.
        """
        count = verdict.parts.count
        if len(verdict.agents) == count <= self.left:
            self.left -= count
            return verdict.agents, None
        few = verdict.parts.gravest
        return few, None if len(few) == count else self.address(verdict)


def sentences_of_deleted(buckets: int) -> list[str]:
    """Says that this many buckets are missing in the report, because their counts were deleted."""
    if not buckets:
        return []
    return [
        f"The store no longer has the counts of {_counted(buckets, 'older bucket')}, each of which"
        " was complete or accepted (keep.days)."
    ]


def document(
    found: Standing, shown: Sequence[BucketVerdict], bounded: Bounded | None = None
) -> dict[str, Any]:
    """The whole report as JSON: the standing, and an entry for each of the buckets `shown`.
    bounded: limits the number of agents in the document; None for no limit."""
    return {
        "sentence": sentence(found),
        **_numbers(found),
        "hours_unjudged": found.unjudged,
        "rebuilding": found.rebuilding,
        "topics": [_topic(topic) for topic in found.topics],
        "buckets_shown": len(shown),
        "buckets": [bucket_document(verdict, bounded) for verdict in shown],
    }


def _numbers(found: Standing | TopicStanding) -> dict[str, Any]:
    return {
        "buckets_judged": sum(found.by_status.values()),
        "buckets_overdue": sum(found.overdue.values()),
        "buckets_accepted": sum(found.accepted.values()),
        "buckets_warned": found.warned,
        "buckets_warned_accepted": found.warned_accepted,
        "by_verdict": {status.word: found.by_status.get(status, 0) for status in Status},
    }


def _topic(found: TopicStanding) -> dict[str, Any]:
    source = found.source
    return {
        "topic": source.topic,
        "cluster": source.cluster,
        "cluster_id": source.cluster_id,
        "topic_id": source.topic_id,
        **_numbers(found),
        "complete_until": found.complete_until,
        "oldest_overdue": found.oldest_overdue,
        "records": found.records,
        "rejects": found.rejects,
        "repeats": found.repeats,
        **_filtered(found.filtered),
        "uncounted_offsets": found.uncounted,
        "aborted_records": found.aborted,
        "recounts": [recount_document(recount) for recount in found.recounts],
    }


def recount_document(recount: RecountResult) -> dict[str, Any]:
    """The result of a recount as JSON."""
    return {
        "time": time_text(recount.time_ms),
        "host": recount.host,
        "output": recount.output,
        "since": None if recount.since_ms is None else time_text(recount.since_ms),
        "verdict": recount_word(recount),
        "loads": recount.loads,
        "files": recount.files,
        "rows": recount.rows,
        "faults": recount.faults,
        "differences": recount.differences,
        "reasons": list(recount.reasons),
    }


def recount_word(recount: RecountResult) -> str:
    """The result of a recount in one word, as `skidway audit recount` prints it."""
    return "agrees" if recount.is_good else "differs"


def bucket_document(verdict: BucketVerdict, bounded: Bounded | None = None) -> dict[str, Any]:
    """One bucket with its agents, as JSON. bounded: limits the number of agents in the document;
    None for no limit."""
    source, agents = verdict.source, verdict.agents
    more: dict[str, Any] = {}
    if bounded is not None:
        agents, more["agents_at"] = bounded.agents(verdict)
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
        "acceptances": [acceptance_document(each) for each in verdict.acceptances],
        "reasons": list(verdict.reasons),
        "warnings": [each.words for each in verdict.warnings],
        **_filtered(verdict.filtered),
        "places": _places(verdict.places()),
        "agents_count": verdict.parts.count,
        "agents": [agent_document(agent) for agent in agents],
        **more,
    }


def acceptance_document(acceptance: Acceptance) -> dict[str, Any]:
    """Returns an acceptance as JSON: who made it, whether that is proven, when and why, and which
    findings it names."""
    return {
        "id": acceptance.id,
        "person": acceptance.person,
        "signed": acceptance.is_signed,
        "time": time_text(acceptance.time_ms),
        "reason": acceptance.reason,
        "findings": [each._asdict() for each in acceptance.findings],
    }


def reasons_text(said: Sequence[str]) -> str:
    """The first REASONS_SHOWN reasons in one line, and how many more there are."""
    shown = "; ".join(said[:REASONS_SHOWN])
    more = len(said) - REASONS_SHOWN
    return f"{shown}; and {more} more" if more > 0 else shown


def time_text(time_ms: int) -> str:
    """The time as RFC 3339, in UTC, to the second. If the time is outside the years 1 to 9999, the
    text has the number of ms instead."""
    try:
        moment = datetime(1970, 1, 1) + timedelta(milliseconds=time_ms)  # noqa: DTZ001 - UTC
    except OverflowError:
        return f"{time_ms} ms"
    return f"{moment.isoformat(timespec='seconds')}Z"


def _completeness(found: Standing) -> str:
    buckets = sum(found.by_status.values())
    if not buckets:
        return "Nothing was counted of what was asked for: there is no bucket to judge"
    topics, complete = len(found.counted), found.by_status.get(Status.COMPLETE, 0)
    of_topics = f"of {topics} topic{'s' if topics != 1 else ''}"
    if complete == buckets:
        what = "The bucket" if complete == 1 else f"All {complete} buckets"
        return f"{what} {of_topics} {'is' if complete == 1 else 'are'} complete"
    parts = [f"{complete} of {buckets} buckets {of_topics} are complete"]
    early, accepted = found.lost_early, sum(found.accepted.values())
    overdue = Counter(found.overdue) - Counter({Status.LOST: early})
    if bad := overdue.total():
        parts.append(f"{_are(bad, 'should be and', 'not')} ({_by_status(overdue)})")
    if early:
        parts.append(_are(early, "", "too young to be complete, and lost already"))
    if accepted:
        parts.append(f"{_are(accepted, '', 'not, and accepted')} ({_by_status(found.accepted)})")
    if young := buckets - complete - bad - early - accepted:
        parts.append(_are(young, "", "too young to say"))
    return "; ".join(parts)


def _remarks(found: Standing) -> Iterator[str]:
    topics = [topic for topic in found.topics if not topic.source.topic.endswith(REJECTED_SUFFIX)]
    by_agents = sum(topic.records for topic in found.topics) - sum(x.records for x in topics)
    by_loader = sum(topic.rejects for topic in found.topics)
    repeats = sum(topic.repeats for topic in found.topics)
    if by_agents:
        yield f"agents rejected {_counted(by_agents, 'line')}"
    if filtered := sorted(_by_rule(topics).items(), key=lambda x: (-x[1], x[0])):
        yield _filtered_words(filtered)
    if by_loader:
        yield f"the loader rejected {_counted(by_loader, 'record')}"
    if repeats:
        yield f"{_counted(repeats, 'repeat')} {'was' if repeats == 1 else 'were'} left out"
    if found.warned:
        yield f"{_counted(found.warned, 'bucket')} with more rejects than allowed"
    if accepted := found.warned_accepted:
        yield f"{_counted(accepted, 'bucket')} with more rejects than allowed, and accepted"
    if gaps := [topic for topic in found.topics if topic.uncounted]:
        of = _some_names(topic.source for topic in gaps)
        yield f"counters could not read {_counted(found.uncounted, 'offset')} of {of}"
    if aborted := [topic for topic in found.topics if topic.aborted]:
        count = _counted(sum(topic.aborted for topic in aborted), "record")
        of = _some_names(topic.source for topic in aborted)
        yield f"{count} of aborted transactions of {of} left out"
    if differing := [x for x in found.recounts if not x.is_good]:
        of = _some_names(recount.source for recount in differing)
        yield f"by the newest recount the rows of {of} are not what was counted"


def _by_rule(topics: Iterable[TopicStanding]) -> Mapping[str, int]:
    found: Counter[str] = Counter()
    for topic in topics:
        found.update({x.rule: x.records for x in topic.filtered})
    return found


def _filtered_words(found: Sequence[tuple[str, int]]) -> str:
    shown = ", ".join(f"{rule} {count:,}" for rule, count in found[:NAMES_SHOWN])
    more = f" and {len(found) - NAMES_SHOWN} more" if len(found) > NAMES_SHOWN else ""
    total = sum(count for _, count in found)
    return f"rules filtered {_counted(total, 'record')} ({shown}{more})"


def _some_names(sources: Iterable[Source]) -> str:
    names = list(dict.fromkeys(map(topic_name, sources)))
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(names[:NAMES_SHOWN]) + more


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _are(count: int, before: str, behind: str) -> str:
    verb = "is" if count == 1 else "are"
    return " ".join(filter(None, [str(count), before, verb, behind]))


def _by_status(found: Mapping[Status, int]) -> str:
    counts = sorted(found.items(), reverse=True)
    return ", ".join(f"{count} {status.word}" for status, count in counts)


def agent_document(verdict: AgentVerdict) -> dict[str, Any]:
    """The verdict on one agent in one bucket, as JSON."""
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
        "checksum": brief(sums.checksum),
        "rejects": sums.rejects,
        "repeats": sums.repeats,
        **_filtered(sums.filtered),
    }


def _filtered(found: Sequence[Filtered]) -> dict[str, Any]:
    rules = [{"rule": x.rule, "records": x.records, "bytes": x.bytes} for x in found]
    return {"filtered": sum(x.records for x in found), "filtered_by_rule": rules}

"""Puts the answers of `skidway audit complete` into sentences and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from skidway.audit.judgement import reasons
from skidway.audit.judgement.completeness import Completeness, Question
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.verdict import BucketVerdict, Finding, Status, accepted_words
from skidway.audit.reports import report
from skidway.audit.reports.topic_names import topic_names
from skidway.audit.topic.messages import Tier
from skidway.kafka.source import Source

HOUR_MS = 3_600_000
HOURS_SHOWN = 3
PLACES_SHOWN = 3
BUCKETS_SHOWN = 1_000
"""For each topic, the JSON document has at most this many of the buckets whose rows a job should
not read yet."""


def sentences(found: Sequence[Completeness], question: Question, policy: Policy) -> list[str]:
    """A few sentences for each topic: whether it is complete, what it lacks, and which findings
    were accepted."""
    names = topic_names(x.source for x in found if x.source is not None)
    said = []
    for each in found:
        name = _name(each, names)
        if each.is_short:
            said.append(" ".join(_of_short(each, name, question)))
        else:
            said.append(_of_complete(each, name, question, policy))
        said += _of_accepted(each, name)
    return said


def document(
    found: Sequence[Completeness],
    question: Question,
    policy: Policy,
    waited_s: float,
    bounded: report.Bounded | None = None,
    notes: Iterable[str] = (),
) -> dict[str, Any]:
    """The whole answer as a JSON document. waited_s: how long the command has waited for the topics
    to become complete. bounded: limits the number of agents in the document; None for no limit.
    notes: sentences about the question (see completeness_question.notes_on).
    """
    names = topic_names(x.source for x in found if x.source is not None)
    return {
        "ok": not any(each.is_short for each in found),
        "topic": question.name,
        "since": report.time_text(question.since_ms),
        "since_ms": question.since_ms,
        "until": report.time_text(question.until_ms),
        "until_ms": question.until_ms,
        "seconds_waited": round(waited_s, 1),
        "sentences": sentences(found, question, policy),
        "notes": list(notes),
        "topics": [_topic(each, _name(each, names), policy, bounded) for each in found],
    }


def _name(found: Completeness, names: Mapping[Source, str]) -> str:
    return found.name if found.source is None else names[found.source]


def _of_complete(found: Completeness, name: str, question: Question, policy: Policy) -> str:
    since, until = report.time_text(question.since_ms), report.time_text(question.until_ms)
    tiers = _tiers(found, policy)
    records = sum(verdict.records for verdict in found.verdicts)
    outside = "" if Tier.HDFS.value.lower() in tiers else "; it is not compared with tier hdfs"
    return (
        f"{name} is complete from {since} to {until} in {', '.join(tiers)}"
        f" ({_records(records, has_agents=found.has_agents)}){outside}."
    )


def _records(count: int, *, has_agents: bool) -> str:
    if not count and has_agents:
        return "0 records: each agent of the topic vouches that its files had no line of this time"
    if not count:
        return "0 records: no agent has this topic, and nothing was counted of this time"
    return f"{count:,} record{'' if count == 1 else 's'}"


def _of_short(found: Completeness, name: str, question: Question) -> Iterator[str]:
    until = report.time_text(question.until_ms)
    doubts = f": {'; '.join(found.doubts)}" if found.doubts else ""
    yield f"{name} is not complete up to {until}{doubts}."
    if not found.short:
        return
    hours = [report.time_text(hour) for hour in sorted(set(map(_hour, found.short)))]
    shown = f"{', '.join(hours[:HOURS_SHOWN])}{_more(len(hours) - HOURS_SHOWN)}"
    buckets = f"{len(found.short):,} of {len(found.verdicts):,} buckets"
    verb = "is" if len(found.short) == 1 else "are"
    yield f"{buckets} {verb} short, in the hour{'s' if len(hours) > 1 else ''} {shown}."
    lacks = [
        f"{reasons.of_place(place)} lacks {count:,} record{'' if count == 1 else 's'}"
        for place, count in found.lacking().items()
    ]
    if lacks:
        yield f"There {'; '.join(lacks[:PLACES_SHOWN])}{_more(len(lacks) - PLACES_SHOWN)}."
    for status in sorted({_gravity(x) for x in found.short}, reverse=True):
        first = next(x for x in found.short if _gravity(x) is status)
        words = first.words if status is Status.COMPLETE else _left(first)
        word = "complete with a warning" if status is Status.COMPLETE else status.word
        when = report.time_text(first.bucket)
        yield f"{when} is {word}: {report.reasons_text(words)}."


def _of_accepted(found: Completeness, name: str) -> Iterator[str]:
    """Yields a sentence for each person and reason in the acceptances. The sentence names the
    buckets that the person accepted for this reason. After REASONS_SHOWN sentences, the last
    sentence says how many more acceptances there are.
    """
    by_words: dict[str, list[BucketVerdict]] = {}
    for verdict in found.accepted:
        for words in dict.fromkeys(map(accepted_words, verdict.acceptances)):
            by_words.setdefault(words, []).append(verdict)
    shown = list(by_words.items())[: report.REASONS_SHOWN]
    for words, verdicts in shown:
        first, last = verdicts[0], verdicts[-1]
        span = report.time_text(first.bucket)
        if first is not last:
            span += f" .. {report.time_text(last.bucket)} ({len(verdicts):,})"
        gravest = max(x.status for x in verdicts)
        yield f"{name} {span} is {gravest.word}, {words}."
    if len(by_words) > len(shown):
        yield f"{name} has {len(by_words) - len(shown)} more acceptances; --json has all."


def _gravity(verdict: BucketVerdict) -> Status:
    residue = verdict.residue
    return residue if verdict.due else max(residue, Status.OPEN)


def _left(verdict: BucketVerdict) -> list[str]:
    """The reasons why the bucket is not complete. Leaves out findings that somebody accepted, and
    remarks (findings that leave a bucket complete).
    """
    is_remark = any(x.status is Status.COMPLETE or x.acceptance for x in verdict.findings)
    if not is_remark and not verdict.parts.has_remarks:
        return [*verdict.reasons]
    agents = [replace(x, reasons=_words_left(x.findings)) for x in verdict.agents]
    return [*_words_left(verdict.findings), *reasons.by_host(agents)]


def _words_left(findings: Sequence[Finding]) -> tuple[str, ...]:
    left = (x for x in findings if x.status > Status.COMPLETE and x.acceptance is None)
    return tuple(dict.fromkeys(x.words for x in left))


def _more(count: int) -> str:
    return f" and {count} more" if count > 0 else ""


def _hour(verdict: BucketVerdict) -> int:
    return verdict.bucket - verdict.bucket % HOUR_MS


def _tiers(found: Completeness, policy: Policy) -> list[str]:
    tiers = policy.tiers if found.source is None else policy.tiers_of(found.source)
    return [tier.value.lower() for tier in tiers]


def _topic(
    found: Completeness, name: str, policy: Policy, bounded: report.Bounded | None
) -> dict[str, Any]:
    source, short = found.source, found.short
    hours: dict[int, list[BucketVerdict]] = {}
    for verdict in short:
        hours.setdefault(_hour(verdict), []).append(verdict)
    return {
        "name": name,
        "cluster": None if source is None else source.cluster,
        "topic": None if source is None else source.topic,
        "topic_id": None if source is None else source.topic_id,
        "ok": not found.is_short,
        "tiers": _tiers(found, policy),
        "reasons": list(found.doubts),
        "buckets": len(found.verdicts),
        "buckets_short": len(short),
        "buckets_accepted": len(found.accepted),
        "records": sum(verdict.records for verdict in found.verdicts),
        "lacking": [
            {"tier": place.tier.value.lower(), "place": place.name, "records": count}
            for place, count in found.lacking().items()
        ],
        "hours_short": [
            {
                "hour": report.time_text(hour),
                "buckets_short": len(verdicts),
                "verdict": max(map(_gravity, verdicts)).word,
            }
            for hour, verdicts in sorted(hours.items())
        ],
        "short": [report.bucket_document(verdict, bounded) for verdict in short[:BUCKETS_SHOWN]],
        "accepted": [report.bucket_document(verdict, bounded) for verdict in found.accepted],
    }

"""The page of topics, and the two tables about topics on the first page."""

from __future__ import annotations

from skidway.audit.collector.pages import words
from skidway.audit.collector.pages.facts import Facts
from skidway.audit.collector.pages.pace import Pace
from skidway.audit.collector.pages.table import Cell, Column, Table
from skidway.audit.judgement.standing import TopicStanding
from skidway.audit.judgement.verdict import Status
from skidway.audit.reports import fieldless_report, report
from skidway.audit.topic.recount_result import RecountResult

_ARROWS = {"rising": "↗", "falling": "↘", "steady": "→", "": ""}


def freshness_table(facts: Facts, shown_max: int) -> Table:
    """Returns a table that says up to which time each topic is complete, and how long after their
    end the buckets of the topic became complete. The topic with the greatest lag comes first.
    """
    since = (
        "This collector has no history, so freshness is unknown."
        if facts.completions is None
        else "Freshness is of the minutes of the last day that the history has."
    )
    return Table(
        "freshness",
        "Complete until, and how soon after its end a minute was complete",
        (
            Column("topic", "Topic"),
            Column("complete_until", "Complete until", "time"),
            Column("p50_s", "p50", "number"),
            Column("p99_s", "p99", "number"),
            Column("target_s", "Target of p99", "number", 2),
        ),
        tuple(
            (
                _name(facts, topic),
                _until(facts, topic),
                _seconds(pace.p50_s),
                _seconds(pace.p99_s),
                _target(pace),
            )
            for topic, pace in _by_lag(facts)
        ),
        empty="Nothing was counted yet.",
        shown_max=shown_max,
        href="/topics",
        note=since,
        title="Complete until, and freshness",
    )


def lag_table(facts: Facts, shown_max: int) -> Table:
    """Returns a table with the age of each topic's oldest bucket that is not complete, and how this
    age has changed.
    """
    return Table(
        "lag",
        "Age of the oldest minute that is not complete yet, and its last hour",
        (
            Column("topic", "Topic"),
            Column("lag_s", "Lag", "number"),
            Column("trend", "Trend"),
        ),
        tuple((_name(facts, topic), _lag(pace), _trend(pace)) for topic, pace in _by_lag(facts)),
        empty="Nothing was counted yet.",
        shown_max=shown_max,
        href="/topics",
    )


def topics_table(facts: Facts) -> Table:
    """Returns a table with all topics, including the topics of rejects, and all facts about each of
    them."""
    return Table(
        "topics",
        "All topics, those of rejects too",
        (
            Column("topic", "Topic"),
            Column("buckets", "Buckets"),
            Column("complete_until", "Complete until", "time"),
            Column("oldest_overdue", "Oldest that is not", "time", 2),
            Column("lag_s", "Lag", "number"),
            Column("trend", "Trend", rank=2),
            Column("p50_s", "p50", "number", 3),
            Column("p99_s", "p99", "number", 3),
            Column("target_s", "Target of p99", "number", 3),
            Column("records", "Records", "number", 2),
            Column("filtered", "Filtered", "number", 4),
            Column("repeats", "Repeats", "number", 4),
            Column("uncounted", "Not counted", "number", 4),
            Column("fieldless", "Members without a field", rank=4),
            Column("recounts", "Recount", rank=3),
        ),
        tuple(_row(facts, topic) for topic in facts.standing.topics),
        empty="Nothing was counted yet.",
    )


def _row(facts: Facts, topic: TopicStanding) -> tuple[Cell, ...]:
    pace = facts.paces[topic.source]
    filtered = sum(x.records for x in topic.filtered)
    return (
        _name(facts, topic),
        Cell(words.by_verdict(topic), status=_status(topic)),
        _until(facts, topic),
        _overdue(facts, topic),
        _lag(pace),
        _trend(pace),
        _seconds(pace.p50_s),
        _seconds(pace.p99_s),
        _target(pace),
        Cell(f"{topic.records:,}", topic.records),
        Cell(f"{filtered:,}", filtered),
        Cell(f"{topic.repeats:,}", topic.repeats),
        Cell(f"{topic.uncounted:,}", topic.uncounted),
        _fieldless(facts, topic),
        _recounts(topic.recounts, facts.now_ms),
    )


def _by_lag(facts: Facts) -> list[tuple[TopicStanding, Pace]]:
    found = [(topic, facts.paces[topic.source]) for topic in facts.topics]
    return sorted(found, key=lambda x: (-(x[1].lag_s or 0), facts.names[x[0].source]))


def _name(facts: Facts, topic: TopicStanding) -> Cell:
    name = facts.names[topic.source]
    return Cell(name, href=words.link("/buckets", topic=name))


def _status(topic: TopicStanding) -> str:
    overdue = [status for status, count in topic.overdue.items() if count]
    if overdue:
        return max(overdue).word
    if not topic.buckets or not topic.is_complete:
        return Status.OPEN.word
    return words.WARNED if topic.warned else Status.COMPLETE.word


def _until(facts: Facts, topic: TopicStanding) -> Cell:
    if topic.complete_until is None:
        return Cell("not yet", status=_status(topic))
    said = words.near(topic.complete_until, facts.now_ms)
    accepted = " (or accepted)" if sum(topic.accepted.values()) else ""
    return Cell(f"{said}{accepted}", topic.complete_until, status=_status(topic))


def _overdue(facts: Facts, topic: TopicStanding) -> Cell:
    bucket = topic.oldest_overdue
    if bucket is None:
        return Cell("")
    name = facts.names[topic.source]
    return Cell(
        words.near(bucket, facts.now_ms), bucket, words.link("/buckets", topic=name, bucket=bucket)
    )


def _seconds(value: float | None) -> Cell:
    return Cell("unknown") if value is None else Cell(words.duration(value), round(value, 3))


def _target(pace: Pace) -> Cell:
    if pace.target_s is None:
        return Cell("none set")
    said = f"{words.duration(pace.target_s)}"
    if pace.is_on_target is None:
        return Cell(said, pace.target_s)
    status, word = (Status.COMPLETE, "kept") if pace.is_on_target else (Status.INCOMPLETE, "missed")
    return Cell(f"{said}, {word}", pace.target_s, status=status.word)


def _lag(pace: Pace) -> Cell:
    if pace.lag_s is None:
        return Cell("nothing counted")
    said = f"{pace.lag_s:,.0f} s"
    if pace.lag_s >= 60:
        said += f" ({words.duration(pace.lag_s)})"
    return Cell(said, round(pace.lag_s, 3))


def _trend(pace: Pace) -> Cell:
    said = f"{_ARROWS[pace.trend]} {pace.trend}" if pace.trend else "not known yet"
    return Cell(said, pace.trend or None, points=pace.points)


def _fieldless(facts: Facts, topic: TopicStanding) -> Cell:
    members = facts.fieldless.get((topic.source.cluster, topic.source.topic))
    if not members:
        return Cell("")
    found = dict(members.most_common())
    return Cell(fieldless_report.words(found), found)


def _recounts(found: tuple[RecountResult, ...], now_ms: int) -> Cell:
    """Returns a cell that says, for each output, whether its newest recount agreed with the audit's
    counts. The page of loads says why a recount did not agree.
    """
    said = [f"{report.recount_word(x)} at {words.near(x.time_ms, now_ms)}" for x in found]
    good = Status.COMPLETE if all(x.is_good for x in found) else Status.INCOMPLETE
    values = [report.recount_document(x) for x in found]
    return Cell("; ".join(said), values, "/loads", good.word) if found else Cell("")

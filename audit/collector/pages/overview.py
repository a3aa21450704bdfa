"""The first page: the verdict, how complete and fresh the topics are, what is at risk, which hosts
are silent, what was rejected, how far behind the topics are, and a grid of the topics' buckets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from skidway.audit.collector.pages import rejects, risk, topics, words
from skidway.audit.collector.pages.facts import Facts
from skidway.audit.collector.pages.grid import Grid, grid
from skidway.audit.collector.pages.hosts import silent_table
from skidway.audit.collector.pages.table import Table, document
from skidway.audit.explanation.document import document_of, sentence
from skidway.audit.explanation.next_command import explain_bucket
from skidway.audit.judgement.standing import Standing
from skidway.audit.judgement.verdict import Status
from skidway.audit.reports import clock_report, host_report, refused_report, report

SHOWN = 6
"""A table on the first page shows at most this many rows. Another page shows all rows."""


@dataclass(frozen=True, slots=True)
class Headline:
    """A sentence about all buckets, and a status: the gravest status among the buckets that
    somebody should look at."""

    sentence: str
    status: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The first page. alarms: the result of the function `alarms`. tables: in the order in which
    the page shows them."""

    headline: Headline
    alarms: tuple[str, ...]
    tables: tuple[Table, ...]
    grid: Grid


def overview(facts: Facts, unit: str, until: int | None) -> Overview:
    """Returns the first page. unit: whether the columns of its grid are minutes, hours or days.
    until: the grid has only columns that begin before this time (ms); None for the newest columns.
    """
    found = headline(facts.standing)
    return Overview(
        replace(found, sentence=f"{facts.as_of}{found.sentence}"),
        alarms(facts),
        (
            topics.freshness_table(facts, SHOWN),
            risk.table(facts),
            silent_table(facts, SHOWN),
            rejects.table(facts, shown_max=SHOWN),
            topics.lag_table(facts, SHOWN),
        ),
        grid(facts, unit, until),
    )


def overview_document(facts: Facts, unit: str, until: int | None) -> dict[str, Any]:
    """Returns the content of the first page as a JSON document for programs."""
    found = overview(facts, unit, until)
    newest = [verdict for topic in facts.standing.topics for verdict in topic.newest.values()]
    return {
        **report.document(facts.standing, newest),
        "hosts": host_report.summary(facts.hosts, facts.unread.hosts),
        "clocks": clock_report.document(facts.clocks),
        "causes": [document_of(x) for x in facts.present],
        "worst": None if facts.worst is None else facts.worst.document(),
        "sources": facts.unread.sentences,
        **refused_report.document(facts.evidence),
        **document(found.tables),
        "by": unit,
        "grid": found.grid.table().records(),
    }


def alarms(facts: Facts) -> tuple[str, ...]:
    """Returns sentences about what is wrong now or, if there is no such thing, the worst problem;
    about sources without files, recounts that differ from the audit's counts, refused messages,
    clocks that are wrong, and hosts that have the same name."""
    return (
        *present_alarms(facts),
        *([] if facts.worst is None else [facts.worst.sentence(facts.access)]),
        *facts.unread.beside,
        *(
            f"The newest recount of {facts.names[topic.source]} in {x.output}, on {x.host}, found: "
            f"{report.reasons_text(x.reasons)}. "
            f"Next: {explain_bucket(facts.names[topic.source], None, facts.access)}"
            for topic in facts.standing.topics
            for x in topic.recounts
            if not x.is_good
        ),
        *refused_report.sentences(facts.evidence, facts.now_ms),
        *clock_report.sentences(facts.clocks),
        *host_report.namesakes_sentences(facts.hosts),
    )


def present_alarms(facts: Facts) -> tuple[str, ...]:
    """Returns a sentence about everything that is wrong now, with the next command."""
    return tuple(map(sentence, facts.present))


def headline(found: Standing) -> Headline:
    """Returns the headline of a page about the topics of this standing. If a recount of the rows in
    HDFS differs from the audit's counts, the status is at least `incomplete`.
    """
    differ = [Status.INCOMPLETE] if any(not x.is_good for x in found.recounts) else []
    overdue = [*(status for status, count in found.overdue.items() if count), *differ]
    status = max(overdue, default=Status.COMPLETE).word
    if not overdue:
        is_complete = found.by_status.get(Status.COMPLETE, 0) > 0
        is_complete &= not found.unjudged
        status = words.WARNED if found.warned else status if is_complete else Status.OPEN.word
    return Headline(report.sentence(found), status)

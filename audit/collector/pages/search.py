"""Finds topics, hosts and senders by a part of their names, and buckets by a text in the reasons of
their verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from skidway.audit.collector.history_store import BucketHistory
from skidway.audit.collector.pages import words
from skidway.audit.collector.pages.facts import Facts
from skidway.audit.collector.pages.table import Cell, Column, Table
from skidway.audit.reports.topic_names import topic_name

FOUND_MAX = 200


def results_table(facts: Facts, text: str, noted: Sequence[BucketHistory] = ()) -> Table:
    """Returns a table with a row for each name or reason that contains the text, in upper or lower
    case. noted: histories of buckets; a history gets a row if one of its reasons or causes contains
    the text.
    """
    rows = list(_found(facts, text.lower(), noted)) if text else []
    return Table(
        "results",
        f"What contains {text!r}" if text else "Nothing was asked for",
        (Column("kind", "Kind"), Column("what", "What"), Column("where", "Where it says so")),
        tuple(dict.fromkeys(rows))[:FOUND_MAX],
        empty="No topic, host, sender or reason of the last day contains it."
        if text
        else "Write a part of a topic's, host's or output's name, or of a reason.",
        shown_max=FOUND_MAX,
    )


def _found(facts: Facts, text: str, noted: Sequence[BucketHistory]) -> Iterator[tuple[Cell, ...]]:
    for name in sorted(facts.names.values()):
        if text in name.lower():
            yield Cell("topic"), Cell(name, href=words.link("/buckets", topic=name)), Cell(name)
    for state in facts.hosts:
        ids = ", ".join(f"agent {each.agent}" for each in state.agents)
        if text in f"{state.host} {ids}".lower():
            href = words.link("/hosts", q=state.host)
            yield Cell("host"), Cell(state.host, href=href), Cell(ids or "no agent heard")
    for sender in facts.senders:
        said = f"{sender.key.producer} {sender.numbers.host} {sender.numbers.cluster}"
        if text in said.lower():
            kind = sender.key.tier.value.lower()
            yield Cell(f"sender at {kind}"), Cell(sender.key.producer, href="/hosts"), Cell(said)
    yield from _in_newest(facts, text)
    yield from _in_history(noted, text)


def _in_newest(facts: Facts, text: str) -> Iterator[tuple[Cell, ...]]:
    for topic in facts.standing.topics:
        for verdict in topic.newest.values():
            said = next((x for x in verdict.words if text in x.lower()), None)
            if said is not None:
                yield _bucket(facts.names[topic.source], verdict.bucket, said)


def _in_history(noted: Sequence[BucketHistory], text: str) -> Iterator[tuple[Cell, ...]]:
    for each in noted:
        reasons = (x for row in reversed(each.rows) for x in (*row.reasons, row.cause))
        said = next((x for x in reasons if text in x.lower()), "")
        yield _bucket(topic_name(each.source), each.bucket, said)


def _bucket(name: str, bucket: int, said: str) -> tuple[Cell, ...]:
    href = words.link("/buckets", topic=name, bucket=bucket)
    return Cell("bucket"), Cell(f"{name} {words.moment(bucket)}", href=href), Cell(said)

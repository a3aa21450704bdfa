"""The page of mirrors. For each topic of each mirror, the page shows by how many offsets the
counter of the mirror is behind the counter of the source cluster. The page also shows the offsets
that counters could not read.
"""

from __future__ import annotations

from collections.abc import Iterator

from skidway.audit.collector.pages import words
from skidway.audit.collector.pages.facts import Facts
from skidway.audit.collector.pages.loads import behind
from skidway.audit.collector.pages.table import Cell, Column, Table
from skidway.audit.evidence.evidence import TopicEvidence
from skidway.audit.evidence.tallies import SenderKey
from skidway.audit.explanation.next_command import command_of
from skidway.audit.explanation.present_causes import nearest
from skidway.audit.judgement.cause import Cause, Run
from skidway.audit.judgement.sender_states import SenderState
from skidway.audit.judgement.verdict import Status
from skidway.audit.reports.topic_names import topic_name
from skidway.audit.topic.messages import Tier
from skidway.kafka.source import Source


def mirrors_table(facts: Facts) -> Table:
    """Returns a table with a row for each topic of each mirror."""
    states = {x.key: x for x in facts.senders}
    return Table(
        "mirrors",
        "What the mirrors' counters have seen, by mirror and topic",
        (
            Column("mirror", "Mirror"),
            Column("topic", "Topic"),
            Column("behind", "Behind the source", "number"),
            Column("state", "Counter"),
            Column("last_seen", "Last heard", "time", 2),
            Column("partitions", "Partitions", "number", 3),
            Column("offsets", "Records seen", "number", 3),
            Column("command", "Next", "code"),
        ),
        tuple(
            _row(facts, states[key], source, topic)
            for key, source, topic in _found(facts)
            if key in states
        ),
        empty="No counter of a mirror has sent counts yet.",
    )


def gaps_table(facts: Facts) -> Table:
    """Returns a table of the offsets that mirrors and counters could not read."""
    return Table(
        "gaps",
        "Offsets that could not be read",
        (
            Column("topic", "Topic"),
            Column("partition", "Partition", "number"),
            Column("first", "First offset", "number"),
            Column("end", "End", "number"),
            Column("by", "Told by"),
            Column("time", "At", "time", 2),
            Column("reason", "Reason"),
        ),
        tuple(
            (
                Cell(facts.names.get(source, topic_name(source))),
                Cell(str(note.gap.partition), note.gap.partition),
                Cell(f"{note.gap.first:,}", note.gap.first),
                Cell(f"{note.gap.end:,}", note.gap.end),
                Cell(f"{note.sender.tier.value.lower()} {note.sender.producer}"),
                Cell(words.near(note.time_ms, facts.now_ms), note.time_ms),
                Cell(note.gap.reason),
            )
            for source, topic in facts.evidence.topics.items()
            for note in sorted(topic.gaps, key=lambda x: -x.time_ms)
        ),
        empty="None.",
    )


def _found(facts: Facts) -> Iterator[tuple[SenderKey, Source, TopicEvidence]]:
    for source, topic in sorted(facts.evidence.topics.items(), key=lambda x: topic_name(x[0])):
        for key in topic.coverage:
            if key.tier is Tier.MIRROR:
                yield key, source, topic


def _row(
    facts: Facts, state: SenderState, source: Source, topic: TopicEvidence
) -> tuple[Cell, ...]:
    ours = topic.coverage[state.key]
    brokers = [x for key, x in topic.coverage.items() if key.tier is Tier.BROKER]
    late, seen = behind(ours, brokers), sum(x.end - x.first for x in ours.values())
    name, host = facts.names.get(source, topic_name(source)), state.numbers.host
    status = "" if late is None else (Status.OPEN if late else Status.COMPLETE).word
    away = nearest(facts.present, Cause.MIRROR_BEHIND, source.cluster, None)
    behind_cell = (
        Cell(f"unknown: {away.words}", status=Status.UNKNOWN.word)
        if away is not None
        else Cell("unknown")
        if late is None
        else Cell(words.counted(late, "record"), late, "", status)
    )
    run = Run("mirror", "mirror status")
    return (
        Cell(state.numbers.cluster),
        Cell(name, href=words.link("/buckets", topic=name)),
        behind_cell,
        Cell(state.words, status=state.status if state.status in words.GLYPHS else ""),
        Cell(words.near(state.last_seen_ms, facts.now_ms), state.last_seen_ms),
        Cell(str(len(ours)), len(ours)),
        Cell(f"{seen:,}", seen),
        Cell(str(command_of(facts.programs, run, host, source.cluster))),
    )

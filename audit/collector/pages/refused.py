"""The table of refused messages."""

from __future__ import annotations

from skidway.audit.collector.pages import words
from skidway.audit.collector.pages.facts import Facts
from skidway.audit.collector.pages.table import Cell, Column, Rows, Table
from skidway.audit.evidence.refused import Refused

SHOWN = 100


def refused_table(facts: Facts) -> Table:
    """Returns a table with a row for each sender, kind, reason and topic of refused messages. Those
    that were read last come first."""
    found = facts.evidence.refused
    count = sum(x.count for x in found)
    return Table(
        "refused",
        f"{words.counted(count, 'message')} without a good signature, or of no known form",
        (
            Column("sender", "Sender"),
            Column("kind", "Kind", rank=2),
            Column("reason", "Reason"),
            Column("detail", "What it said", rank=3),
            Column("topic", "Topic", rank=3),
            Column("partition", "Partition", "number", 4),
            Column("first_offset", "First offset", "number", 4),
            Column("last_offset", "Last offset", "number", 4),
            Column("count", "Messages", "number"),
            Column("last_seen", "Last seen", "time"),
            Column("taken", "Taken all the same", rank=2),
        ),
        Rows(found, lambda x: _row(x, facts.now_ms)),
        empty="None: no message was refused.",
        shown_max=SHOWN,
        title="Refused messages",
    )


def _row(found: Refused, now_ms: int) -> tuple[Cell, ...]:
    return (
        Cell(found.sender or "unknown"),
        Cell(found.kind),
        Cell(found.reason),
        Cell(found.detail),
        Cell(found.topic),
        Cell(str(found.partition), found.partition),
        Cell(f"{found.first:,}", found.first),
        Cell(f"{found.last:,}", found.last),
        Cell(f"{found.count:,}", found.count),
        Cell(words.near(found.taken_ms, now_ms), found.taken_ms),
        Cell("yes" if found.is_admitted else "no", found.is_admitted),
    )

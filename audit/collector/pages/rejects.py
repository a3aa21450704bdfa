"""Which share of each topic's lines was rejected, with examples: the newest bucket with rejects,
the text of a line that an agent rejected, and the text of a record that the loader rejected. If
agents rejected lines of a topic, the topic's row names a command that prints these lines.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from skidway.audit.collector.pages import words
from skidway.audit.collector.pages.facts import Facts
from skidway.audit.collector.pages.table import Cell, Column, Table
from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.audit.explanation.next_command import rejected_show
from skidway.audit.judgement.standing import TopicStanding
from skidway.audit.judgement.verdict import BucketVerdict
from skidway.audit.topic.messages import Tier
from skidway.kafka.source import Source
from skidway.schemas.consuming.rejected_examples import CUT, RejectedExample

COLUMNS = (
    Column("topic", "Topic"),
    Column("share", "Share", "number"),
    Column("rejected", "Rejected", "number"),
    Column("by_agents", "By agents", "number", 2),
    Column("by_loader", "By the loader", "number", 2),
    Column("of", "Of", "number", 2),
    Column("example", "Example", rank=2),
    Column("line", "One of them", "path", 2),
    Column("record", "A record that the loader rejected", "path", 3),
    Column("command", "Next", "code"),
)

_FEW = (0, 1, 2, 6, 7, 9)
LINE_CHARACTERS_MAX = 80
"""The first page shows at most this many characters of a rejected line."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """The rejects of a topic. command: a command that prints the lines that agents rejected; "" if
    agents rejected no lines. rest: the number of all records that are not rejects, including the
    records that rules of agents left out. example: the newest bucket with rejects; None if the
    newest buckets of the topic have no rejects. line: a line that an agent rejected. record: a
    record that the loader rejected.
    """

    name: str
    command: str
    by_agents: int
    by_loader: int
    rest: int
    is_warned: bool
    example: BucketVerdict | None
    line: RejectedExample | None = None
    record: RejectedExample | None = None

    @property
    def rejected(self) -> int:
        """The number of rejects, of the agents and of the loader together."""
        return self.by_agents + self.by_loader

    @property
    def of(self) -> int:
        """The number of all lines, including lines that rules of agents left out."""
        return self.rejected + self.rest

    @property
    def share(self) -> float:
        """The share of rejects among all lines; 0 if the number of lines is 0. The number of lines
        may be 0 although there are rejects, because an agent can take counts back by reporting
        negative counts."""
        return self.rejected / self.of if self.of else 0.0


def table(facts: Facts, *, shown_max: int = 500, everything: bool = False) -> Table:
    """Returns a table of topics; the topic with the greatest share of rejects comes first.
    everything: whether the table also has topics without rejects, and has all columns."""
    found = sorted(rejected(facts), key=lambda x: (-x.share, x.name))
    columns = range(len(COLUMNS)) if everything else _FEW
    limit = facts.policy.rejects_share
    return Table(
        "rejects",
        "Rejected lines and records"
        + (f"; more than {100 * limit:.3g} % in a minute is a warning" if limit < 1 else ""),
        tuple(COLUMNS[index] for index in columns),
        tuple(
            tuple(_row(x, everything=everything)[index] for index in columns)
            for x in found
            if everything or x.rejected
        ),
        empty="No line was rejected.",
        shown_max=shown_max,
        href="/rejects",
    )


def rejected(facts: Facts) -> Iterable[Rejected]:
    """Yields the rejects of each topic."""
    by_name = {
        (x.source.cluster, x.source.topic.removesuffix(REJECTED_SUFFIX)): x
        for x in facts.standing.topics
        if x.source.topic.endswith(REJECTED_SUFFIX)
    }
    for topic in facts.topics:
        of_agents = by_name.get((topic.source.cluster, topic.source.topic))
        filtered = sum(x.records for x in topic.filtered)
        yield Rejected(
            facts.names[topic.source],
            "" if of_agents is None or not of_agents.records else _command(facts, topic.source),
            0 if of_agents is None else of_agents.records,
            topic.rejects,
            topic.records - topic.rejects + filtered,
            topic.warned > 0 or (of_agents is not None and of_agents.warned > 0),
            _example(topic, of_agents),
            None if of_agents is None else facts.examples.get(of_agents.source),
            facts.examples.get(topic.source),
        )


def _command(facts: Facts, source: Source) -> str:
    is_mirrored = Tier.MIRROR in facts.policy.tiers_of(source)
    return rejected_show(source, facts.access, is_mirrored, "--max", "5")


def _example(topic: TopicStanding, of_agents: TopicStanding | None) -> BucketVerdict | None:
    found = [x for x in topic.newest.values() if x.rejects]
    found += [] if of_agents is None else [x for x in of_agents.newest.values() if x.records]
    return max(found, key=lambda x: x.bucket, default=None)


def _row(found: Rejected, *, everything: bool) -> tuple[Cell, ...]:
    status = words.WARNED if found.is_warned else ""
    return (
        Cell(found.name, href=words.link("/buckets", topic=found.name)),
        Cell(words.share(found.rejected, found.of), found.share, status=status),
        Cell(f"{found.rejected:,}", found.rejected),
        Cell(f"{found.by_agents:,}", found.by_agents),
        Cell(f"{found.by_loader:,}", found.by_loader),
        Cell(f"{found.of:,}", found.of),
        _example_cell(found.example),
        _line_cell(found.line, everything=everything),
        _line_cell(found.record, everything=everything),
        Cell(found.command),
    )


def _example_cell(found: BucketVerdict | None) -> Cell:
    """Returns a cell with a link to the page of a bucket with rejects. On that page, the reader
    finds the hosts. If the newest buckets have no rejects, the cell says so."""
    if found is None:
        return Cell("none in the newest minutes")
    count = found.rejects or found.records
    name = f"{found.source.cluster}.{found.source.topic}"
    return Cell(
        f"{count:,} at {words.clock(found.bucket)}",
        {"bucket": found.bucket, "rejected": count},
        words.link("/buckets", topic=name, bucket=found.bucket),
    )


def _line_cell(found: RejectedExample | None, *, everything: bool) -> Cell:
    """Returns a cell with the text of a rejected line. In JSON, the cell also has the reason, the
    line's file and position, and the partition and offset of the line's record. everything: whether
    the page shows the whole text, with the reason and where the line is.
    """
    if found is None:
        return Cell()
    place = f"{found.host}:{found.path}" if found.path else f"{found.tp} offset {found.offset}"
    text = f"{found.text} ({place}, {found.reason})"
    if not everything:
        text = found.text[:LINE_CHARACTERS_MAX].removesuffix(CUT)
        text += CUT if text != found.text else ""
    value = {
        "text": found.text, "reason": found.reason, "detail": found.detail, "host": found.host,
        "path": found.path, "first": found.first, "time": found.time_ms,
        "topic": found.tp.topic, "partition": found.tp.partition, "offset": found.offset,
    }  # fmt: skip
    return Cell(text, value)

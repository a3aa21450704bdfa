"""Which share of each topic was rejected, with an example: the newest bucket with rejects. The
collector does not have the texts of rejected lines. Each row of the page names a command that
prints them from the brokers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from skidway.audit.collector.pages import words
from skidway.audit.collector.pages.facts import Facts
from skidway.audit.collector.pages.table import Cell, Column, Table
from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.audit.judgement.standing import TopicStanding
from skidway.audit.judgement.verdict import BucketVerdict

COLUMNS = (
    Column("topic", "Topic"),
    Column("share", "Share", "number"),
    Column("rejected", "Rejected", "number"),
    Column("by_agents", "By agents", "number", 2),
    Column("by_loader", "By the loader", "number", 2),
    Column("of", "Of", "number", 2),
    Column("example", "Example", rank=2),
    Column("command", "Next", "code"),
)

_FEW = (0, 1, 2, 6, 7)


@dataclass(frozen=True, slots=True)
class Rejected:
    """The rejects of a topic. rest: the number of all other records, including the records that
    rules left out. example: the newest bucket with rejects, among the newest buckets of the
    topic."""

    name: str
    topic: str
    by_agents: int
    by_loader: int
    rest: int
    is_warned: bool
    example: BucketVerdict | None

    @property
    def rejected(self) -> int:
        """The number of rejects, of the agents and of the loader together."""
        return self.by_agents + self.by_loader

    @property
    def share(self) -> float:
        """The share of rejects among all lines, including lines that rules left out."""
        return self.rejected / (self.rejected + self.rest) if self.rejected else 0.0


def table(facts: Facts, *, shown_max: int = 500, everything: bool = False) -> Table:
    """The rows of topics with rejects, the greatest share first. everything: whether the table has
    topics without rejects, too, and all columns."""
    found = sorted(rejected(facts), key=lambda x: (-x.share, x.name))
    columns = range(len(COLUMNS)) if everything else _FEW
    limit = facts.policy.rejects_share
    return Table(
        "rejects",
        "Rejected lines and records"
        + (f"; more than {100 * limit:.3g} % in a minute is a warning" if limit < 1 else ""),
        tuple(COLUMNS[index] for index in columns),
        tuple(
            tuple(_row(x)[index] for index in columns) for x in found if everything or x.rejected
        ),
        empty="No line was rejected.",
        shown_max=shown_max,
        href="/rejects",
    )


def rejected(facts: Facts) -> Iterable[Rejected]:
    """The rejects of each topic."""
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
            topic.source.topic,
            0 if of_agents is None else of_agents.records,
            topic.rejects,
            topic.records - topic.rejects + filtered,
            topic.warned > 0 or (of_agents is not None and of_agents.warned > 0),
            _example(topic, of_agents),
        )


def _example(topic: TopicStanding, of_agents: TopicStanding | None) -> BucketVerdict | None:
    found = [x for x in topic.newest.values() if x.rejects]
    found += [] if of_agents is None else [x for x in of_agents.newest.values() if x.records]
    return max(found, key=lambda x: x.bucket, default=None)


def _row(found: Rejected) -> tuple[Cell, ...]:
    status = words.WARNED if found.is_warned else ""
    return (
        Cell(found.name, href=words.link("/buckets", topic=found.name)),
        Cell(words.share(found.rejected, found.rejected + found.rest), found.share, status=status),
        Cell(f"{found.rejected:,}", found.rejected),
        Cell(f"{found.by_agents:,}", found.by_agents),
        Cell(f"{found.by_loader:,}", found.by_loader),
        Cell(f"{found.rejected + found.rest:,}", found.rejected + found.rest),
        _example_cell(found.example),
        Cell(f"skidway rejected show {found.topic} --max 5" if found.by_agents else ""),
    )


def _example_cell(found: BucketVerdict | None) -> Cell:
    """A cell with a link to the page of this bucket, which names the hosts; a cell that says so if
    there is no bucket."""
    if found is None:
        return Cell("none in the newest minutes")
    count = found.rejects or found.records
    name = f"{found.source.cluster}.{found.source.topic}"
    return Cell(
        f"{count:,} at {words.clock(found.bucket)}",
        {"bucket": found.bucket, "rejected": count},
        words.link("/buckets", topic=name, bucket=found.bucket),
    )

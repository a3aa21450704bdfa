"""The grid of topics by time: one row for each topic, one column for each minute, hour or day. If
no topic has a bucket in the time of a column, the column is left out. In this case, the next column
says for how long there are no buckets before it.

Columns of minutes show the newest buckets with their own verdicts. A cell of an hour or a day sums
up the verdicts of its buckets. Its colour is that of the gravest verdict that somebody should look
at. These sums come from the collector, which sums up the verdicts of each hour of event time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from skidway.audit.collector.judge import BLOCK_MS
from skidway.audit.collector.pages import words
from skidway.audit.collector.pages.facts import Facts
from skidway.audit.collector.pages.table import Cell, Column, Table
from skidway.audit.judgement.standing import Standing, TopicStanding
from skidway.audit.judgement.verdict import BucketVerdict, Status
from skidway.audit.reports import report
from skidway.kafka.source import Source

DAY_MS = 86_400_000
_COLUMNS = tuple(Column(x, x) for x in ("topic", "start", "start_ms", "verdict", "says"))
UNITS = {"minute": "Minutes", "hour": "Hours", "day": "Days"}
HOURS, DAYS = 24, 14


@dataclass(frozen=True, slots=True)
class GridCell:
    """One cell. text: a short text that the cell shows beside the symbol of its verdict. says: the
    whole content in words, for screen readers and for the tooltip.
    """

    status: str
    text: str
    says: str
    href: str


@dataclass(frozen=True, slots=True)
class GridColumn:
    """One column. age: how many columns are newer than this one; narrow browser windows leave out
    old columns. gap: in words, for how long before this column no topic has a bucket; "" if there
    is no gap between the column before and this column.
    """

    start: int
    title: str
    age: int
    gap: str = ""


@dataclass(frozen=True, slots=True)
class GridRow:
    """The row of a topic. oldest: a cell about the topic's oldest overdue bucket (a bucket that is
    due, but neither complete nor accepted); None if no bucket is overdue. cells: in the order of
    the columns; None where the topic has no bucket.
    """

    name: str
    href: str
    oldest: GridCell | None
    cells: tuple[GridCell | None, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """The grid. older: the address of the grid with the columns before these columns; "" if there
    are none. newer: the address of the grid with the columns after these columns; "" if there are
    none.
    """

    unit: str
    columns: tuple[GridColumn, ...] = ()
    rows: tuple[GridRow, ...] = ()
    older: str = ""
    newer: str = ""

    def table(self) -> Table:
        """Returns the grid as a table for JSON and CSV, with a row for each cell."""
        cells = (
            (
                Cell(row.name),
                Cell(report.time_text(at.start)),
                Cell("", at.start),
                Cell(cell.status),
                Cell(cell.says),
            )
            for row in self.rows
            for at, cell in zip(self.columns, row.cells, strict=True)
            if cell is not None
        )
        return Table("grid", f"Topics by {self.unit}", _COLUMNS, tuple(cells))


@dataclass(slots=True)
class _Span:
    """The verdicts on the buckets of one topic in an hour or a day, summed up."""

    by_status: Counter[Status] = field(default_factory=Counter)
    overdue: Counter[Status] = field(default_factory=Counter)
    good: int = 0
    warned: int = 0
    records: int = 0

    def add(self, found: TopicStanding) -> None:
        self.by_status.update(found.by_status)
        self.overdue.update(found.overdue)
        self.good += found.by_status.get(Status.COMPLETE, 0) + sum(found.accepted.values())
        self.warned += found.warned
        self.records += found.records

    @property
    def status(self) -> str:
        if self.overdue.total():
            return max(status for status, count in self.overdue.items() if count).word
        if self.good < self.by_status.total():
            return Status.OPEN.word
        return words.WARNED if self.warned else Status.COMPLETE.word

    @property
    def says(self) -> str:
        total = self.by_status.total()
        said = f"{self.good:,} of {words.counted(total, 'bucket')} complete or accepted"
        bad = sorted(((x, n) for x, n in self.overdue.items() if n), reverse=True)
        more = "".join(f", {count:,} {status.word}" for status, count in bad)
        return f"{said}{more}, {words.counted(self.records, 'record')}"


def grid(facts: Facts, unit: str, until: int | None = None) -> Grid:
    """Returns the grid. unit: whether its columns are minutes, hours or days. until: the grid of
    hours or days has only columns that begin before this time (ms); None for the newest columns."""
    if unit == "minute":
        return _minutes(facts)
    size, count = (BLOCK_MS, HOURS) if unit == "hour" else (DAY_MS, DAYS)
    known = sorted({block - block % size for block in facts.blocks}, reverse=True)
    wanted = [x for x in known if until is None or x < until]
    starts = sorted(wanted[:count])
    spans = _spans(facts.blocks, starts, size)
    older = words.link("/", by=unit, until=starts[0]) if len(wanted) > count else ""
    later = [x for x in reversed(known) if starts and x > starts[-1]]
    newer = (
        words.link("/", by=unit, until=later[min(count, len(later)) - 1] + size) if later else ""
    )
    rows = (
        _row(facts, topic, [_span_cell(facts, topic, x, spans, size) for x in starts])
        for topic in facts.standing.topics
        if topic.buckets
    )
    return Grid(unit, _columns(starts, size), tuple(rows), older, newer)


def _minutes(facts: Facts) -> Grid:
    starts = sorted(facts.standing.starts)
    shown = [x for topic in facts.standing.topics for x in topic.newest.values()]
    size = max((x.bucket_ms for x in shown), default=BLOCK_MS)
    rows = (
        _row(facts, topic, [_cell(facts, topic.newest.get(x)) for x in starts])
        for topic in facts.standing.topics
        if topic.buckets
    )
    older = words.link("/", by="hour") if len(facts.blocks) > 1 else ""
    return Grid("minute", _columns(starts, size), tuple(rows), older)


def _columns(starts: Sequence[int], size: int) -> tuple[GridColumn, ...]:
    found = []
    for index, start in enumerate(starts):
        silent_ms = start - starts[index - 1] - size if index else 0
        title = words.weekday(start) if size == DAY_MS else words.clock(start)
        gap = words.duration(silent_ms / 1000) if silent_ms > 0 else ""
        found.append(GridColumn(start, title, len(starts) - 1 - index, gap))
    return tuple(found)


def _row(facts: Facts, topic: TopicStanding, cells: Iterable[GridCell | None]) -> GridRow:
    name, oldest, link = facts.names[topic.source], None, None
    if (bucket := topic.oldest_overdue) is not None:
        link = words.link("/buckets", topic=name, bucket=bucket)
        status = max(topic.overdue, default=Status.OPEN).word
        text = f"not complete since {words.near(bucket, facts.now_ms)}"
        oldest = GridCell(status, text, text, link)
    return GridRow(name, words.link("/buckets", topic=name), oldest, tuple(cells))


def _cell(facts: Facts, verdict: BucketVerdict | None) -> GridCell | None:
    if verdict is None:
        return None
    name, said = facts.names[verdict.source], words.word(verdict)
    why = report.reasons_text(verdict.words)
    counted = words.counted(verdict.records, "record")
    says = f"{name} {words.moment(verdict.bucket)}: {said}, {counted}{f': {why}' if why else ''}"
    return GridCell(
        words.colour(verdict),
        words.short(verdict.records),
        says,
        words.link("/buckets", topic=name, bucket=verdict.bucket),
    )


def _spans(
    blocks: Mapping[int, Standing], starts: Sequence[int], size: int
) -> dict[tuple[int, Source], _Span]:
    found: dict[tuple[int, Source], _Span] = {}
    wanted = set(starts)
    for block, standing in blocks.items():
        start = block - block % size
        if start in wanted:
            for topic in standing.topics:
                if topic.buckets:
                    found.setdefault((start, topic.source), _Span()).add(topic)
    return found


def _span_cell(
    facts: Facts,
    topic: TopicStanding,
    start: int,
    spans: Mapping[tuple[int, Source], _Span],
    size: int,
) -> GridCell | None:
    span = spans.get((start, topic.source))
    if span is None:
        return None
    name, bad = facts.names[topic.source], span.overdue.total()
    if size == BLOCK_MS:
        href = words.link("/buckets", topic=name, until=start + size)
    else:
        href = words.link("/", by="hour", until=start + size)
    text = str(bad) if bad else words.short(span.records)
    return GridCell(span.status, text, f"{name} {words.moment(start)}: {span.says}", href)

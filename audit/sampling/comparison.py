"""Decides, without I/O, which rows and records are equal to the samples, which differ, and which
cannot be compared.

For each record that a sample names:

    rows        if the record has rows, all of them are compared. A row that differs is a
                difference whatever the other rows are. Several rows for one record count as a
                difference, even if their content is right. A reject is not a row: if the record
                has a reject and no row that differs, nothing can be compared
    records     if the record has no row, the record in the log is compared. If the topic is loaded
                up to an offset after the record, the missing row is a difference
    neither     if neither row nor record was found, for example because the record has expired
                before it was loaded, nothing can be compared

A row or a record also counts as a difference if its line begins in the sampled bytes, but the
sample does not name the line: when the agent made the records again, it made none for this line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from skidway.audit.sampling.wanted import Found, Wanted

OTHER_CONTENT = "the row has other content than the line"
OTHER_FILE = "the row has another host or path than the line's file"
OTHER_RECORD = "the record has other content than the line"
SEVERAL = "several rows have this line"
NO_ROW = "no row has this line, although its offset is loaded"
NO_LINE = "the agent would make no such record of the line"

REJECTED = "the loader rejected the record"
NOT_FOUND = "neither a row nor a record was found: not loaded, and expired or not looked for"


Line = tuple[int, int, int]
"""The agent id and the file id of a line, and the position of the line's first byte."""


@dataclass(frozen=True, slots=True)
class Differing:
    """A line whose row or record differs from the sample. found: the row or the record. is_row:
    whether `found` is a row. words: a sentence that says what differs.
    """

    wanted: Wanted
    found: Found
    is_row: bool
    words: str

    @property
    def has_line(self) -> bool:
        """Whether the sample names the line."""
        return self.wanted.sum_at(self.found.first) is not None

    @property
    def is_time_proven(self) -> bool:
        """Whether `found` is known to have the line's event time. A sample has the content sum of
        each line, which includes the event time, but only the least and the greatest event time of
        its lines. So the time is proven if the sums are equal. If they differ, the time may differ,
        too, unless `time_ms` is the only time that a line of the sample can have.
        """
        part, content = self.wanted.part, self.wanted.sum_at(self.found.first)
        if content is None:
            return False
        return content == self.found.content or part.least_ms == part.greatest_ms

    @property
    def time_ms(self) -> int:
        """The event time, in ms, of the bucket in which the difference counts: that of the row or
        the record, or the nearest time that a line of the sample can have. If the sample names no
        such line, always that of the row or the record."""
        part = self.wanted.part
        if not self.has_line:
            return self.found.time_ms
        return min(max(self.found.time_ms, part.least_ms), part.greatest_ms)


@dataclass(slots=True)
class Compared:
    """The result of a comparison. rows, records: how many rows and records were compared, whether
    equal or not. lines: the lines that were compared. uncompared: how many records could not be
    compared, by reason.
    """

    rows: int = 0
    records: int = 0
    equal: int = 0
    lines: set[Line] = field(default_factory=set)
    differing: list[Differing] = field(default_factory=list)
    uncompared: Counter[str] = field(default_factory=Counter)

    @property
    def compared(self) -> int:
        """How many rows and records were compared in total."""
        return self.rows + self.records

    def add(self, other: Compared) -> None:
        """Adds the result of comparing another part of the samples."""
        self.rows += other.rows
        self.records += other.records
        self.equal += other.equal
        self.lines |= other.lines
        self.differing += other.differing
        self.uncompared += other.uncompared


def unfound(wanted: Wanted, rows: Iterable[Found]) -> set[int]:
    """Returns the positions of the lines that have no row, so that their records must be found. A
    line's position is the position of its first byte in the file."""
    return set(wanted.part.firsts) - {each.first for each in rows}


def compare(
    wanted: Wanted, rows: Sequence[Found], records: Sequence[Found], ends: Mapping[int, int]
) -> Compared:
    """Compares one part of a sample with rows and records. records: the records that were found for
    lines without a row. ends: by partition, the offset up to which the topic is loaded.
    """
    part, result = wanted.part, Compared()
    sums = dict(zip(part.firsts, part.sums, strict=True))
    by_line, in_logs = _by_first(rows), _by_first(records)
    for first, content in sums.items():
        if first in by_line:
            _compare_rows(wanted, by_line[first], content, result)
        elif first in in_logs:
            _compare_record(wanted, in_logs[first][0], content, ends, result)
        else:
            result.uncompared[NOT_FOUND] += 1
    for found, is_row in _surplus(sums, rows, records):
        result.differing.append(Differing(wanted, found, is_row, NO_LINE))
        if is_row:
            result.rows += 1
        else:
            result.records += 1
    return result


def _compare_rows(wanted: Wanted, rows: Sequence[Found], content: bytes, result: Compared) -> None:
    kept = [each for each in rows if not each.is_reject]
    difference = _row_difference(wanted, kept, content)
    if difference is None and len(kept) < len(rows):
        result.uncompared[REJECTED] += 1
    elif difference is None and kept[0].content is None:
        result.uncompared[kept[0].obstacle] += 1
    else:
        result.rows += 1
        result.lines.add((wanted.sample.agent, wanted.sample.file, rows[0].first))
        if difference is None:
            result.equal += 1
        else:
            row, words = difference
            result.differing.append(Differing(wanted, row, True, words))


def _row_difference(
    wanted: Wanted, rows: Sequence[Found], content: bytes
) -> tuple[Found, str] | None:
    """Looks at all rows of a line, and returns the row that differs and a sentence that says what
    differs; None if no row is known to differ. A row whose content sum cannot be computed hides
    neither another row that differs, nor that the line has several rows. rows: the rows without
    rejects.
    """
    for row in rows:
        if row.content is not None and (words := _row_words(wanted, row, content)):
            return row, words
    if len(rows) > 1:
        places = ", ".join(each.place for each in rows[:3])
        return rows[0], f"{SEVERAL}: {places}"
    return None


def _row_words(wanted: Wanted, row: Found, content: bytes) -> str:
    """Says what differs in a row; empty if nothing differs. Host and path of the line are those
    that the agent announced when the file id began. A rotation does not change them, neither in
    the sample nor in the row.
    """
    if row.content != content:
        return OTHER_CONTENT
    if row.host not in {None, wanted.sample.host} or row.path not in {None, wanted.sample.path}:
        return OTHER_FILE
    return ""


def _compare_record(
    wanted: Wanted, record: Found, content: bytes, ends: Mapping[int, int], result: Compared
) -> None:
    result.records += 1
    result.lines.add((wanted.sample.agent, wanted.sample.file, record.first))
    if record.content != content:
        result.differing.append(Differing(wanted, record, False, OTHER_RECORD))
    elif record.offset < ends.get(record.partition, 0):
        lacking = replace(record, place="")
        result.differing.append(Differing(wanted, lacking, True, NO_ROW))
    else:
        result.equal += 1


def _surplus(
    sums: Mapping[int, bytes], rows: Sequence[Found], records: Sequence[Found]
) -> Iterator[tuple[Found, bool]]:
    for each in rows:
        if each.first not in sums and not each.is_reject:
            yield each, True
    has_row = {each.first for each in rows}
    for first, found in _by_first(records).items():
        if first not in sums and first not in has_row:
            yield found[0], False


def _by_first(found: Iterable[Found]) -> dict[int, list[Found]]:
    by_first: dict[int, list[Found]] = {}
    for each in found:
        by_first.setdefault(each.first, []).append(each)
    return by_first

"""Decides, without I/O, which rows and records are equal to the samples, which differ, and which
cannot be compared.

For each record that a sample names:

    rows        if the output has rows of the record, all of them are compared. A row that differs
                is a difference, even if another row is equal. Several rows of one record count as
                a difference, even if their content is right. If the loader rejected the record and
                no row differs, nothing can be compared
    records     if there is no row, the record itself is read from the brokers and compared. If the
                topic is already loaded beyond the record's offset, the missing row is a difference
    neither     if neither row nor record was found, for example because the record expired
                before it was loaded, nothing can be compared

When the agent made the records of the sampled bytes again, it may have made no record for some line
in these bytes. The sample does not name such a line. If there is a row or a record of the line,
this row or record also counts as a difference.
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
    """A line whose row or record differs from the sample. found: the row or the record that
    differs. is_row: whether a row differs or is missing. If a row is missing, `found` is the
    record. words: a sentence that says what differs.
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
        """Whether `time_ms` is known to be the line's event time. A sample does not have the event
        time of each line, only the least and the greatest of all its lines. But the content sum
        includes the event time. So the time is proven if the row or record has the content sum of
        the sample, or if the least and the greatest event time are equal. If the sample does not
        name the line, the time is not proven.
        """
        part, content = self.wanted.part, self.wanted.sum_at(self.found.first)
        if content is None:
            return False
        return content == self.found.content or part.least_ms == part.greatest_ms

    @property
    def time_ms(self) -> int:
        """The event time, in ms, that determines in which bucket the difference counts. Normally
        this is the event time of the row or the record. But for a line that the sample names, this
        time is moved into the range of event times that the sample's lines have.
        """
        part = self.wanted.part
        if not self.has_line:
            return self.found.time_ms
        return min(max(self.found.time_ms, part.least_ms), part.greatest_ms)


@dataclass(slots=True)
class Compared:
    """The result of a comparison. rows, records: how many rows and records were compared, whether
    or not they differ from the sample. If the sample names a line, several rows of this line count
    as one row. lines: those lines of the samples of which a row or record was compared. uncompared:
    how many lines could not be compared, by reason.
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
    """Returns which lines of the sample have no row, so that their records must be read from the
    brokers. A line is named by the position of its first byte in the file."""
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
    """Compares the rows of a line with the sample. Returns the first row that differs from the
    sample, and a sentence that says what differs. If no row differs, but the line has several rows,
    returns the first row and a sentence that says so. In all other cases, returns None. Rows whose
    content sum cannot be computed do not count as differing, but are counted as rows. rows: the
    rows of the line, without rejects.
    """
    for row in rows:
        if row.content is not None and (words := _row_words(wanted, row, content)):
            return row, words
    if len(rows) > 1:
        places = ", ".join(each.place for each in rows[:3])
        return rows[0], f"{SEVERAL}: {places}"
    return None


def _row_words(wanted: Wanted, row: Found, content: bytes) -> str:
    """Returns words that say what differs between a row and the sample; an empty text if nothing
    differs. Sample and row both have the host and the path that the agent announced when the file
    id began, so a rotation of the file causes no difference.
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

"""Joins the lines of files with the records of a topic, without I/O."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from typing import Any, Final

import numpy as np

from skidway.audit.comparison.lines import (
    FileLines,
    any_may_have_been,
    any_may_have_copy,
    hash_of,
    keys_of,
)
from skidway.audit.comparison.shapes import Shipped
from skidway.errors import UsageError

RECORDS_MAX: Final = 20_000_000
PATHS_MAX: Final = 100_000
"""Records may have paths that belong to none of the files. Memory holds at most this many of these
paths. Any further path is compared with the files' paths again for each record that has it.
"""
NO_OFFSET: Final = -1
NO_TIME: Final = -(1 << 63)
Array = np.ndarray[Any, np.dtype[Any]]


class Fate(StrEnum):
    """The result of the comparison for one line of a file."""

    SHIPPED = "shipped"
    MISSING = "missing"
    DOUBLED = "doubled"
    CHANGED = "changed"
    NOT_YET = "not yet"
    NOT_COMPARED = "not compared"


BAD: Final = (Fate.MISSING, Fate.DOUBLED, Fate.CHANGED)


@dataclass(slots=True)
class Records:
    """The records of a topic that may belong to lines of the files, in offset order within each
    partition.

    files: the paths of each file. are_noted: whether the lines are from the notes of `skidway agent
    count`. A note has only the path of the file itself. If a shipper read a copy of the file, its
    records have the copy's path, which no note has. Such records may still belong to lines of the
    file. other_hosts: how many records were left out because they belong to another host.
    other_files: how many were left out because they belong to none of the files. shapeless: how
    many were left out because their values do not have the shape that the user named.
    """

    host: str | None
    files: Sequence[tuple[str, ...]]
    are_noted: bool = False
    hashes: array[int] = field(default_factory=lambda: array("Q"))
    offsets: array[int] = field(default_factory=lambda: array("q"))
    paths: array[int] = field(default_factory=lambda: array("q"))
    partitions: array[int] = field(default_factory=lambda: array("q"))
    log_offsets: array[int] = field(default_factory=lambda: array("q"))
    times: array[int] = field(default_factory=lambda: array("q"))
    known: dict[str | None, int] = field(default_factory=dict)
    _foreign: set[str] = field(default_factory=set)
    other_hosts: int = 0
    other_files: int = 0
    shapeless: int = 0

    def add(
        self, shipped: Shipped | None, partition: int, log_offset: int, time_ms: int = 0
    ) -> None:
        """Adds a record. If the record is left out, increments the count for the reason
        (`other_hosts`, `other_files` or `shapeless`). A record of an empty line is left out, but
        not counted. shipped: None if the record's value does not have the shape that the user named
        (see shapes). time_ms: the record's timestamp. Raises UsageError if there are too many
        records.
        """
        if shipped is None:
            self.shapeless += 1
        elif not self._is_of_host(shipped.host):
            self.other_hosts += 1
        elif shipped.text:  # shippers leave out empty lines
            path = self._path(shipped.path)
            if path < 0:
                self.other_files += 1
                return
            if len(self.hashes) >= RECORDS_MAX:
                raise UsageError(
                    f"More than {RECORDS_MAX:,} records; name a shorter time (--since)."
                )
            self.hashes.append(hash_of(shipped.text))
            self.offsets.append(NO_OFFSET if shipped.offset is None else shipped.offset)
            self.paths.append(path)
            self.partitions.append(partition)
            self.log_offsets.append(log_offset)
            self.times.append(time_ms)

    def _is_of_host(self, host: str | None) -> bool:
        """Whether a record that names `host` belongs to the host whose files are compared; true if
        one of the two hosts is unknown. Compares hosts without their domains, because some shippers
        write the domain and others do not."""
        if self.host is None or host is None:
            return True
        return host.partition(".")[0] == self.host.partition(".")[0]

    def _path(self, path: str | None) -> int:
        """Returns the number under which the path is stored, or -1 if none of the files may have
        had this path. A new path gets the next number."""
        if path in self.known:
            return self.known[path]
        if path in self._foreign:
            return -1
        if path is None or any(self._is_path_of(path, each) for each in self.files):
            return self.known.setdefault(path, len(self.known))
        if len(self._foreign) < PATHS_MAX:
            self._foreign.add(path)
        return -1

    def fits(self, *, with_copies: bool) -> Array:
        """Returns a matrix that says, for each path of a record (row) and each file (column),
        whether the file may have had the path. with_copies: whether the path of a copy of the file
        counts, too."""
        fits = np.zeros((len(self.known), len(self.files)), np.bool_)
        for path, number in self.known.items():
            fits[number] = [
                self._is_path_of(path, file, with_copies=with_copies) for file in self.files
            ]
        return fits

    def _is_path_of(
        self, path: str | None, file: tuple[str, ...], *, with_copies: bool = True
    ) -> bool:
        """Whether a record with this path may have a line of a file that had the paths `file`.
        A record without a path (`path` is None) may have a line of any file."""
        if path is None or any_may_have_been(file, path):
            return True
        return with_copies and self.are_noted and any_may_have_copy(file, path)


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive lines of a file with the same result (`fate`), in the bytes [first, end). place:
    if the lines are doubled, the partition and offset of the first surplus record; if they are
    changed, those of the first record with another text; for any other result, None.
    """

    file: int
    fate: Fate
    first: int
    end: int
    lines: int
    first_length: int
    place: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class FileResult:
    """The result for one file. counts: how many lines are shipped, missing, doubled and so on.
    extra: the number of surplus records of all doubled lines together. (A line with three records
    has two surplus records.) late: how many lines are not shipped yet, but were noted so long ago
    that they should have been shipped.
    """

    path: str
    counts: dict[Fate, int]
    extra: int
    late: int


@dataclass(frozen=True, slots=True)
class Result:
    """The result of the comparison. spans: all lines whose result is not `shipped`, in the order of
    files and bytes. unknown: how many records belong to no line."""

    files: list[FileResult]
    spans: list[Span]
    unknown: int


def compare(
    files: Sequence[FileLines],
    records: Records,
    *,
    is_whole: bool,
    since_ms: int | None = None,
    certain_ms: int = NO_TIME,
) -> Result:
    """Joins lines and records, and returns the result for each line. files: oldest first. is_whole:
    whether all records that the topic ever had were read. since_ms: all records of lines written
    since this time were read; None if there is no such time. certain_ms: records up to this
    timestamp may have expired in some partitions; no later record has expired. If not all records
    of a file were read, a line's record may be one of the unread or expired ones. So in this case,
    a line without a record is called missing only if a line before it has a record later than
    `certain_ms`.
    """
    join = _Join(files, records, certain_ms)
    join.by_place()
    join.by_text()
    join.changes()
    results: list[FileResult] = []
    spans: list[Span] = []
    logs = _logs(files, records)
    shipped = [join.is_shipped(at) for at in range(len(files))]
    for at, each in enumerate(files):
        newer = range(at + 1, len(files))
        is_passed = each.is_gone or any(
            shipped[x].any() and (logs[at] & logs[x]).any() for x in newer
        )
        has_all = is_whole or _is_of_later(each, since_ms)
        fates = _fates(join, at, shipped[at], is_passed=is_passed, is_whole=has_all)
        unread = fates == _NUMBERS[Fate.NOT_COMPARED]
        fates[unread & (join.begins[join.rows(at)] >= each.whole_from)] = _NUMBERS[Fate.MISSING]
        extra = int(np.maximum(join.counts[join.rows(at)] - 1, 0).sum())
        counts = {fate: int(np.count_nonzero(fates == n)) for n, fate in enumerate(Fate)}
        is_late = (fates == _NUMBERS[Fate.NOT_YET]) & (join.begins[join.rows(at)] < each.old_end)
        results.append(FileResult(each.path, counts, extra, int(np.count_nonzero(is_late))))
        spans += _spans(join, at, each, fates)
    return Result(results, spans, int(np.count_nonzero(join.line_of < 0)))


class _Join:
    """Joins lines and records. counts: how many records each line has. line_of: the line of each
    record, or -1 if it has none. too_many: for each line with surplus records, the first surplus
    record. changed: for each changed line, the record that begins at the same byte but has another
    text.
    """

    def __init__(self, files: Sequence[FileLines], records: Records, certain_ms: int) -> None:
        sizes = [len(each.begins) for each in files]
        self._ends = np.cumsum([0, *sizes])
        self.begins = _joined([each.begins for each in files], np.int64)
        self._hashes = _joined([each.hashes for each in files], np.uint64)
        self._file_of = np.repeat(np.arange(len(files)), sizes)
        self._record_hashes = np.array(records.hashes, np.uint64)
        self._offsets = np.array(records.offsets, np.int64)
        self._paths = np.array(records.paths, np.int64)
        self._places = (records.partitions, records.log_offsets)
        self._is_certain = np.array(records.times, np.int64) > certain_ms
        self._fits = records.fits(with_copies=True)
        self._own = records.fits(with_copies=False)
        self.counts = np.zeros(len(self.begins), np.int64)
        self.line_of = np.full(len(self._offsets), -1, np.int64)
        self.too_many: dict[int, int] = {}
        self.changed: dict[int, int] = {}

    def rows(self, file: int) -> slice:
        return slice(int(self._ends[file]), int(self._ends[file + 1]))

    def is_shipped(self, file: int) -> Array:
        """Returns, for each line of a file, whether the line has a record, even if this record has
        another text.
        """
        found = self.counts[self.rows(file)] > 0
        changed = np.array(sorted(self.changed), np.int64) - self._ends[file]
        found[changed[(changed >= 0) & (changed < len(found))]] = True
        return np.asarray(found)

    def is_certain(self, file: int) -> Array:
        """Returns, for each line of a file, whether one of its records has a timestamp after
        `certain_ms` (see `compare`)."""
        found = np.zeros(len(self.begins), np.bool_)
        found[self.line_of[self._is_certain & (self.line_of >= 0)]] = True
        return np.asarray(found[self.rows(file)])

    def place(self, record: int) -> tuple[int, int]:
        return self._places[0][record], self._places[1][record]

    def by_place(self) -> None:
        """Takes the records that say at which byte of the file their lines begin. Joins each of
        them with a line that begins at this byte and has the record's text."""
        rows = np.flatnonzero(self._offsets >= 0)
        keys = keys_of(self._record_hashes[rows], self._offsets[rows])
        self._join(keys_of(self._hashes, self.begins), np.arange(len(self.begins)), keys, rows)

    def by_text(self) -> None:
        """Takes the records that do not say where their lines begin. Joins each of them with a line
        that has the record's text."""
        rows = np.flatnonzero(self._offsets < 0)
        lines = np.flatnonzero(self.counts == 0)
        self._join(self._hashes[lines], lines, self._record_hashes[rows], rows)

    def changes(self) -> None:
        """Joins the remaining lines and records that begin at the same byte of the same file: these
        lines were changed. Leaves out records with the path of a copy: if the text differs, such a
        record belongs to another file."""
        lines = np.flatnonzero(self.counts == 0)
        at: dict[int, list[int]] = {}
        for line in lines.tolist():
            at.setdefault(int(self.begins[line]), []).append(line)
        for record in np.flatnonzero((self.line_of < 0) & (self._offsets >= 0)).tolist():
            for line in at.get(int(self._offsets[record]), ()):
                if line not in self.changed and self._is_own(record, line):
                    self.changed[line], self.line_of[record] = record, line
                    break

    def _join(self, keys: Array, lines: Array, record_keys: Array, records: Array) -> None:
        """Joins each record with a line that has the same key (a hash of its text, or of text and
        first byte) and whose file may have had the record's path. Chooses the first of these lines
        that has no record yet. If all of them have records, chooses the first line.
        """
        if not len(keys) or not len(record_keys):
            return
        order = np.argsort(keys, kind="stable")
        keys, lines = keys[order], lines[order]
        first = np.searchsorted(keys, record_keys, "left")
        count = np.searchsorted(keys, record_keys, "right") - first
        names, index, times = np.unique(record_keys, return_inverse=True, return_counts=True)
        del names
        is_single = (count == 1) & (times[index] == 1)
        line = lines[np.minimum(first, len(lines) - 1)]
        is_single &= self._fits[self._paths[records], self._file_of[line]]
        self.counts[line[is_single]] += 1
        self.line_of[records[is_single]] = line[is_single]
        for each in np.flatnonzero((count > 0) & ~is_single).tolist():
            begin = int(first[each])
            self._give(int(records[each]), lines[begin : begin + int(count[each])].tolist())

    def _give(self, record: int, lines: Iterable[int]) -> None:
        fitting = [line for line in lines if self._is_fit(record, line)]
        if fitting:
            line = next((each for each in fitting if not self.counts[each]), fitting[0])
            if self.counts[line]:
                self.too_many.setdefault(line, record)
            self.counts[line] += 1
            self.line_of[record] = line

    def _is_fit(self, record: int, line: int) -> bool:
        return bool(self._fits[self._paths[record], self._file_of[line]])

    def _is_own(self, record: int, line: int) -> bool:
        return bool(self._own[self._paths[record], self._file_of[line]])


_NUMBERS: Final = {fate: number for number, fate in enumerate(Fate)}


def _logs(files: Sequence[FileLines], records: Records) -> Array:
    """Returns a matrix that says, for each file (row) and each path of any file or record (column),
    whether the file may have had the path. If two files may have had the same path, they may be
    generations of one log."""
    paths = {x for each in files for x in each.paths} | {x for x in records.known if x is not None}
    may = [[any_may_have_been(each.paths, x) for x in sorted(paths)] for each in files]
    return np.array(may, np.bool_).reshape(len(files), len(paths))


def _is_of_later(lines: FileLines, since_ms: int | None) -> bool:
    """Whether all lines of a file were written after `since_ms`. If so, none of their records is
    older than `since_ms`."""
    return since_ms is not None and lines.after_ms is not None and lines.after_ms >= since_ms


def _fates(join: _Join, file: int, shipped: Array, *, is_passed: bool, is_whole: bool) -> Array:
    """Returns the result for each line of a file, as the number of a `Fate` (shipped, missing and
    so on). shipped: for each line, whether it has a record. is_passed: whether the shipper has
    finished this file, because the file is gone, or because lines of a newer file of the same log
    were shipped. is_whole: whether all records of this file that the topic ever had were read."""
    rows = join.rows(file)
    fates = np.full(len(shipped), _NUMBERS[Fate.MISSING], np.int8)
    before = Fate.MISSING if is_whole else Fate.NOT_COMPARED
    if shipped.any():
        certain = shipped & join.is_certain(file)
        first = int(certain.argmax()) if certain.any() else len(shipped)
        last = len(shipped) - int(shipped[::-1].argmax())
        fates[:first] = _NUMBERS[before]
        if not is_passed:
            fates[last:] = _NUMBERS[Fate.NOT_YET]
    else:
        fates[:] = _NUMBERS[before if is_passed else Fate.NOT_YET]
    fates[shipped] = _NUMBERS[Fate.SHIPPED]
    fates[join.counts[rows] > 1] = _NUMBERS[Fate.DOUBLED]
    for line in join.changed:
        if rows.start <= line < rows.stop:
            fates[line - rows.start] = _NUMBERS[Fate.CHANGED]
    return fates


def _spans(join: _Join, file: int, lines: FileLines, fates: Array) -> Iterator[Span]:
    start = join.rows(file).start
    names = list(Fate)
    at = 0
    for number, run in groupby(fates.tolist()):
        count = sum(1 for _ in run)
        fate = names[number]
        if fate is not Fate.SHIPPED:
            last = at + count - 1
            record = join.too_many.get(start + at, join.changed.get(start + at))
            place = None if record is None else join.place(record)
            end = lines.begins[last] + lines.lengths[last]
            yield Span(file, fate, lines.begins[at], end, count, lines.lengths[at], place)
        at += count


def _joined(parts: Sequence[array[int]], kind: Any) -> Array:
    return np.concatenate([np.array(part, kind) for part in parts] or [np.empty(0, kind)])

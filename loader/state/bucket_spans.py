"""Reads and writes the table `buckets`. For each agent and bucket (an interval of event time), the
table has the number of the last audit delta (a message with counts) in which this output counted
the bucket.

When a later delta counts the bucket again, the later delta contains the number of the earlier
delta. So a reader of the audit topic notices if it has not read the earlier delta. The new records
of a load belong to few hours. So the table is divided by time: each file has the buckets of a
*span*, which is a range of hours. A load reads only the spans of the buckets that it counts, and
writes these spans again.

    new hours      get spans of at most FRESH_ROWS rows, or of one hour if it has more rows
    other spans    are joined with neighbours while the joined span has at most SPAN_ROWS rows. But
                   the spans that loads have changed most recently (as many as APART says) are not
                   joined yet, because loads will soon change them again
    too many       if there are more than SPANS_MAX spans, the spans that have not changed for the
                   longest time are forgotten

The hours of forgotten spans are kept, as ranges (table `forgotten`). If a bucket of these hours is
counted again, its delta has UNKNOWN in place of the previous delta's number. Every reader then sees
that earlier deltas are missing, and the audit calls the bucket unknown. Without this value, the new
delta would look like the bucket's first delta, and the audit would take a part of the counts for
all counts. Only the order of the loads decides which spans are forgotten; no clock is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from skidway.loader.state import layout
from skidway.loader.state.bucket_rows import (
    SCHEMA,
    BucketKey,
    Rows,
    look_up,
    merged,
    rows_in,
    rows_of,
)
from skidway.loader.state.manifest import BUCKETS, FORGOTTEN
from skidway.loader.state.table_file import TableStaging, read_file, read_rows, table_of
from skidway.loader.store import Store

SPAN_ROWS: Final = 2_000_000
FRESH_ROWS: Final = 300_000
APART: Final = 24
JOINED_MIN: Final = 4
"""Neighbouring spans (files, each with a range of hours) are joined when there are at least this
many of them side by side. Two or three spans are joined, too, if the next span does not fit: with
its rows, the joined span would have more than SPAN_ROWS rows.
"""

SPANS_MAX: Final = 160
"""The table has at most this many spans (files, each with a range of hours). With 5,000 agents and
buckets of a minute, this many spans contain the buckets of about five weeks."""

RANGES_MAX: Final = 1_000
UNKNOWN: Final = -1
"""Stands in place of a delta's number that is no longer known. No delta has this number."""

Hours = tuple[int, int]

RANGES: Final = pa.schema([("first", pa.int64()), ("end", pa.int64())])


@dataclass(frozen=True, slots=True)
class Span:
    """One file of the table `buckets`: the buckets that start in the hours [first, end). touched:
    the last load that counted one of these buckets."""

    first: int
    end: int
    rows: int
    touched: int
    path: str


class BucketSpans:
    """The table `buckets`, as it was after the previous load. side: for each table, the paths of
    its files, from the previous load's manifest.
    """

    def __init__(self, store: Store, side: Mapping[str, Sequence[str]]) -> None:
        self._store, self._side = store, side
        spans = (Span(*layout.span_of(path), path) for path in side.get(BUCKETS, ()))
        self._spans = sorted(spans, key=lambda span: span.first)
        self._forgotten = read_rows(store, side.get(FORGOTTEN, ()), RANGES)

    def numbers(self, keys: Iterable[BucketKey]) -> dict[BucketKey, int]:
        """Returns, for each bucket, the number of the last delta that counted the bucket, or
        UNKNOWN if this number was forgotten. Leaves out buckets that no earlier delta has counted.
        Raises StateRefused if a file is gone or damaged."""
        wanted = rows_of(dict.fromkeys(keys, 0))
        numbers = np.zeros(len(wanted), np.int64)
        hours = wanted.hours
        for first, end in self._forgotten:
            numbers[(hours >= first) & (hours < end)] = UNKNOWN
        for span in self._spans:
            begin, end = np.searchsorted(hours, (span.first, span.end)).tolist()
            if begin < end:
                look_up(self._read(span), wanted.part(begin, end), numbers[begin:end])
        found = np.flatnonzero(numbers)
        columns = (wanted.agent, wanted.bucket, numbers)
        agent, bucket, number = (column[found].tolist() for column in columns)
        return dict(zip(zip(agent, bucket, strict=True), number, strict=True))

    def stage(
        self, staging: TableStaging, touched: Mapping[BucketKey, int]
    ) -> dict[str, tuple[str, ...]]:
        """Writes the spans (files, each with a range of hours) that change into the staging
        directory. Returns, for the manifest, the paths of all files of the tables `buckets` and
        `forgotten`. touched: the buckets that the load counts, and for each bucket the number of
        its new delta."""
        if not touched:
            return {each: tuple(self._side.get(each, ())) for each in (BUCKETS, FORGOTTEN)}
        load = staging.load.number
        new = rows_of(touched)
        kept, written = list[Span](), list[Span]()
        for span in self._spans:
            begin, end = np.searchsorted(new.hours, (span.first, span.end)).tolist()
            if begin == end:
                kept.append(span)
                continue
            rows = merged(self._read(span), new.part(begin, end))
            written += _write(staging, rows, (span.first, span.end), load)
        for rows in self._fresh(new):
            hours = rows.hours
            written += _write(staging, rows, (int(hours[0]), int(hours[-1]) + 1), load)
        spans = self._joined(staging, kept, written)
        ages = sorted(spans, key=lambda span: (span.touched, span.first))
        gone = ages[: max(0, len(spans) - SPANS_MAX)]
        left = sorted({*spans}.difference(gone), key=lambda span: span.first)
        return {
            BUCKETS: tuple(span.path for span in left),
            FORGOTTEN: self._forget(staging, gone),
        }

    def _fresh(self, new: Rows) -> Iterator[Rows]:
        """Yields, in groups, the rows of hours that no span (a file with a range of hours) has.
        Each group becomes a new span. No hour of an existing span is between the hours of one
        group."""
        firsts = [span.first for span in self._spans]
        begins = np.concatenate(([0], np.flatnonzero(np.diff(new.hours)) + 1, [len(new)])).tolist()
        group: tuple[int, int, int] | None = None
        for begin, end in pairwise(begins):
            hour = new.hours[begin]
            slot = int(np.searchsorted(firsts, hour, "right"))
            if slot and hour < self._spans[slot - 1].end:
                continue  # an existing span has this hour already
            if group and group[2] == slot and end - group[0] <= FRESH_ROWS:
                group = (group[0], end, slot)
                continue
            if group:
                yield new.part(group[0], group[1])
            group = (begin, end, slot)
        if group:
            yield new.part(group[0], group[1])

    def _joined(
        self, staging: TableStaging, kept: Sequence[Span], written: Sequence[Span]
    ) -> list[Span]:
        """Joins neighbouring spans (files, each with a range of hours) that recent loads have not
        changed. Returns all spans, joined or not."""
        spans = sorted([*kept, *written], key=lambda span: span.first)
        for run in _runs(spans, {*written}):
            parts = [self._read(span) for span in run]
            rows = Rows(*(np.concatenate([getattr(x, n) for x in parts]) for n in SCHEMA.names))
            hours, touched = (run[0].first, run[-1].end), max(span.touched for span in run)
            joined = _write(staging, rows, hours, touched)
            spans = sorted({*spans}.difference(run).union(joined), key=lambda span: span.first)
        return spans

    def _forget(self, staging: TableStaging, gone: Sequence[Span]) -> tuple[str, ...]:
        if not gone:
            return tuple(self._side.get(FORGOTTEN, ()))
        ranges = _united([*self._forgotten, *((span.first, span.end) for span in gone)])
        path = layout.table(staging.load.topic, FORGOTTEN, staging.load.number)
        return (staging.write(FORGOTTEN, path, table_of(ranges, RANGES)),)

    def _read(self, span: Span) -> Rows:
        return rows_in(read_file(self._store, span.path, SCHEMA))


def _write(staging: TableStaging, rows: Rows, hours: Hours, touched: int) -> list[Span]:
    """Writes the rows of a span (a file with a range of hours) into the staging directory. If the
    span has more than SPAN_ROWS rows, divides it into several spans, but keeps the rows of one hour
    together."""
    spans, begin, first, all_hours = list[Span](), 0, hours[0], rows.hours
    while begin < len(rows):
        end = len(rows)
        if end - begin > SPAN_ROWS:
            hour = all_hours[begin + SPAN_ROWS]
            end = int(np.searchsorted(all_hours, hour))
            if end == begin:  # one hour has more than SPAN_ROWS rows
                end = int(np.searchsorted(all_hours, hour, "right"))
        until = int(all_hours[end]) if end < len(rows) else hours[1]
        load, part = staging.load, rows.part(begin, end)
        parts = (first, until, end - begin, touched)
        path = layout.span(load.topic, BUCKETS, parts, load.number)
        columns = [part.agent, part.bucket, part.number]
        staging.write(BUCKETS, path, pa.Table.from_arrays(columns, schema=SCHEMA))
        spans.append(Span(*parts, path))
        begin, first = end, until
    return spans


def _runs(spans: Sequence[Span], written: set[Span]) -> list[list[Span]]:
    """Returns the groups of neighbouring spans (files, each with a range of hours) that should be
    joined."""
    ages = sorted((span for span in spans if span not in written), key=lambda span: span.touched)
    rest = {*ages[: max(0, len(spans) - APART)]}
    runs, run, rows = list[list[Span]](), list[Span](), 0
    for span in spans:
        is_full = span in rest and rows + span.rows > SPAN_ROWS
        if is_full or span not in rest:
            if len(run) >= (2 if is_full else JOINED_MIN):
                runs.append(run)
            run, rows = [], 0
        if span in rest:
            run.append(span)
            rows += span.rows
    return [*runs, run] if len(run) >= JOINED_MIN else runs


def _united(ranges: Iterable[Hours]) -> list[Hours]:
    """Unites ranges that overlap or touch. As long as there are more than RANGES_MAX ranges, unites
    the two neighbours with the smallest distance between them."""
    found: list[Hours] = []
    for first, end in sorted(ranges):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((first, end))
    while len(found) > RANGES_MAX:
        at = min(range(1, len(found)), key=lambda i: found[i][0] - found[i - 1][1])
        found[at - 1 : at + 1] = [(found[at - 1][0], found[at][1])]
    return found

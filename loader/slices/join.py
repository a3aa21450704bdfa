"""Joins the results of a partition's slices, in offset order, into one result. To find repeats, the
records of each slice are compared with the marks of all earlier slices. A mark says how far one
file is loaded (audit/counts/marks).

At first, slices run in parallel and without marks. Then audit.counts.marks.join decides which
slices must run again, and with which marks. If a task stopped before the end of its slice, the load
of its partition ends there, and later slices of the partition are not used. A second run of a slice
may read further than the first run. For example, the first run stopped before a record of an
unannounced file, but the marks of the second run show that this record is a repeat. After each
round, the loader decides anew which slices must run again, until none must.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from skidway.audit.counts.marks import FileKey, Joined, SliceEnds
from skidway.audit.counts.marks import join as join_marks
from skidway.loader.planning.plan import Slice
from skidway.loader.slices.job import SliceResult, Stop
from skidway.loader.state.manifest import BatchMark, Gap

Work = tuple[Slice, Mapping[FileKey, int]]
"""The work of one task: a slice, and the marks with which its records are checked for repeats."""

RunSlices = Callable[[Sequence[Work]], Iterable[SliceResult]]


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """Says what a load has read of one partition.

    results: one result per slice, in offset order; each slice begins where the previous slice
    ended. end: one past the last offset that was read. moved: the marks that the load advances.
    below: the last batch before `end`, or None if no batch was read.
    """

    partition: int
    results: tuple[SliceResult, ...]
    end: int
    moved: Mapping[FileKey, int]
    gaps: tuple[Gap, ...]
    below: BatchMark | None
    stop: Stop | None


def run_all(
    slices: Sequence[Slice], marks: Mapping[int, Mapping[FileKey, int]], run: RunSlices
) -> list[PartitionResult]:
    """Runs every slice, joins the results of each partition, and returns the joined results. If a
    slice may contain repeats of records of earlier slices, runs it again, with the marks of the
    earlier slices.
    """
    results: dict[Slice, SliceResult] = {}
    given: dict[Slice, Mapping[FileKey, int]] = {}
    pending: list[Work] = [(piece, {}) for piece in slices]
    while pending:
        given.update(pending)
        results.update((result.piece, result) for result in run(pending))
        pending = [
            (piece, known)
            for partition in _partitions(slices)
            for piece, known in _again(_usable(results, partition), marks.get(partition, {}))
            if given[piece] != known
        ]
    return [
        _join(partition, _usable(results, partition), marks.get(partition, {}))
        for partition in _partitions(slices)
    ]


def _partitions(slices: Sequence[Slice]) -> list[int]:
    return sorted({piece.partition for piece in slices})


def _usable(results: Mapping[Slice, SliceResult], partition: int) -> list[SliceResult]:
    """Returns the results of the partition's slices in offset order, up to and including the first
    slice that its task did not read to the end."""
    usable = []
    for piece in sorted((p for p in results if p.partition == partition), key=lambda p: p.first):
        usable.append(results[piece])
        if results[piece].stop is not None:
            break
    return usable


def _again(results: Sequence[SliceResult], marks: Mapping[FileKey, int]) -> list[Work]:
    again = _joined(results, marks).again
    return [(results[index].piece, known) for index, known in again.items()]


def _joined(results: Sequence[SliceResult], marks: Mapping[FileKey, int]) -> Joined:
    return join_marks([SliceEnds(each.lowest, each.highest) for each in results], marks)


def _join(
    partition: int, results: Sequence[SliceResult], marks: Mapping[FileKey, int]
) -> PartitionResult:
    after = _joined(results, marks).marks
    below = [each.below for each in results if each.below is not None]
    return PartitionResult(
        partition,
        tuple(results),
        results[-1].end,
        {key: end for key, end in after.items() if marks.get(key) != end},
        tuple(gap for each in results for gap in each.gaps),
        below[-1] if below else None,
        results[-1].stop,
    )

"""Loader and counters use marks to recognize records that were sent again.

For each partition and (agent, file), the mark is the highest end (the position after the last byte)
of the records so far, in offset order. Let m be the mark before a record [first, end):

    end <= m           repeat: the record is dropped, and counted as a repeat
    first < m < end    straddle: the agent must not send such a record; it counts once (in the
                       loader as a reject)
    m <= first         new: the record is kept
    then m = max(m, end), in all three cases

Because the formula for the next mark is the same in all three cases, numpy can compute marks as a
running maximum per file. To *walk* records means to apply these rules to the records in offset
order. Slices (offset ranges) of one partition can be walked in parallel, each slice as if there
were no marks before it. The result of such a walk is wrong only if a record begins below the mark
that its file has after the earlier slices. A file's mark after a slice is the greater of two
positions: the file's mark before the slice, and the highest end of the file's records in the slice.
The function `join` says which slices have to be walked again, and with which marks.

The origins come from counts.identify, so positions are >= 0, lengths are >= 1 (or 0 under agent 0),
and ends are below 2^63.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

FileKey = tuple[int, int]
"""Agent id and file id."""

NO_MARK = -1


@dataclass(frozen=True, slots=True)
class Walked:
    """The result of `walk` for each record and each file.

    keep, repeat, straddle: exactly one of the three is true for each record. lowest: for each file,
    the lowest position at which one of its records begins. highest: for each file, the highest end
    of its records; if this end is above the file's mark, it becomes the mark.
    """

    keep: Bools
    repeat: Bools
    straddle: Bools
    lowest: dict[FileKey, int]
    highest: dict[FileKey, int]


def walk(
    agent: Int64s, file: Int64s, first: Int64s, length: Int64s, marks: Mapping[FileKey, int]
) -> Walked:
    """Returns, for each record, whether it is new, a repeat or a straddle, according to the marks
    (the module's docstring explains these words). The records belong to one partition and are in
    offset order. Leaves `marks` unchanged."""
    if len(agent) == 0:
        none = np.zeros(0, np.bool_)
        return Walked(none, none, none, {}, {})
    order, begins = _by_file(agent, file)
    first = first[order]
    end = first + length[order]
    keys = list(zip(agent[order][begins].tolist(), file[order][begins].tolist(), strict=True))
    initial = np.array([marks.get(key, NO_MARK) for key in keys], np.int64)
    before = _marks_before(end, begins, initial)
    repeat = end <= before
    straddle = ~repeat & (first < before)
    lowest = np.minimum.reduceat(first, begins).tolist()
    highest = np.maximum.reduceat(end, begins).tolist()
    back = _inverse(order)
    return Walked(
        keep=~(repeat | straddle)[back],
        repeat=repeat[back],
        straddle=straddle[back],
        lowest=dict(zip(keys, lowest, strict=True)),
        highest=dict(zip(keys, highest, strict=True)),
    )


def advance(marks: dict[FileKey, int], highest: Mapping[FileKey, int]) -> dict[FileKey, int]:
    """Changes `marks`: each mark that is below the file's end in `highest` is raised to this end.
    Returns the raised marks."""
    moved = {key: end for key, end in highest.items() if end > marks.get(key, NO_MARK)}
    marks.update(moved)
    return moved


@dataclass(frozen=True, slots=True)
class SliceEnds:
    """What `join` needs to know about a slice: the values Walked.lowest and Walked.highest that
    `walk` returned when it was called without marks."""

    lowest: Mapping[FileKey, int]
    highest: Mapping[FileKey, int]


@dataclass(frozen=True, slots=True)
class Joined:
    """The result of `join`. again: the slices for which `walk` must be called again. Each key is
    the index of such a slice, and the value has the marks for this second call.

    marks: the partition's marks after all slices.
    """

    again: dict[int, dict[FileKey, int]]
    marks: dict[FileKey, int]


def join(slices: Sequence[SliceEnds], marks: Mapping[FileKey, int]) -> Joined:
    """Decides for which slices of a partition `walk` must be called again, because the result of
    the walk without marks is wrong. `slices` must be in offset order."""
    current = dict(marks)
    again: dict[int, dict[FileKey, int]] = {}
    for index, part in enumerate(slices):
        known = {key: current[key] for key in part.lowest if key in current}
        if any(part.lowest[key] < mark for key, mark in known.items()):
            again[index] = known
        advance(current, part.highest)
    return Joined(again, current)


def _by_file(agent: Int64s, file: Int64s) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Returns a stable order that brings each file's records together, and the index at which each
    file begins in that order. Agents write the records of a file in runs, so the function sorts
    only these runs."""
    changed = np.flatnonzero((agent[1:] != agent[:-1]) | (file[1:] != file[:-1])) + 1
    runs = np.concatenate(([0], changed))
    if len(runs) == 1:
        return np.arange(len(agent)), runs
    run_order = np.lexsort((file[runs], agent[runs]))  # lexsort is stable
    lengths = np.diff(runs, append=len(agent))[run_order]
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    order = np.repeat(runs[run_order] - starts, lengths) + np.arange(len(agent))
    agents, files = agent[runs][run_order], file[runs][run_order]
    fresh = np.concatenate(([True], (agents[1:] != agents[:-1]) | (files[1:] != files[:-1])))
    return order, starts[fresh]


def _marks_before(end: Int64s, begins: npt.NDArray[np.intp], initial: Int64s) -> Int64s:
    """Returns, for each record, the mark before it: the maximum of the file's initial mark and the
    ends of the file's earlier records."""
    sizes = np.diff(begins, append=len(end))
    before = np.empty_like(end)
    before[1:] = end[:-1]
    before[begins] = initial
    if np.all(before <= end):  # the ends ascend, so each mark is the previous end
        return before
    ranks = np.empty(len(end), np.int64)
    ordered = np.argsort(before, kind="stable")
    ranks[ordered] = np.arange(len(end))
    offset = np.repeat(np.arange(len(begins)), sizes) * len(end)
    highest = np.maximum.accumulate(ranks + offset) - offset
    return before[ordered][highest]


def _inverse(order: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return back

"""Tests how repeats and straddles are found by marks. Processing whole columns of records gives the
same result as processing one record after another.

A file's mark in a partition is the highest end of the file's records so far. (The end of a record
is the position after its last byte.) A record that ends at or below the mark is a repeat. A record
that begins below the mark and ends above it is a straddle. The sequential rule processes one record
after another: it compares the record with the mark of the record's file, and then raises the
mark."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skidway.audit.counts import marks
from skidway.audit.counts.marks import FileKey, SliceEnds, Walked
from support.promises import promise

Record = tuple[int, int, int, int]

records = st.lists(
    st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(0, 12), st.integers(1, 5)),
    max_size=30,
)
known_marks = st.dictionaries(
    st.tuples(st.integers(1, 2), st.integers(1, 3)), st.integers(0, 14), max_size=6
)


def _walk(chosen: list[Record], known: dict[FileKey, int]) -> Walked:
    columns = [np.array([record[i] for record in chosen], np.int64) for i in range(4)]
    return marks.walk(*columns, known)


def _sequential(chosen: list[Record], known: dict[FileKey, int]) -> tuple[str, dict[FileKey, int]]:
    """The rule in the module's docstring, which processes one record after another. Returns a
    letter for each record (k: new, r: repeat, s: only partly a repeat), and the marks
    afterwards."""
    current = dict(known)
    kinds = ""
    for agent, file, first, length in chosen:
        mark, end = current.get((agent, file), -1), first + length
        kinds += "r" if end <= mark else "s" if first < mark else "k"
        current[agent, file] = max(mark, end)
    return kinds, current


def _kinds(walked: Walked) -> str:
    flags = zip(walked.keep, walked.repeat, walked.straddle, strict=True)
    return "".join("krs"[flag.index(True)] for flag in (tuple(map(bool, x)) for x in flags))


@promise("5 marks")
@given(records, known_marks)
def test_columns_walk_as_the_sequential_rule(chosen: list[Record], known: dict) -> None:
    """The same new records, repeats, straddles and marks are found whether records are processed in
    columns or one after another. (A straddle is a record of which only the first bytes are a
    repeat.)"""
    before = dict(known)
    walked = _walk(chosen, known)
    kinds, after = _sequential(chosen, known)
    assert _kinds(walked) == kinds
    assert known == before
    marks.advance(known, walked.highest)
    assert known == after


@given(st.lists(records, max_size=5), known_marks)
def test_slices_walked_in_parallel_join_to_one_walk(
    slices: list[list[Record]], known: dict
) -> None:
    """Slices (consecutive parts) of a partition's records can be processed in parallel, each one at
    first without the marks of earlier slices. `join` then says which slices must be processed
    again, and with which marks. In the end, the result is the same as that of one pass in order."""
    walked = [_walk(part, {}) for part in slices]
    joined = marks.join([SliceEnds(x.lowest, x.highest) for x in walked], known)
    for index, right_marks in joined.again.items():
        walked[index] = _walk(slices[index], right_marks)
    kinds, after = _sequential([record for part in slices for record in part], known)
    assert "".join(_kinds(x) for x in walked) == kinds
    assert joined.marks == after


def test_a_resent_batch_is_repeats_and_what_follows_is_new() -> None:
    """The records of a batch that was sent again are repeats, and records after this batch are
    new."""
    batch = [(1, 7, 0, 10), (1, 7, 10, 10)]
    assert _kinds(_walk([*batch, *batch, (1, 7, 20, 5)], {})) == "kkrrk"


def test_slices_that_do_not_overlap_are_not_walked_again() -> None:
    """Slices (parts) of a partition are processed in parallel. The records of a file may end in one
    slice and continue in the next slice, exactly at the byte at which they ended. In this case the
    next slice is not processed again."""
    ends = [SliceEnds({(1, 7): 0}, {(1, 7): 20}), SliceEnds({(1, 7): 20}, {(1, 7): 30})]
    assert marks.join(ends, {(1, 9): 4}).again == {}


def test_a_slice_is_walked_again_with_the_marks_of_all_before_it() -> None:
    """Slices (parts) of a partition are processed in parallel. The first record of a file in a
    slice may begin at a lower position than the one at which the file's records in earlier slices
    end. Then the slice is processed again, with the marks that the earlier slices have left for its
    files."""
    ends = [SliceEnds({(1, 7): 0}, {(1, 7): 20}), SliceEnds({(1, 7): 10}, {(1, 7): 30})]
    assert marks.join(ends, {(1, 9): 4}).again == {1: {(1, 7): 20}}


def test_records_without_length_stand_for_one_offset_each() -> None:
    """Records without origin are counted with agent 0, and with their offset as first byte. A
    record of this kind is never taken for a repeat of another one."""
    assert _kinds(_walk([(0, 3, 17, 0), (0, 3, 18, 0)], {(0, 3): 16})) == "kk"

"""Tests `Pieces`: values of records that are given in pieces. Each value consists of the bytes with
which all values begin (`front`), followed by the row's bytes from each of several columns. The
pieces are joined only when the values are encoded."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.kafka.columns import Origins, Pieces, encode

BYTES = st.one_of(st.binary(max_size=3), st.sampled_from([b"x" * 62, b"y" * 130, b"z" * 9000]))
ROWS = st.lists(st.tuples(BYTES, BYTES, BYTES), min_size=1, max_size=80)


@given(st.binary(max_size=6), ROWS, st.booleans(), st.booleans(), st.integers(0, 3))
def test_pieces_become_the_records_of_the_joined_values(
    front: bytes,
    rows: list[tuple[bytes, bytes, bytes]],
    has_keys: bool,
    has_origins: bool,
    skipped: int,
) -> None:
    """Values may be given as `Pieces`: the bytes with which all values begin, and several columns
    with the rest of each value. They are encoded to the same bytes as the same values in one
    column."""
    skipped = min(skipped, len(rows) - 1)
    keys, left, right = (
        pa.array(column, pa.binary())[skipped:] for column in zip(*rows, strict=True)
    )
    pieces = Pieces(front, (left, right))
    count = len(pieces)
    joined = pa.array([front + a + b for _, a, b in rows[skipped:]], pa.binary())
    numbers = np.arange(count, dtype=np.int64)
    origins = Origins(numbers, numbers * 7, numbers * 300, numbers + 1) if has_origins else None
    times = 1_700_000_000_000 + numbers * 1_000
    given_keys = keys if has_keys else None
    assert encode(pieces, times, origins=origins, keys=given_keys) == encode(
        joined, times, origins=origins, keys=given_keys
    )
    assert pieces.sizes.tolist() == [len(value) for value in joined.to_pylist()]


def test_rows_of_pieces_are_taken_from_every_column() -> None:
    """`Pieces.take` returns the chosen rows of every column. The rows are chosen by a slice or by
    their numbers."""
    pieces = Pieces(b"!", (pa.array([b"a", b"bb", b"c"]), pa.array([b"1", b"2", b"33"])))
    for rows in (slice(1, 3), np.array([1, 2])):
        taken = pieces.take(rows)
        assert taken.front == b"!"
        assert [column.to_pylist() for column in taken.columns] == [[b"bb", b"c"], [b"2", b"33"]]
        assert taken.sizes.tolist() == [4, 4]


def test_pieces_of_different_lengths_are_refused() -> None:
    """If the columns of `Pieces` have different lengths, `encode` raises ValueError."""
    pieces = Pieces(b"", (pa.array([b"a", b"b"]), pa.array([b"1"])))
    with pytest.raises(ValueError, match="different lengths"):
        encode(pieces, np.zeros(2, np.int64))

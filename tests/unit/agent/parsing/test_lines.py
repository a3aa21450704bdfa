import numpy as np
import pyarrow as pa

from skidway.agent.parsing import lines


def test_rows_that_are_no_text_are_told_apart() -> None:
    """`text` turns each value that is not UTF-8 into null, and returns the indexes of these
    values."""
    text, bad = lines.text(pa.array([b"a", b"\xff", "ü".encode(), b"\xc3"]))
    assert text.to_pylist() == ["a", None, "ü", None]
    assert bad.tolist() == [1, 3]


def test_sizes_count_bytes_also_of_a_slice() -> None:
    """If an array is a slice of another array, `sizes` returns the lengths in bytes of the values
    in the slice, and of no other values."""
    assert lines.sizes(pa.array([b"abc", b"", b"de"])[1:]).tolist() == [0, 2]


def test_slices_cut_in_the_middle() -> None:
    """`slices` gets the beginnings and ends of several pieces of a byte string, and cuts out these
    pieces. It leaves out the bytes between these pieces."""
    cut = lines.slices(b"abcdef", np.array([0, 3]), np.array([2, 6]))
    assert cut.to_pylist() == [b"ab", b"def"]
    assert lines.slices(b"abc", np.array([], np.int64), np.array([], np.int64)).to_pylist() == []

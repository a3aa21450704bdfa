"""Tests the check whether all bytes of a column are ASCII. If they are, the column's texts need no
UTF-8 check."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from skidway.schemas.codec.text import is_ascii, utf8_faults

VALUES = st.lists(
    st.one_of(st.none(), st.sampled_from([b"", b"a", b"\x7f", b"\x80", b"\xc3\xa9", b"\xff"])),
    max_size=6,
)


@given(VALUES, st.integers(0, 6), st.integers(0, 6))
def test_a_slice_is_ascii_if_its_own_bytes_are(
    values: list[bytes | None], first: int, count: int
) -> None:
    """If a column is a slice of a longer array, `is_ascii` looks only at the bytes of the slice's
    own values. If all of them are ASCII, `utf8_faults` finds no row that is not UTF-8."""
    array = pa.array(values, pa.binary())[first : first + count]
    wanted = all(value is None or value.isascii() for value in array.to_pylist())
    assert is_ascii(array) == wanted
    if wanted:
        assert utf8_faults(array.view(pa.string())) is None

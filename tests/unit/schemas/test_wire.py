"""Confluent's wire format puts a prefix with the schema id before each value. The functions in
`wire` add and remove this prefix for whole arrays of values."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.schemas import wire

values = st.lists(st.none() | st.binary(max_size=12), max_size=8)


def sequential(value: bytes | None) -> tuple[int, bytes | None]:
    """Splits one value into schema id and datum. If the value has no prefix, returns the id -1 and
    the whole value."""
    if value is None or len(value) < 5 or value[0] != 0 or value[1] > 127:
        return -1, value
    return struct.unpack(">i", value[1:5])[0], value[5:]


def test_the_prefix_is_five_bytes() -> None:
    """The prefix is a byte 0, followed by the schema id as four bytes, big-endian."""
    assert wire.prefix(258) == b"\x00\x00\x00\x01\x02"
    for wrong in (-1, 2**31):
        with pytest.raises(ValueError, match="no schema id"):
            wire.prefix(wrong)


@given(values, st.integers(0, 2**31 - 1))
def test_what_was_prefixed_splits_again(datums: list[bytes | None], schema_id: int) -> None:
    """If a prefix with a schema id is added to datums, and the result is split again, the id and
    the datums are the same as before. Nulls stay null and get the id -1."""
    array = pa.array(datums, pa.binary())
    ids, back = wire.split(wire.add_prefix(schema_id, array))
    assert back.equals(array)
    assert ids.tolist() == [-1 if each is None else schema_id for each in datums]


framed = st.builds(
    lambda head, rest: head + rest,
    st.sampled_from([b"", b"\0", b"\0\0\0\0\7", b"\1\0\0\0\7"]),
    st.binary(max_size=6),
)


@given(st.lists(st.none() | framed, max_size=8), st.integers(0, 3))
def test_any_values_split_as_one_by_one(found: list[bytes | None], skip: int) -> None:
    """Splitting the prefixes off all values of an array (or of a slice of an array) at once gives
    the same result as splitting each value alone. A value without a prefix stays whole."""
    array = pa.array(found, pa.binary()).slice(skip)
    ids, datums = wire.split(array)
    wanted = [sequential(each) for each in found[skip:]]
    assert ids.dtype == np.int32
    assert list(zip(ids.tolist(), datums.to_pylist(), strict=True)) == wanted

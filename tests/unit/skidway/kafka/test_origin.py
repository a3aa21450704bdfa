"""The origin header of a record names the agent, the file and the bytes that the record came
from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.kafka import origin

IDS = st.integers(0, 2**63 - 1)


@given(IDS, IDS, IDS, st.integers(0, 2**32 - 1))
def test_packed_is_unpacked(agent: int, file: int, first: int, length: int) -> None:
    """A packed origin is 28 bytes, which unpack to the numbers that were packed."""
    packed = origin.pack(agent, file, first, length)
    assert len(packed) == origin.ORIGIN_BYTES == 28
    assert origin.unpack(packed) == (agent, file, first, length)


def test_layout_is_big_endian() -> None:
    """An origin is three u64 and a u32, big-endian, as documented."""
    assert (
        origin.pack(1, 2, 3, 4).hex() == "00000000000000010000000000000002000000000000000300000004"
    )


@pytest.mark.parametrize(
    "numbers",
    [
        (-1, 0, 0, 0),
        (2**63, 0, 0, 0),
        (0, 2**63, 0, 0),
        (0, 0, 2**63, 0),
        (0, 0, 0, 2**32),
        (0, 0, 0, -1),
    ],
)
def test_numbers_that_do_not_fit_are_refused(numbers: tuple[int, int, int, int]) -> None:
    """If a number does not fit into its field of the origin, packing the origin raises an error,
    and the number is not truncated."""
    with pytest.raises(ValueError, match="must lie in"):
        origin.pack(*numbers)


@given(st.binary(max_size=60))
def test_foreign_values_are_no_origin(value: bytes) -> None:
    """A value that is not 28 bytes long, or that contains an id or position of 2^63 or more,
    unpacks to None without an error."""
    found = origin.unpack(value)
    if len(value) != 28 or value[0] > 127 or value[8] > 127 or value[16] > 127:
        assert found is None
    else:
        assert found is not None
        assert origin.pack(*found) == value

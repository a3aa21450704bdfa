from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skidway.broker.log.producer_id import ID_END, NUMBERS, belongs_to, make, number_of

KEYS = st.binary(min_size=1, max_size=32)
NUMBER = st.integers(0, NUMBERS - 1)
OURS, THEIRS = "User:shop", "User:web"


@given(KEYS, NUMBER, st.text())
def test_an_id_belongs_to_its_principal(key: bytes, number: int, principal: str) -> None:
    """Each number gives an id in the range of ids, which belongs to the principal it was made for,
    and from which the number can be told."""
    made = make(key, number, principal)
    assert 0 <= made < ID_END
    assert number_of(made) == number
    assert belongs_to(key, made, principal)


@given(KEYS, st.integers(0, 1000))
def test_an_id_of_another_principal_cluster_or_number_is_known_as_such(
    key: bytes, number: int
) -> None:
    """An id does not belong to another principal, nor does an id of another cluster, or one with a
    changed number."""
    made = make(key, number, OURS)
    assert not belongs_to(key, made, THEIRS)
    assert not belongs_to(key + b"x", made, OURS)
    assert not belongs_to(key, made + (1 << 26), OURS)


@given(KEYS, st.one_of(st.integers(ID_END, (1 << 63) - 1), st.integers(-(1 << 63), -1)))
def test_an_id_outside_of_the_range_belongs_to_nobody(key: bytes, producer_id: int) -> None:
    """An id that no broker gives belongs to nobody."""
    assert not belongs_to(key, producer_id, OURS)


def test_numbers_and_principals_are_not_confused() -> None:
    """The number 1 for the principal "1 x" and the number 11 for " x" have tags of their own."""
    key = b"key"
    tags = {make(key, 1, "1 x") & 0x3FFFFFF, make(key, 11, " x") & 0x3FFFFFF}
    assert len(tags) == 2

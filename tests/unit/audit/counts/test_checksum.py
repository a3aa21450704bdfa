"""Tests the checksum of records, which does not depend on their order. The checksum is part of the
message format, so these tests compare it with fixed values."""

from __future__ import annotations

import random as random_numbers

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.audit.counts import checksum
from support.promises import promise

Origin = tuple[int, int, int, int]

GOLDEN: list[tuple[Origin, int]] = [
    ((0, 0, 0, 0), 2391539541053276776),
    ((1, 2, 3, 4), 15374388949593934587),
    ((1, 2, 4, 3), 15633652749581319305),
    ((2**63 - 1, 2**63 - 1, 2**62, 2**32 - 1), 4875853255685681008),
    ((1234567890123456789, 987654321098765432, 104857600, 145), 18212963931645991259),
    ((0, 3, 17, 0), 15090212811147900877),
]


def _hashes(origins: list[Origin]) -> np.ndarray:
    columns = [np.array(column, np.int64) for column in zip(*origins, strict=True)]
    return checksum.record_hash(*columns)


def _plain_hash(origin: Origin) -> int:
    mask = (1 << 64) - 1
    value = 0
    for field in origin:
        value = ((value ^ field) + 0x9E3779B97F4A7C15) & mask
        value = ((value ^ value >> 30) * 0xBF58476D1CE4E5B9) & mask
        value = ((value ^ value >> 27) * 0x94D049BB133111EB) & mask
        value ^= value >> 31
    return value


ids = st.integers(0, 2**63 - 1)
origins = st.tuples(ids, ids, ids, st.integers(0, 2**32 - 1))


@pytest.mark.parametrize(("origin", "expected"), GOLDEN)
def test_the_hash_never_changes(origin: Origin, expected: int) -> None:
    """The hash of a record is the same in every version, because stored messages and manifests of
    all versions contain sums of these hashes."""
    assert _hashes([origin]).tolist() == [expected]


@given(st.lists(origins, min_size=1, max_size=12))
def test_columns_hash_as_the_documented_formula(records: list[Origin]) -> None:
    """Hashing columns of records gives the same hashes as the documented formula for each record.
    The records may come from one file or from several files."""
    repeated = [record for record in records for _ in range(2)]
    assert _hashes(repeated).tolist() == [_plain_hash(record) for record in repeated]


@given(st.lists(origins, min_size=1, max_size=12), st.randoms())
def test_the_sum_does_not_depend_on_order_or_grouping(
    records: list[Origin], random: random_numbers.Random
) -> None:
    """The checksum does not depend on the order of the records or on their division into batches.
    Therefore the checksums of different tiers agree."""
    whole = checksum.total(_hashes(records))
    shuffled = list(records)
    random.shuffle(shuffled)
    parts = 0
    for record in shuffled:
        parts = checksum.add(parts, checksum.total(_hashes([record])))
    assert whole == parts
    assert -(2**63) <= whole < 2**63


@promise("6 checksum")
@given(st.lists(origins, min_size=2, max_size=12, unique=True))
def test_a_loss_and_a_double_do_not_cancel(records: list[Origin]) -> None:
    """If one record is lost and another one is counted twice, the count stays the same, but the
    checksum changes."""
    wrong = [records[1], *records[1:]]
    assert checksum.total(_hashes(wrong)) != checksum.total(_hashes(records))


def test_no_records_have_the_checksum_zero() -> None:
    """An empty batch has the checksum zero."""
    none = np.zeros(0, np.int64)
    assert checksum.total(checksum.record_hash(none, none, none, none)) == 0


@given(st.integers(-(2**70), 2**70))
def test_signed_is_the_residue_that_fits_a_long(number: int) -> None:
    """A sum of any size is stored as the signed 64-bit number that is congruent to it modulo
    2^64."""
    assert -(2**63) <= checksum.signed(number) < 2**63
    assert (checksum.signed(number) - number) % 2**64 == 0


longs = st.integers(-(1 << 63), (1 << 63) - 1)


@promise("6 checksum")
@given(longs, longs)
def test_narrow_checksums_add_up_like_checksums(left: int, right: int) -> None:
    """A narrow checksum has only the low 24 bits of a checksum. The sum of two narrow checksums is
    the narrow form of the sum of the two checksums. Checksums that differ in one of these 24 bits
    have different narrow forms. Texts of checksums show only these bits, so a checksum and its
    narrow form have the same text, unless all 24 bits are 0."""
    together = checksum.add(left, right)
    assert checksum.add(checksum.narrow(left), checksum.narrow(right)) == checksum.narrow(together)
    differs = (left - right) % (1 << 24) != 0
    assert (checksum.narrow(left) != checksum.narrow(right)) == differs
    if left % (1 << 24):
        assert checksum.brief(checksum.narrow(left)) == checksum.brief(left) == left % (1 << 24)

"""Tests the digests of numbered messages, by which the ledger (the collector's store) recognizes
repeated messages. For each number of a sender, the ledger keeps the digest of the first message."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skidway.audit.database import IN_MEMORY, open_database, transaction
from skidway.audit.evidence import number_rows
from skidway.audit.evidence.ledger_tables import FORMAT, SCHEMA
from skidway.audit.evidence.number_rows import BLOCK, NumberRows, digest_of, first_missing
from support.promises import promise

LEAST, MOST = -(1 << 63), (1 << 63) - 1
numbers = st.integers(1, 3 * BLOCK) | st.integers(LEAST, MOST)
said = st.lists(st.tuples(st.integers(1, 3), numbers, st.binary(min_size=1, max_size=2)))


@promise("6 numbers")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=said, size=st.integers(1, 9))
def test_the_first_digest_of_a_number_is_kept(
    chosen: list[tuple[int, int, bytes]], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a message has the number of an earlier message, `add` returns the digest of the earlier
    one, whatever numbers came in between. It does not matter whether this digest is still in
    memory, or only in the database."""
    monkeypatch.setattr(number_rows, "KEPT_BLOCKS_MAX", 1)
    connection = open_database(IN_MEMORY, SCHEMA, FORMAT)
    rows, known = NumberRows(connection), dict[tuple[int, int], bytes]()
    for first in range(0, len(chosen), size):
        with transaction(connection):
            for sender, number, value in chosen[first : first + size]:
                digest = digest_of(value)
                assert rows.add(sender, number, digest, 5) == known.get((sender, number))
                known.setdefault((sender, number), digest)
            rows.write()
    later = NumberRows(connection)
    assert all(later.add(*key, digest_of(b""), 5) == digest for key, digest in known.items())
    connection.close()


@promise("6 numbers")
@given(st.integers(-3, 3 * BLOCK), st.integers(1, 3 * BLOCK), st.sets(st.integers(0, 3 * BLOCK)))
def test_the_first_missing_number_is_found(first: int, count: int, holes: set[int]) -> None:
    """`first_missing` returns the least missing number of a sender, even if whole blocks of numbers
    are missing, and even if another sender has sent these numbers."""
    connection = open_database(IN_MEMORY, SCHEMA, FORMAT)
    rows = NumberRows(connection)
    there = {first, *(first + each for each in range(count))} - {first + 1 + x for x in holes}
    with transaction(connection):
        for number in there:
            rows.add(1, number, digest_of(b""), 5)
        for number in range(first, first + 4 * BLOCK):
            rows.add(2, number, digest_of(b""), 5)
        rows.write()
    expected = next(x for x in range(first, first + count + 1) if x not in there)
    assert first_missing(connection, 1, first) == expected
    connection.close()


def test_a_digest_depends_on_every_byte() -> None:
    """If two messages differ in one byte, their digests differ, too. Each digest has 4 bytes."""
    value = bytes(range(256))
    changed = [value[:at] + b"?" + value[at + 1 :] for at in range(256) if at != ord("?")]
    found = {digest_of(each) for each in [value, value + b"\0", b"", *changed]}
    assert len(found) == 258
    assert {len(each) for each in found} == {4}


@promise("6 numbers")
def test_a_settled_number_that_comes_later_is_another_message() -> None:
    """To settle a message means to delete its digest. If a settled message comes again, it counts
    as a repetition, but a message with the same number and a later time counts as another message.
    The ledger settles whole blocks of numbers, but only blocks before the first missing number, so
    that this number is still known to be missing."""
    connection = open_database(IN_MEMORY, SCHEMA, FORMAT)
    rows = NumberRows(connection)
    with transaction(connection):
        for number in {*range(1, 3 * BLOCK)} - {2 * BLOCK + 5}:
            rows.add(1, number, digest_of(b"old"), 100 + number)
        rows.write()
        assert rows.settle([(1, 1)], 100 + BLOCK) == [(0, 1)]
        assert rows.settle([(1, 1)], 1_000) == [(1, 1)]
    for again in (rows, NumberRows(connection)):
        assert again.add(1, BLOCK + 1, digest_of(b"old"), 100 + BLOCK + 1) == digest_of(b"old")
        assert again.add(1, BLOCK + 1, digest_of(b"new"), 500) == b""
        assert again.add(1, 2 * BLOCK, digest_of(b"new"), 500) == digest_of(b"old")
    assert first_missing(connection, 1, 1) == 2 * BLOCK + 5
    connection.close()


@promise("6 numbers")
@pytest.mark.parametrize("first", [MOST, MOST - 1, MOST - BLOCK + 1, MOST - BLOCK, LEAST])
def test_a_message_with_the_greatest_number_does_not_end_the_settling(first: int) -> None:
    """Any program can send a message with the greatest possible number. To settle a block of
    numbers means to delete the digests of its messages. The ledger settles a block only if a
    message can have a number above the block. So it never settles the block with the greatest
    number, but it settles earlier blocks as usual."""
    connection = open_database(IN_MEMORY, SCHEMA, FORMAT)
    rows = NumberRows(connection)
    with transaction(connection):
        for number in range(first, min(first + 2 * BLOCK, MOST + 1)):
            rows.add(1, number, digest_of(b"old"), 5)
        rows.write()
        settled = rows.settle([(1, first)], 1_000)
    assert (MOST // BLOCK, 1) not in settled
    assert len(settled) == {LEAST: 2, MOST - BLOCK: 1}.get(first, 0)
    for again in (rows, NumberRows(connection)):
        assert again.add(1, first, digest_of(b"old"), 5) == digest_of(b"old")
    connection.close()

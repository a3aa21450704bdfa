"""The sums of counts are the same wherever the counts are added: in memory, for the messages of one
transaction, or in the database, for the messages of several transactions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skidway.audit.counts import checksum
from skidway.audit.evidence import tally_rows
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.evidence.tallies import SenderKey, links_of
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import Delta, Tier, encode
from support.audit_senders import AGENT, LOGS
from support.fold import Fold
from support.promises import promise
from support.randomness import share_of

LEAST, MOST = -(1 << 63), (1 << 63) - 1
longs = st.one_of(st.integers(LEAST, MOST), st.sampled_from([LEAST, -1, 0, 1, MOST]))


@promise("6 checksum")
@settings(max_examples=share_of(100))
@given(st.lists(longs, min_size=1, max_size=5), st.integers(1, 5), st.integers(-1, 1))
@example([MOST, MOST, 1], 1, 0)
@example([LEAST, LEAST, -1], 1, 0)
@example([1, 2, 3], 3, 1)
@example([1, 2, 3], 3, -1)
def test_sums_are_those_of_64_bits_wherever_they_are_added(
    sums: list[int], size: int, turn: int
) -> None:
    """The checksum of a bucket is the sum modulo 2^64 of the checksums in all deltas, and the
    bucket's chain of deltas is whole. It does not matter how many messages a transaction has, and
    in which order they come."""
    said = [
        encode(Delta(AGENT, number, 5, counts=(Count(LOGS, 7, 0, 9, 1, 2, x, 0, 0, number - 1),)))
        for number, x in enumerate(sums, start=1)
    ]
    said = said[::-1] if turn < 0 else [*said[turn:], *said[:turn]]
    ledger = Ledger()
    for first in range(0, len(said), size):
        ledger.take(said[first : first + size])
    tally = ledger.evidence().topic(LOGS).tallies[0, 9][7][SenderKey(Tier.AGENT, "7", 1)]
    assert tally.sums.checksum == checksum.signed(sum(sums))
    assert (tally.sums.count, tally.sums.bytes) == (len(sums), 2 * len(sums))
    assert (tally.first, tally.last, tally.chained) == (1, len(sums), True)
    assert tally.links == links_of(len(sums), 0)
    ledger.close()


def test_what_left_memory_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger keeps only some tallies in memory. It reads the others from the database before it
    adds to them."""
    monkeypatch.setattr(tally_rows, "KEPT_TALLIES_MAX", 2)
    ledger = Ledger()
    for number in range(1, 13):
        bucket = number % 4 * 9
        counts = [
            Count(LOGS, agent, bucket, 9, 1, 2, 3, 0, 0, max(number - 4, 0)) for agent in (7, 8)
        ]
        ledger.take([encode(Delta(AGENT, number, 5, counts=tuple(counts)))])
    tallies = ledger.evidence().topic(LOGS).tallies
    found = [x.sums.count for each in tallies.values() for y in each.values() for x in y.values()]
    assert found == [3] * 8
    assert all(x.chained for each in tallies.values() for y in each.values() for x in y.values())
    ledger.close()


def test_each_count_goes_to_its_topic_and_agent() -> None:
    """The deltas of one transaction may name different topics, and a later delta may name an agent
    that the bucket did not have before. Each count is added to its own topic and agent."""
    other = replace(LOGS, topic="other", topic_id="9")
    counts = [
        (Count(other, 7, 0, 9, 1, 1, 1),),
        (Count(LOGS, 7, 0, 9, 2, 2, 2), Count(other, 7, 0, 9, 3, 3, 3, previous=1)),
        (Count(LOGS, 8, 0, 9, 4, 4, 4),),
    ]
    said = [Delta(AGENT, number, 5, counts=x) for number, x in enumerate(counts, start=1)]
    for size in (1, 2, 3):
        ledger = Ledger()
        for first in range(0, len(said), size):
            ledger.take(map(encode, said[first : first + size]))
        assert ledger.evidence() == Fold(said).evidence()
        assert ledger.evidence().topic(LOGS).agents == {7, 8}
        ledger.close()

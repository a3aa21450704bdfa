"""Tests that the sums of counts do not depend on where the ledger adds them up. If the messages
come in one transaction, the ledger adds up the counts in memory. If they come in several
transactions, it adds the counts to sums in the database."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skidway.audit.counts import checksum
from skidway.audit.database import IN_MEMORY, open_database
from skidway.audit.evidence import number_bases, seal_rows, tally_rows
from skidway.audit.evidence import tallies as tally_columns
from skidway.audit.evidence.agent_numbers import AgentNumbers
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.evidence.ledger_tables import FORMAT, SCHEMA
from skidway.audit.evidence.pruning import OldBucket, digest_of
from skidway.audit.evidence.tallies import COUNT, SENDER, SenderKey, TallyColumns, links_of
from skidway.audit.evidence.tally_packing import pack, unpack
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import Delta, Seal, Tier, encode
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.errors import StateRefused
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
    """The checksum of a bucket is the sum modulo 2^64 of the checksums in all deltas (messages with
    counts). Each delta names the previous delta that counted the bucket, so the ledger sees that no
    delta is missing. This is so in whatever order the messages come, and in however many
    transactions they are stored."""
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


tallies = st.lists(
    st.tuples(st.sampled_from([0, 7, -8, MOST]), st.sampled_from([1, 2, 3]), *[longs] * 8),
    min_size=1,
    max_size=12,
).map(lambda rows: TallyColumns.summed(np.array(rows, np.int64).T))


@given(tallies, tallies)
def test_adding_to_known_tallies_is_adding_up_all(mine: TallyColumns, other: TallyColumns) -> None:
    """If two groups of tallies (sums of counts) are added, the result is the same as if all counts
    of both groups were added up. This is also true of narrow checksums (cut to 24 bits). A tally
    that is stored and read again has the same numbers."""
    store = open_database(IN_MEMORY, SCHEMA, FORMAT)
    whole = TallyColumns.summed(np.concatenate((mine.table, other.table), axis=1))
    for first, second in ((mine, other), (other, mine), (whole, other)):
        found = first + second
        together = np.concatenate((first.table, second.table), axis=1)
        assert np.array_equal(found.table, TallyColumns.summed(together).table)
        for each in (found, found.narrowed()):
            stored = _stored(each, store)
            assert np.array_equal(stored.table, each.table)
            assert stored.is_narrow == each.is_narrow
        for narrow in (first.narrowed() + second, first + second.narrowed()):
            assert narrow.is_narrow
            assert np.array_equal(narrow.table, found.narrowed().table)
    store.close()


def _stored(tallies: TallyColumns, store: sqlite3.Connection) -> TallyColumns:
    """Packs the tallies as the ledger stores them, and returns what another reader unpacks."""
    writer = AgentNumbers(store)
    base = writer.bases.of_bucket(0)
    if not base.id:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(number_bases, "AGENTS_LEAST", 1)
            agents = writer.of(tallies.table[tally_columns.AGENT], tallies.table[SENDER])
            base = writer.bases.make(0, tallies, agents)
    return unpack(pack(tallies, writer, base), AgentNumbers(store))


def test_what_left_memory_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger keeps only some tallies (sums of counts) in memory. Counts of a bucket whose
    tallies are not in memory are still added to these tallies."""
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


@pytest.mark.parametrize(("part", "pending"), [(1, 1), (1, 2), (1, 9), (2, 9), (1 << 17, 9)])
def test_each_count_goes_to_its_topic_and_agent(
    monkeypatch: pytest.MonkeyPatch, part: int, pending: int
) -> None:
    """The ledger adds each count to the tally (the sum of counts) of the count's own topic and
    agent. This is true even if the deltas (messages with counts) of one transaction name different
    topics, or if a delta names an agent that the bucket did not have before. It is also true if the
    ledger divides the counts of a transaction into several arrays, or writes some of them before it
    has decoded the others."""
    monkeypatch.setattr(tally_rows, "TOLD_MAX", part)
    monkeypatch.setattr(tally_rows, "PENDING_MAX", pending)
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


@promise("6 checksum")
@pytest.mark.parametrize("is_kept", [True, False])
def test_a_bucket_is_the_sum_of_its_row_and_its_additions(
    monkeypatch: pytest.MonkeyPatch, is_kept: bool
) -> None:
    """The ledger does not change the row of a bucket that gets further counts. It stores these
    counts as additions, in another table. Every reader of the bucket gets the sum of the row and
    its additions, whether or not the bucket is still in memory. The additions disappear when there
    would be too many of them, when the bucket's rows are merged, when its checksums are made narrow
    (cut to 24 bits), and when it is deleted."""
    monkeypatch.setattr(tally_rows, "ADDITIONS_MAX", 3)
    if not is_kept:
        monkeypatch.setattr(tally_rows, "KEPT_BUCKETS_MAX", 0)
    ledger, said, last = Ledger(), list[Delta](), {7: 0, 8: 0}

    def take(number: int) -> None:
        agent = 7 + number % 2
        counts = (Count(LOGS, agent, 0, 9, number, 2, 3, previous=last[agent]),)
        last[agent] = number
        said.append(Delta(AGENT, number, 5, counts=counts))
        ledger.take([encode(said[-1])])
        columns = ledger._rows.tallies(LOGS, 0, 9)
        assert columns is not None
        assert columns.table[COUNT].sum() == number * (number + 1) // 2

    for number in range(1, 12):
        take(number)
        tallies = ledger.evidence().topic(LOGS).tallies
        assert tallies == Fold(said).evidence().topic(LOGS).tallies
        assert _additions(ledger) == (number - 1) % 4
    for number, shorten in ((12, ledger.merge), (13, ledger.narrow), (14, ledger.merge)):
        take(number)
        assert _additions(ledger) == ledger.additions(LOGS, (0, 9)) > 0
        shorten([(LOGS, (0, 9))])
        columns = ledger._rows.tallies(LOGS, 0, 9)
        assert columns is not None
        assert (columns.is_narrow, _additions(ledger)) == (number > 12, 0)
        assert columns.table[COUNT].sum() == number * (number + 1) // 2
    take(15)
    columns = ledger._rows.tallies(LOGS, 0, 9)
    assert columns is not None
    assert (columns.is_narrow, _additions(ledger)) == (True, 1)
    assert ledger.prune([OldBucket(LOGS, 0, 9, digest_of(columns))], 0) == 1
    assert _additions(ledger) == 0
    ledger.close()


def _additions(ledger: Ledger) -> int:
    (count,) = ledger._connection.execute("SELECT count(*) FROM tally_additions").fetchone()
    return int(count)


def test_what_stays_in_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger keeps the tallies (sums of counts) of a bounded number of buckets in memory. Each
    of these tallies has an array of its own. If it were a view of a larger array, for example of
    all counts of a message, the larger array would stay in memory, too."""
    monkeypatch.setattr(tally_rows, "KEPT_BUCKETS_MAX", 3)
    ledger = Ledger()
    for number in range(1, 9):
        counts = [Count(LOGS, 7, 0, 9, 1, 2, 3, 0, 0, number - 1) for _ in range(100)]
        counts.append(Count(LOGS, 7, 9 * number, 9, 1, 2, 3))
        ledger.take([encode(Delta(AGENT, number, 5, counts=tuple(counts)))])
    kept = ledger._rows._tallies._kept.values()
    assert len(kept) == 3
    held = [x.table if x.table.base is None else x.table.base for x in kept]
    assert sum(x.nbytes for x in held) <= 10 * 8 * 3
    ledger.close()


@pytest.mark.parametrize("damage", [b"", b"1234", b"\0" * 60])
def test_a_damaged_bucket_is_noticed(tmp_path: Path, damage: bytes) -> None:
    """If the counts of a bucket are damaged on disk, reading the evidence raises an error that says
    so in one sentence. None of these counts is used."""
    ledger = Ledger(tmp_path / "audit.db")
    ledger.take([encode(Delta(AGENT, 1, 5, counts=(Count(LOGS, 7, 0, 9, 1, 2, 3),)))])
    whole = ledger._connection.execute("SELECT columns FROM tallies").fetchone()[0]
    for value in (damage, whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1])):
        ledger._connection.execute("UPDATE tallies SET columns = ?", (value,))
        with pytest.raises(StateRefused, match="damaged"):
            ledger.evidence()
    ledger.close()


def test_the_sets_of_topics_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if each seal of an agent names a different set of topics, the ledger stores only a
    bounded number of these sets. The first and the newest seal of each topic are still the same as
    without this bound."""
    topics = [replace(LOGS, topic=f"logs-{number}", topic_id=str(number)) for number in range(5)]
    said = []
    for number in range(1, 30):
        sealed = [x for index, x in enumerate(topics) if number & 1 << index]
        said.append(Seal(AGENT, number, 5, tuple(SealedTopic(x, number, 0) for x in sealed)))
    monkeypatch.setattr(seal_rows, "TOPIC_SETS_MAX", 4)
    ledger = Ledger()
    for first in range(0, len(said), 3):
        ledger.take(map(encode, said[first : first + 3]))
    for each in topics:
        found, whole = (x.evidence().topic(each).seals[7] for x in (ledger, Fold(said)))
        assert (found[0], found[-1]) == (whole[0], whole[-1])
        assert set(found) <= set(whole)
    (sets,) = ledger._connection.execute("SELECT count(*) FROM seal_topics").fetchone()
    assert sets <= 4 + len(topics)
    ledger.close()

"""Tests that tallies are the same whether or not the numbers of deltas are stored as differences
from a base (for each hour, a number for each agent)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from skidway.audit.evidence.evidence import FOREVER, Evidence
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.evidence.number_bases import AGENTS_LEAST, HOUR_MS
from skidway.audit.evidence.pruning import OldBucket, digest_of
from skidway.audit.evidence.tallies import SenderKey
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import Delta, Sender, Tier, encode
from skidway.errors import StateRefused
from support.audit_senders import LOGS
from support.fold import Fold

AGENTS = range(1, AGENTS_LEAST + 1)
SIZE_MS = 60_000
COUNTER = Sender(Tier.BROKER, "dc1", "count", "host", 1)


def test_numbers_are_stored_as_small_differences(tmp_path: Path) -> None:
    """When the ledger makes checksums narrow (cuts them to 24 bits) for the first time in the
    buckets of an hour, it makes the base of this hour. Agents whose messages have large and
    different numbers then take no more space than agents that have just begun. Every reader gets
    the sums of the deltas that counted the buckets, and the numbers of these deltas."""
    sizes = []
    for first in (0, 1_000_000_000):
        ledger = Ledger(tmp_path / f"{first}.db")
        buckets = [0, SIZE_MS, 2 * SIZE_MS, HOUR_MS]
        said = [x for at, bucket in enumerate(buckets) for x in _counted(bucket, first, 8 * at + 1)]
        ledger.take(map(encode, said))
        _narrow(ledger, buckets)
        assert _bases(ledger) == [0, HOUR_MS]
        reader = Ledger(tmp_path / f"{first}.db")
        assert _tallies(reader) == _tallies(Fold(said))
        assert _tallies(ledger) == _tallies(Fold(said))
        rows = ledger._connection.execute("SELECT length(columns) FROM tallies ORDER BY bucket")
        sizes.append([size for (size,) in rows])
        reader.close()
        ledger.close()
    assert sizes[0] == sizes[1]


def test_later_counts_of_a_bucket_with_a_base_are_added() -> None:
    """If a bucket whose numbers are stored as differences gets further counts, from agents that are
    in the base and from others, its tallies have the sums and the numbers of all deltas."""
    ledger = Ledger()
    said = list(_counted(0, 500, 1))
    ledger.take(map(encode, said))
    _narrow(ledger, [0])
    later = [_delta(agent, 0, 500 * agent + 2, 500 * agent + 1) for agent in (3, 4)]
    later += [_delta(agent, 0, 9) for agent in (AGENTS[-1] + 1, AGENTS[-1] + 2)]
    ledger.take(map(encode, later))
    said += later
    assert _tallies(ledger) == _tallies(Fold(said))
    ledger.close()


def test_a_base_is_deleted_with_the_last_bucket_of_its_hour(tmp_path: Path) -> None:
    """If all buckets of an hour are deleted, the hour's base is deleted too. If the hour gets
    buckets again, they get another base, and a reader that still has the deleted base in memory
    reads the new buckets correctly."""
    ledger, reader = Ledger(tmp_path / "audit.db"), Ledger(tmp_path / "audit.db")
    for turn in range(2):
        said = [x for at in range(2) for x in _counted(at * SIZE_MS, 1001 * turn, 8 * at + 1)]
        ledger.take(map(encode, said))
        _narrow(ledger, [0, SIZE_MS])
        found = reader.evidence_of(reader.evidence_without_counts(), FOREVER)
        assert _tallies_in(found) == _tallies(Fold(said))
        for bucket in (0, SIZE_MS):
            assert _bases(ledger) == [0]
            columns = ledger._rows.tallies(LOGS, bucket, SIZE_MS)
            assert columns is not None
            assert ledger.prune([OldBucket(LOGS, bucket, SIZE_MS, digest_of(columns))], 0) == 1
        assert _bases(ledger) == []
    reader.close()
    ledger.close()


def test_a_bucket_of_few_agents_makes_no_base() -> None:
    """A small fleet has no bases, because they would save no space."""
    ledger = Ledger()
    ledger.take(map(encode, list(_counted(0, 500, 1))[1:-1]))
    _narrow(ledger, [0])
    assert _bases(ledger) == []
    ledger.close()


def test_a_missing_base_is_noticed() -> None:
    """If a bucket names a base that is not in the store, reading the evidence raises an error that
    says so in one sentence."""
    ledger = Ledger()
    ledger.take(map(encode, _counted(0, 500, 1)))
    _narrow(ledger, [0])
    ledger._connection.execute("DELETE FROM number_bases")
    ledger._rows.tallies(LOGS, 0, SIZE_MS)  # the ledger that writes still has the base in memory
    assert _is_damaged(ledger)
    ledger.close()


def test_a_damaged_base_is_noticed() -> None:
    """If one bit of a base has changed, reading the evidence raises an error that says so in one
    sentence. With a wrong base, a delta that was sent after a seal could seem to be older than this
    seal."""
    ledger = Ledger()
    ledger.take(map(encode, _counted(0, 500, 1)))
    _narrow(ledger, [0])
    (base,) = ledger._connection.execute("SELECT base FROM number_bases").fetchone()
    assert not _is_damaged(ledger)
    for at in range(0, len(base), 7):
        changed = bytearray(base)
        changed[at] ^= 1 << at % 8
        ledger._connection.execute("UPDATE number_bases SET base = ?", (bytes(changed),))
        assert _is_damaged(ledger)
    ledger._connection.execute("UPDATE number_bases SET base = ?", (base[:-1],))
    assert _is_damaged(ledger)
    ledger.close()


def _is_damaged(ledger: Ledger) -> bool:
    """Whether another ledger with a copy of the store says that the store is damaged."""
    reader = Ledger()
    ledger._connection.backup(reader._connection)
    try:
        reader.evidence()
    except StateRefused as error:
        return "damaged" in str(error)
    finally:
        reader.close()
    return False


def _counted(bucket: int, first: int, number: int) -> Iterator[Delta]:
    """Yields the deltas in which each agent and a counter count a bucket. The number of an agent's
    delta is `first` times the agent's id, plus `number`. The counter's number also follows from
    `first` and `number`."""
    for agent in AGENTS:
        yield _delta(agent, bucket, first * agent + number)
    counts = tuple(_count(agent, bucket, 0) for agent in AGENTS)
    yield Delta(COUNTER, number + first % 1000 * 100, 5, counts=counts)


def _delta(agent: int, bucket: int, number: int, previous: int = 0) -> Delta:
    sender = Sender(Tier.AGENT, "dc1", str(agent), "host", 1)
    return Delta(sender, number, 5, counts=(_count(agent, bucket, previous),))


def _count(agent: int, bucket: int, previous: int) -> Count:
    return Count(LOGS, agent, bucket, SIZE_MS, agent, 2 * agent, 3 * agent, previous=previous)


def _narrow(ledger: Ledger, buckets: Sequence[int]) -> None:
    ledger.narrow([(LOGS, (bucket, SIZE_MS)) for bucket in buckets])


def _bases(ledger: Ledger) -> list[int]:
    """The hours that have a base."""
    rows = ledger._connection.execute("SELECT hour FROM number_bases ORDER BY hour")
    return [hour for (hour,) in rows]


def _tallies(known: Ledger | Fold) -> dict[tuple[int, int, SenderKey], tuple[int, ...]]:
    """For each bucket, agent and sender, the counts, bytes and numbers in the tally."""
    return _tallies_in(known.evidence())


def _tallies_in(evidence: Evidence) -> dict[tuple[int, int, SenderKey], tuple[int, ...]]:
    return {
        (bucket, agent, sender): (
            tally.sums.count,
            tally.sums.bytes,
            tally.first,
            tally.last,
            tally.links,
        )
        for (bucket, _), by_agent in evidence.topic(LOGS).tallies.items()
        for agent, by_sender in by_agent.items()
        for sender, tally in by_sender.items()
    }

"""Tests how the ledger (the collector's store) says which buckets have changed. The judge then
judges only these buckets again."""

from __future__ import annotations

from pathlib import Path

from skidway.audit.evidence.ledger import Ledger
from skidway.audit.topic.count_columns import Count, Filtered
from skidway.audit.topic.messages import Delta, Heartbeat, encode
from support.audit_senders import AGENT, LOGS, OTHER
from support.promises import promise


def _delta(number: int, *counts: Count) -> bytes:
    return encode(Delta(AGENT, number, 5, counts=counts))


def test_a_bucket_has_changed_once() -> None:
    """If the counts of a bucket have changed, the next call of `changed_buckets` names the bucket
    once. The counts may change because the bucket's first records are counted, because more records
    are counted, or because a rule left out records. A repeated message changes nothing."""
    ledger = Ledger()
    assert ledger.changed_buckets() is None  # earlier changes are unknown
    ledger.take([_delta(1, Count(LOGS, 7, 0, 9, 1, 1, 1), Count(OTHER, 7, 9, 9, 1, 1, 1))])
    found = ledger.changed_buckets()
    assert found is not None
    assert found.changed == {LOGS: {(0, 9)}, OTHER: {(9, 9)}}
    ledger.take([_delta(1, Count(LOGS, 7, 0, 9, 1, 1, 1), Count(OTHER, 7, 9, 9, 1, 1, 1))])
    ledger.take([encode(Heartbeat(AGENT, 1, 9))])
    assert ledger.changed_buckets() == ({}, {})
    ledger.take([_delta(2, Count(LOGS, 7, 0, 9, 1, 1, 1, previous=1))])
    assert ledger.changed_buckets() == ({LOGS: {(0, 9)}}, {})
    rules = (Filtered("drop", 1, 1),)
    ledger.take([_delta(3, Count(LOGS, 7, 0, 9, 0, 0, 0, previous=2, filtered=rules))])
    assert ledger.changed_buckets() == ({LOGS: {(0, 9)}}, {})


def test_a_bucket_whose_rows_are_merged_has_not_changed() -> None:
    """If the rows of a bucket are merged, its counts stay the same, so `changed_buckets` does not
    name it. But it names a bucket whose counts have changed, even if the bucket's rows are merged
    afterwards."""
    ledger, said = Ledger(), [(LOGS, 0), (OTHER, 0), (LOGS, 1), (OTHER, 1)]
    ledger.changed_buckets()
    for number, (source, previous) in enumerate(said, start=1):
        count = Count(source, 7, 0, 9, 1, 1, 1, previous=(number - 2) * previous)
        ledger.take([_delta(number, count)])
        if number == 3:
            assert ledger.changed_buckets() == ({LOGS: {(0, 9)}, OTHER: {(0, 9)}}, {})
    assert [ledger.additions(source, (0, 9)) for source in (LOGS, OTHER)] == [1, 1]
    ledger.merge([(LOGS, (0, 9)), (OTHER, (0, 9))])
    assert [ledger.additions(source, (0, 9)) for source in (LOGS, OTHER)] == [0, 0]
    assert ledger.changed_buckets() == ({OTHER: {(0, 9)}}, {})


@promise("6 complete")
def test_a_rule_leaves_out_records_of_a_bucket_again_and_again() -> None:
    """The ledger can store several deltas (messages with counts) that each say how many of a
    bucket's records a rule has left out, even if nobody calls `changed_buckets` in between. The
    ledger adds up these numbers."""
    ledger, rules = Ledger(), (Filtered("drop", 1, 1),)
    ledger.changed_buckets()
    for number in range(1, 5):
        count = Count(LOGS, 7, 0, 9, 1, 1, 1, previous=number - 1, filtered=rules)
        ledger.take([_delta(number, count)])
        if number == 3:
            assert ledger.changed_buckets() == ({LOGS: {(0, 9)}}, {})
    assert ledger.changed_buckets() == ({LOGS: {(0, 9)}}, {})
    tallies = ledger.tallies(LOGS, (0, 9))
    assert tallies is not None
    assert list(tallies.filtered.values()) == [[Filtered("drop", 4, 4)]]


def test_deleted_buckets_are_gone() -> None:
    """The result of `changed_buckets` lists deleted buckets separately from changed buckets."""
    ledger = Ledger()
    ledger.changed_buckets()
    ledger.take([_delta(1, Count(LOGS, 7, 0, 9, 1, 1, 1), Count(LOGS, 7, 9, 9, 1, 1, 1))])
    ledger._connection.execute("DELETE FROM tallies WHERE bucket = 9")
    assert ledger.changed_buckets() == ({LOGS: {(0, 9)}}, {LOGS: {(9, 9)}})


def test_what_another_connection_writes_may_change_every_bucket(tmp_path: Path) -> None:
    """If another connection has written to the database, the ledger does not know which buckets
    have changed. So the next call of `changed_buckets` returns None, which means that any bucket
    may have changed."""
    ledger, other = Ledger(tmp_path / "a.db"), Ledger(tmp_path / "a.db")
    ledger.changed_buckets()
    assert ledger.changed_buckets() == ({}, {})
    other.take([_delta(1, Count(LOGS, 7, 0, 9, 1, 1, 1))])
    assert ledger.changed_buckets() is None
    assert ledger.changed_buckets() == ({}, {})
    assert ledger.buckets() == {LOGS: {(0, 9)}}

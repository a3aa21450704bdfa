"""Tests how records are counted for each source topic, agent and bucket."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.audit.counts import bucket, checksum
from skidway.audit.counts.counts import BucketKey, Counts, Sums, identify
from skidway.audit.topic.count_columns import Filtered
from skidway.kafka.columns import Origins
from support.audit_senders import LOGS

rows = st.lists(
    st.tuples(
        st.integers(0, 300_000),  # timestamp
        st.integers(1, 3),  # agent
        st.integers(1, 2),  # file
        st.integers(0, 1000),  # first byte
        st.integers(1, 99),  # length
        st.sampled_from("krsj"),  # k: kept, r: repeat, s: only partly a repeat, j: rejected
    ),
    max_size=40,
)


def _origins(chosen: list[tuple]) -> Origins:
    return Origins(*(np.array([row[i] for row in chosen], np.int64) for i in range(1, 5)))


def _times(chosen: list[tuple]) -> np.ndarray:
    return np.array([row[0] for row in chosen], np.int64)


def _where(chosen: list[tuple], kinds: str) -> np.ndarray:
    return np.array([row[5] in kinds for row in chosen], np.bool_)


def _one_by_one(chosen: list[tuple]) -> dict[BucketKey, Sums]:
    found: dict[BucketKey, Sums] = {}
    for row in chosen:
        key = (LOGS, row[1], bucket.start_of(row[0], 60_000))
        if row[5] == "r":
            sums = Sums(repeats=1)
        else:
            value = checksum.total(checksum.record_hash(*(np.array([x]) for x in row[1:5])))
            sums = Sums(1, row[4], value, rejects=int(row[5] in "sj"))
        found[key] = found.get(key, Sums()) + sums
    return found


@pytest.mark.parametrize("times", [1, 300])
@given(rows)
def test_columns_count_as_records_one_by_one(times: int, chosen: list[tuple]) -> None:
    """Counting columns of records gives the same sums (records, bytes, checksum, rejects and
    repeats) as counting the records one by one. A straddle is a record of which only the first
    bytes are a repeat; it counts as a record, and in the loader as a reject, too."""
    chosen = chosen * times if len(chosen) < 4 else chosen
    counts = Counts(60_000)
    counts.add(
        LOGS,
        _times(chosen),
        _origins(chosen),
        keep=_where(chosen, "kj"),
        straddle=_where(chosen, "s"),
        repeat=_where(chosen, "r"),
        rejected=_where(chosen, "j"),
    )
    assert dict(counts.items()) == _one_by_one(chosen)


@given(rows)
def test_parts_together_are_the_whole(chosen: list[tuple]) -> None:
    """If records are divided into two parts, the counts of the two parts add up to the counts of
    all these records."""
    whole, part = Counts(60_000), Counts(60_000)
    whole.add(LOGS, _times(chosen), _origins(chosen))
    for half in (chosen[::2], chosen[1::2]):
        one = Counts(60_000)
        one.add(LOGS, _times(half), _origins(half))
        for key, sums in one.items():
            part.put(key, sums)
    assert dict(part.items()) == dict(whole.items())


def test_straddles_count_without_being_rejects_outside_the_loader() -> None:
    """A straddle is a record of which only the first bytes are a repeat. Counters count it as one
    record. Only the loader counts it as a reject, too."""
    counts = Counts()
    row = [(5, 1, 1, 0, 10, "s")]
    counts.add(LOGS, _times(row), _origins(row), keep=_where(row, "k"), straddle=_where(row, "s"))
    [(_, sums)] = counts.items()
    assert (sums.count, sums.bytes, sums.rejects) == (1, 10, 0)


def test_records_taken_out_cancel_their_counts() -> None:
    """A sum and its negative add up to zero in every field, and for each rule that left out
    records. So records that were counted can be subtracted from a sum again."""
    sums = Sums(3, 70, checksum.signed(2**63 + 5), 1, 2)
    assert sums + -sums == Sums()
    filtered = Sums(3, 70, filtered=(Filtered("debug", 4, 80), Filtered("info", 5, 90)))
    left = (Filtered("debug", 0, 0), Filtered("info", 0, 0))
    assert filtered + -filtered == Sums(filtered=left)


def test_records_without_a_sound_origin_are_known_by_partition_and_offset() -> None:
    """A record without a valid origin gets agent 0, its partition as its file, and its offset as
    its first byte. An origin is not valid if it is missing, has agent 0, has length 0, has a
    negative number, or ends at 2^63 or beyond."""
    top = 2**63 - 1
    valid = [(9, 8, 4, 5), (1, 0, 0, 1), (9, 8, top - 5, 5)]
    invalid = [(0, 8, 4, 5), (9, 8, 4, 0), (9, 8, top - 4, 5), (9, 8, top, 5), (-1, 8, 4, 5),
               (9, -1, 4, 5), (9, 8, -1, 5), (9, 8, 4, -1)]  # fmt: skip
    missing = (9, 8, 4, 5)
    given = [*valid, *invalid, missing]
    has_origin = np.array([True] * (len(given) - 1) + [False])
    origins = Origins(*(np.array(each) for each in zip(*given, strict=True)))
    found = identify(origins, has_origin, 3, np.arange(100, 100 + len(given)))
    columns = (found.agent, found.file, found.first, found.length)
    assert list(zip(*columns, strict=True)) == [
        *valid, *((0, 3, offset, 0) for offset in range(103, 100 + len(given))),
    ]  # fmt: skip


def test_a_batch_without_any_origin_is_counted_by_offset() -> None:
    """If no record of a batch has an origin (the batch may come from another log shipper), each
    record is counted with agent 0 and its offset as first byte."""
    found = identify(None, np.zeros(2, np.bool_), 1, np.array([7, 8]))
    assert (found.agent.tolist(), found.first.tolist()) == ([0, 0], [7, 8])


def test_the_message_of_a_bucket_names_the_delta_before() -> None:
    """Each count in a delta (a message with counts) contains the number of the previous delta that
    counted the same bucket, or 0 if there is none."""
    counts = Counts(60_000)
    counts.put((LOGS, 9, 60_000), Sums(1, 2, 3))
    counts.put((LOGS, 9, 120_000), Sums(1, 2, 3))
    messages = counts.to_messages({(LOGS, 9, 60_000): 17})
    assert [(x.bucket, x.previous) for x in messages] == [(60_000, 17), (120_000, 0)]

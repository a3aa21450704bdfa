"""Tests how a mirror follows a partition of its source. The mirror records each gap, which is a
range of missing offsets. Before it continues to copy, it proves that the source has the same log:
it fetches its own last batch from the source again, and compares the two batches. If the two
batches are not the same, the partition "stops": the mirror copies nothing more into it, and the
mirror's status gives the reason. If the source no longer has this batch, the mirror continues, and
its status says that it could not compare."""

from __future__ import annotations

import pytest

from skidway.broker.mirror.follower import (
    Append,
    Below,
    Follower,
    LookAgain,
    NameGap,
    Phase,
    Stop,
    Unverifiable,
)
from skidway.kafka.batch import CONTROL, TRANSACTIONAL, BatchHeader
from support.promises import promise


def header(
    base: int, count: int, *, epoch: int = 1, crc: int = 7, attributes: int = 0
) -> BatchHeader:
    return BatchHeader(
        base_offset=base, length=100, leader_epoch=epoch, magic=2, crc=crc, attributes=attributes,
        last_offset_delta=count - 1, base_timestamp=0, max_timestamp=0, producer_id=-1,
        producer_epoch=-1, base_sequence=-1, count=count,
    )  # fmt: skip


def test_an_empty_mirror_begins_at_offset_0_and_follows() -> None:
    """An empty mirror follows its source from offset 0 on, at once, because it has no last batch to
    compare."""
    follower = Follower(0, None)
    assert follower.position() == 0
    assert follower.fetched([header(0, 5), header(5, 5)]) == Append(0, 2)
    assert follower.phase is Phase.FOLLOWING


@promise("4 batch below")
def test_the_batch_below_is_compared_and_not_copied_again() -> None:
    """After an interruption, the mirror fetches its last batch from the source again, compares the
    two, and does not append the batch a second time."""
    below = header(5, 5, crc=9)
    follower = Follower(10, Below.of(below))
    assert follower.position() == 9
    assert follower.fetched([below, header(10, 3)]) == Append(1, 1)


def test_only_the_batch_below_came_so_nothing_is_appended() -> None:
    """If the source has no new batch, the mirror only compares its last batch and then waits for
    more."""
    below = header(5, 5, crc=9)
    follower = Follower(10, Below.of(below))
    assert follower.fetched([below]) is None
    assert follower.phase is Phase.FOLLOWING


@promise("4 batch below")
def test_another_crc_below_stops_the_partition() -> None:
    """If the mirror's last batch has another CRC in the source, the mirror stops copying the
    partition with the reason "diverged"."""
    follower = Follower(10, Below.of(header(5, 5, crc=9)))
    action = follower.fetched([header(5, 5, crc=8), header(10, 1)])
    assert isinstance(action, Stop)
    assert "diverged" in action.reason
    assert follower.fetched([header(10, 1)]) is None


def test_another_epoch_below_stops_the_partition() -> None:
    """If the mirror's last batch has another leader epoch in the source, the mirror stops copying
    the partition, although the records are the same."""
    follower = Follower(10, Below.of(header(5, 5, epoch=1)))
    assert isinstance(follower.fetched([header(5, 5, epoch=2)]), Stop)


@promise("4 gap")
def test_offsets_expired_in_the_source_are_named_before_anything_is_copied() -> None:
    """If the source's first offset is higher than the mirror's end, the mirror records the offsets
    in between as missing (a gap) before it copies any later batch."""
    follower = Follower(10, Below.of(header(5, 5)))
    assert follower.out_of_range(20, 30) == LookAgain()
    assert follower.position() == 20
    assert follower.fetched([header(20, 1)]) == NameGap(10, 20, "expired")
    assert follower.fetched([header(20, 1)]) is None, "nothing is copied while the gap is unnamed"
    follower.gap_named(20)
    assert follower.position() == 20
    assert follower.fetched([header(20, 1)]) == Append(0, 1)


def test_a_batch_below_that_expired_is_named_unverifiable() -> None:
    """If the mirror's last batch has expired in the source, but the source still has every later
    batch, the mirror continues. The mirror's status shows the offset at which it could not
    compare."""
    follower = Follower(10, Below.of(header(5, 5)))
    assert follower.out_of_range(10, 30) == Unverifiable(10)
    assert follower.position() == 10
    assert follower.fetched([header(10, 1)]) == Append(0, 1)


def test_a_source_that_ends_below_us_has_lost_something() -> None:
    """If the source ends at a lower offset than the mirror, the source has lost records, and the
    mirror stops copying the partition."""
    follower = Follower(10, Below.of(header(5, 5)))
    assert isinstance(follower.out_of_range(0, 7), Stop)


def test_a_hole_between_batches_is_named_where_it_is() -> None:
    """If offsets are missing between batches of the source, the mirror appends the batches before
    the missing offsets, then records these offsets as a gap, and then continues to copy."""
    follower = Follower(0, None)
    batches = [header(0, 5), header(8, 2)]
    assert follower.fetched(batches) == Append(0, 1)
    follower.appended(batches[0])
    assert follower.fetched(batches[1:]) == NameGap(5, 8, "missing-in-source")


def test_a_batch_that_overlaps_ours_stops_the_partition() -> None:
    """If a batch of the source begins before the mirror's end and ends after it, the source has
    another log, and the mirror stops copying the partition."""
    follower = Follower(10, None)
    assert isinstance(follower.fetched([header(8, 5)]), Stop)


def test_a_source_that_expired_wholly_is_a_gap_up_to_its_end() -> None:
    """If all records of the source have expired, the mirror records all offsets from its own end up
    to the source's end as missing (a gap)."""
    follower = Follower(10, None)
    assert follower.out_of_range(20, 20) == NameGap(10, 20, "expired")


def test_a_source_that_lost_its_records_where_it_begins_is_a_gap() -> None:
    """If the source begins above the mirror's end, and has no records any more, the mirror
    immediately records the offsets up to the source's beginning as missing (a gap). It does not
    wait for another batch."""
    follower = Follower(10, Below.of(header(5, 5)))
    assert follower.nothing_there(10) is None
    assert follower.out_of_range(20, 30) == LookAgain()
    assert follower.nothing_there(30) is None
    assert follower.nothing_there(20) == NameGap(10, 20, "expired")
    follower.gap_named(20)
    assert follower.position() == 20


def test_what_lies_below_a_hole_is_compared_again_behind_it() -> None:
    """After a gap (a range of missing offsets), the mirror compares its last batch before the gap
    with the source's batch once more. Otherwise it would notice only at the next batch that the
    source has another log."""
    follower = Follower(0, None)
    batches = [header(0, 5), header(8, 2)]
    follower.fetched(batches)
    follower.appended(batches[0])
    assert follower.fetched(batches[1:]) == NameGap(5, 8, "missing-in-source")
    follower.gap_named(8)
    assert (follower.log_end, follower.position()) == (8, 4)
    assert isinstance(follower.fetched([header(0, 5, crc=8), header(8, 2)]), Stop)


def test_behind_a_hole_the_source_may_have_let_go_of_what_lies_below() -> None:
    """If the mirror's last batch before a gap (a range of missing offsets) has expired in the
    source, the mirror cannot compare anything. It reports the offset at which it could not compare,
    and continues after the gap."""
    follower = Follower(0, None)
    follower.fetched([header(0, 5)])
    follower.appended(header(0, 5))
    assert follower.fetched([header(8, 2)]) == NameGap(5, 8, "missing-in-source")
    follower.gap_named(8)
    assert follower.out_of_range(6, 10) == Unverifiable(8)
    assert follower.fetched([header(8, 2)]) == Append(0, 1)


def test_a_log_start_inside_a_batch_makes_the_gap_smaller() -> None:
    """If the source's log starts inside a batch, the mirror copies the whole batch, and records
    only the offsets before this batch as missing (a gap)."""
    follower = Follower(10, Below.of(header(5, 5)))
    follower.out_of_range(20, 30)
    assert follower.fetched([header(18, 6)]) == NameGap(10, 18, "expired")
    follower.gap_named(18)
    assert follower.position() == 18
    assert follower.out_of_range(20, 30) == LookAgain(), "below its log start it gives nothing"
    assert follower.fetched([header(18, 6)]) == Append(0, 1)


def test_a_log_start_inside_the_next_batch_is_no_gap_but_a_doubt() -> None:
    """If the source's log starts inside the batch that follows the mirror's last batch, no offset
    is missing. But the source no longer has the mirror's last batch, so the mirror cannot compare
    it. The mirror reports the end of its log as the offset at which it could not compare."""
    follower = Follower(10, Below.of(header(5, 5)))
    follower.out_of_range(12, 30)
    assert follower.fetched([header(10, 6)]) == Unverifiable(10)
    follower.out_of_range(12, 30)
    assert follower.fetched([header(10, 6)]) == Append(0, 1)


def test_another_batch_where_the_source_begins_stops_the_partition() -> None:
    """If the source's first batch begins before the mirror's end and ends after it, the source has
    another log, and the mirror stops copying the partition."""
    follower = Follower(10, Below.of(header(5, 5)))
    follower.out_of_range(12, 30)
    assert follower.fetched([header(8, 6)]) == Unverifiable(10)
    follower.out_of_range(12, 30)
    assert isinstance(follower.fetched([header(8, 6)]), Stop)


def test_bounds_that_hold_what_was_sought_are_no_excuse_for_not_comparing() -> None:
    """The source answers a fetch with OFFSET_OUT_OF_RANGE. When the mirror then asks which offsets
    the source has, the requested offset is among them. The mirror nevertheless compares its last
    batch with the source's batch, because the source may have another log."""
    follower = Follower(10, Below.of(header(5, 5, crc=9)))
    assert follower.out_of_range(0, 30) == LookAgain()
    assert follower.position() == 9
    assert isinstance(follower.fetched([header(5, 5, crc=8), header(10, 1)]), Stop)


def test_an_interruption_while_a_gap_is_being_named_begins_again() -> None:
    """If the mirror is interrupted while it records a gap (a range of missing offsets), it asks the
    source again. It finds the same gap, whether or not the gap was already recorded."""
    follower = Follower(10, None)
    follower.out_of_range(20, 20)
    follower.interrupted()
    assert follower.phase is Phase.CHECKING
    assert follower.position() == 10
    assert follower.out_of_range(20, 20) == NameGap(10, 20, "expired")


def test_a_refused_write_in_front_of_a_gap_moves_back_in_front_of_it() -> None:
    """If the mirror cannot write the batches before a gap (a range of missing offsets), it fetches
    them again, from the end of its log on. It does so even if the gap is already recorded."""
    follower = Follower(0, None)
    batches = [header(0, 5), header(8, 2)]
    follower.fetched(batches)
    follower.appended(batches[0])
    assert follower.fetched(batches[1:]) == NameGap(5, 8, "missing-in-source")
    follower.taken_back(0, None)
    assert follower.phase is Phase.CHECKING
    assert follower.position() == 0
    assert follower.fetched(batches) == Append(0, 1)


def test_an_epoch_that_goes_back_stops_the_partition() -> None:
    """If a batch of the source has a lower leader epoch than the batch before it, the mirror stops
    copying the partition. In a correct log, epochs never decrease. At the next start of the broker,
    recovery would refuse a log with a decreasing epoch."""
    follower = Follower(10, Below.of(header(5, 5, epoch=4)))
    batches = [header(5, 5, epoch=4), header(10, 1, epoch=5), header(11, 1, epoch=4)]
    assert follower.fetched(batches) == Append(1, 1)
    follower.appended(batches[1])
    stopped = follower.fetched(batches[2:])
    assert isinstance(stopped, Stop)
    assert "from 5 to 4 at offset 11" in stopped.reason


def test_a_stopped_partition_stays_stopped() -> None:
    """If the mirror has stopped copying a partition, it does not continue, whatever interruptions
    and refused writes follow."""
    follower = Follower(10, None)
    follower.stop("because")
    follower.interrupted()
    follower.taken_back(5, None)
    assert follower.phase is Phase.STOPPED
    assert follower.reason == "because"


@pytest.mark.parametrize("attributes", [TRANSACTIONAL, TRANSACTIONAL | CONTROL])
def test_a_transaction_stops_the_partition_by_name(attributes: int) -> None:
    """The mirror copies the batches before the first batch of a transaction, and then stops the
    partition. The reason says that the batch belongs to a transaction, and what to do."""
    follower = Follower(0, None)
    found = [header(0, 5), header(5, 2, attributes=attributes), header(7, 1)]
    assert follower.fetched(found) == Append(0, 1)
    follower.appended(found[0])
    action = follower.fetched(found[1:])
    assert isinstance(action, Stop)
    assert "the batch at offset 5 belongs to a transaction" in action.reason
    assert "leave the topic out of `mirror.sources`" in action.reason

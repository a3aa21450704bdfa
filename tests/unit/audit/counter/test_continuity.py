"""Tests that the counter skips no record of a partition without reporting it."""

from __future__ import annotations

from skidway.audit.counter import continuity
from skidway.audit.counter.continuity import Following
from skidway.audit.counter.state import BatchId, Position
from skidway.kafka.batch import BatchHeader
from support.promises import promise

BELOW = BatchId(base_offset=90, crc=7, leader_epoch=2)
RESUMED = continuity.resumed(Position(100, BELOW))


def _batch(base: int, last: int, crc: int = 7, epoch: int = 2) -> BatchHeader:
    count = last - base + 1
    return BatchHeader(base, 100, epoch, 2, crc, 0, last - base, 0, 0, -1, -1, -1, count)


def test_a_new_partition_begins_at_its_beginning() -> None:
    """The counter counts a new partition from offset 0. It compares no earlier batch, because there
    is none."""
    following = continuity.resumed(Position())
    assert (following.fetch_offset, following.comparing) == (0, False)
    step = continuity.at_batch(following, _batch(0, 9))
    assert step.counts
    assert step.following.position == Position(10, BatchId(0, 7, 2))


def test_after_an_interruption_the_batch_below_is_compared_and_not_counted_again() -> None:
    """After an interruption, the counter compares the batch just before its position with what it
    has counted of this batch, but does not count the batch again. To get the whole batch, it
    fetches from the offset just below its position."""
    assert RESUMED.fetch_offset == 99
    step = continuity.at_batch(RESUMED, _batch(90, 99))
    assert (step.counts, step.stop, step.gap) == (False, "", None)
    after = continuity.at_batch(step.following, _batch(100, 109))
    assert after.counts
    assert after.following.position.next_offset == 110


@promise("4 readers compare")
def test_another_batch_below_means_a_diverged_log() -> None:
    """If the batch just before the counter's position has another base offset, CRC or leader epoch
    than the batch that was counted there, the log has diverged: it is not the log that the counter
    has counted."""
    for other in (_batch(90, 99, crc=8), _batch(90, 99, epoch=3), _batch(95, 99)):
        assert "diverged" in continuity.at_batch(RESUMED, other).stop


def test_a_batch_that_begins_below_means_a_diverged_log() -> None:
    """If a batch begins below the counter's position and ends above it, the log has diverged,
    because the last batch that the counter has counted ended exactly at the position."""
    step = continuity.at_batch(Following(Position(100)), _batch(98, 105))
    assert "diverged" in step.stop


def test_missing_offsets_are_a_named_gap_and_counting_goes_on() -> None:
    """If some offsets are missing in the log, the counter reports these offsets as a gap, and
    counts the batch after the gap. For example, a mirror lacks records that expired before the
    mirror could copy them."""
    step = continuity.at_batch(Following(Position(100)), _batch(120, 129))
    assert (step.counts, step.gap) == (True, (100, 120))
    assert step.following.position.next_offset == 130
    assert step.reason


def test_a_batch_below_that_is_gone_is_named_as_a_doubt() -> None:
    """If the batch just before the counter's position is gone, the counter cannot compare it with
    what it has counted. It reports a doubt (a gap without offsets). If the offsets after the
    position are missing too, it reports these as a gap instead."""
    step = continuity.at_batch(RESUMED, _batch(100, 109))
    assert (step.counts, step.gap, step.stop) == (True, (100, 100), "")
    assert "compared" in step.reason
    step = continuity.at_batch(RESUMED, _batch(120, 129))
    assert (step.counts, step.gap) == (True, (100, 120))


def test_expired_offsets_are_a_named_gap() -> None:
    """If the log's first offset is higher than the counter's position, records have expired before
    they were counted. The counter reports their offsets as a gap."""
    step = continuity.out_of_range(RESUMED, 150, 300)
    assert (step.gap, step.following.fetch_offset) == ((100, 150), 150)
    step = continuity.out_of_range(continuity.resumed(Position()), 10, 300)
    assert (step.gap, step.following.fetch_offset) == ((0, 10), 10)


def test_only_the_compared_batch_having_expired_is_a_doubt() -> None:
    """If the log begins exactly at the counter's position, no record has expired before it was
    counted. The batch before the position has expired, so the counter cannot compare this batch,
    and reports a doubt (a gap without offsets)."""
    step = continuity.out_of_range(RESUMED, 100, 300)
    assert (step.gap, step.following.fetch_offset, step.stop) == ((100, 100), 100, "")


def test_a_log_shorter_than_what_was_counted_has_diverged() -> None:
    """If the end of a log is lower than the counter's position in it, the log has diverged."""
    assert "diverged" in continuity.out_of_range(RESUMED, 0, 80).stop

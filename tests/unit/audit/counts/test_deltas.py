"""Tests how deltas (messages with counts) and seals (messages which say that all lines before a
time are counted) are numbered and divided."""

from __future__ import annotations

from skidway.audit.counts.counts import Counts, Sums
from skidway.audit.counts.deltas import number_deltas, number_seals
from skidway.audit.topic import messages
from skidway.audit.topic.count_columns import LONGEST_MS
from skidway.audit.topic.field_bounds import FARTHEST_MS
from skidway.audit.topic.messages import Certainty, Gap, Loss, Range, Sender, Tier
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.kafka.source import Source
from support.audit_senders import LOGS

SENDER = Sender(Tier.BROKER, "dc1", "count-dc1", "host", 1)


def _counts(buckets: int) -> Counts:
    counts = Counts(60_000)
    for index in range(buckets):
        counts.put((LOGS, 9, index * 60_000), Sums(1, 10, index))
    return counts


def test_one_delta_says_everything_when_it_fits() -> None:
    """All counts, ranges and gaps of one transaction go into one delta if this delta is not too
    large."""
    covered, gap = Range(LOGS, 0, 0, 9), Gap(LOGS, 0, 5, 9, "expired")
    numbered = number_deltas(SENDER, 1, 41, _counts(2), {}, ranges=[covered], gaps=[gap])
    [delta] = numbered.deltas
    assert (delta.number, numbered.last) == (42, 42)
    assert (len(delta.counts), delta.ranges, delta.gaps) == (2, (covered,), (gap,))
    assert set(numbered.touched.values()) == {42}


def test_nothing_to_say_uses_no_number() -> None:
    """If a transaction has nothing to report, the sender makes no delta, and uses no message
    number."""
    numbered = number_deltas(SENDER, 1, 41, Counts(), {})
    assert (numbered.deltas, numbered.last) == ((), 41)


def test_what_is_too_large_for_one_message_takes_several_numbers() -> None:
    """Content that is too large for one message is divided among several deltas with consecutive
    numbers. For each bucket, the result says which of these deltas has the counts of the bucket."""
    numbered = number_deltas(SENDER, 1, 0, _counts(50), {(LOGS, 9, 0): 7}, limit_bytes=1_500)
    numbers = [delta.number for delta in numbered.deltas]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) > 3
    found = {
        (count.source, count.agent, count.bucket): delta.number
        for delta in numbered.deltas
        for count in delta.counts
    }
    assert found == numbered.touched
    assert numbered.deltas[0].counts[0].previous == 7


def test_losses_come_behind_all_counts() -> None:
    """A loss applies to the buckets of its own delta and of all deltas with lower numbers. So if
    the content of a transaction is divided among several deltas, the losses come after all counts,
    and apply to the buckets of all these deltas."""
    loss = Loss(LOGS, 9, 3, 0, 10, Certainty.LOST, "it vanished", 0, 0)
    for limit in (900_000, 1_000):
        numbered = number_deltas(SENDER, 1, 0, _counts(9), {}, losses=[loss], limit_bytes=limit)
        assert [each.losses for each in numbered.deltas if each.losses] == [(loss,)]
        assert numbered.deltas[-1].losses == (loss,)


LONG_TEXT = "𝄞" * 200  # four bytes each in UTF-8
WIDE = Source(LONG_TEXT, LONG_TEXT, LONG_TEXT, LONG_TEXT)
NARROW = Source("", "", "t", "")
MOST = 1 << 62


def test_no_message_is_larger_than_its_limit() -> None:
    """A message that has several parts is never larger than its limit, because the estimated size
    of a message is never less than its real size. The estimate is also not much greater: on
    average, deltas have more than half of the largest allowed size."""
    limit = 50_000
    for source in (WIDE, NARROW):
        counts = Counts(LONGEST_MS)
        for agent in range(MOST, MOST + 2_000):
            counts.put((source, agent, FARTHEST_MS), Sums(MOST, MOST, -MOST, MOST, MOST))
        losses = [
            Loss(source, MOST, MOST, MOST, MOST, Certainty.LOST, reason, MOST, MOST)
            for reason in [LONG_TEXT, ""] * 200
        ]
        numbered = number_deltas(SENDER, MOST, MOST, counts, {}, losses=losses, limit_bytes=limit)
        sizes = [len(messages.encode(each)) for each in numbered.deltas]
        assert max(sizes) <= limit
        assert sum(sizes) > len(sizes) * limit * 0.5
    for topics in ([SealedTopic(WIDE, MOST, MOST)] * 200, _many_partitions()):
        seals = number_seals(SENDER, MOST, MOST, topics, limit_bytes=limit)
        assert max(len(messages.encode(each)) for each in seals) <= limit


def _many_partitions() -> list[SealedTopic]:
    offsets = tuple((partition, MOST) for partition in range((1 << 31) - 100, 1 << 31))
    return [SealedTopic(NARROW, MOST, MOST, offsets)] * 200


def test_a_part_larger_than_the_limit_still_goes_out() -> None:
    """A single count, gap or loss is never divided. It is sent even if it alone is larger than the
    limit, so that nothing is dropped."""
    gap = Gap(LOGS, 0, 5, 9, "expired")
    loss = Loss(LOGS, 9, 3, 0, 10, Certainty.LOST, "it vanished", 0, 0)
    numbered = number_deltas(SENDER, 1, 0, _counts(3), {}, losses=[loss], gaps=[gap], limit_bytes=1)
    assert [(len(x.counts), x.gaps, x.losses) for x in numbered.deltas] == [
        (0, (gap,), ()), (1, (), ()), (1, (), ()), (1, (), ()), (0, (), (loss,)),
    ]  # fmt: skip


def test_seals_of_many_topics_split_too() -> None:
    """A seal with too many topics for one message is divided into several seals with consecutive
    numbers."""
    topics = [SealedTopic(LOGS, 100, 5, ((0, 1), (1, 2))) for _ in range(10)]
    seals = number_seals(SENDER, 1, 5, topics, limit_bytes=1_000)
    assert [seal.number for seal in seals] == list(range(6, 6 + len(seals)))
    assert len(seals) > 1
    assert sum(len(seal.topics) for seal in seals) == 10
    assert [seal.number for seal in number_seals(SENDER, 1, 5, topics)] == [6]

"""Tests at which offsets a stream's next batch ends, and which offset ranges a batch reads."""

from __future__ import annotations

from dataclasses import replace

from skidway.loader.datasource.positions import Positions, TopicPositions
from skidway.loader.datasource.progress import changed_topics, firsts, next_positions, up_to
from skidway.loader.datasource.ranges import within
from skidway.loader.planning.plan import Bounds
from skidway.loader.planning.topic import SourceTopic
from support.loading import SOURCE
from support.promises import promise

ID, OTHER = "a" * 32, "b" * 32


def topic(*bounds: tuple[int, int], name: str = "logs", topic_id: str = ID) -> SourceTopic:
    each = tuple(Bounds(number, *pair) for number, pair in enumerate(bounds))
    return SourceTopic(name, topic_id, SOURCE, each)


def at(*offsets: int, topic_id: str = ID) -> dict[str, TopicPositions]:
    return {"logs": TopicPositions(topic_id, dict(enumerate(offsets)))}


def offsets(positions: Positions) -> dict[str, TopicPositions]:
    """Returns `positions` (the ends of a stream's batch) without the offsets at which the batch
    begins."""
    return {name: replace(topic, begins=None) for name, topic in positions.items()}


def test_a_batch_ends_at_the_high_watermarks() -> None:
    """Without a limit a batch ends at the high watermark of each partition."""
    topics = [topic((0, 9), (2, 5))]
    assert offsets(next_positions(at(3, 2), topics, None)) == at(9, 5)
    assert offsets(next_positions(at(9, 5), topics, None)) == at(9, 5)


def test_a_limit_is_shared_by_size() -> None:
    """If the number of a batch's offsets is limited, each partition gets a share in proportion to
    its unread offsets. A partition with unread offsets gets at least one offset, so that a large
    partition does not starve a small one."""
    topics = [topic((0, 1000), (0, 500), (0, 1), (0, 0))]
    assert offsets(next_positions(at(0, 0, 0, 0), topics, 300)) == at(199, 99, 1, 0)
    assert offsets(next_positions(at(990, 500, 1, 0), topics, 300)) == at(1000, 500, 1, 0)


@promise("5 stream")
def test_positions_say_where_their_batch_begins() -> None:
    """The positions object that gives the offsets at which a batch ends also records the offsets at
    which the batch begins, even for topics that were added later. If there are no new records after
    a batch, the positions stay the same, and no batch follows. But an empty batch follows a
    stream's initial positions even without new records, because Spark writes positions to its
    checkpoint only together with a batch."""
    topics = [topic((0, 9), (2, 5)), topic((0, 3), name="web")]
    ends = next_positions(at(3, 2), topics, None)
    assert (ends["logs"].begins, ends["web"].begins) == ({0: 3, 1: 2}, {})
    assert next_positions(ends, topics, None) is ends
    assert next_positions(at(9, 5), topics[:1], None)["logs"].begins == {0: 9, 1: 5}


@promise("5 stream")
def test_later_partitions_are_read_from_their_start() -> None:
    """A partition that is added while a stream runs is read from offset 0. So records that were
    written before the stream first saw the partition are not skipped. The same holds for added
    topics."""
    topics = [topic((0, 9), (0, 4)), topic((0, 3), name="web")]
    ends = next_positions(at(5), topics, None)
    assert offsets(ends) == at(9, 4) | {"web": TopicPositions(ID, {0: 3})}
    assert firsts(at(5), "logs", ID) == {0: 5}
    assert firsts(at(5), "web", ID) == {}
    planned, lost = within(topics[0], firsts(at(5), "logs", ID), ends["logs"].offsets)
    assert [(each.partition, each.first, each.end) for each in planned] == [(0, 5, 9), (1, 0, 4)]
    assert lost == []


@promise("5 query", "1 topic made again")
def test_a_topic_made_again_is_noticed() -> None:
    """If a topic's id has changed, the topic counts as another topic, even if its log has the same
    offsets. A stream reports this, and reads the new topic from its start."""
    again = topic((0, 9), topic_id=OTHER)
    assert changed_topics(at(5), [topic((0, 9))]) == []
    (sentence,) = changed_topics(at(5), [again])
    assert (
        sentence == f"the topic logs was deleted and made again: its id was {ID}, now it is {OTHER}"
    )
    assert changed_topics(at(5), []) == ["the topic logs was deleted"]
    assert changed_topics(at(5, topic_id=""), [again]) == []
    assert offsets(next_positions(at(5), [again], 4)) == at(4, topic_id=OTHER)
    assert firsts(at(5), "logs", OTHER) == {}


@promise("5 query")
def test_what_is_missing_is_named() -> None:
    """Records of a stream's batch are missing if they have expired, if the log is now shorter, or
    if the partition no longer exists. A message names the missing offsets, and the other records
    are read."""
    planned, lost = within(topic((4, 9), (0, 3)), {0: 1, 1: 5}, {0: 8, 1: 6, 2: 1})
    assert [(each.first, each.end) for each in planned] == [(4, 8), (3, 3)]
    assert lost == [
        "logs partition 0: offsets 1 to 3 have expired; the log begins at 4",
        "logs partition 1: the log ends at offset 3, before offset 6",
        "logs partition 2 does not exist now",
    ]


def test_an_expired_end_of_a_quiet_partition_moves_on() -> None:
    """If all unread records of a partition have expired and no new records came, the stream's next
    position in the partition is the log start. So the loss is reported only once."""
    assert offsets(next_positions(at(3), [topic((7, 7))], 10)) == at(7)


def test_a_stream_that_ends_takes_nothing_later() -> None:
    """A stream with the trigger AvailableNow ends at the high watermarks that it saw at its start.
    Records, partitions and topics that come later are left for the next run."""
    target = at(5)
    now = [topic((0, 9), (0, 4)), topic((0, 3), name="web")]
    capped = up_to(now, target)
    assert offsets(next_positions(at(2), capped, None)) == at(5)
    assert offsets(next_positions(at(5), capped, None)) == at(5)
    assert up_to([topic((0, 9), topic_id=OTHER)], target) == []

"""The messages of one send are called a set. The metadata of a set is a sequence in the order of
its messages."""

from __future__ import annotations

import pytest

from skidway.kafka.types import TopicPartition
from skidway.producer.sending import RecordMetadata, Sending

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


def sending_of_five() -> Sending:
    """Returns the state of a set (the messages of one send) of five messages: 0, 1 and 4 are in the
    first partition, 2 and 3 in the second. All messages are acknowledged, those of the second
    partition first."""
    sending = Sending(0, 5, single=False)
    assert not sending.delivered(2, SECOND, 70, [12, 13])
    assert not sending.delivered(0, FIRST, 100, [10, 11])
    assert sending.delivered(4, FIRST, -1, [14])
    return sending


def test_a_set_is_in_the_order_of_its_messages_whatever_was_delivered_first() -> None:
    """In the metadata of a set (the messages of one send), the item at an index is about the
    message at the same index, whichever message was delivered first."""
    found = sending_of_five().future.result(0)
    assert found == [
        RecordMetadata("t", 0, 100, 10),
        RecordMetadata("t", 0, 101, 11),
        RecordMetadata("t", 1, 70, 12),
        RecordMetadata("t", 1, 71, 13),
        RecordMetadata("t", 0, -1, 14),
    ]
    assert found != found[:4]


def test_indexes_count_from_both_ends_and_slices_are_lists() -> None:
    """The metadata of a set (the messages of one send) supports indexes and slices as a list
    does."""
    found = sending_of_five().future.result(0)
    whole = list(found)
    assert len(found) == 5
    assert [found[index] for index in range(-5, 5)] == whole + whole
    assert found[1:4] == whole[1:4]
    assert found[::-2] == whole[::-2]
    for outside in (5, -6):
        with pytest.raises(IndexError):
            found[outside]
    assert repr(found) == repr(whole)


def test_an_empty_set_has_no_metadata() -> None:
    """A send of no messages is done at once, and its metadata is an empty sequence."""
    assert list(Sending(0, 0, single=False).future.result(0)) == []

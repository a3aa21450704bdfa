"""What a producer reports to its owner."""

from __future__ import annotations

from typing import NamedTuple

from skidway.errors import SkidwayError
from skidway.kafka.errors import ErrorCode, KafkaError
from skidway.kafka.types import TopicPartition


class Delivery(NamedTuple):
    """What became of one batch.

    `base_offset` is -1 where the broker did not send it (acks 0, DUPLICATE_SEQUENCE_NUMBER), and
    where there is an error. `error`: the broker refused this batch for good, or `Drained`.
    `attempts`: how often it was sent. A refused batch may have arrived with any attempt but the
    last, a drained one with any.
    """

    token: object
    tp: TopicPartition
    base_offset: int
    error: KafkaError | None
    attempts: int = 1


class Drained(KafkaError):
    """An earlier batch of the partition was refused for good: send this one again, or decide."""

    def __init__(self, tp: TopicPartition) -> None:
        super().__init__(
            ErrorCode.OPERATION_NOT_ATTEMPTED,
            f"a batch of {tp} was taken back because one before it was refused",
        )
        self.tp = tp


class BufferFull(SkidwayError):
    """The producer holds as many bytes as it may; poll it until it `has_room`."""

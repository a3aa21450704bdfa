"""What a producer reports to its owner. The owner is the code that sends batches with the
producer."""

from __future__ import annotations

from typing import NamedTuple

from skidway.errors import SkidwayError
from skidway.kafka.errors import ErrorCode, KafkaError
from skidway.kafka.types import TopicPartition


class Delivery(NamedTuple):
    """The outcome of one batch.

    `base_offset` is -1 if there is an error, or if the broker did not send an offset (acks 0,
    DUPLICATE_SEQUENCE_NUMBER). `error` is None if the batch was acknowledged. Otherwise it is the
    error with which the broker refused the batch for good, or `Drained`. `attempts` says how often
    the batch was sent. A refusal is the broker's answer to the last attempt; an earlier attempt may
    have stored the batch. If `error` is `Drained`, any attempt may have stored the batch.
    """

    token: object
    tp: TopicPartition
    base_offset: int
    error: KafkaError | None
    attempts: int = 1


class Drained(KafkaError):
    """An earlier batch of the partition was refused for good, so the producer returned this batch
    to the code that uses the producer. This code decides whether to send the batch again."""

    def __init__(self, tp: TopicPartition) -> None:
        super().__init__(
            ErrorCode.OPERATION_NOT_ATTEMPTED,
            f"a batch of {tp} was taken back because one before it was refused",
        )
        self.tp = tp


class BufferFull(SkidwayError):
    """The producer buffers as many bytes as its limit allows. The caller has to poll the producer
    until `has_room` is True."""

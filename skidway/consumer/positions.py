"""Finds the offset at which a reader begins in a partition. A reader begins at the committed
offset. Without a committed offset, it begins at the offset that `auto.offset.reset` chooses."""

from __future__ import annotations

from skidway.consumer.registry import GroupRegistry
from skidway.consumer.settings import OffsetReset
from skidway.kafka.client import EARLIEST, LATEST, Client
from skidway.kafka.errors import ErrorCode, KafkaError
from skidway.kafka.types import TopicPartition


class NoOffset(KafkaError):
    """Raised if `auto_offset_reset` is "none", and the offset at which to read is missing: no
    offset of the partition is committed, or the partition's log lacks the next offset to read."""

    def __init__(self, tp: TopicPartition, why: str) -> None:
        how = "seek, reset the group, or set auto_offset_reset"
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, f"{tp} {why}; {how}")
        self.tp = tp


def beginning(
    client: Client, registry: GroupRegistry, tp: TopicPartition, partitions: int, reset: OffsetReset
) -> tuple[int, int | None]:
    """Returns the offset at which the reader begins, and the committed offset (None if there is
    none).

    If no offset is committed, and the partition was added after the group first read the topic, the
    reader begins at the log start, whatever `reset` is. Raises NoOffset if no offset is committed,
    the partition is not new in this sense, and `reset` is "none". Raises KafkaError if a broker
    answers with an error. Raises Unreachable if no broker answers, or if ZooKeeper does not answer.
    """
    committed = registry.offset(tp)
    if committed is not None:
        return committed, committed
    began_with = registry.began_with(tp.topic, partitions)
    if began_with is not None and tp.partition >= began_with:
        reset = "earliest"  # the partition is new: "latest" would skip its first records
    return reset_offset(client, tp, reset, "has no committed offset"), None


def reset_offset(client: Client, tp: TopicPartition, reset: OffsetReset, why: str) -> int:
    """Returns the log start if `reset` is "earliest", and the high watermark if it is "latest". If
    `reset` is "none", raises NoOffset with the text `why`."""
    if reset == "none":
        raise NoOffset(tp, why)
    where = EARLIEST if reset == "earliest" else LATEST
    return client.list_offsets({tp: where})[tp].offset

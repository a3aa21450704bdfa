"""Checks that the log of a partition is still the log from which earlier loads read.

"The batch below" is the last batch that earlier loads read. Its offsets end just below the offsets
that this load reads. The manifest contains the offset, CRC and leader epoch of this batch. If the
broker still has a batch at that offset, the broker's batch must have the same CRC and leader epoch.
"""

from __future__ import annotations

from dataclasses import replace

from skidway.errors import Unreachable
from skidway.kafka.batch import CorruptBatch
from skidway.kafka.client import Client
from skidway.kafka.errors import KafkaError
from skidway.kafka.types import TopicPartition
from skidway.loader.planning import plan
from skidway.loader.planning.plan import Bounds, Planned
from skidway.loader.reading.batches import header_at


def compared(client: Client, topic: str, bounds: Bounds, planned: Planned) -> Planned:
    """Compares the last loaded batch, which lies just below the planned offsets, with the broker's
    batch. If the two batches are the same, returns `planned` unchanged. If they differ, or if the
    broker's batch cannot be read, returns an empty range with the reason. If the batch has expired
    at the broker, adds a note that the batch was not compared (`plan.unverified`). If the range is
    refused, or no batch was loaded yet, compares nothing."""
    below = planned.below
    if planned.refused or below is None:
        return planned
    if bounds.log_start > below.last_offset:
        return plan.unverified(planned)
    tp = TopicPartition(topic, bounds.partition)
    try:
        header = header_at(client, tp, max(below.base_offset, bounds.log_start))
        refused = plan.check_below(topic, planned, header)
    except (CorruptBatch, KafkaError, Unreachable) as error:
        refused = (
            f"{topic} partition {bounds.partition}: kept back at offset {planned.position}, "
            f"because the batch below cannot be read: {error}"
        )
    if refused:
        at = planned.position
        return replace(planned, first=at, end=at, gap=None, refused=refused)
    return planned

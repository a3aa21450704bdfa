"""Checks a producer's batch, and appends it. Both ways of a Produce request use this function."""

from __future__ import annotations

from skidway.broker.broker import Broker
from skidway.broker.log.partition_log import Appended
from skidway.broker.log.validation import validate
from skidway.broker.partitions.replica import Replica


def append(broker: Broker, replica: Replica, records: memoryview, version: int) -> Appended:
    """Appends one batch, unless it is a duplicate, and counts it. version: of the request. Raises
    BatchRefused, SequenceRefused and StorageFailed."""
    log = replica.log
    header = validate(records, log.config, broker.now_ms, version)
    appended = log.append(records, header, replica.leader_epoch, broker.now_ms)
    if not appended.is_duplicate:
        broker.partitions.touch(replica)
        counts = broker.counts
        counts.batches += 1
        counts.messages += header.count
        counts.appended_bytes += len(records)
    return appended

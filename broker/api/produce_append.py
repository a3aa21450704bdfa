"""Checks a producer's batch, and appends it. Both ways of a Produce request use this function."""

from __future__ import annotations

from skidway.broker.broker import Broker
from skidway.broker.log.partition_log import Appended
from skidway.broker.log.producer_id import NotThisProducersId
from skidway.broker.log.validation import validate
from skidway.broker.network.connection import Connection
from skidway.broker.partitions.replica import Replica
from skidway.kafka.acls.acl import CLUSTER_NAME, Operation, ResourceType
from skidway.kafka.batch import NO_PRODUCER_ID


def append(
    broker: Broker, connection: Connection, replica: Replica, records: memoryview, version: int
) -> Appended:
    """Appends one batch of a client, unless it is a duplicate, and counts it. version: of the
    request. Raises BatchRefused, SequenceRefused, NotThisProducersId and StorageFailed."""
    log = replica.log
    header = validate(records, log.config, broker.now_ms, version)
    if header.producer_id != NO_PRODUCER_ID and broker.access.authorizer.mode != "off":
        _check_owner(broker, connection, header.producer_id)
    appended = log.append(records, header, replica.leader_epoch, broker.now_ms)
    if not appended.is_duplicate:
        broker.partitions.touch(replica)
        counts = broker.counts
        counts.batches += 1
        counts.messages += header.count
        counts.appended_bytes += len(records)
    return appended


def _check_owner(broker: Broker, connection: Connection, producer_id: int) -> None:
    principal = connection.identity.principal
    if broker.producer_ids.belongs_to(producer_id, principal):
        return
    is_enforced = broker.access.authorizer.mode == "enforce"
    broker.access.log.denied(
        principal, connection.address, Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER,
        CLUSTER_NAME, is_enforced=is_enforced,
    )  # fmt: skip
    if is_enforced:
        raise NotThisProducersId(
            f"the producer id {producer_id} was not given to {principal}: get a new one"
        )

"""Which operation on which resource each API needs (KIP-11, and the table "Operations and resources
on protocols" of Apache Kafka's documentation).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skidway.kafka.acls.acl import Operation, ResourceType
from skidway.kafka.protocol.apis import ApiKey

REQUIRED: Final[Mapping[tuple[ApiKey, ResourceType], Operation]] = {
    (ApiKey.PRODUCE, ResourceType.TOPIC): Operation.WRITE,
    (ApiKey.FETCH, ResourceType.TOPIC): Operation.READ,
    (ApiKey.LIST_OFFSETS, ResourceType.TOPIC): Operation.DESCRIBE,
    (ApiKey.METADATA, ResourceType.TOPIC): Operation.DESCRIBE,
    (ApiKey.OFFSET_COMMIT, ResourceType.GROUP): Operation.READ,
    (ApiKey.OFFSET_COMMIT, ResourceType.TOPIC): Operation.READ,
    (ApiKey.OFFSET_FETCH, ResourceType.GROUP): Operation.DESCRIBE,
    (ApiKey.OFFSET_FETCH, ResourceType.TOPIC): Operation.DESCRIBE,
    (ApiKey.FIND_COORDINATOR, ResourceType.GROUP): Operation.DESCRIBE,
    (ApiKey.JOIN_GROUP, ResourceType.GROUP): Operation.READ,
    (ApiKey.HEARTBEAT, ResourceType.GROUP): Operation.READ,
    (ApiKey.LEAVE_GROUP, ResourceType.GROUP): Operation.READ,
    (ApiKey.SYNC_GROUP, ResourceType.GROUP): Operation.READ,
    (ApiKey.DESCRIBE_GROUPS, ResourceType.GROUP): Operation.DESCRIBE,
    (ApiKey.LIST_GROUPS, ResourceType.CLUSTER): Operation.DESCRIBE,
    (ApiKey.LIST_GROUPS, ResourceType.GROUP): Operation.DESCRIBE,
    (ApiKey.CREATE_TOPICS, ResourceType.CLUSTER): Operation.CREATE,
    (ApiKey.CREATE_TOPICS, ResourceType.TOPIC): Operation.CREATE,
    (ApiKey.DELETE_TOPICS, ResourceType.TOPIC): Operation.DELETE,
    (ApiKey.DELETE_RECORDS, ResourceType.TOPIC): Operation.DELETE,
    (ApiKey.INIT_PRODUCER_ID, ResourceType.CLUSTER): Operation.IDEMPOTENT_WRITE,
    (ApiKey.INIT_PRODUCER_ID, ResourceType.TOPIC): Operation.WRITE,
    (ApiKey.OFFSET_FOR_LEADER_EPOCH, ResourceType.TOPIC): Operation.DESCRIBE,
    (ApiKey.DESCRIBE_ACLS, ResourceType.CLUSTER): Operation.DESCRIBE,
    (ApiKey.CREATE_ACLS, ResourceType.CLUSTER): Operation.ALTER,
    (ApiKey.DELETE_ACLS, ResourceType.CLUSTER): Operation.ALTER,
    (ApiKey.DESCRIBE_CONFIGS, ResourceType.CLUSTER): Operation.DESCRIBE_CONFIGS,
    (ApiKey.DESCRIBE_CONFIGS, ResourceType.TOPIC): Operation.DESCRIBE_CONFIGS,
    (ApiKey.ALTER_CONFIGS, ResourceType.CLUSTER): Operation.ALTER_CONFIGS,
    (ApiKey.ALTER_CONFIGS, ResourceType.TOPIC): Operation.ALTER_CONFIGS,
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, ResourceType.CLUSTER): Operation.ALTER_CONFIGS,
    (ApiKey.INCREMENTAL_ALTER_CONFIGS, ResourceType.TOPIC): Operation.ALTER_CONFIGS,
    (ApiKey.DESCRIBE_LOG_DIRS, ResourceType.CLUSTER): Operation.DESCRIBE,
    (ApiKey.CREATE_PARTITIONS, ResourceType.TOPIC): Operation.ALTER,
    (ApiKey.DELETE_GROUPS, ResourceType.GROUP): Operation.DELETE,
    (ApiKey.OFFSET_DELETE, ResourceType.GROUP): Operation.DELETE,
    (ApiKey.OFFSET_DELETE, ResourceType.TOPIC): Operation.READ,
    (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, ResourceType.CLUSTER): Operation.DESCRIBE,
    (ApiKey.ALTER_USER_SCRAM_CREDENTIALS, ResourceType.CLUSTER): Operation.ALTER,
}

ALWAYS_ENFORCED: Final = frozenset(
    {ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS, ApiKey.ALTER_USER_SCRAM_CREDENTIALS}
)
"""With `authorizer.mode: warn`, too: nobody may give himself a right that counts later."""

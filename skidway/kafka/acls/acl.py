"""One rule of access control. Names and numbers are Kafka's."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from skidway.dataclass import dataclass

ANY_NAME: Final = "*"
"""As a literal resource name: every resource of the type. As a host: every host."""
ANY_USER: Final = "User:*"
CLUSTER_NAME: Final = "kafka-cluster"
"""The only resource of type CLUSTER."""


class ResourceType(IntEnum):
    """What a rule is about. ANY is for filters alone."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How a rule's resource name is meant. ANY and MATCH are for filters alone: MATCH selects every
    rule that applies to a resource with the filter's name."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """What somebody may do. ANY is for filters alone."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(IntEnum):
    """Whether a rule allows or forbids. ANY is for filters alone."""

    ANY = 1
    DENY = 2
    ALLOW = 3


@dataclass(frozen=True, slots=True)
class ResourcePattern:
    """The resources to which a rule applies: one, all whose names begin with `name`, or all."""

    type: ResourceType
    name: str
    pattern: PatternType = PatternType.LITERAL


@dataclass(frozen=True, slots=True)
class Acl:
    """One rule. principal: `User:NAME`, or ANY_USER. host: an address, a range of addresses (see
    `skidway.kafka.acls.hosts`), or ANY_NAME."""

    resource: ResourcePattern
    principal: str
    host: str
    operation: Operation
    permission: Permission

    def __str__(self) -> str:
        resource, more = self.resource, ""
        if resource.pattern is PatternType.PREFIXED:
            more = "..."
        return (
            f"{self.permission.name} {self.principal} {self.operation.name}"
            f" {resource.type.name} {resource.name}{more} from {self.host}"
        )


SUPPORTED_OPERATIONS: Final[Mapping[ResourceType, frozenset[Operation]]] = {
    ResourceType.TOPIC: frozenset(
        {
            Operation.READ,
            Operation.WRITE,
            Operation.CREATE,
            Operation.DELETE,
            Operation.ALTER,
            Operation.DESCRIBE,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        }
    ),
    ResourceType.GROUP: frozenset(
        {
            Operation.READ,
            Operation.DELETE,
            Operation.DESCRIBE,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
        }
    ),
    ResourceType.CLUSTER: frozenset(
        {
            Operation.CREATE,
            Operation.ALTER,
            Operation.DESCRIBE,
            Operation.CLUSTER_ACTION,
            Operation.DESCRIBE_CONFIGS,
            Operation.ALTER_CONFIGS,
            Operation.IDEMPOTENT_WRITE,
        }
    ),
    ResourceType.TRANSACTIONAL_ID: frozenset(
        {Operation.WRITE, Operation.DESCRIBE, Operation.TWO_PHASE_COMMIT}
    ),
    ResourceType.DELEGATION_TOKEN: frozenset({Operation.DESCRIBE}),
    ResourceType.USER: frozenset({Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS}),
}
"""The operations that make sense for the resources of a type (AclEntry.supportedOperations). A rule
may name others: Kafka's command kafka-acls refuses them, its brokers do not. ALL is in no set."""

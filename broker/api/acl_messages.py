"""Rules of access control in messages: the numbers in requests, and rules in answers."""

from __future__ import annotations

from skidway.broker.api.exchange import Exchange
from skidway.kafka.acls.acl import Operation, PatternType, Permission, ResourceType
from skidway.kafka.acls.filters import AclFilter
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.delete_acls import DeleteAclsFilter
from skidway.kafka.protocol.describe_acls import DescribeAclsRequest

NO_AUTHORIZER = "the broker has no authorizer (authorizer.mode is off)"
DENIED = "the client may not do this with the cluster"


def refusal(exchange: Exchange) -> tuple[ErrorCode, str] | None:
    """Returns why the broker does not serve a request about rules; None if it does."""
    if exchange.is_without_authorizer:
        return ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER
    if not exchange.may_cluster():
        return ErrorCode.CLUSTER_AUTHORIZATION_FAILED, DENIED
    return None


def read_filter(message: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    """Returns the filter of a request. Raises ValueError if it has numbers that Kafka does not
    have."""
    return AclFilter(
        ResourceType(message.resource_type_filter),
        message.resource_name_filter,
        PatternType(message.pattern_type_filter),
        message.principal_filter,
        message.host_filter,
        Operation(message.operation),
        Permission(message.permission_type),
    )

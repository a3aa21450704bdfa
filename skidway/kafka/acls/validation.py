"""Which rules Kafka refuses to create. The error is INVALID_REQUEST for all of them."""

from __future__ import annotations

from typing import Final

from skidway.kafka.acls.acl import (
    ANY_NAME,
    CLUSTER_NAME,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from skidway.kafka.acls.hosts import parse_range

_OF_RULES: Final = (PatternType.LITERAL, PatternType.PREFIXED)


def refusal(acl: Acl) -> str | None:
    """Returns a sentence that says why Kafka's brokers refuse to create a rule, or None if they
    create it. As Kafka's, this function lets a rule name an operation that makes no sense for its
    resource (SUPPORTED_OPERATIONS)."""
    resource = acl.resource
    if ResourceType.ANY is resource.type or resource.pattern not in _OF_RULES:
        return "a rule needs a resource type, and the pattern type LITERAL or PREFIXED"
    if acl.operation is Operation.ANY or acl.permission is Permission.ANY:
        return "a rule needs an operation, and the permission ALLOW or DENY"
    if resource.type is ResourceType.CLUSTER and resource.name != CLUSTER_NAME:
        return f"the only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not resource.name:
        return "the resource name must not be empty"
    if ":" not in acl.principal:
        return f"the principal {acl.principal!r} is not of the form User:NAME"
    return _refusal_of_host(acl.host)


def _refusal_of_host(host: str) -> str | None:
    if not host:
        return f"the host must not be empty; {ANY_NAME} stands for all hosts"
    if "/" in host and parse_range(host) is None:
        return f"the host {host!r} is no range of addresses, as 192.0.2.0/24 and 2001:db8::/32 are"
    return None

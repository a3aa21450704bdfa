"""Asks a cluster for its rules of access control, and adds and deletes rules (KIP-140).

Every broker takes these requests. A broker of Apache Kafka passes changes on to the controller, so
another broker may learn of a change a moment after its answer.

Raises KafkaError if the whole request is refused: with CLUSTER_AUTHORIZATION_FAILED if this client
may not administer rules, with SECURITY_DISABLED if the cluster has no authorizer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from skidway.kafka.acls.acl import (
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from skidway.kafka.client.calls import MessageCall
from skidway.kafka.client.client import Client
from skidway.kafka.client.requests import error_of
from skidway.kafka.errors import ErrorCode, KafkaError, error_for
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.create_acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
)
from skidway.kafka.protocol.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from skidway.kafka.protocol.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

RULES_MAX: Final = 1000
"""How many rules one request changes. Apache Kafka changes at most 10,000 at once."""

Results = dict[Acl, KafkaError | None]
"""For each rule an error, or None if it was added or deleted."""


def describe_acls(
    client: Client, resource: ResourcePattern | None = None, principal: str | None = None
) -> list[Acl]:
    """Returns the rules with this resource pattern and principal; None stands for all. If the
    pattern type is MATCH, returns the rules that apply to the resource with this name."""
    return described_acls(client.ask_any(describe_acls_call(resource, principal)))


def create_acls(client: Client, acls: Sequence[Acl]) -> Results:
    """Adds rules. A rule that exists already is no error."""
    results: Results = {}
    for part in _parts(acls):
        results |= created_acls(client.ask_any(create_acls_call(part)), part)
    return results


def delete_acls(client: Client, acls: Sequence[Acl]) -> Results:
    """Deletes exactly these rules. A rule that does not exist is no error."""
    results: Results = {}
    for part in _parts(acls):
        results |= deleted_acls(client.ask_any(delete_acls_call(part)), part)
    return results


def describe_acls_call(resource: ResourcePattern | None, principal: str | None) -> MessageCall:
    """Returns a request to any broker for rules. The arguments are those of `describe_acls`."""
    request = DescribeAclsRequest(
        resource_type_filter=ResourceType.ANY if resource is None else resource.type,
        resource_name_filter=None if resource is None else resource.name,
        pattern_type_filter=PatternType.ANY if resource is None else resource.pattern,
        principal_filter=principal,
        host_filter=None,
        operation=Operation.ANY,
        permission_type=Permission.ANY,
    )
    return MessageCall(ApiKey.DESCRIBE_ACLS, lambda _: request, DescribeAclsResponse)


def described_acls(response: DescribeAclsResponse) -> list[Acl]:
    """Returns the rules in the response. Raises KafkaError if the broker refuses to tell them, or
    tells one of a kind that is not known here."""
    if response.error_code:
        raise error_for(response.error_code, response.error_message)
    return [_acl(resource, row) for resource in response.resources for row in resource.acls]


def create_acls_call(acls: Sequence[Acl]) -> MessageCall:
    """Returns a request to any broker to add rules."""
    creations = tuple(
        AclCreation(
            resource_type=acl.resource.type,
            resource_name=acl.resource.name,
            resource_pattern_type=acl.resource.pattern,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission,
        )
        for acl in acls
    )
    request = CreateAclsRequest(creations=creations)
    return MessageCall(ApiKey.CREATE_ACLS, lambda _: request, CreateAclsResponse)


def created_acls(response: CreateAclsResponse, acls: Sequence[Acl]) -> Results:
    """Returns the result for each rule. acls: as in the request. Raises KafkaError if the answer
    has not one result for each."""
    _require_all(response.results, acls)
    return {
        acl: error_of(row.error_code, row.error_message)
        for acl, row in zip(acls, response.results, strict=True)
    }


def delete_acls_call(acls: Sequence[Acl]) -> MessageCall:
    """Returns a request to any broker to delete rules, with a filter for each."""
    filters = tuple(
        DeleteAclsFilter(
            resource_type_filter=acl.resource.type,
            resource_name_filter=acl.resource.name,
            pattern_type_filter=acl.resource.pattern,
            principal_filter=acl.principal,
            host_filter=acl.host,
            operation=acl.operation,
            permission_type=acl.permission,
        )
        for acl in acls
    )
    request = DeleteAclsRequest(filters=filters)
    return MessageCall(ApiKey.DELETE_ACLS, lambda _: request, DeleteAclsResponse)


def deleted_acls(response: DeleteAclsResponse, acls: Sequence[Acl]) -> Results:
    """Returns the result for each rule. acls: as in the request. Raises KafkaError if the answer
    has not one result for each."""
    _require_all(response.filter_results, acls)
    return {
        acl: _error_of_filter(row) for acl, row in zip(acls, response.filter_results, strict=True)
    }


def _parts(acls: Sequence[Acl]) -> list[Sequence[Acl]]:
    return [acls[start : start + RULES_MAX] for start in range(0, len(acls), RULES_MAX)]


def _acl(resource: DescribeAclsResource, row: AclDescription) -> Acl:
    try:
        return Acl(
            ResourcePattern(
                ResourceType(resource.resource_type),
                resource.resource_name,
                PatternType(resource.pattern_type),
            ),
            row.principal,
            row.host,
            Operation(row.operation),
            Permission(row.permission_type),
        )
    except ValueError as error:  # of a newer broker
        why = f"the cluster has a rule of a kind that is not known here: {error}"
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, why) from error


def _error_of_filter(row: DeleteAclsFilterResult) -> KafkaError | None:
    errors = [error_of(each.error_code, each.error_message) for each in row.matching_acls]
    errors.insert(0, error_of(row.error_code, row.error_message))
    return next((error for error in errors if error is not None), None)


def _require_all(results: Sequence[Any], acls: Sequence[Acl]) -> None:
    if len(results) != len(acls):
        why = f"the broker answers {len(acls)} rules with {len(results)} results"
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, why)

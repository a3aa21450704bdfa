from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from skidway.kafka.acls.acl import (
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from skidway.kafka.client import Client
from skidway.kafka.client.acls import (
    RULES_MAX,
    create_acls,
    created_acls,
    delete_acls,
    delete_acls_call,
    deleted_acls,
    describe_acls,
    describe_acls_call,
    described_acls,
)
from skidway.kafka.errors import ErrorCode, KafkaError
from skidway.kafka.protocol.create_acls import AclCreationResult, CreateAclsResponse
from skidway.kafka.protocol.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from skidway.kafka.protocol.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from support.memory_rights import MemoryRights


def rules(count: int) -> list[Acl]:
    return [
        Acl(
            ResourcePattern(ResourceType.TOPIC, f"t{number}", PatternType.PREFIXED),
            "User:ada", "*", Operation.READ, Permission.ALLOW,
        )
        for number in range(count)
    ]  # fmt: skip


def test_many_rules_take_several_requests() -> None:
    """More rules than a broker changes at once are added and deleted in several requests, and each
    has its result."""
    cluster, made = MemoryRights(), rules(2 * RULES_MAX + 1)
    client = cast(Client, cluster)
    assert create_acls(client, made) == dict.fromkeys(made)
    assert describe_acls(client) == made
    assert delete_acls(client, made[1:]) == dict.fromkeys(made[1:])
    assert cluster.rules == made[:1]
    assert len(cluster.requests) == 3 + 1 + 2
    assert create_acls(client, []) == {}


def test_a_filter_selects_everything_that_it_does_not_name() -> None:
    """Without arguments the client asks for all rules, otherwise for those of a resource or of a
    principal."""
    every = cast(DescribeAclsRequest, describe_acls_call(None, None).build(3))
    assert (every.resource_name_filter, every.principal_filter, every.host_filter) == (None,) * 3
    numbers = (every.resource_type_filter, every.pattern_type_filter, every.operation)
    assert (*numbers, every.permission_type) == (1, 1, 1, 1)
    resource = ResourcePattern(ResourceType.GROUP, "g", PatternType.MATCH)
    some = cast(DescribeAclsRequest, describe_acls_call(resource, "User:ada").build(3))
    assert (some.resource_type_filter, some.resource_name_filter) == (3, "g")
    assert (some.pattern_type_filter, some.principal_filter) == (2, "User:ada")


def test_a_filter_deletes_one_rule() -> None:
    """The request to delete a rule has a filter to which only this rule fits."""
    request = cast(DeleteAclsRequest, delete_acls_call(rules(1)).build(3))
    (row,) = request.filters
    assert (row.resource_type_filter, row.resource_name_filter, row.pattern_type_filter) == (
        ResourceType.TOPIC, "t0", PatternType.PREFIXED,
    )  # fmt: skip
    assert (row.principal_filter, row.host_filter) == ("User:ada", "*")
    assert (row.operation, row.permission_type) == (Operation.READ, Permission.ALLOW)


def test_a_refused_question_is_an_error() -> None:
    """If the broker tells no rules, the error has its code and its text."""
    response = DescribeAclsResponse(error_code=54, error_message="No Authorizer is configured.")
    with pytest.raises(KafkaError, match=r"SECURITY_DISABLED \(54\): No Authorizer"):
        described_acls(response)


@pytest.mark.parametrize("wrong", ["resource_type", "pattern_type", "operation", "permission_type"])
def test_a_rule_of_an_unknown_kind_is_an_error(wrong: str) -> None:
    """A rule that only newer versions of Kafka have is neither left out nor read as another one,
    because both would be false."""
    numbers = {"operation": 3, "permission_type": 3, "resource_type": 2, "pattern_type": 3}
    numbers |= {wrong: 99}
    right = {key: numbers[key] for key in ("operation", "permission_type")}
    row: Any = AclDescription(principal="User:ada", host="*", **right)
    resource = DescribeAclsResource(
        resource_type=numbers["resource_type"], resource_name="t",
        pattern_type=numbers["pattern_type"], acls=(row,),
    )  # fmt: skip
    with pytest.raises(KafkaError, match="not known here: 99"):
        described_acls(DescribeAclsResponse(resources=(resource,)))


def match(code: int) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_code=code, resource_type=2, resource_name="t0", principal="User:ada", host="*",
        operation=3, permission_type=3,
    )  # fmt: skip


def test_each_rule_has_its_result() -> None:
    """An error belongs to the rule at the same place in the request: of the filter, or of the rule
    that it selects."""
    made = rules(3)
    ok, refused = AclCreationResult(), AclCreationResult(error_code=42, error_message="no")
    created = created_acls(CreateAclsResponse(results=(ok, refused, ok)), made)
    assert codes(created.values()) == [None, ErrorCode.INVALID_REQUEST, None]
    results = (
        DeleteAclsFilterResult(error_code=31),
        DeleteAclsFilterResult(matching_acls=(match(0), match(-1))),
        DeleteAclsFilterResult(matching_acls=(match(0),)),
    )
    deleted = deleted_acls(DeleteAclsResponse(filter_results=results), made)
    assert codes(deleted.values()) == [
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_SERVER_ERROR, None,
    ]  # fmt: skip


def codes(results: Any) -> Sequence[ErrorCode | None]:
    return [None if error is None else error.code for error in results]


def test_an_answer_with_too_few_results_is_an_error() -> None:
    """If a broker leaves out the result of a rule, no rule counts as changed."""
    with pytest.raises(KafkaError, match="answers 2 rules with 1 results"):
        created_acls(CreateAclsResponse(results=(AclCreationResult(),)), rules(2))
    with pytest.raises(KafkaError, match="answers 1 rules with 0 results"):
        deleted_acls(DeleteAclsResponse(filter_results=()), rules(1))

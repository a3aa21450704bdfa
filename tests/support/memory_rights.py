"""The rules and passwords of an Apache Kafka in memory. It answers the requests of
`skidway.kafka.client.acls` and `skidway.kafka.client.scram_credentials` like a broker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from skidway.kafka.acls.acl import (
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from skidway.kafka.client.calls import Call, MessageCall
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialUpsertion,
)
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.create_acls import (
    AclCreationResult,
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
from skidway.kafka.protocol.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


@dataclass
class MemoryRights:
    """A client whose cluster has rules and passwords.

    refused: the error with which the cluster refuses everything, or changes of rules that name one
    of `refused_principals`. requests: what the cluster was asked to do, in order.
    """

    rules: list[Acl] = field(default_factory=list)
    passwords: dict[tuple[str, int], ScramCredentialUpsertion] = field(default_factory=dict)
    refused: ErrorCode = ErrorCode.NONE
    refused_principals: set[str] = field(default_factory=set)
    requests: list[ApiKey] = field(default_factory=list)

    def __enter__(self) -> MemoryRights:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask_any(self, call: Call) -> Any:
        assert isinstance(call, MessageCall)
        self.requests.append(call.api)
        answer: Any = getattr(self, f"_{call.api.name.lower()}")(
            call.build(call.api.broker.highest)
        )
        return answer

    def _describe_acls(self, request: DescribeAclsRequest) -> DescribeAclsResponse:
        if self.refused:
            return DescribeAclsResponse(error_code=self.refused, error_message="no")
        return DescribeAclsResponse(
            resources=tuple(
                DescribeAclsResource(
                    resource_type=acl.resource.type,
                    resource_name=acl.resource.name,
                    pattern_type=acl.resource.pattern,
                    acls=(
                        AclDescription(
                            principal=acl.principal,
                            host=acl.host,
                            operation=acl.operation,
                            permission_type=acl.permission,
                        ),
                    ),
                )
                for acl in self.rules
                if _fits(request, acl)
            )
        )

    def _create_acls(self, request: CreateAclsRequest) -> CreateAclsResponse:
        results = []
        for row in request.creations:
            pattern = ResourcePattern(
                ResourceType(row.resource_type),
                row.resource_name,
                PatternType(row.resource_pattern_type),
            )
            rights = Operation(row.operation), Permission(row.permission_type)
            acl = Acl(pattern, row.principal, row.host, *rights)
            error = self._error(acl)
            if not error and acl not in self.rules:
                self.rules.append(acl)
            results.append(AclCreationResult(error_code=error))
        return CreateAclsResponse(results=tuple(results))

    def _delete_acls(self, request: DeleteAclsRequest) -> DeleteAclsResponse:
        results = []
        for row in request.filters:
            doomed = [acl for acl in self.rules if _fits(row, acl)]
            error = max((self._error(acl) for acl in doomed), default=self.refused)
            if not error:
                self.rules = [acl for acl in self.rules if acl not in doomed]
            results.append(DeleteAclsFilterResult(error_code=error))
        return DeleteAclsResponse(filter_results=tuple(results))

    def _error(self, acl: Acl) -> ErrorCode:
        if acl.principal in self.refused_principals:
            return ErrorCode.INVALID_REQUEST
        return self.refused

    def _describe_user_scram_credentials(
        self, request: DescribeUserScramCredentialsRequest
    ) -> DescribeUserScramCredentialsResponse:
        known = {user for user, _ in self.passwords}
        users = [each.name for each in request.users or ()] or sorted(known)
        return DescribeUserScramCredentialsResponse(
            error_code=self.refused,
            results=tuple(
                DescribeUserScramCredentialsResult(
                    user=user,
                    error_code=0 if user in known else ErrorCode.RESOURCE_NOT_FOUND,
                    credential_infos=tuple(self._infos(user)),
                )
                for user in users
            ),
        )

    def _infos(self, user: str) -> Iterable[CredentialInfo]:
        for (name, mechanism), row in self.passwords.items():
            if name == user:
                yield CredentialInfo(mechanism=mechanism, iterations=row.iterations)

    def _alter_user_scram_credentials(
        self, request: AlterUserScramCredentialsRequest
    ) -> AlterUserScramCredentialsResponse:
        for upsertion in request.upsertions:
            self.passwords[upsertion.name, upsertion.mechanism] = upsertion
        for deletion in request.deletions:
            del self.passwords[deletion.name, deletion.mechanism]
        users = {each.name for each in (*request.upsertions, *request.deletions)}
        results = tuple(AlterUserScramCredentialsResult(user=user) for user in users)
        return AlterUserScramCredentialsResponse(results=results)


def _fits(row: DescribeAclsRequest | DeleteAclsFilter, acl: Acl) -> bool:
    name, pattern = row.resource_name_filter, row.pattern_type_filter
    applies = acl.resource.pattern is PatternType.PREFIXED and (name or "").startswith(
        acl.resource.name
    )
    return (
        row.resource_type_filter in (ResourceType.ANY, acl.resource.type)
        and (name in (None, acl.resource.name) or (pattern == PatternType.MATCH and applies))
        and pattern in (PatternType.ANY, PatternType.MATCH, acl.resource.pattern)
        and row.principal_filter in (None, acl.principal)
        and row.host_filter in (None, acl.host)
        and row.operation in (Operation.ANY, acl.operation)
        and row.permission_type in (Permission.ANY, acl.permission)
    )

"""DeleteAcls (31), versions 1-2. Deletes the rules of access control that filters select. This
broker does not follow them any more when the request is answered."""

from __future__ import annotations

from skidway.broker.api import acl_messages
from skidway.broker.api.errors import code_of
from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.errors import SkidwayError
from skidway.kafka.acls.acl import Acl
from skidway.kafka.acls.filters import AclFilter
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


def handle(broker: Broker, exchange: Exchange) -> None:
    """Deletes the rules, and answers when they are gone."""
    filters = exchange.decode(DeleteAclsRequest).filters
    refused = acl_messages.refusal(exchange)
    if refused is not None:
        code, words = refused
        result = DeleteAclsFilterResult(error_code=code, error_message=words)
        exchange.reply(DeleteAclsResponse(filter_results=(result,) * len(filters)))
        return
    read = [_read(each) for each in filters]
    valid = [each for each in read if isinstance(each, AclFilter)]

    def removed(outcome: list[list[Acl]] | SkidwayError) -> None:
        if isinstance(outcome, SkidwayError):
            exchange.changed([str(each) for each in valid], is_sure=False)
            found = iter([_failed(outcome)] * len(valid))
        else:
            gone = dict.fromkeys(str(acl) for each in outcome for acl in each)
            exchange.changed(list(gone))
            found = iter([_found(each) for each in outcome])
        results = tuple(next(found) if isinstance(each, AclFilter) else each for each in read)
        exchange.reply(DeleteAclsResponse(filter_results=results))

    if valid:
        broker.access.remove_acls(valid, removed)
    else:
        removed([])


def _read(wanted: DeleteAclsFilter) -> AclFilter | DeleteAclsFilterResult:
    try:
        return acl_messages.read_filter(wanted)
    except ValueError as error:
        code = ErrorCode.INVALID_REQUEST
        return DeleteAclsFilterResult(error_code=code, error_message=str(error))


def _failed(error: SkidwayError) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(error_code=code_of(error), error_message=str(error))


def _found(acls: list[Acl]) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(
        matching_acls=tuple(
            DeleteAclsMatchingAcl(
                resource_type=each.resource.type,
                resource_name=each.resource.name,
                pattern_type=each.resource.pattern,
                principal=each.principal,
                host=each.host,
                operation=each.operation,
                permission_type=each.permission,
            )
            for each in acls
        )
    )


API = Api(ApiKey.DELETE_ACLS, handle)

"""DescribeAcls (29), versions 1-2. Lists the rules of access control that a filter selects."""

from __future__ import annotations

from skidway.broker.api import acl_messages
from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.kafka.acls.acl import Acl, ResourcePattern
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)


def handle(broker: Broker, exchange: Exchange) -> None:
    """Answers from the rules that this broker follows."""
    request = exchange.decode(DescribeAclsRequest)
    refused = acl_messages.refusal(exchange)
    if refused is not None:
        code, words = refused
        exchange.reply(DescribeAclsResponse(error_code=code, error_message=words))
        return
    try:
        selected = acl_messages.read_filter(request)
    except ValueError as error:
        code = ErrorCode.INVALID_REQUEST
        exchange.reply(DescribeAclsResponse(error_code=code, error_message=str(error)))
        return
    by_resource: dict[ResourcePattern, list[Acl]] = {}
    for each in broker.access.authorizer.rules.acls:
        if selected.matches(each):
            by_resource.setdefault(each.resource, []).append(each)
    resources = tuple(_resource(*each) for each in by_resource.items())
    exchange.reply(DescribeAclsResponse(resources=resources))


def _resource(resource: ResourcePattern, acls: list[Acl]) -> DescribeAclsResource:
    return DescribeAclsResource(
        resource_type=resource.type,
        resource_name=resource.name,
        pattern_type=resource.pattern,
        acls=tuple(
            AclDescription(
                principal=each.principal,
                host=each.host,
                operation=each.operation,
                permission_type=each.permission,
            )
            for each in acls
        ),
    )


API = Api(ApiKey.DESCRIBE_ACLS, handle)

"""CreateAcls (30), versions 1-2. Adds rules of access control. All rules that are valid are added,
and this broker follows them when the request is answered."""

from __future__ import annotations

from skidway.broker.access_control import Added
from skidway.broker.api import acl_messages
from skidway.broker.api.errors import code_of
from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.acls.acl import (
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from skidway.kafka.acls.validation import refusal
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)


def handle(broker: Broker, exchange: Exchange) -> None:
    """Adds the rules, and answers when they are stored."""
    creations = exchange.decode(CreateAclsRequest).creations
    refused = acl_messages.refusal(exchange)
    if refused is not None:
        code, words = refused
        result = AclCreationResult(error_code=code, error_message=words)
        exchange.reply(CreateAclsResponse(results=(result,) * len(creations)))
        return
    read = [_read(each) for each in creations]
    valid = [each for each in read if isinstance(each, Acl)]

    def added(outcome: Added) -> None:
        errors = outcome if isinstance(outcome, dict) else dict.fromkeys(resources, outcome)
        done = [str(each) for each in valid if errors[each.resource] is None]
        exchange.changed(done)
        unsure = [str(x) for x in valid if isinstance(errors[x.resource], Unreachable)]
        exchange.changed(unsure, is_sure=False)
        results = tuple(
            _result(errors[each.resource]) if isinstance(each, Acl) else each for each in read
        )
        exchange.reply(CreateAclsResponse(results=results))

    resources = [each.resource for each in valid]
    if valid:
        broker.access.add_acls(valid, added)
    else:
        added({})


def _result(error: SkidwayError | None) -> AclCreationResult:
    if error is None:
        return AclCreationResult()
    return AclCreationResult(error_code=code_of(error), error_message=str(error))


def _read(creation: AclCreation) -> Acl | AclCreationResult:
    try:
        acl = Acl(
            ResourcePattern(
                ResourceType(creation.resource_type),
                creation.resource_name,
                PatternType(creation.resource_pattern_type),
            ),
            creation.principal,
            creation.host,
            Operation(creation.operation),
            Permission(creation.permission_type),
        )
    except ValueError as error:
        return _refused(str(error))
    why = refusal(acl)
    return acl if why is None else _refused(why)


def _refused(why: str) -> AclCreationResult:
    return AclCreationResult(error_code=ErrorCode.INVALID_REQUEST, error_message=why)


API = Api(ApiKey.CREATE_ACLS, handle)

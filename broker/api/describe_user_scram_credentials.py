"""DescribeUserScramCredentials (50), version 0. Lists who can log in, and by which mechanisms."""

from __future__ import annotations

from skidway.broker.api.acl_messages import DENIED
from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
    ScramMechanism,
)


def handle(broker: Broker, exchange: Exchange) -> None:
    """Answers from the users that this broker knows."""
    request = exchange.decode(DescribeUserScramCredentialsRequest)
    if not exchange.may_cluster():
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        exchange.reply(DescribeUserScramCredentialsResponse(error_code=code, error_message=DENIED))
        return
    named = [each.name for each in request.users or ()]
    times = {each: named.count(each) for each in named}
    names = times or sorted(broker.access.logins.users)
    results = tuple(_user(broker, each, times.get(each, 1)) for each in names)
    exchange.reply(DescribeUserScramCredentialsResponse(results=results))


def _user(broker: Broker, name: str, times: int) -> DescribeUserScramCredentialsResult:
    credentials = broker.access.logins.users.get(name)
    if times > 1:
        code, words = ErrorCode.DUPLICATE_RESOURCE, "it is named twice"
    elif credentials is None:
        code, words = ErrorCode.RESOURCE_NOT_FOUND, "there is no such user"
    else:
        infos = tuple(
            CredentialInfo(mechanism=number_of(each.mechanism), iterations=each.iterations)
            for each in credentials.values()
        )
        return DescribeUserScramCredentialsResult(user=name, credential_infos=infos)
    return DescribeUserScramCredentialsResult(user=name, error_code=code, error_message=words)


def number_of(mechanism: str) -> ScramMechanism:
    """Returns the number of a mechanism in messages."""
    return ScramMechanism[mechanism.replace("-", "_")]


API = Api(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, handle)

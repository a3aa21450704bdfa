"""AlterUserScramCredentials (51), version 0. Gives users credentials, and takes them away. A user
without credentials is gone: its connections are closed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from skidway.broker.api.acl_messages import DENIED
from skidway.broker.api.errors import code_of
from skidway.broker.api.exchange import Exchange
from skidway.broker.api.gathering import Gathering
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.errors import SkidwayError
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.describe_user_scram_credentials import ScramMechanism
from skidway.security.scram_credential import (
    CredentialInvalid,
    ScramCredential,
    of_salted_password,
)

Change = ScramCredentialDeletion | ScramCredentialUpsertion
Changes = dict[str, ScramCredential | None]
"""A user's new credentials, by mechanism; None for one that is taken away."""


class Refused(Exception):
    """The broker does not make the changes of a user."""

    def __init__(self, code: ErrorCode, words: str) -> None:
        super().__init__(words)
        self.code = code


def handle(broker: Broker, exchange: Exchange) -> None:
    """Changes each user for itself, and answers when all are stored."""
    request = exchange.decode(AlterUserScramCredentialsRequest)
    names = tuple(dict.fromkeys(each.name for each in _all(request)))

    def reply(results: Sequence[AlterUserScramCredentialsResult]) -> None:
        exchange.changed([each.user for each in results if not each.error_code])
        exchange.reply(AlterUserScramCredentialsResponse(results=tuple(results)))

    gathering: Gathering[AlterUserScramCredentialsResult] = Gathering(len(names), reply)
    is_allowed = exchange.may_cluster()
    for at, name in enumerate(names):
        try:
            if not is_allowed:
                raise Refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, DENIED)  # noqa: TRY301
            changes = _changes(request, name)
        except Refused as error:
            gathering.put(at, _failed(name, error.code, str(error)))
        else:
            broker.access.alter_user(name, changes, _finisher(gathering, at, name))


def _all(request: AlterUserScramCredentialsRequest) -> list[Change]:
    return [*request.deletions, *request.upsertions]


def _changes(request: AlterUserScramCredentialsRequest, name: str) -> Changes:
    if not name:
        raise Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "a user needs a name")
    found: Changes = {}
    for each in _all(request):
        if each.name != name:
            continue
        mechanism = _mechanism(each.mechanism)
        if mechanism in found:
            raise Refused(ErrorCode.DUPLICATE_RESOURCE, f"{mechanism} is changed twice")
        if isinstance(each, ScramCredentialUpsertion):
            found[mechanism] = _credential(mechanism, each)
        else:
            found[mechanism] = None
    return found


def _mechanism(number: int) -> str:
    try:
        return ScramMechanism(number).name.replace("_", "-")
    except ValueError:
        words = f"there is no mechanism {number}"
        raise Refused(ErrorCode.UNSUPPORTED_SASL_MECHANISM, words) from None


def _credential(mechanism: str, wanted: ScramCredentialUpsertion) -> ScramCredential:
    salted, salt = bytes(wanted.salted_password), bytes(wanted.salt)
    try:
        return of_salted_password(mechanism, salted, salt, wanted.iterations)
    except CredentialInvalid as error:
        raise Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, str(error)) from error


def _finisher(
    gathering: Gathering[AlterUserScramCredentialsResult], at: int, name: str
) -> Callable[[SkidwayError | None], None]:
    def done(error: SkidwayError | None) -> None:
        if error is None:
            gathering.put(at, AlterUserScramCredentialsResult(user=name))
        else:
            gathering.put(at, _failed(name, code_of(error), str(error)))

    return done


def _failed(name: str, code: ErrorCode, words: str) -> AlterUserScramCredentialsResult:
    return AlterUserScramCredentialsResult(user=name, error_code=code, error_message=words)


API = Api(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, handle)

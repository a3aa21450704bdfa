"""Lists the users who can log in by SCRAM, gives them passwords, and takes these away (KIP-554).

Every broker takes these requests. A broker of Apache Kafka passes changes on to the controller, so
another broker may learn of a change a moment after its answer. A login that exists already stays.

Messages have a salted password, never the password. But whoever reads the salted password can log
in with it, so the connection must be encrypted.

Raises KafkaError if a request is refused: with CLUSTER_AUTHORIZATION_FAILED if this client may not
administer users.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Final

from skidway.kafka.client.calls import MessageCall
from skidway.kafka.client.client import Client
from skidway.kafka.errors import ErrorCode, KafkaError, error_for
from skidway.kafka.protocol.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
    ScramMechanism,
    UserName,
)
from skidway.security.scram_credential import ITERATIONS_MIN, SALT_BYTES, salt_password

_NUMBERS: Final[Mapping[str, ScramMechanism]] = {
    "SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256,
    "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512,
}

Credentials = dict[str, dict[str, int]]
"""The iterations of each credential, by user and mechanism. No user is without a credential."""


def describe_credentials(client: Client, users: Sequence[str] = ()) -> Credentials:
    """Returns the credentials of these users, or of all if none is named."""
    return described_credentials(client.ask_any(describe_credentials_call(users)))


def set_password(
    client: Client, user: str, password: str, mechanism: str, iterations: int = ITERATIONS_MIN
) -> None:
    """Lets a user log in by one mechanism with a new password. A credential that the user has for
    this mechanism is replaced."""
    salt = secrets.token_bytes(SALT_BYTES)
    check_altered(client.ask_any(set_password_call(user, password, mechanism, iterations, salt)))


def delete_credentials(client: Client, user: str, mechanisms: Sequence[str]) -> None:
    """Deletes a user's credentials for these mechanisms. Raises KafkaError with RESOURCE_NOT_FOUND
    if the user does not have one of them."""
    check_altered(client.ask_any(delete_credentials_call(user, mechanisms)))


def describe_credentials_call(users: Sequence[str]) -> MessageCall:
    """Returns a request to any broker for the credentials of these users, or of all if none is
    named."""
    request = DescribeUserScramCredentialsRequest(users=tuple(UserName(name=x) for x in users))
    return MessageCall(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        lambda _: request,
        DescribeUserScramCredentialsResponse,
    )


def described_credentials(response: DescribeUserScramCredentialsResponse) -> Credentials:
    """Returns the credentials in the response. Raises KafkaError for an error, but for a user who
    has no credential, and for a mechanism that is not known here."""
    if response.error_code:
        raise error_for(response.error_code, response.error_message)
    found = {}
    for row in response.results:
        if row.error_code != ErrorCode.RESOURCE_NOT_FOUND:
            _check(row)
            infos = row.credential_infos
            found[row.user] = {_name(each.mechanism): each.iterations for each in infos}
    return found


def set_password_call(
    user: str, password: str, mechanism: str, iterations: int, salt: bytes
) -> MessageCall:
    """Returns a request to any broker to add or replace one credential."""
    salted = salt_password(mechanism, password, salt, iterations)
    credential = ScramCredentialUpsertion(
        name=user,
        mechanism=_NUMBERS[mechanism],
        iterations=iterations,
        salt=salt,
        salted_password=salted,
    )
    return _alter_call(AlterUserScramCredentialsRequest(upsertions=(credential,)))


def delete_credentials_call(user: str, mechanisms: Sequence[str]) -> MessageCall:
    """Returns a request to any broker to delete a user's credentials for these mechanisms."""
    deletions = tuple(
        ScramCredentialDeletion(name=user, mechanism=_NUMBERS[each]) for each in mechanisms
    )
    return _alter_call(AlterUserScramCredentialsRequest(deletions=deletions))


def check_altered(response: AlterUserScramCredentialsResponse) -> None:
    """Raises KafkaError if a change was refused."""
    for row in response.results:
        _check(row)


def _check(row: DescribeUserScramCredentialsResult | AlterUserScramCredentialsResult) -> None:
    if row.error_code:
        raise error_for(row.error_code, f"user {row.user}: {row.error_message or 'refused'}")


def _name(number: int) -> str:
    for name, known in _NUMBERS.items():
        if number == known:
            return name
    why = f"the cluster has a credential for a mechanism that is not known here: {number}"
    raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, why)


def _alter_call(request: AlterUserScramCredentialsRequest) -> MessageCall:
    return MessageCall(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        lambda _: request,
        AlterUserScramCredentialsResponse,
    )

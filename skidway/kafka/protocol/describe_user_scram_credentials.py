"""DescribeUserScramCredentials (key 50), version 0 (KIP-554): which users can log in by SCRAM.

The version is flexible (KIP-482). An answer never has a password, or what is made of one.
"""

from __future__ import annotations

from enum import IntEnum

from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.messages import (
    ErrorText,
    Int8,
    Int16,
    Int32,
    Request,
    Response,
    structure,
)

VERSIONS = VersionRange(0, 0)


class ScramMechanism(IntEnum):
    """The numbers of SCRAM's mechanisms in messages."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


@structure
class UserName:
    """A user."""

    name: str


@structure
class DescribeUserScramCredentialsRequest(Request):
    """Asks about users. If `users` is None or empty, asks about all users with credentials."""

    API = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
    VERSIONS = VERSIONS

    users: tuple[UserName, ...] | None = None


@structure
class CredentialInfo:
    """A mechanism (see `ScramMechanism`) by which the user can log in. iterations: how often the
    password is hashed."""

    mechanism: Int8
    iterations: Int32


@structure
class DescribeUserScramCredentialsResult:
    """The credentials of one user, or an error: RESOURCE_NOT_FOUND if the user has none."""

    user: str
    error_code: Int16 = 0
    error_message: ErrorText = None
    credential_infos: tuple[CredentialInfo, ...] = ()


@structure
class DescribeUserScramCredentialsResponse(Response):
    """The users, or an error that concerns the whole request."""

    API = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
    VERSIONS = VERSIONS

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: ErrorText = None
    results: tuple[DescribeUserScramCredentialsResult, ...] = ()

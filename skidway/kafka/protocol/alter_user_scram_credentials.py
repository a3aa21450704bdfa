"""AlterUserScramCredentials (key 51), version 0 (KIP-554): gives users credentials for SCRAM, and
takes them away.

The version is flexible (KIP-482). A client sends the salted password, never the password itself.
But whoever has the salted password can log in as the user.
"""

from __future__ import annotations

from dataclasses import field

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


@structure
class ScramCredentialDeletion:
    """The credential to delete. mechanism: see `ScramMechanism`."""

    name: str
    mechanism: Int8


@structure
class ScramCredentialUpsertion:
    """The credential to add, or to put in place of the user's present one of the same mechanism.
    salted_password: Hi(password, salt, iterations) of RFC 5802."""

    name: str
    mechanism: Int8
    iterations: Int32
    salt: bytes
    salted_password: bytes = field(repr=False)


@structure
class AlterUserScramCredentialsRequest(Request):
    """The changes: at most one for each user and mechanism."""

    API = ApiKey.ALTER_USER_SCRAM_CREDENTIALS
    VERSIONS = VERSIONS

    deletions: tuple[ScramCredentialDeletion, ...] = ()
    upsertions: tuple[ScramCredentialUpsertion, ...] = ()


@structure
class AlterUserScramCredentialsResult:
    """The result for one user."""

    user: str
    error_code: Int16 = 0
    error_message: ErrorText = None


@structure
class AlterUserScramCredentialsResponse(Response):
    """The result for each user of the request."""

    API = ApiKey.ALTER_USER_SCRAM_CREDENTIALS
    VERSIONS = VERSIONS

    throttle_time_ms: Int32 = 0
    results: tuple[AlterUserScramCredentialsResult, ...]

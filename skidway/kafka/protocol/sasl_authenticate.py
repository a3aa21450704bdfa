"""SaslAuthenticate (key 36), versions 0-2: one message of the mechanism in each direction.

What is new in each version:

    1    session lifetime, after which the client has to log in again (KIP-368)
    2    flexible (KIP-482)
"""

from __future__ import annotations

from typing import Annotated

from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.messages import (
    ErrorText,
    Int16,
    Int64,
    Request,
    Response,
    since,
    structure,
)

VERSIONS = VersionRange(0, 2)


@structure
class SaslAuthenticateRequest(Request):
    """The client's message of the mechanism."""

    API = ApiKey.SASL_AUTHENTICATE
    VERSIONS = VERSIONS

    auth_bytes: bytes


@structure
class SaslAuthenticateResponse(Response):
    """The broker's message of the mechanism. session_lifetime_ms: 0 for a login without an end."""

    API = ApiKey.SASL_AUTHENTICATE
    VERSIONS = VERSIONS

    error_code: Int16 = 0
    error_message: ErrorText = None
    auth_bytes: bytes = b""
    session_lifetime_ms: Annotated[Int64, since(1)] = 0

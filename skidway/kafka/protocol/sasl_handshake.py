"""SaslHandshake (key 17), versions 0-1: which mechanism the client logs in with.

Version 0, after which the client sends the mechanism's bytes without a header, has the same form;
a broker refuses it.
"""

from __future__ import annotations

from skidway.kafka.protocol.apis import ApiKey, VersionRange
from skidway.kafka.protocol.messages import Int16, Request, Response, structure

VERSIONS = VersionRange(0, 1)


@structure
class SaslHandshakeRequest(Request):
    """Names the mechanism."""

    API = ApiKey.SASL_HANDSHAKE
    VERSIONS = VERSIONS

    mechanism: str


@structure
class SaslHandshakeResponse(Response):
    """The mechanisms that the broker has; with an error if the named one is not among them."""

    API = ApiKey.SASL_HANDSHAKE
    VERSIONS = VERSIONS

    error_code: Int16 = 0
    mechanisms: tuple[str, ...] = ()

"""SaslHandshake (17), version 1. Begins a login, or a renewed one (KIP-368), by a mechanism.
Version 0 is answered with UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from typing import Final

from skidway.broker.access.logins import UnknownMechanism
from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import SASL_HANDSHAKE_SERVED_SINCE, ApiKey
from skidway.kafka.protocol.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from skidway.security.sasl_server import LoginInvalid


class TooOld(LoginInvalid):
    """The client begins to log in by version 0."""


CODES: Final = {
    TooOld: ErrorCode.UNSUPPORTED_VERSION,
    UnknownMechanism: ErrorCode.UNSUPPORTED_SASL_MECHANISM,
}


def handle(broker: Broker, exchange: Exchange) -> None:
    """Answers with the mechanisms. If the client's is not among them, or if it may not log in now
    or in this version, closes the connection then."""
    login, now = exchange.connection.login, broker.loop.now
    mechanism = exchange.decode(SaslHandshakeRequest).mechanism
    if login is None:
        exchange.reply(SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))
        return
    try:
        if exchange.version < SASL_HANDSHAKE_SERVED_SINCE:
            raise TooOld("its client is too old: it would log in without SaslAuthenticate")
        login.handshake(mechanism, now)
    except LoginInvalid as error:
        code = CODES.get(type(error), ErrorCode.ILLEGAL_SASL_STATE)
        broker.access.login_failed(exchange.connection, error)
        response = SaslHandshakeResponse(error_code=code, mechanisms=login.mechanisms)
        exchange.end("login_failed")
        exchange.reply(response)
    else:
        if login.identity is not None:
            broker.loop.expect_login(exchange.connection)
        else:
            broker.loop.login_stepped(exchange.connection)
        exchange.reply(SaslHandshakeResponse(mechanisms=login.mechanisms))


API = Api(ApiKey.SASL_HANDSHAKE, handle)

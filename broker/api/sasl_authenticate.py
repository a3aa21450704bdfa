"""SaslAuthenticate (36), versions 0-2: one message of the mechanism in each direction.

A login that fails is answered after `connection.failed.authentication.delay.ms`, so that guessing
passwords takes long; then the connection is closed. The answer does not say why, and does not tell
users who do not exist from others (who does not exist fails a message earlier, as in Kafka); the
security log does.
"""

from __future__ import annotations

from functools import partial

from skidway.broker.access.logins import OutOfOrder
from skidway.broker.api.exchange import Exchange
from skidway.broker.api.registration import Api
from skidway.broker.broker import Broker
from skidway.kafka.errors import ErrorCode
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from skidway.security.sasl_server import Challenge, Check, LoginInvalid, Proved

REFUSED = "the user or the password is wrong"


def handle(broker: Broker, exchange: Exchange) -> None:
    """Answers with the mechanism's next message."""
    login = exchange.connection.login
    message = exchange.decode(SaslAuthenticateRequest).auth_bytes
    if login is None:
        code, text = ErrorCode.ILLEGAL_SASL_STATE, "this listener is without SASL"
        exchange.reply(SaslAuthenticateResponse(error_code=code, error_message=text))
        return
    try:
        step = login.receive(bytes(message), broker.loop.now)
    except LoginInvalid as error:
        _refuse(broker, exchange, error)
        return
    if isinstance(step, Challenge):
        broker.loop.login_stepped(exchange.connection)
        exchange.reply(SaslAuthenticateResponse(auth_bytes=step.message))
    elif isinstance(step, Check):
        address = exchange.connection.address
        broker.loop.check(address, step.run, partial(_checked, broker, exchange, step))
    else:
        _complete(broker, exchange, step)


def _checked(broker: Broker, exchange: Exchange, check: Check, is_right: bool) -> None:
    login = exchange.connection.login
    assert login is not None
    if exchange.connection.closed:
        return
    try:
        proved = login.checked(check, is_right, broker.loop.now)
    except LoginInvalid as error:
        _refuse(broker, exchange, error)
    else:
        _complete(broker, exchange, proved)


def _complete(broker: Broker, exchange: Exchange, proved: Proved) -> None:
    connection, login = exchange.connection, exchange.connection.login
    assert login is not None
    assert login.identity is not None
    connection.authenticated(login.identity)
    broker.loop.admit_requests(connection)
    broker.access.log.login(login.mechanism)
    response = SaslAuthenticateResponse(
        auth_bytes=proved.message, session_lifetime_ms=login.session_ms
    )
    exchange.reply(response)


def _refuse(broker: Broker, exchange: Exchange, error: LoginInvalid) -> None:
    broker.access.login_failed(exchange.connection, error)
    code, text = ErrorCode.SASL_AUTHENTICATION_FAILED, REFUSED
    if isinstance(error, OutOfOrder):
        code, text = ErrorCode.ILLEGAL_SASL_STATE, str(error)
    response = SaslAuthenticateResponse(error_code=code, error_message=text)
    exchange.end("login_failed")
    delay_ms = broker.settings.failed_authentication_delay_ms

    def reply() -> None:
        exchange.reply(response)

    broker.loop.call_later(delay_ms, reply)


API = Api(ApiKey.SASL_AUTHENTICATE, handle)

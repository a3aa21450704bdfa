"""The login on one connection, without the socket: which request comes next (KIP-43, KIP-152, and
KIP-368 for logins that end).

    SaslHandshake -> SaslAuthenticate, as often as the mechanism wants -> the connection is ready
"""

from __future__ import annotations

from typing import Final

from skidway.kafka.client.calls import MessageCall
from skidway.kafka.errors import ErrorCode, KafkaError, error_for
from skidway.kafka.protocol.apis import ApiKey
from skidway.kafka.protocol.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from skidway.kafka.protocol.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from skidway.security.sasl import Exchange, Login

RENEWED_AT: Final = 0.85
"""The share of a login's life after which the client logs in again; other clients take 0.85 to
0.95."""


class LoginRefused(KafkaError):
    """The broker does not accept the client's login. place: where its password comes from."""

    def __init__(self, code: ErrorCode, text: str, place: str) -> None:
        super().__init__(code, text)
        self.place = place


class Authentication:
    """The logins on one connection, one after the other."""

    __slots__ = ("_exchange", "_login")

    def __init__(self, login: Login) -> None:
        self._login = login
        self._exchange: Exchange | None = None

    def begin(self) -> MessageCall:
        """Returns the first request of a new login. Raises ConfigurationRefused if the login cannot
        be said in the mechanism."""
        self._exchange = self._login.exchange()
        request = SaslHandshakeRequest(mechanism=self._login.mechanism)
        return MessageCall(ApiKey.SASL_HANDSHAKE, lambda _: request, SaslHandshakeResponse)

    def answered(
        self, response: SaslHandshakeResponse | SaslAuthenticateResponse
    ) -> MessageCall | float:
        """Returns the next request; or the seconds after which the client has to log in again, 0
        for never. Raises LoginRefused, and LoginFailed if the broker does not prove itself."""
        assert self._exchange is not None
        if isinstance(response, SaslHandshakeResponse):
            if response.error_code != ErrorCode.NONE:
                raise self._refused(
                    response.error_code, f"it has {', '.join(response.mechanisms) or 'none'}"
                )
            return _authenticate(self._exchange.first())
        if response.error_code != ErrorCode.NONE:
            raise self._refused(response.error_code, response.error_message)
        message = self._exchange.answer(response.auth_bytes)
        if message is not None:
            return _authenticate(message)
        return response.session_lifetime_ms / 1000 * RENEWED_AT

    def _refused(self, code: int, why: str | None) -> LoginRefused:
        login = self._login
        told = f"the broker refuses the login of {login.username} by {login.mechanism}"
        text = f"{told} ({login.place}): {why or 'no reason given'}"
        return LoginRefused(error_for(code).code, text, login.place)


def _authenticate(message: bytes) -> MessageCall:
    request = SaslAuthenticateRequest(auth_bytes=message)
    return MessageCall(ApiKey.SASL_AUTHENTICATE, lambda _: request, SaslAuthenticateResponse)

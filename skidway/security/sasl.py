"""The client's part of SASL's mechanisms, without I/O: PLAIN (RFC 4616) and SCRAM (RFC 5802, 7677).

exchange = Login("SCRAM-SHA-512", "ada", "secret").exchange()
send(exchange.first())
while (answer := exchange.answer(receive())) is not None: send(answer)
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import Final, Protocol

from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused, SkidwayError

SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS: Final = ("PLAIN", *SCRAM)
ITERATIONS_MAX: Final = 1_000_000
"""A server could keep a client busy with more: this takes it about half a second."""


_ITERATIONS: Final = re.compile(r"(?:^|,)i=(\d{1,18})(?:,|$)")


class LoginFailed(SkidwayError):
    """The server has not proved that it knows the password, or its message is not of the
    mechanism."""


class Exchange(Protocol):
    """The messages of one login."""

    def first(self) -> bytes:
        """Returns the first message."""
        ...

    def answer(self, challenge: bytes) -> bytes | None:
        """Returns the next message after the server's; None if there is none, because the server
        has proved itself. Raises LoginFailed."""
        ...


@dataclass(frozen=True, slots=True)
class Login:
    """Who logs in, and by which mechanism. place: where the password comes from, for messages."""

    mechanism: str
    username: str
    password: str = field(repr=False)
    place: str = ""

    def exchange(self) -> Exchange:
        """Returns the messages of a new login. Raises ConfigurationRefused if the user's name or
        the password has characters that SCRAM does not allow."""
        return _Plain(self) if self.mechanism == "PLAIN" else _Scram(self)


class _Plain:
    def __init__(self, login: Login) -> None:
        self._login = login

    def first(self) -> bytes:
        return f"\0{self._login.username}\0{self._login.password}".encode()

    def answer(self, challenge: bytes) -> bytes | None:
        return None


class _Scram:
    def __init__(self, login: Login) -> None:
        from scramp import ScramClient, ScramException  # few programs need it

        self._errors = (ScramException, ValueError, KeyError)
        try:
            self._client = ScramClient([login.mechanism], login.username, login.password)
        except self._errors as error:
            raise ConfigurationRefused(f"sasl.username, sasl.password.location: {error}") from error
        self._is_answered = False

    def first(self) -> bytes:
        return str(self._client.get_client_first()).encode()

    def answer(self, challenge: bytes) -> bytes | None:
        try:
            text = challenge.decode()
            if self._is_answered:
                self._client.set_server_final(text)
                return None
            self._is_answered = True
            iterations = _ITERATIONS.search(text)
            if iterations and int(iterations[1]) > ITERATIONS_MAX:
                raise LoginFailed(f"the server asks for {iterations[1]} iterations of SCRAM")
            self._client.set_server_first(text)
            return str(self._client.get_client_final()).encode()
        except self._errors as error:
            raise LoginFailed(f"the server's message is not of SCRAM: {error}") from error

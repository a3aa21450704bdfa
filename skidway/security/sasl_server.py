"""The server's part of SASL's mechanisms, without I/O: PLAIN (RFC 4616) and SCRAM (RFC 5802, 7677).

    exchange = begin("SCRAM-SHA-512", find)
    while isinstance(step := exchange.receive(message), Challenge): send(step.message)

A step may be a `Check`: its `run` takes a millisecond or more, so a thread does it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from skidway.dataclass import dataclass
from skidway.errors import SkidwayError
from skidway.security.sasl import SCRAM
from skidway.security.scram_credential import ScramCredential

FindCredential = Callable[[str, str], ScramCredential | None]
"""Returns a user's credential, by user and mechanism; None if there is none."""

MESSAGE_BYTES_MAX: Final = 1 << 10
"""The longest message of a client. SCRAM normalises names, which takes long for long ones."""


NO_USER: Final = "there is no such user"


class LoginInvalid(SkidwayError):
    """The client has not proved who it is. user: who it says to be, if that is known."""

    def __init__(self, reason: str, user: str = "") -> None:
        super().__init__(reason)
        self.user = user


@dataclass(frozen=True, slots=True)
class Challenge:
    """The next message for the client, which has to answer it."""

    message: bytes


@dataclass(frozen=True, slots=True)
class Proved:
    """The client is this user, by this credential. message: the last one of the mechanism."""

    user: str
    credential: ScramCredential
    message: bytes = b""


@dataclass(frozen=True, slots=True)
class Check:
    """A password to check against a credential, in a thread."""

    user: str
    credential: ScramCredential
    run: Callable[[], bool]


class ServerExchange(Protocol):
    """The messages of one login."""

    def receive(self, message: bytes) -> Challenge | Check | Proved:
        """Takes the client's next message. Raises LoginInvalid."""
        ...


def begin(mechanism: str, find: FindCredential) -> ServerExchange:
    """Begins a login by one of `sasl.MECHANISMS`."""
    return _Plain(find) if mechanism == "PLAIN" else _Scram(mechanism, find)


class _Plain:
    def __init__(self, find: FindCredential) -> None:
        self._find = find

    def receive(self, message: bytes) -> Check:
        parts = message.split(b"\0") if len(message) <= MESSAGE_BYTES_MAX else []
        if len(parts) != 3 or not parts[1] or not parts[2]:
            raise LoginInvalid("its message is not of PLAIN")
        try:
            acts_for, user, password = (each.decode() for each in parts)
        except UnicodeDecodeError as error:
            raise LoginInvalid("its name or password is not UTF-8") from error
        if acts_for not in ("", user):
            raise LoginInvalid("it logs in for another user", user)
        found = (self._find(user, each) for each in reversed(SCRAM))
        credential = next((each for each in found if each is not None), None)
        if credential is None:
            raise LoginInvalid(NO_USER, user)
        return Check(user, credential, lambda: credential.matches(password))


class _Scram:
    def __init__(self, mechanism: str, find: FindCredential) -> None:
        from scramp import ScramException, ScramMechanism  # few programs need it

        self._errors = (ScramException, ValueError, KeyError)
        self._mechanism, self._find = mechanism, find
        self._user, self._is_begun = "", False
        self._found: ScramCredential | None = None
        self._server = ScramMechanism(mechanism).make_server(self._credential)

    def receive(self, message: bytes) -> Challenge | Proved:
        if len(message) > MESSAGE_BYTES_MAX:
            raise LoginInvalid(f"its message has {len(message)} bytes", self._user)
        try:
            text = message.decode()
            if not self._is_begun:
                self._is_begun = True
                self._server.set_client_first(text)
                return Challenge(str(self._server.get_server_first()).encode())
            self._server.set_client_final(text)
            answer = str(self._server.get_server_final()).encode()
        except self._errors as error:
            raise LoginInvalid(self._why(error), self._user) from error
        assert self._found is not None
        return Proved(self._user, self._found, answer)

    def _why(self, error: Exception) -> str:
        if self._user and self._found is None:
            return NO_USER
        is_wrong = str(error).endswith("invalid-proof")
        return "the password is wrong" if is_wrong else f"its message is not of SCRAM: {error}"

    def _credential(self, user: str) -> tuple[bytes, bytes, bytes, int] | None:
        self._user = user
        found = self._found = self._find(user, self._mechanism)
        if found is None:
            return None
        return found.salt, found.stored_key, found.server_key, found.iterations

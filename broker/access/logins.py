"""The logins on a connection with SASL, as a state machine: which requests a connection may send
now, and who it is (KIP-43, KIP-152; KIP-368 for logins that end).

    NEW       -- SaslHandshake -->                  BEGUN
    BEGUN     -- SaslAuthenticate, several times -> CHECKING (PLAIN), READY
    CHECKING  -- the password is right -->          READY
    READY     -- SaslHandshake, again -->           BEGUN

Everything else is FAILED, after which the connection serves nothing any more. Only READY, and not
after the end of its login, lets a request through to its handler.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Final

from skidway.broker.access.identity import Identity
from skidway.kafka.protocol.apis import ApiKey
from skidway.security import sasl_server
from skidway.security.sasl_server import (
    Challenge,
    Check,
    LoginInvalid,
    Proved,
    ServerExchange,
)
from skidway.security.scram_credential import ScramCredential

Users = Mapping[str, Mapping[str, ScramCredential]]
"""The credentials of each user, by mechanism."""

AGAIN_AFTER_S: Final = 1.0
"""A connection may log in again this long after it has begun to log in again, as in Kafka."""
SESSION_MS_MIN: Final = 2_000
"""Clients log in again when 85 % of a login's time is over."""
_OF_LOGIN: Final = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)


class State(Enum):
    """See the module's docstring."""

    NEW = "new"
    BEGUN = "begun"
    CHECKING = "checking"
    READY = "ready"
    FAILED = "failed"


class OutOfOrder(LoginInvalid):
    """The request may not come now (ILLEGAL_SASL_STATE)."""


class UnknownMechanism(LoginInvalid):
    """The broker does not have this mechanism (UNSUPPORTED_SASL_MECHANISM)."""


class Logins:
    """How clients may log in, and the credentials of the users."""

    def __init__(self, mechanisms: Sequence[str], session_ms_max: int) -> None:
        """session_ms_max: after this time, clients have to log in again; 0 for never."""
        self.mechanisms = tuple(mechanisms)
        self.session_ms_max = session_ms_max
        self.users: Users = {}

    def begin(self, mechanism: str) -> ServerExchange:
        """Begins a login. Raises UnknownMechanism."""
        if mechanism not in self.mechanisms:
            raise UnknownMechanism(f"it logs in by {mechanism}, which is not enabled")
        return sasl_server.begin(mechanism, self.credential)

    def credential(self, user: str, mechanism: str) -> ScramCredential | None:
        """Returns what a user has now for a mechanism of SCRAM; None if there is nothing."""
        return self.users.get(user, {}).get(mechanism)


class Login:
    """The logins on one connection, one after the other. Times are in s (monotonic)."""

    __slots__ = ("_exchange", "_logins", "_renewed_at", "ends_at", "identity", "mechanism", "state")

    def __init__(self, logins: Logins) -> None:
        self.state = State.NEW
        self.mechanism = ""
        self.identity: Identity | None = None
        """Who the client is; None before its first login is complete."""
        self._logins = logins
        self._exchange: ServerExchange | None = None
        self._renewed_at = -math.inf
        self.ends_at = math.inf
        """When the client has to have logged in again."""

    def admits(self, key: ApiKey, now: float) -> bool:
        """Returns whether a request of this API may go to its handler now. Those of the login
        always may: `handshake` and `receive` say whether they come in order."""
        if key in _OF_LOGIN:
            return True
        if self.state is State.READY:
            return now < self.ends_at
        return self.state is State.NEW and key is ApiKey.API_VERSIONS

    def handshake(self, mechanism: str, now: float) -> None:
        """Takes a SaslHandshake. Raises LoginInvalid."""
        with self._or_fail():
            self._begin(mechanism, now)

    def receive(self, message: bytes, now: float) -> Challenge | Check | Proved:
        """Takes a SaslAuthenticate. After a `Check`, `checked` must be called. Raises
        LoginInvalid."""
        with self._or_fail():
            if self.state is not State.BEGUN or self._exchange is None:
                raise OutOfOrder("a SaslAuthenticate without a SaslHandshake")
            step = self._exchange.receive(message)
            if isinstance(step, Check):
                self.state = State.CHECKING
            elif isinstance(step, Proved):
                self._complete(step, now)
        return step

    def checked(self, check: Check, is_right: bool, now: float) -> Proved:
        """Takes the outcome of a `Check`. Raises LoginInvalid."""
        with self._or_fail():
            if not is_right:
                raise LoginInvalid("the password is wrong, or there is no such user", check.user)
            proved = Proved(check.user, check.credential)
            self._complete(proved, now)
        return proved

    @property
    def session_ms(self) -> int:
        """Returns after how many ms the client has to log in again; 0 for never."""
        return self._logins.session_ms_max

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms by which clients may log in."""
        return self._logins.mechanisms

    @contextlib.contextmanager
    def _or_fail(self) -> Iterator[None]:
        try:
            yield
        except LoginInvalid:
            self.state = State.FAILED
            raise

    def _begin(self, mechanism: str, now: float) -> None:
        if self.state is State.READY:
            if now - self._renewed_at < AGAIN_AFTER_S:
                raise OutOfOrder("it logs in again within a second", self._user())
            if mechanism != self.mechanism:
                raise OutOfOrder(f"it logs in again by {mechanism}", self._user())
            self._renewed_at = now
        elif self.state is not State.NEW:
            raise OutOfOrder("a second SaslHandshake before the login is complete")
        self._exchange = self._logins.begin(mechanism)
        self.mechanism, self.state = mechanism, State.BEGUN

    def _complete(self, proved: Proved, now: float) -> None:
        user, credential = proved.user, proved.credential
        if self._logins.credential(user, credential.mechanism) != credential:
            raise LoginInvalid("its password was replaced, or the user removed, meanwhile", user)
        if self.identity is not None and self.identity.user != user:
            raise LoginInvalid(f"{self.identity.user} logs in again as another user", user)
        self.identity = Identity(f"User:{user}", user=user)
        self.state, self._exchange = State.READY, None
        self.ends_at = now + self.session_ms / 1000 if self.session_ms else math.inf

    def _user(self) -> str:
        return "" if self.identity is None else self.identity.user or ""

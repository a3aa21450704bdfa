"""Checks HTTP basic authentication (RFC 7617), before any other work on a request."""

from __future__ import annotations

import asyncio
import base64
import binascii
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from prometheus_client import Counter
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from skidway.schemas.registry.passwords import Users
from skidway.schemas.registry.refusals import too_busy, unauthorized
from skidway.schemas.registry.rest.answers import refused

CHECK_THREADS: Final = 2
CHECKS_MAX: Final = 64
"""At most this many checks of passwords run or wait at the same time. Without this limit, a client
that tries many passwords could make other clients wait for long."""
HEADER_BYTES_MAX: Final = 4096

_refused = Counter(
    "skidway_schemas_authentications_refused", "Requests without a user or with a wrong password."
)


class BasicAuthentication:
    """Passes a request on to the application if the request has the name and the password of a
    user. Otherwise, answers with 401. If too many passwords wait to be checked, answers with
    503."""

    def __init__(self, app: ASGIApp, users: Users, realm: str) -> None:
        self._app = app
        self._users = users
        quoted = realm.replace("\\", "\\\\").replace('"', '\\"')
        self._challenge = f'Basic realm="{quoted}", charset="UTF-8"'.encode("ascii", "replace")
        self._threads = ThreadPoolExecutor(CHECK_THREADS, "registry-passwords")
        self._checking = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        given = credentials(scope)
        if given is not None and not self._users.is_remembered(*given):
            if self._checking >= CHECKS_MAX:
                await refused(too_busy())(scope, receive, send)
                return
            given = given if await self._check(*given) else None
        if given is not None:
            await self._app(scope, receive, send)
            return
        _refused.inc()
        await refused(unauthorized())(scope, receive, self._with_challenge(send))

    async def _check(self, name: str, password: str) -> bool:
        self._checking += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, self._users.check, name, password)
        finally:
            self._checking -= 1

    def _with_challenge(self, send: Send) -> Send:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message["headers"], (b"www-authenticate", self._challenge)]
                message = {**message, "headers": headers}
            await send(message)

        return sent


def credentials(scope: Scope) -> tuple[str, str] | None:
    """Returns user and password of a request. Returns None if the request has none, or if they
    cannot be read."""
    for name, value in scope["headers"]:
        if name.lower() == b"authorization" and len(value) <= HEADER_BYTES_MAX:
            method, _, encoded = value.partition(b" ")
            try:
                user, colon, password = base64.b64decode(encoded.strip()).decode().partition(":")
            except (binascii.Error, UnicodeDecodeError):
                return None
            return (user, password) if method.lower() == b"basic" and colon else None
    return None

"""Limits of requests, as layers around an ASGI application: for whom the server answers, how large
and how slow a body may be, and how many requests run at once.

A request counts as running from the end of its body to the beginning of its answer, so clients that
send half a body, or do not read, do not keep others out. All bodies that arrive together have
`BODIES_BYTES_MAX` of memory. If they need more, the one gives way that began first, of the address
with the most of it.
"""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from skidway.holders import Holders
from skidway.http.hosts import STATUS, AllowedHosts
from skidway.http.refusals import refusal
from skidway.reached_bounds import ReachedBounds

BODY_WITHIN_S: Final = 30.0
"""A body must arrive within this many seconds."""
BODIES_BYTES_MAX: Final = 64 << 20
BODY_METHODS: Final = ("POST", "PUT")


class ForHosts:
    """Refuses requests for other hosts than those that are allowed."""

    def __init__(self, app: ASGIApp, hosts: AllowedHosts, media_type: str) -> None:
        self._app = app
        self._hosts = hosts
        self._media_type = media_type

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        app, local = self._app, (scope.get("server") or ("",))[0]
        host = next((value for name, value in scope["headers"] if name == b"host"), None)
        header = None if host is None else host.decode("latin-1")
        if header is not None and not self._hosts.allows(header, local):
            sentence = self._hosts.refusal(header)
            app = refusal("host", STATUS, sentence, self._media_type)
        await app(scope, receive, send)


class AtMost:
    """Limits how many requests run at once. Refuses further requests, which clients may send again
    later."""

    def __init__(self, app: ASGIApp, limit: int, media_type: str) -> None:
        self._app = app
        self._limit = self._left = limit
        self._media_type = media_type
        self._bounds = ReachedBounds()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if self._left <= 0:
            self._bounds.tell("requests at once", self._limit)
            sentence = "The server has too many requests at once, try again later"
            await refusal("busy", 503, sentence, self._media_type)(scope, receive, send)
            return
        self._left -= 1
        is_running = True

        def end() -> None:
            nonlocal is_running
            self._left += is_running
            is_running = False

        async def answer(message: Message) -> None:
            end()  # what is left waits only for the client, who may not read
            await send(message)

        try:
            await self._app(scope, receive, answer)
        finally:
            end()


class WholeBody:
    """Receives the bodies of POST and PUT before the application is called."""

    def __init__(self, app: ASGIApp, bytes_max: int, media_type: str) -> None:
        self._app = app
        self._bytes_max = bytes_max
        self._media_type = media_type
        self._bodies: Holders[asyncio.Timeout] = Holders(BODIES_BYTES_MAX)
        self._bounds = ReachedBounds()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["method"] not in BODY_METHODS:
            await self._app(scope, receive, send)
            return
        body = bytearray()
        try:
            await self._fill(body, scope, receive)
        except EOFError:
            return  # nobody is there any more
        except TimeoutError:
            sentence = f"The request body did not come within {BODY_WITHIN_S:g} s, or others needed"
            sentence += " its memory; try again"
            await refusal("slow", 408, sentence, self._media_type)(scope, receive, send)
            return
        if len(body) > self._bytes_max:
            sentence = f"The request body is larger than {self._bytes_max} bytes"
            await refusal("large", 413, sentence, self._media_type)(scope, receive, send)
            return
        await self._app(scope, _repeat(bytes(body), receive), send)

    async def _fill(self, body: bytearray, scope: Scope, receive: Receive) -> None:
        address = (scope.get("client") or ("",))[0]
        async with asyncio.timeout(BODY_WITHIN_S) as timeout:
            try:
                more = True
                while more and len(body) <= self._bytes_max:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise EOFError
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    self._bodies.hold(timeout, address, len(body))
                    self._make_room()
            finally:
                self._bodies.release(timeout)

    def _make_room(self) -> None:
        while (first := self._bodies.gives_way()) is not None:
            self._bounds.tell("request bodies", BODIES_BYTES_MAX)
            self._bodies.release(first)
            first.reschedule(0)  # a moment that has passed


def _repeat(body: bytes, receive: Receive) -> Receive:
    """Returns a function that receives the body, and then what comes after it."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again

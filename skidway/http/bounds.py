"""Limits of requests, as layers around an ASGI application: for whom the server answers, how large
and how slow a body may be, and how many requests run at once.

A request counts as running from the end of its body to the beginning of its answer, so clients that
send half a body, or do not read, do not keep others out. Requests wait for a place (see `Turns`);
one whose client has left meanwhile does not run. All bodies that arrive together have
`BODIES_BYTES_MAX` of memory. If they need more, the one gives way that began first, of the address
with the most of it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Final

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from skidway.errors import SkidwayError
from skidway.holders import Holders
from skidway.http.hosts import STATUS, AllowedHosts
from skidway.http.refusals import refusal
from skidway.reached_bounds import ReachedBounds
from skidway.turns import Turns

BODY_WITHIN_S: Final = 30.0
"""A body must arrive within this many seconds."""
BODIES_BYTES_MAX: Final = 64 << 20


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
    """Limits how many requests run at once, and how many wait for their turn. The application gets
    the first message only: the whole body, if it is within `WholeBody`."""

    def __init__(self, app: ASGIApp, at_once: int, waiting_max: int, media_type: str) -> None:
        self._app = app
        self._places = Places(at_once, waiting_max)
        self._media_type = media_type

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        first = await receive()
        try:
            async with self._places.turn(scope, receive) as end:

                async def answer(message: Message) -> None:
                    end()  # what is left waits only for the client, who may not read
                    await send(message)

                await self._app(scope, _after(first, receive), answer)
        except NoTurn as error:
            await error.answer(self._media_type)(scope, receive, send)


class NoTurn(SkidwayError):
    """Raised in a request that does not run. reason: `busy`, if too many wait; `left`, if its
    client has left."""

    status = 503

    def __init__(self, reason: str) -> None:
        super().__init__("The server has too many requests at once, try again later")
        self.reason = reason

    def answer(self, media_type: str) -> Response:
        """Returns the answer, and counts it."""
        return refusal(self.reason, self.status, str(self), media_type)


class Places:
    """Places for requests that run, which clients of all addresses get in turns."""

    def __init__(self, at_once: int, waiting_max: int) -> None:
        self._turns: Turns[asyncio.Future[None]] = Turns(at_once, waiting_max)
        self._waiting_max = waiting_max
        self._bounds = ReachedBounds()

    @contextlib.asynccontextmanager
    async def turn(self, scope: Scope, receive: Receive) -> AsyncIterator[Callable[[], None]]:
        """Waits for a place, which the request has until the block ends, or until it calls what the
        block is given. receive: only tells that the client has left, as the body has arrived.
        Raises `NoTurn`.
        """
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def end() -> None:
            self._turns.leave(turn)
            self._next()

        self._turns.wait(turn, _address(scope))
        try:
            self._next()
            await _until_left(turn, receive)
            if turn.cancelled() or not turn.done():
                raise NoTurn("busy" if turn.cancelled() else "left")
            yield end
        finally:
            end()

    def _next(self) -> None:
        while (begins := self._turns.begin()) is not None:
            begins.set_result(None)
        while (first := self._turns.gives_way()) is not None:
            self._bounds.tell("requests that wait", self._waiting_max)
            self._turns.leave(first)
            first.cancel()


async def _until_left(turn: asyncio.Future[None], receive: Receive) -> None:
    async def left() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    if turn.done():
        return
    leaves = asyncio.create_task(left())
    try:
        await asyncio.wait((turn, leaves), return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaves.cancel()


def _address(scope: Scope) -> str:
    return str((scope.get("client") or ("",))[0])


class WholeBody:
    """Receives the bodies of requests before the application is called."""

    def __init__(self, app: ASGIApp, bytes_max: int, media_type: str) -> None:
        self._app = app
        self._bytes_max = bytes_max
        self._media_type = media_type
        self._bodies: Holders[asyncio.Timeout] = Holders(BODIES_BYTES_MAX)
        self._bounds = ReachedBounds()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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
        await self._app(scope, _after(_whole(body), receive), send)

    async def _fill(self, body: bytearray, scope: Scope, receive: Receive) -> None:
        address = _address(scope)
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


def _whole(body: bytearray) -> Message:
    return {"type": "http.request", "body": bytes(body), "more_body": False}


def _after(first: Message, receive: Receive) -> Receive:
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return first

    return again

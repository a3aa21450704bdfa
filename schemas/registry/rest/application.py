"""The ASGI application: routes, threads, and the limits and errors of all requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from prometheus_client import Counter, Histogram
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from skidway.errors import SkidwayError
from skidway.http.bounds import NoTurn, Places, WholeBody
from skidway.schemas.registry.answering import MustWait, Registry
from skidway.schemas.registry.refusals import NotFound, Refusal
from skidway.schemas.registry.rest.answers import (
    good,
    on_http_error,
    on_skidway_error,
    on_unexpected,
)
from skidway.schemas.registry.rest.call import read_call
from skidway.schemas.registry.rest.headers import CONTENT_TYPE
from skidway.schemas.registry.rest.routes import ROUTES, Answering, with_fixed_mode
from skidway.schemas.registry.store import Store

BODY_BYTES_MAX: Final = 1 << 20
"""A request body has at most this many bytes."""
WAITING_MAX: Final = 500
"""At most this many requests wait for each group of threads. If one more does, one gets 503, and
its client tries again."""
LARGE_BYTES: Final = 64 << 10
"""A request with a longer body is large. The schemas of most programs are far shorter. Parsed, a
body takes up to fifty times its bytes, and a second."""
LARGE_AT_ONCE: Final = 2
LARGE_WAITING_MAX: Final = 16
"""How many large requests each group of threads answers at once, and how many wait."""
MEMORY_THREADS: Final = 8
LOG_THREADS: Final = 8
"""The number of threads for requests that write to the registry's log in ZooKeeper, or read new
entries from it. Only one of these threads talks to ZooKeeper at a time, and the others wait."""

_requests = Counter("skidway_schemas_requests", "Requests answered.", ["method", "route", "status"])
_seconds = Histogram("skidway_schemas_request_seconds", "Time to answer.", ["method", "route"])


def application(store: Store, *, mode_mutability: bool = True) -> ASGIApp:
    """Returns the registry's ASGI application. `mode_mutability` says whether requests may change
    modes."""
    threads = _Threads(store)
    routes = ROUTES if mode_mutability else tuple(map(with_fixed_mode, ROUTES))
    app = Starlette(
        routes=[
            Route(each.path, _endpoint(threads, each), methods=[each.method]) for each in routes
        ],
        exception_handlers={
            HTTPException: on_http_error,
            SkidwayError: on_skidway_error,
            Exception: on_unexpected,
        },
    )
    app.router.redirect_slashes = False
    return WholeBody(_RawPath(app), BODY_BYTES_MAX, CONTENT_TYPE)


class _RawPath:
    """Passes the path of a request to Starlette undecoded, so that %2F in a subject is no
    separator."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path = scope["raw_path"].decode("latin-1").partition("?")[0]
            scope = {**scope, "path": path.rstrip("/") or "/"}
        await self._app(scope, receive, send)


class _Group:
    """Threads that answer requests. A request's body is parsed when a thread is free for it,
    because parsed it takes many times its bytes."""

    def __init__(self, name: str, threads_count: int) -> None:
        self._threads = ThreadPoolExecutor(threads_count + LARGE_AT_ONCE, name)
        self._small = Places(threads_count, WAITING_MAX)
        self._large = Places(LARGE_AT_ONCE, LARGE_WAITING_MAX)

    async def answer(self, route: Answering, registry: Registry, request: Request) -> Any:
        body = await request.body()
        places = self._large if len(body) > LARGE_BYTES else self._small
        loop = asyncio.get_running_loop()
        async with places.turn(request.scope, request.receive):
            return await loop.run_in_executor(
                self._threads, lambda: route.answer(registry, read_call(request, body))
            )


class _Threads:
    """Two groups of threads. The first group answers from memory. The other group answers the
    requests that need the registry's log in ZooKeeper, and may have to wait."""

    def __init__(self, store: Store) -> None:
        self._store, self._remembered = store, store.memory
        self._memory = _Group("registry-memory", MEMORY_THREADS)
        self._log = _Group("registry-log", LOG_THREADS)

    async def answer(self, route: Answering, request: Request) -> Any:
        """Returns the answer of the function `route` to the request. Raises refusals."""
        if not route.waits:
            try:
                return await self._memory.answer(route, self._remembered, request)
            except (MustWait, NotFound):
                pass  # ask again below, because newer entries of the log may have the answer
        return await self._log.answer(route, self._store, request)


def _endpoint(threads: _Threads, route: Answering) -> Callable[[Request], Awaitable[Response]]:
    async def answered(request: Request) -> Response:
        begin = time.perf_counter()
        status = 500
        try:
            response = good(await threads.answer(route, request), request)
            status = 200
        except (Refusal, NoTurn) as refusal:
            status = refusal.status
            raise
        finally:
            _requests.labels(request.method, route.path, status).inc()
            _seconds.labels(request.method, route.path).observe(time.perf_counter() - begin)
        return response

    return answered

"""The ASGI application: routes, threads, and the limits and errors of all requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Final

from prometheus_client import Counter, Histogram
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from skidway.errors import SkidwayError
from skidway.http.bounds import AtMost, WholeBody
from skidway.schemas.registry.answering import MustWait, Registry
from skidway.schemas.registry.refusals import NotFound, Refusal
from skidway.schemas.registry.rest.answers import (
    good,
    on_http_error,
    on_skidway_error,
    on_unexpected,
)
from skidway.schemas.registry.rest.call import Call, read_call
from skidway.schemas.registry.rest.headers import CONTENT_TYPE
from skidway.schemas.registry.rest.routes import ROUTES, Answering, with_fixed_mode
from skidway.schemas.registry.store import Store

BODY_BYTES_MAX: Final = 4 << 20
"""A request body has at most this many bytes. The limit is high enough for the largest schema that
the store accepts, even if every quote in the schema is escaped."""
REQUESTS_MAX: Final = 500
"""At most this many requests run at once. The registry answers further requests with 503, and
clients try again."""
MEMORY_THREADS: Final = 8
LOG_THREADS: Final = 32
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
    bound = AtMost(_RawPath(app), REQUESTS_MAX, CONTENT_TYPE)
    return WholeBody(bound, BODY_BYTES_MAX, CONTENT_TYPE)


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


class _Threads:
    """Two groups of threads that answer requests. The first group answers from memory. The other
    group answers the requests that need the registry's log in ZooKeeper, and may have to wait."""

    def __init__(self, store: Store) -> None:
        self._store, self._remembered = store, store.memory
        self._memory = ThreadPoolExecutor(MEMORY_THREADS, "registry-memory")
        self._log = ThreadPoolExecutor(LOG_THREADS, "registry-log")

    async def answer(self, route: Answering, call: Call) -> Any:
        """Returns the answer of the function `route` to the request `call`. Raises refusals."""
        if not route.waits:
            try:
                return await _on(self._memory, route, self._remembered, call)
            except (MustWait, NotFound):
                pass  # ask again below, because newer entries of the log may have the answer
        return await _on(self._log, route, self._store, call)


async def _on(threads: Executor, route: Answering, registry: Registry, call: Call) -> Any:
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(threads, route.answer, registry, call)


def _endpoint(threads: _Threads, route: Answering) -> Callable[[Request], Awaitable[Response]]:
    async def answered(request: Request) -> Response:
        begin = time.perf_counter()
        status = 500
        try:
            response = good(await threads.answer(route, await read_call(request)), request)
            status = 200
        except Refusal as refusal:
            status = refusal.status
            raise
        finally:
            _requests.labels(request.method, route.path, status).inc()
            _seconds.labels(request.method, route.path).observe(time.perf_counter() - begin)
        return response

    return answered

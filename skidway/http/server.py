"""Runs the HTTP server of an application: uvicorn, with limits that uvicorn itself lacks.

uvicorn itself waits without a time limit for the head of a request, and for a client that does not
read its answer. When uvicorn refuses a request, its answer is plain text. In this server, the head
of a request must arrive within a time limit (`HEAD_WITHIN_S`). If a client has not read its whole
answer `KEEP_ALIVE_S` + `HEAD_WITHIN_S` seconds after the answer was made, the server gives the
client more time, but closes the connection when the client reads nothing for `HEAD_WITHIN_S`
seconds. A connection asks for one answer at a time; one that asks for more is closed behind the
first. At most `CONNECTIONS_MAX` connections with http, and as many with https, wait for their
clients. If one more does, the oldest of them gives way, of the address with the most; so a client
that connects and sends its request at once is answered. Every refusal is JSON (see `refusals`).
"""

from __future__ import annotations

import asyncio
import contextlib
import http
import resource
import socket
import ssl
from asyncio import sslproto
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from skidway import log
from skidway.holders import Holders
from skidway.http.bounds import ForHosts
from skidway.http.counts import closed_connections
from skidway.http.hosts import AllowedHosts
from skidway.http.refusals import content
from skidway.rare_lines import RareLines
from skidway.reached_bounds import ReachedBounds
from skidway.security.contexts import Contexts
from skidway.security.tls_reasons import tls_reason
from skidway.service import Shutdown

CONNECTIONS_MAX: Final = 2000
HEAD_BYTES_MAX: Final = 32 << 10
HEAD_WITHIN_S: Final = 10.0
"""The longest time in seconds from the start of a connection to the end of its first request's
head. If the connection stays open for further requests, the head of each of them may take
`KEEP_ALIVE_S` longer, because the client may pause between two requests."""
KEEP_ALIVE_S: Final = 30
STOP_WITHIN_S: Final = 5
MEDIA_TYPE: Final = "application/json"
"""The media type of refusals if the program has none of its own."""
LOOK_FOR_CERTIFICATES_EVERY_S: Final = 2.0
BARREN_READS_MAX: Final = 200
"""As often, bytes of a client may come without completing a record with data."""
TLS_BYTES: Final = 1 << 14
"""A connection with TLS receives at most this many bytes at once. asyncio's 256 KiB may be so many
records that others wait for a quarter of a second."""

_log = log.get(__name__)


class Config(uvicorn.Config):
    """uvicorn's configuration, and what the connections of a server share."""

    def __init__(self, app: ASGIApp, media_type: str) -> None:
        self.media_type = media_type
        self.waiting: Holders[Protocol] = Holders(CONNECTIONS_MAX)
        """The connections on which no request is being answered."""
        self.bounds = ReachedBounds()
        super().__init__(
            app,
            http=Protocol,
            log_config=None,
            access_log=False,
            lifespan="off",
            server_header=False,
            headers=[("x-content-type-options", "nosniff")],
            ws="none",
            timeout_keep_alive=KEEP_ALIVE_S,
            h11_max_incomplete_event_size=HEAD_BYTES_MAX,
            timeout_graceful_shutdown=STOP_WITHIN_S,
        )
        self.load()


class Protocol(H11Protocol):
    """The uvicorn protocol object of one connection, with our limits."""

    config: Config
    _head: asyncio.TimerHandle | None = None
    _unsent = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See asyncio."""
        super().connection_made(transport)
        self._note()
        self._expect_head(HEAD_WITHIN_S)

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_no_head()
        self.config.waiting.release(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._note()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._note()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._note()

    def on_response_complete(self) -> None:
        """Called by uvicorn after each answer. Starts a timer for the head of the next request,
        because uvicorn's own timer already stops at the first byte of that head. If the client has
        sent more before it got this answer (pipelining, which no client of ours does), closes the
        connection instead: one connection could otherwise ask for thousands of answers at once."""
        self._note()
        self._unsent = 0
        if self.conn.their_state is h11.DONE and self.conn.trailing_data[0]:
            self._expect_head(HEAD_WITHIN_S)
            closed_connections.labels("pipelined").inc()
            self.transport.close()
        super().on_response_complete()
        if not self.transport.is_closing():
            self._expect_head(KEEP_ALIVE_S + HEAD_WITHIN_S)

    def _note(self) -> None:
        """Notes whether the connection waits for its client: for a whole request, or for somebody
        who reads the answer. It keeps its place among the others while a request is answered, so
        that a client who asks again and again is not taken for a new one."""
        if self.transport.is_closing():
            return
        cycle, waiting = self.cycle, self.config.waiting
        is_answering = cycle is not None and not (cycle.response_complete or cycle.more_body)
        waits = not is_answering or self.flow.write_paused
        waiting.hold(self, self.client[0] if self.client else "", int(waits))
        while (first := waiting.gives_way()) is not None:
            self.config.bounds.tell("connections", waiting.limit)
            first._end("gave_way")

    def _end(self, reason: str) -> None:
        closed_connections.labels(reason).inc()
        self.config.waiting.release(self)
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Answers with an error in our form if the received bytes are not HTTP."""
        status = http.HTTPStatus.BAD_REQUEST
        body = content(status.value, msg)
        headers = [
            (b"content-type", self.config.media_type.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        events = (
            h11.Response(status_code=status, headers=headers, reason=status.phrase.encode()),
            h11.Data(data=body),
            h11.EndOfMessage(),
        )
        for event in events:
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _expect_head(self, within_s: float) -> None:
        self._expect_no_head()
        self._head = self.loop.call_later(within_s, self._no_head)

    def _expect_no_head(self) -> None:
        if self._head is not None:
            self._head.cancel()

    def _no_head(self) -> None:
        """Called when the time limit for a request's head is over. Closes the connection if the
        whole head has not arrived. Does not close the connection while the application is
        still answering a request, or while the client is still reading the answer.

        The time limit begins again after each answer. The connection of a slow client stays open as
        long as the client continues to read.
        """
        if self.cycle is not None and not self.cycle.response_complete:
            return
        before, unsent = self._unsent, self.transport.get_write_buffer_size()
        self._unsent = unsent
        if unsent and (not before or unsent < before):
            self._expect_head(HEAD_WITHIN_S)
        else:
            self._end("unread" if unsent else "slow")


class Newest:
    """What asyncio takes for a context, and keeps: each connection gets the context of the files as
    they are then. So a replaced certificate, authority or revocation list needs no restart, and
    sessions that began with the older files cannot be resumed."""

    def __init__(self, tls: Contexts) -> None:
        self._tls = tls
        self._lines = RareLines("handshake_failed")

    def wrap_bio(self, *args: Any, **named: Any) -> ssl.SSLObject:
        """See ssl.SSLContext."""
        context = self._tls.get()
        context.sslobject_class = Bounded
        made = cast("Bounded", context.wrap_bio(*args, **named))
        made.on_failure = self._tell
        return made

    def _tell(self, error: ssl.SSLError) -> None:
        closed_connections.labels("handshake").inc()
        reason = tls_reason(error)
        self._lines.tell(reason, reason=reason)


class Bounded(ssl.SSLObject):
    """TLS of a connection that is closed if the client sends only records that are no data, such as
    renegotiations: OpenSSL answers them without a word to the application.

    asyncio tells nobody that a handshake has failed, neither the client nor the application. (Nor
    does it say whose it is, so the log has no address.)"""

    on_failure: Callable[[ssl.SSLError], None]
    _failure: ssl.SSLError | None = None
    _barren = 0

    def do_handshake(self) -> None:
        """See ssl.SSLObject. When the handshake fails, asks for more first, because asyncio then
        sends what is there: the alert that tells the client why."""
        if self._failure is not None:
            raise self._failure
        try:
            super().do_handshake()
        except ssl.SSLWantReadError:
            raise
        except ssl.SSLError as error:
            self._failure = error
            self.on_failure(error)
            raise ssl.SSLWantReadError from error

    def read(self, len: int = 1024, buffer: Any = None) -> Any:
        """See ssl.SSLObject."""
        try:
            found = super().read(len, buffer)
        except ssl.SSLWantReadError:
            self._barren += 1
            if self._barren > BARREN_READS_MAX:
                raise ConnectionAbortedError("only records of TLS without data") from None
            raise
        self._barren = 0
        return found


class Server(uvicorn.Server):
    """A uvicorn server on sockets that the program opened. It does not handle signals, because
    `skidway.service` handles them."""

    def __init__(
        self,
        app: ASGIApp,
        media_type: str,
        tls: Newest | None,
        on_started: Callable[[], None],
    ) -> None:
        self._on_started = on_started
        config = Config(app, media_type)
        config.ssl = tls  # type: ignore[assignment]
        super().__init__(config)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See uvicorn."""
        await super().startup(sockets)
        for each in self.servers:  # uvicorn has no setting for it; asyncio would wait for 60 s
            each._ssl_handshake_timeout = HEAD_WITHIN_S  # type: ignore[attr-defined]
        self._on_started()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(
    app: ASGIApp,
    plain: list[socket.socket],
    encrypted: list[socket.socket],
    tls: Contexts | None,
    shutdown: Shutdown,
    on_started: Callable[[], None] = lambda: None,
    *,
    hosts: AllowedHosts,
    media_type: str = MEDIA_TYPE,
) -> None:
    """Answers requests on all sockets until shutdown. After the shutdown begins, open requests have
    `STOP_WITHIN_S` seconds to end.

    Calls `on_started` once, when the server accepts requests on all sockets. hosts: for whom the
    server answers. media_type: that of refusals.
    """
    take_descriptors()
    sslproto.SSLProtocol.max_size = TLS_BYTES
    bound = ForHosts(app, hosts, media_type)

    def make(newest: Newest | None, started: Callable[[], None]) -> Server:
        return Server(bound, media_type, newest, started)

    asyncio.run(_serve(make, plain, encrypted, tls, shutdown, on_started))


def take_descriptors() -> None:
    """Increases the process's limit on open file descriptors as far as the machine allows. With the
    default limit, `CONNECTIONS_MAX` connections would leave no descriptor for a new connection to
    ZooKeeper."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _serve(
    make: Callable[[Newest | None, Callable[[], None]], Server],
    plain: list[socket.socket],
    encrypted: list[socket.socket],
    tls: Contexts | None,
    shutdown: Shutdown,
    on_started: Callable[[], None],
) -> None:
    outstanding = bool(plain) + (tls is not None)

    def started() -> None:
        nonlocal outstanding
        outstanding -= 1
        if not outstanding:
            on_started()

    servers = [(make(None, started), plain)] if plain else []
    background: list[asyncio.Task[Any]] = []
    if tls is not None:
        servers.append((make(Newest(tls), started), encrypted))
        background.append(asyncio.create_task(_look(tls)))
    loop = asyncio.get_running_loop()

    def end() -> None:
        for server, _ in servers:
            server.should_exit = True
        loop.remove_reader(shutdown.fileno())

    loop.add_reader(shutdown.fileno(), end)
    await asyncio.gather(*(server.serve(sockets) for server, sockets in servers))
    for each in background:
        each.cancel()


async def _look(tls: Contexts) -> None:
    """Looks at the files of TLS, so that the log says soon, and without a client, whether they can
    be used."""
    while True:
        await asyncio.sleep(LOOK_FOR_CERTIFICATES_EVERY_S)
        tls.get()

"""/metrics for Prometheus and /health for people and load balancers, in every program.

Metrics are plain objects of prometheus_client, in the default registry of that library. Each module
declares the metrics that it counts; their names are `skidway_<package>_<name>_<unit>[_total]`. One
daemon thread answers, because requests are few and small. A client that is too slow is cut off
after `CLIENT_TIMEOUT_S`. If `metrics.listener` names no host, the server binds to loopback.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import prometheus_client

from skidway import log, ports
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused
from skidway.service import Shutdown

CLIENT_TIMEOUT_S = 5.0
LOOPBACK = "127.0.0.1"

_log = log.get(__name__)


@dataclass(frozen=True, slots=True)
class Health:
    """Whether a program can do its work now, with details that can be written as JSON."""

    ok: bool
    detail: dict[str, Any] = field(default_factory=dict)


def host_and_port(listen: str, *, key: str = "metrics.listener") -> tuple[str, int]:
    """Returns the host and the port of "host:port", "[v6]:port", ":port" or "port". Without a host,
    the host is loopback. Raises ConfigurationRefused if the port is missing or invalid."""
    host, _, port = listen.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise ConfigurationRefused(f"{key}: {listen!r} is not host:port")
    return host.strip("[]") or LOOPBACK, int(port)


class TelemetryServer:
    """Answers /metrics and /health from one daemon thread.

    The thread calls `health` for each request for /health, so `health` must not change anything.
    """

    def __init__(self, listen: str, health: Callable[[], Health]) -> None:
        self._host, self._port = host_and_port(listen)
        self._health = health
        self._server: HTTPServer | None = None
        self._thread: threading.Thread | None = None
        self._end = Shutdown()

    @property
    def port(self) -> int:
        """The port in use. If the configured port is 0, the port in use is the one that the kernel
        chose."""
        return self._port

    def start(self) -> None:
        """Binds to the address, and begins to answer requests. Raises SkidwayError if the server
        cannot bind to the address."""
        health = self._health
        handler = type("Handler", (_Handler,), {"health": staticmethod(health)})
        kind = _Server6 if ":" in self._host else _Server
        try:
            self._server = kind((self._host, self._port), handler)
        except OSError as error:
            key = "metrics.listener"
            raise ports.cannot_listen(self._host, self._port, key, error) from error
        self._port = self._server.server_address[1]
        self._end = Shutdown()
        self._thread = threading.Thread(
            target=_serve, args=(self._server, self._end), name="telemetry", daemon=True
        )
        self._thread.start()
        _log.info("telemetry_started", host=self._host, port=self._port)

    def stop(self) -> None:
        """Stops answering and frees the port. Does nothing if the server was not started."""
        if self._server is not None and self._thread is not None:
            self._end.request()
            self._thread.join(CLIENT_TIMEOUT_S)
            self._server.server_close()
            self._server = self._thread = None


def _serve(server: HTTPServer, end: Shutdown) -> None:
    """Answers clients until `end` is requested. Does not use http.server's own loop, because that
    loop wakes up periodically."""
    poll = select.poll()
    poll.register(server, select.POLLIN)
    poll.register(end, select.POLLIN)
    while not end.requested:
        poll.poll()
        if not end.requested:
            server.handle_request()


class _Server(HTTPServer):
    allow_reuse_address = True
    timeout = 0

    def server_bind(self) -> None:
        # HTTPServer's method also looks up the host's name, which can hang on a host without DNS.
        super(HTTPServer, self).server_bind()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exception()
        if not isinstance(error, OSError):  # a client that disconnects is no error
            _log.error("telemetry_failed", exc=error)


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Handler(BaseHTTPRequestHandler):
    timeout = CLIENT_TIMEOUT_S
    health: Callable[[], Health]

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            self._answer(200, prometheus_client.CONTENT_TYPE_LATEST, _metrics())
        elif path == "/health":
            self._answer(*_health_answer(self.health()))
        else:
            self._answer(404, "text/plain; charset=utf-8", b"/metrics or /health\n")

    def do_HEAD(self) -> None:
        self.do_GET()

    def _answer(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Writes nothing, because a line per scrape would be too much."""


def _metrics() -> bytes:
    return prometheus_client.generate_latest()


def _health_answer(health: Health) -> tuple[int, str, bytes]:
    document = {"ok": health.ok, **health.detail}
    body = json.dumps(document, default=str, indent=1).encode() + b"\n"
    return (200 if health.ok else 503), "application/json", body

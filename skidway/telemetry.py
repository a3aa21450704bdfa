"""/metrics for Prometheus and /health for people and load balancers, in every program.

Metrics are plain objects of prometheus_client, in the default registry of that library. Each module
declares the metrics that it counts; their names are `skidway_<package>_<name>_<unit>[_total]`. One
daemon thread answers (see `small_server`), because requests are few and small. If
`metrics.listener` names no host, the server binds to loopback.
"""

from __future__ import annotations

import io
import json
import re
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import field
from http.server import BaseHTTPRequestHandler
from typing import Any

import prometheus_client

from skidway import log, ports
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused
from skidway.http.counts import refused_requests
from skidway.http.hosts import STATUS, AllowedHosts
from skidway.http.small_server import SmallServer
from skidway.printable import printable_exposition
from skidway.service import Shutdown

STOP_WITHIN_S = 5.0
LOOPBACK = "127.0.0.1"
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9a-z-]+):[\t\x20-\x7e\x80-\xff]*")

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

    def __init__(
        self,
        listen: str,
        health: Callable[[], Health],
        allowed_hosts: Sequence[str] = (),
        host_name: str | None = None,
    ) -> None:
        self._host, self._port = host_and_port(listen)
        self._health = health
        self._hosts = AllowedHosts(allowed_hosts, host_name)
        self._listening: socket.socket | None = None
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
        try:
            family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
            self._listening = socket.create_server((self._host, self._port), family=family)
        except OSError as error:
            key = "metrics.listener"
            raise ports.cannot_listen(self._host, self._port, key, error) from error
        self._port = self._listening.getsockname()[1]
        self._end = Shutdown()
        server = SmallServer(self._listening, self._answer)
        self._thread = threading.Thread(
            target=server.run, args=(self._end,), name="telemetry", daemon=True
        )
        self._thread.start()
        _log.info("telemetry_started", host=self._host, port=self._port)

    def stop(self) -> None:
        """Stops answering and frees the port. Does nothing if the server was not started."""
        if self._listening is not None and self._thread is not None:
            self._end.request()
            self._thread.join(STOP_WITHIN_S)
            self._listening.close()
            self._listening = self._thread = None

    def _answer(self, head: bytes, local: str) -> bytes:
        if not _is_well_formed(head):
            refused_requests.labels("malformed").inc()
            return b"HTTP/1.0 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
        return _Request(head, local, self._health, self._hosts).answer.getvalue()


class _Request(BaseHTTPRequestHandler):
    """Answers one request, whose head is known, without a socket."""

    def __init__(self, head: bytes, local: str, health: Callable[[], Health], hosts: AllowedHosts):
        self.rfile, self.answer = io.BytesIO(head), io.BytesIO()
        self.wfile = self.answer
        self._local, self._health, self._hosts = local, health, hosts
        self.handle_one_request()

    def do_GET(self) -> None:
        path, host = self.path.partition("?")[0], self.headers.get("Host")
        if not self._hosts.allows(host, self._local):
            refused_requests.labels("host").inc()
            sentence = self._hosts.refusal(host or "")
            self._answer(STATUS, "text/plain; charset=utf-8", f"{sentence}\n".encode())
        elif path == "/metrics":
            self._answer(200, prometheus_client.CONTENT_TYPE_LATEST, _metrics())
        elif path == "/health":
            self._answer(*_health_answer(self._health()))
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


def _is_well_formed(head: bytes) -> bool:
    """Whether every line is a header of RFC 9112, and Host is there once at most. The standard
    library takes more than that, and could find another Host than a proxy before it found."""
    lines = [line.removesuffix(b"\r") for line in head.lower().split(b"\n")]
    headers = lines[1 : lines.index(b"")] if b"" in lines[1:] else lines[1:]
    found = [_HEADER.fullmatch(line) for line in headers]
    return all(found) and [each[1] for each in found if each].count(b"host") <= 1


def _metrics() -> bytes:
    return printable_exposition(prometheus_client.generate_latest().decode()).encode()


def _health_answer(health: Health) -> tuple[int, str, bytes]:
    document = {"ok": health.ok, **health.detail}
    body = json.dumps(document, default=str, indent=1).encode() + b"\n"
    return (200 if health.ok else 503), "application/json", body

"""Our own programs are asked without a proxy, and no server holds its client for long."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from urllib3.exceptions import HTTPError

import skidway
from skidway.audit.commands import agent_health, history
from skidway.broker.mirror import cli as mirror
from skidway.demo import programs
from skidway.http_client import open_url
from skidway.kafka.source import Source
from skidway.loader.complete_hours.collector import Collector
from skidway.schemas.client.transport import HttpTransport

NOWHERE = "http://127.0.0.1:9"
ANSWER = b'{"hours": [], "buckets": [{"bucket": "2026-02-01T10:04:00Z"}]}'


class Answering(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    with HTTPServer(("127.0.0.1", 0), Answering) as found:
        found.asked = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=found.serve_forever, args=(0.01,))
        thread.start()
        yield found
        found.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "ask",
    [
        programs.healthy,
        lambda url: agent_health.healths(url, "web1"),
        mirror.health,
        lambda url: history.bucket_history(url, "a", "2026-02-01T10:04:00Z"),
        lambda url: Collector(url).judged(
            Source("offline", "", "dc1.a", ""), "2026-02-01T10", "2026-02-01T11"
        ),
        lambda url: HttpTransport(5.0).send("GET", urlsplit(url), "/subjects", None),
    ],
)
def test_our_own_addresses_are_asked_without_a_proxy(
    server: HTTPServer, monkeypatch: pytest.MonkeyPatch, ask: Callable[[str], object]
) -> None:
    """If http_proxy is set, as companies do for pip, every command of ours still reaches our own
    programs, although the proxy cannot."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, NOWHERE)
    monkeypatch.setenv("no_proxy", "")
    ask(f"http://127.0.0.1:{server.server_port}")
    assert len(server.asked) == 1  # type: ignore[attr-defined]


def test_one_module_opens_urls() -> None:
    """No module imports the functions of Python that go through a proxy, except the module that
    opens URLs without one."""
    root = Path(skidway.__file__).parent
    paths = [path for name in ("", "agent", "audit", "broker", "loader", "schemas")
             for path in (root / name).resolve().rglob("*.py")]  # fmt: skip
    proxied = re.compile(r"^\s*(import|from) (urllib\.request|requests|httpx)\b", re.MULTILINE)
    found = {path.name for path in paths if proxied.search(path.read_text())}
    assert found == {"http_client.py"}


def read_url(url: str) -> bytes:
    with open_url(url, 0.5) as answer:
        return answer.read()


BEGUN = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        BEGUN + b"X: ",
        BEGUN + b"Content-Length: 1000000\r\n\r\n",
        BEGUN + b"Transfer-Encoding: chunked\r\n\r\nfffff\r\n",
        BEGUN + b"Connection: close\r\n\r\n",
    ],
)
@pytest.mark.parametrize(
    "ask",
    [
        read_url,
        lambda url: HttpTransport(0.5).send("GET", urlsplit(url), "/subjects", None),
    ],
)
def test_an_answer_that_comes_byte_by_byte_is_given_up(
    begun: bytes, ask: Callable[[str], object]
) -> None:
    """A client waits only for its timeout for a whole answer, head and body. Bytes that arrive one
    by one do not extend this time."""
    given_up = threading.Event()

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(65_536)
            connection.sendall(begun)
            while not given_up.wait(0.02):
                connection.sendall(b"1")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve, args=(listener,))
        server.start()
        try:
            with pytest.raises((TimeoutError, HTTPError)) as caught:
                ask(f"http://127.0.0.1:{listener.getsockname()[1]}")
        finally:
            given_up.set()
            server.join()
    words = (str(caught.value), str(caught.value.__cause__))
    assert any("the answer did not end within 0.5 s" in each for each in words)

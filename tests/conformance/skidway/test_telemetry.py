from __future__ import annotations

import contextlib
import json
import os
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import prometheus_client
import pytest

from skidway.errors import SkidwayError
from skidway.telemetry import Health, TelemetryServer
from support.processes import WITHIN_S, eventually


class Program:
    """A fake program. The test sets its health."""

    def __init__(self) -> None:
        self.health = Health(True, {"lag": 3})
        self.server = TelemetryServer("127.0.0.1:0", lambda: self.health)

    def get(self, path: str, host: str = "localhost") -> tuple[int, str]:
        url = f"http://127.0.0.1:{self.server.port}{path}"
        asked = urllib.request.Request(url, headers={"Host": host})
        try:
            with urllib.request.urlopen(asked, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()


@pytest.fixture
def program() -> Iterator[Program]:
    running = Program()
    running.server.start()
    yield running
    running.server.stop()


def test_health_is_200_or_503_with_its_detail(program: Program) -> None:
    """/health answers with status 200 if the program is healthy, and with 503 if it is not, so that
    load balancers need to read only the status. The JSON body contains details for people."""
    status, body = program.get("/health")
    assert (status, json.loads(body)) == (200, {"ok": True, "lag": 3})
    program.health = Health(False, {"why": "no ZooKeeper"})
    status, body = program.get("/health")
    assert (status, json.loads(body)) == (503, {"ok": False, "why": "no ZooKeeper"})


def test_metrics_are_prometheus_text(program: Program) -> None:
    """/metrics has every metric of the process, in Prometheus' text format."""
    counter = prometheus_client.Counter("skidway_test_things_total", "Things of this test")
    counter.inc(2)
    status, body = program.get("/metrics")
    assert status == 200
    assert "skidway_test_things_total 2.0\n" in body


def test_other_paths_are_404(program: Program) -> None:
    """A path that is not served gets 404."""
    assert program.get("/other")[0] == 404


def test_busy_port_is_one_sentence(program: Program) -> None:
    """If the port is in use, the error names the address, the process that uses the port, and the
    setting to change."""
    second = TelemetryServer(f"127.0.0.1:{program.server.port}", lambda: Health(True))
    with pytest.raises(SkidwayError) as refused:
        second.start()
    said = str(refused.value)
    assert f"cannot listen on 127.0.0.1:{program.server.port}: address already in use" in said
    assert f"in use by process {os.getpid()} (" in said
    assert "set metrics.listener to a free one" in said
    second.stop()


def test_port_is_free_after_stop() -> None:
    """When the server for /metrics and /health is stopped, its port is free at once, so that a
    restarted program can use it."""
    first = TelemetryServer("127.0.0.1:0", lambda: Health(True))
    first.start()
    first.stop()
    again = TelemetryServer(f"127.0.0.1:{first.port}", lambda: Health(True))
    again.start()
    again.stop()


def test_slow_clients_do_not_keep_others_out(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many clients connect and send nothing, half a request, or a byte now and then, others
    are answered at once. The slow ones are closed when their time is over, even if they send a byte
    again and again."""
    monkeypatch.setattr("skidway.http.small_server.HEAD_WITHIN_S", 1.0)
    address = ("127.0.0.1", program.server.port)
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(socket.create_connection(address)) for _ in range(200)]
        for each in slow[::2]:
            each.sendall(b"GET /health HTTP/1.1\r\nHost: loc")
        for _ in range(10):
            with contextlib.suppress(OSError):
                slow[-1].sendall(b"x")
            assert program.get("/health")[0] == 200
        eventually(lambda: is_closed(slow[-1]))
        for each in slow[:-1]:
            each.settimeout(WITHIN_S)
            with contextlib.suppress(ConnectionResetError):
                assert each.recv(1) == b""


def is_closed(sock: socket.socket, more: bytes = b"x") -> bool:
    """Sends a bit more. Returns whether the server has closed the connection."""
    try:
        sock.settimeout(0.05)
        sock.sendall(more)
        return sock.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_who_does_not_read_does_not_keep_others_out(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients that ask for a large answer and do not read it hold a bounded number of such answers,
    and keep nobody out. A client that reads slowly gets the whole answer."""
    program.health = Health(True, {"much": "x" * (4 << 20)})
    address, asked = ("127.0.0.1", program.server.port), b"GET /health HTTP/1.0\r\n\r\n"
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            lazy = stack.enter_context(socket.create_connection(address))
            lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            lazy.sendall(asked)
        assert program.get("/other")[0] == 404
        with socket.create_connection(address, WITHIN_S) as reader:
            reader.sendall(asked)
            reader.shutdown(socket.SHUT_WR)
            whole = b"".join(iter(lambda: reader.recv(1 << 16), b""))
    assert whole.endswith(b'"\n}\n')
    assert len(whole) > 4 << 20


def test_pipelined_requests_get_one_answer(program: Program) -> None:
    """The server answers the first request of a connection and then closes it, whatever else the
    client has sent; the answer arrives whole. A head that never ends is closed."""
    address = ("127.0.0.1", program.server.port)
    with socket.create_connection(address, WITHIN_S) as many:
        many.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100)
        found = b"".join(iter(lambda: many.recv(1 << 16), b""))
    assert found.count(b"HTTP/1.0 200") == 1
    assert found.endswith(b'"lag": 3\n}\n')
    with socket.create_connection(address, WITHIN_S) as endless:
        eventually(lambda: is_closed(endless, b"X-Header: of many\r\n" * 100))
    assert program.get("/health")[0] == 200


def test_other_hosts_get_nothing(program: Program) -> None:
    """A request whose Host is none of the program's hosts (a web page after DNS rebinding) gets 421
    with a sentence that names the setting. Prometheus, which names an address or a name of the
    host, is answered."""
    assert "allowed.hosts" in program.get("/metrics", "evil.example:9101")[1]
    hosts = ("evil.example", socket.gethostname(), "127.0.0.1")
    assert [program.get("/metrics", host)[0] for host in hosts] == [421, 200, 200]


@pytest.mark.parametrize(
    "headers",
    [
        b"Host: localhost\r\nHost: evil.example",
        b"Host: localhost\r\nhost:localhost",
        b"Host : localhost",
        b" Host: localhost",
        b"Host: localhost\r\n Host: evil.example",
        b"Host: localhost\r\n\tevil.example",
        b"X: y\rHost: localhost",
        b"X: y\x0bHost: localhost",
        b"Host: \0localhost",
        b"Host",
        b": localhost",
    ],
)
def test_malformed_heads_are_400(program: Program, headers: bytes) -> None:
    """A head with a second Host, with blanks before or behind the name of a header, with a folded
    line or with control characters gets 400, so no two readers of it find different hosts."""
    address = ("127.0.0.1", program.server.port)
    for end in (b"\r\n", b"\n"):
        with socket.create_connection(address, WITHIN_S) as sock:
            lines = [b"GET /metrics HTTP/1.1", *headers.split(b"\r\n"), b"Accept: */*", b"", b""]
            sock.sendall(end.join(lines))
            assert b"".join(iter(lambda: sock.recv(1 << 16), b"")).split()[1] == b"400"

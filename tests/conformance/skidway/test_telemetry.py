from __future__ import annotations

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
from support.processes import WITHIN_S


class Program:
    """A fake program. The test sets its health."""

    def __init__(self) -> None:
        self.health = Health(True, {"lag": 3})
        self.server = TelemetryServer("127.0.0.1:0", lambda: self.health)

    def get(self, path: str) -> tuple[int, str]:
        url = f"http://127.0.0.1:{self.server.port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
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


def test_silent_client_does_not_keep_others_out(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a client opens a connection and sends no request, the server closes this connection after
    a time limit. Meanwhile the server answers the requests of other connections."""
    monkeypatch.setattr("skidway.telemetry._Handler.timeout", 0.1)
    with socket.create_connection(("127.0.0.1", program.server.port)) as silent:
        assert program.get("/health")[0] == 200
        silent.settimeout(WITHIN_S)
        assert silent.recv(1) == b""

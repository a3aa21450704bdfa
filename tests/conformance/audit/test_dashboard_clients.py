"""A real collector serves its dashboard to those who may have it, whatever others do."""

from __future__ import annotations

import socket
from pathlib import Path

from skidway.http.server import CONNECTIONS_MAX
from support import telemetry
from support.processes import Program, free_port, running, skidway
from support.slow_http_clients import asked, slow_clients


def test_the_dashboard_is_there_for_others(tmp_path: Path) -> None:
    """When /health answers, the dashboard does. More half requests than the collector has places
    for connections keep nobody from the dashboard. A page of another site that has made its name
    mean this host (DNS rebinding) gets 421 and nothing else. The log names the reached bound
    once."""
    port, metrics_port = free_port(), free_port()
    command = skidway(
        "audit", "run", "--set", f"bootstrap.servers=127.0.0.1:{free_port()}",
        "--set", f"store.dir={tmp_path / 'store'}", "--set", f"listener=127.0.0.1:{port}",
        "--set", f"metrics.listener=127.0.0.1:{metrics_port}",
        "--set", "allowed.hosts=audit.alias.example",
    )  # fmt: skip
    program = Program(command, tmp_path / "audit.out")
    with running(program, lambda: telemetry.is_healthy(metrics_port)):
        for host in ("audit.alias.example", socket.gethostname(), f"localhost:{port}"):
            assert asked(port, "/index.json", host)[0] == 200
            assert asked(metrics_port, "/health", host)[0] == 200
        for each in (port, metrics_port):
            status, _, sentence = asked(each, "/", f"evil.example:{each}")
            assert (status, "allowed.hosts" in sentence) == (421, True)
        with slow_clients(port, "half a head", CONNECTIONS_MAX + 100) as go_on:
            for _ in range(5):
                assert asked(port, "/index.json")[0] == 200
                go_on()
        assert program.output().count('"bound_reached"') == 1

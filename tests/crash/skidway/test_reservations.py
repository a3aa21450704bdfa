"""Several processes can reserve ports at the same time, and hand these ports to programs that may
be killed."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from skidway.errors import SkidwayError
from skidway.ports import LOOPBACK, Reservation
from support.fork_server import die_with_parent
from support.processes import Program, accepts, answers, running

PROCESSES, PORTS = 12, 60
FIRST = 20_000
RESERVE = f"""
import sys
from skidway.ports import Reservation
with Reservation() as kept:
    sys.stdin.readline()
    ports = [kept.take({FIRST}, 2000) for _ in range({PORTS})]
    ports += [kept.take() for _ in range({PORTS})]
    print(*ports, flush=True)
    sys.stdin.readline()
"""


def test_processes_that_reserve_at_once_share_no_port() -> None:
    """No port is reserved by two processes, whether they request a port of a range or let the
    kernel choose one."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RESERVE],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            preexec_fn=die_with_parent,
        )
        for _ in range(PROCESSES)
    ]  # fmt: skip
    try:
        for each in processes:
            assert each.stdin is not None
            each.stdin.write("now\n")
        found: list[str] = []
        for each in processes:
            assert each.stdout is not None
            found += each.stdout.readline().split()
    finally:
        for each in processes:
            each.kill()
            each.communicate()
    assert len(found) == len(set(found)) == PROCESSES * PORTS * 2


def test_a_killed_program_finds_its_port_again(tmp_path: Path) -> None:
    """If a program is killed, no other process can get its port before the program starts again.
    The program can listen on the port even if old connections to the port are still open."""
    with Reservation() as kept, Reservation() as others:
        port = kept.take()
        command = [sys.executable, "-m", "http.server", str(port), "--bind", LOOPBACK]
        program = Program(command, tmp_path / "server.log", cwd=tmp_path)
        for _ in range(3):
            with running(program, lambda: answers(f"http://{LOOPBACK}:{port}")):
                left_open = socket.create_connection((LOOPBACK, port))
            assert not accepts(port)
            with pytest.raises(SkidwayError, match="no TCP port"):
                others.take(port)
            left_open.close()


def test_a_port_goes_with_its_reservation(tmp_path: Path) -> None:
    """A child process that lives longer than the reservation does not keep the port, because the
    reservation's socket is closed on exec."""
    kept = Reservation()
    port = kept.take()
    child = Program(["sleep", "600"], tmp_path / "child.log").start()
    try:
        with Reservation() as others:
            kept.close()
            assert others.take(port) == port
    finally:
        child.kill()


def test_no_outgoing_connection_gets_a_kept_port() -> None:
    """While a port is reserved, the kernel gives this port neither to an outgoing connection nor to
    a bind to port 0, with or without SO_REUSEADDR. This is so even if no other port is left."""
    with Reservation() as kept, socket.create_server((LOOPBACK, 0)) as server:
        port = kept.take()
        for reuse in (0, 1):
            with _limited_to(port, reuse) as connecting, pytest.raises(OSError, match="assign"):
                connecting.connect(server.getsockname())
            with _limited_to(port, reuse) as binding, pytest.raises(OSError, match="in use"):
                binding.bind((LOOPBACK, 0))
        kept.close()
        with _limited_to(port, 0) as connecting:
            connecting.connect(server.getsockname())


def _limited_to(port: int, reuse: int) -> socket.socket:
    """Returns a socket for which the kernel can choose only this port."""
    ip_local_port_range = 51  # IP_LOCAL_PORT_RANGE of linux/in.h, since Linux 6.3
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
    made.setsockopt(
        socket.IPPROTO_IP, ip_local_port_range, (port << 16 | port).to_bytes(4, sys.byteorder)
    )
    return made

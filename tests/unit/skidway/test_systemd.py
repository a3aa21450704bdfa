"""Programs send messages to the service manager as in sd_notify(3). The tests use real datagram
sockets of their own process."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from skidway import service, systemd
from support.service_manager import ServiceManager


@pytest.fixture(params=["file", "abstract"])
def manager(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ServiceManager]:
    address = str(tmp_path / "notify") if request.param == "file" else f"@{tmp_path.name}-notify"
    listening = ServiceManager(address)
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    yield listening
    listening.close()


def test_ready_comes_with_a_status_of_one_line(manager: ServiceManager) -> None:
    """READY=1 and STATUS= are sent in one datagram. A line break in the status becomes a space, so
    that the rest is not read as another assignment."""
    systemd.ready("waiting: no broker\nMAINPID=1")
    assert manager.next(1) == {"READY": "1", "STATUS": "waiting: no broker MAINPID=1"}
    assert not manager.waiting()


def test_a_name_that_is_no_text_ends_no_program(manager: ServiceManager) -> None:
    """A status may have the name of a file that is not UTF-8; its bytes are then escaped."""
    systemd.ready(f"counting into {os.fsdecode(bytes([0xFF]))}")
    assert manager.next(1)["STATUS"] == "counting into \\udcff"


def test_a_program_that_is_asked_to_end_says_so_once(manager: ServiceManager) -> None:
    """A program sends STOPPING=1 to the service manager at the first SIGTERM, and nothing at the
    second."""

    def body(shutdown: service.Shutdown) -> int:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        return 0 if shutdown.wait(60) else 1

    assert service.run("test", body) == 0
    assert [message["STOPPING"] for message in manager.waiting()] == ["1"]


def test_without_a_manager_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that was started without a service manager does not create a socket."""
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    monkeypatch.setattr(socket, "socket", None)
    systemd.ready("up")


@pytest.mark.parametrize("address", ["/nowhere/notify", "@nobody-listens-here", "/" + "x" * 200])
def test_a_manager_that_is_gone_stops_no_program(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program continues if its service manager cannot be reached."""
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    systemd.ready("up")
    systemd.stopping()


def test_a_full_queue_holds_a_program_up_for_a_bounded_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the service manager does not read its messages, a program that sends more messages than
    fit into the queue still continues. Each message waits at most `PATIENCE_S`."""
    busy = ServiceManager(str(tmp_path / "notify"))
    monkeypatch.setenv("NOTIFY_SOCKET", busy.address)
    monkeypatch.setattr(systemd, "PATIENCE_S", 0.01)
    patience: set[float | None] = set()

    class Noted(socket.socket):
        def settimeout(self, value: float | None) -> None:
            patience.add(value)
            super().settimeout(value)

    monkeypatch.setattr(socket, "socket", Noted)
    queue = int(Path("/proc/sys/net/unix/max_dgram_qlen").read_text())
    for _ in range(queue + 5):
        systemd.ready("up")
    assert patience == {0.01}
    assert len(busy.waiting()) <= queue + 1
    busy.close()

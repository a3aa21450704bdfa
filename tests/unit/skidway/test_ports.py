from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from skidway import ports
from skidway.ports import Listener

TABLE = """\
   0: 00000000:07E8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 1145 1 0 100
   1: 0100007F:23EB 0100007F:E058 06 00000000:00000000 03:000007F5 00000000     0        0 0 3 0
   2: 0100007F:2384 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000  0 7788 1 0 10
"""
TABLE_6 = """\
   0: 00000000000000000000000001000000:1F91 0000000000000000:0000 0A 0:0 00:0 0 5 0 99 1 0
"""


def test_listening_sockets_are_read_from_the_kernels_table() -> None:
    """The port, user and inode of listening IPv4 and IPv6 sockets are read from the kernel's table.
    Sockets of connections are left out."""
    lines = (TABLE + TABLE_6 + "garbage\n").splitlines()
    assert list(ports.listeners(lines)) == [
        Listener(2024, 0, 1145),
        Listener(9092, 1000, 7788),
        Listener(8081, 5, 99),
    ]


def test_used_port_names_holder_and_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error about a used port names the address, the process that uses it, and the setting to
    change."""
    monkeypatch.setattr(ports, "holder", lambda port: f"process {port} (java)")
    error = OSError(errno.EADDRINUSE, "Address already in use")
    said = str(ports.cannot_listen("127.0.0.1", 9092, "listeners", error))
    assert said == (
        "cannot listen on 127.0.0.1:9092: address already in use by process 9092 (java); "
        "set listeners to a free one"
    )


def test_the_holder_is_found_although_it_closes_a_descriptor_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that listens on a port is found even if another of its descriptors cannot be
    read. This happens if the process closes the descriptor after the descriptors were listed."""

    def listed(path: Path) -> list[str]:
        return ["3", "4"] if path.name == "fd" else [entry.name for entry in os.scandir(path)]

    monkeypatch.setattr(ports, "PROC", tmp_path)
    monkeypatch.setattr(os, "listdir", listed)
    descriptors = tmp_path / "77" / "fd"
    for directory in (tmp_path / "net", descriptors):
        directory.mkdir(parents=True)
    (tmp_path / "net" / "tcp").write_text("heading\n" + TABLE)
    (tmp_path / "77" / "comm").write_text("java\n")
    (descriptors / "4").symlink_to("socket:[7788]")
    assert ports.holder(9092) == "process 77 (java)"


def test_other_failure_to_listen_accuses_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a program cannot listen for another reason than a used port, the error does not name
    another process."""
    monkeypatch.setattr(ports, "holder", lambda _: pytest.fail("nobody holds it"))
    error = OSError(errno.EACCES, "Permission denied")
    assert "permission denied; set" in str(ports.cannot_listen("0.0.0.0", 80, "listeners", error))


def test_a_failure_to_listen_is_said_once() -> None:
    """The error about an address contains the address only once, although the message of
    `socket.create_server` contains it too. If the host's name cannot be resolved, the error does
    not advise to set another port."""
    error = OSError(-2, "Name or service not known (while attempting to bind on address ('x', 80))")
    said = str(ports.cannot_listen("x", 80, "listeners", error))
    assert said == "cannot listen on x:80: name or service not known; set listeners to another"

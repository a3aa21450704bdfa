from __future__ import annotations

import errno
import gzip
import os
import threading
from pathlib import Path

import pytest

from skidway.agent.files import decompressed, plain_sizes
from skidway.agent.files.access import Access
from skidway.agent.files.decompressed import Bounds
from skidway.agent.files.operating_system import OpenFile
from skidway.agent.files.plain_sizes import Content, PlainSizes
from support.processes import eventually


def opened(path: str) -> int:
    return OpenFile(path, Access()).descriptor


class Exhausted:
    """A compressed stream that cannot be read because it needs more memory than the machine has."""

    eof, needs_input, unused_data = False, True, b""

    def __init__(self, memory_bytes: int) -> None:
        pass

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        raise MemoryError


def compressed(folder: Path) -> tuple[str, Content]:
    path = folder / "app.log.1.xz"
    path.write_bytes(b"\xfd7zXZ\x00")
    return str(path), Content.of(os.stat(path))


def test_a_file_that_needs_too_much_memory_has_no_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the damaged header of a compressed file asks for more memory than the machine has, the
    agent gets an error instead of the file's decompressed size."""
    format_ = decompressed._FORMATS[".xz"]._replace(stream=Exhausted)
    monkeypatch.setitem(decompressed._FORMATS, ".xz", format_)
    path, content = compressed(tmp_path)
    sizes = PlainSizes(Bounds(), opened)
    sizes.ask(path, content)
    eventually(lambda: sizes.known(content) is not None, every_s=0.01)
    found = sizes.known(content)
    assert isinstance(found, OSError)
    assert found.errno == errno.ENOMEM


def test_a_file_whose_measuring_broke_off_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If an unexpected error ends the thread that measures a file's decompressed size, the file is
    measured again when the agent asks for this size the next time."""
    failing = [RuntimeError("unexpected")]

    def go_on(measurement: plain_sizes._Measurement) -> bool:
        if failing:
            raise failing.pop()
        measurement.size = 7
        return False

    monkeypatch.setattr(plain_sizes._Measurement, "go_on", go_on)
    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    path, content = compressed(tmp_path)
    sizes = PlainSizes(Bounds(), opened)

    def measured() -> bool:
        sizes.ask(path, content)
        return sizes.known(content) == 7

    eventually(measured, every_s=0.01)


def test_the_thread_follows_no_link_that_the_agent_does_not_follow(tmp_path: Path) -> None:
    """If a compressed file is exchanged for a link before its plain size is measured, the rules
    about links also hold for the thread that measures."""
    sizes = PlainSizes(Bounds(), lambda path: OpenFile(path, Access("none")).descriptor)
    for name in ("secret", "other"):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(name.encode()))
    (tmp_path / "a.gz").symlink_to("secret.gz")
    secret, other = (Content.of(os.stat(tmp_path / f"{x}.gz")) for x in ("secret", "other"))
    sizes.ask(str(tmp_path / "a.gz"), secret)
    sizes.ask(str(tmp_path / "other.gz"), other)
    eventually(lambda: sizes.known(other) == 5, every_s=0.01)
    assert sizes.known(secret) is None

"""If FILE is a regular file, `skidway schemas dump FILE` replaces it with a complete dump. If FILE
is a pipe or device, the dump is written to it."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

from support.registry_http import Registry, record


def test_a_dump_goes_through_a_link(registry: Registry, run: Any, tmp_path: Path) -> None:
    """A dump to a symbolic link replaces the file to which the link points, and the link stays
    unchanged."""
    registry.register("users", record(a=None))
    (tmp_path / "target").write_text("an older dump")
    (tmp_path / "link").symlink_to("target")
    assert run("dump", "link").status == 0
    assert (tmp_path / "link").is_symlink()
    found = (tmp_path / "target").read_text()
    assert "users" in found
    assert "an older dump" not in found


def test_a_dump_never_replaces_what_is_no_file(
    registry: Registry, run: Any, tmp_path: Path
) -> None:
    """If FILE is a pipe or device, the dump is written to it and never replaces it. If the device
    is full, the command ends with exit status 2."""
    registry.register("users", record(a=None))
    os.mkfifo(tmp_path / "pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_text()))
    reader.start()
    assert run("dump", "pipe").status == 0
    reader.join()
    assert "users" in read[0]
    assert (tmp_path / "pipe").is_fifo()
    (tmp_path / "full").symlink_to("/dev/full")
    done = run("dump", "full")
    assert (done.status, done.out) == (2, "")
    assert "Cannot write full: no space left on device." in done.err
    assert Path("/dev/full").is_char_device()

"""Small file systems that tests can fill to the last byte. To mount them needs root."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

MS_RDONLY, MS_REMOUNT = 1, 32
LIBC = ctypes.CDLL(None, use_errno=True)
KINDS = ("tmpfs", "ext4")
_BALLAST = "ballast"
_CHUNKS = (1 << 20, 1 << 16, 1 << 12, 1)
_FILLS_MAX = 100
_VAIN_MAX = 10
"""After this many attempts in a row that wrote nothing, a disk is full."""


def mount(kind: bytes, path: Path, options: bytes, flags: int = 0) -> None:
    """Mounts a file system of the type `kind` at `path` with mount(2), which needs root."""
    if LIBC.mount(kind, bytes(path), kind, flags, options) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(path))


def unmount(path: Path) -> None:
    """Unmounts a file system. Does nothing if none is mounted at `path`."""
    if LIBC.umount2(bytes(path), 2) != 0:
        assert ctypes.get_errno() == errno.EINVAL, "it is still mounted"


class SmallDisk:
    """A mounted file system, which a test fills with a file of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self) -> None:
        """Takes all free space, until not even one byte can be written. An ext4 frees the space of
        deleted files a little later, so this may take several attempts. It may also call a block
        free that it gives to nobody."""
        vain = 0
        for _ in range(_FILLS_MAX):
            before = self._ballast_bytes()
            self._write_all()
            vain = vain + 1 if self._ballast_bytes() == before else 0
            if not self.free_bytes() or vain == _VAIN_MAX:
                return
        raise AssertionError(f"{self.free_bytes()} bytes are free again and again")

    def _ballast_bytes(self) -> int:
        path = self.path / _BALLAST
        return path.stat().st_size if path.exists() else 0

    def _write_all(self) -> None:
        descriptor = os.open(self.path / _BALLAST, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            for size in _CHUNKS:
                with contextlib.suppress(OSError):
                    while True:
                        assert os.write(descriptor, b"b" * size)
                with contextlib.suppress(OSError):
                    os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def make_room(self) -> None:
        """Frees the space that `fill` has taken."""
        (self.path / _BALLAST).unlink()

    def free_bytes(self) -> int:
        status = os.statvfs(self.path)
        return status.f_bavail * status.f_frsize


@contextlib.contextmanager
def small_disk(kind: str, folder: Path, size_bytes: int) -> Iterator[SmallDisk]:
    """Yields a new file system in `folder`: a tmpfs, or an ext4 in a file."""
    path = folder / f"small-{kind}"
    path.mkdir()
    if kind == "tmpfs":
        mount(b"tmpfs", path, b"size=%d" % size_bytes)
    else:
        image = folder / "small.img"
        with image.open("wb") as file:
            file.truncate(size_bytes)
        paths = f"{os.environ['PATH']}:/usr/sbin:/sbin"
        make = ["mkfs.ext4", "-q", "-m", "0", "-F", str(image)]
        subprocess.run(make, check=True, env={**os.environ, "PATH": paths})
        subprocess.run(["mount", "-o", "loop", str(image), str(path)], check=True)
    try:
        yield SmallDisk(path)
    finally:
        unmount(path)

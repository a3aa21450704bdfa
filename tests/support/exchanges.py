"""Exchanges two names on a file system, so that no moment passes in which a name is missing."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_AT_FDCWD = -100
_EXCHANGE = 2


def exchange(one: Path, other: Path) -> None:
    """Exchanges two names: each then leads to what the other led to (renameat2)."""
    names = os.fsencode(one), os.fsencode(other)
    if _libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(one))


@contextmanager
def exchanging(one: Path, other: Path) -> Iterator[list[int]]:
    """A thread exchanges two names again and again during a `with` block. Yields a list with one
    number: how many exchanges there were so far."""
    count, is_over = [0], threading.Event()

    def run() -> None:
        while not is_over.is_set():
            exchange(one, other)
            count[0] += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield count
    finally:
        is_over.set()
        thread.join()

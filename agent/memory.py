"""Tells the C library and Python's garbage collector how to manage the agent's memory.

The agent fills and frees buffers of about a megabyte for each megabyte of lines. By default, glibc
returns such memory to the kernel as soon as it is free, and the kernel clears it when it is used
again: this can take a fifth of the agent's time. So a busy agent keeps some freed memory, and a
quiet agent gives it back. Without glibc, the functions do nothing.
"""

from __future__ import annotations

import ctypes
import gc
from typing import Final

KEPT_BYTES: Final = 16 << 20
"""How much freed memory a busy agent keeps at the end of the heap."""

MAPPED_BYTES: Final = 8 << 20
"""A buffer of at least this size gets memory of its own, which goes back as soon as it is free."""

GIVE_BACK_S: Final = 60.0
"""Seconds between two calls of `give_back`, because the next buffers make the kernel clear memory
again.
"""

GARBAGE_AFTER: Final = 200_000
"""Python's garbage collector searches for reference cycles whenever there are this many new
objects. The number is high, because imports and looks through the patterns make many objects but
hardly any cycle.
"""

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_libc = ctypes.CDLL(None)


def collect_seldom() -> None:
    """Makes the garbage collector search seldom."""
    gc.set_threshold(GARBAGE_AFTER)


def keep_freed() -> None:
    """Makes the process keep up to KEPT_BYTES of freed memory."""
    if hasattr(_libc, "mallopt"):
        _libc.mallopt(_MMAP_THRESHOLD, MAPPED_BYTES)
        _libc.mallopt(_TRIM_THRESHOLD, KEPT_BYTES)


def give_back() -> None:
    """Gives all freed memory back to the kernel."""
    if hasattr(_libc, "malloc_trim"):
        _libc.malloc_trim(0)

"""Tells the C library, the kernel and Python's garbage collector how to manage the agent's memory.

For each megabyte of lines, the agent allocates and frees buffers of about a megabyte. By default,
glibc returns such memory to the kernel as soon as the memory is free, and the kernel clears the
memory before the agent uses it again. Clearing can take a fifth of the agent's time. So a busy
agent keeps some freed memory, and a quiet agent gives it back. If the C library has no `mallopt` or
`malloc_trim`, this module does not change how the library manages freed memory.

Most memory pages of the shared libraries are needed only when the dynamic linker loads the
libraries, or only while the agent sends. A quiet agent takes these pages out of its memory. The
kernel keeps these pages in its cache until it needs the memory. If the agent reads such a page
again, the kernel maps the page again.
"""

from __future__ import annotations

import ctypes
import gc
import re
from collections.abc import Iterable, Iterator
from typing import Final

KEPT_BYTES: Final = 16 << 20
"""How much freed memory a busy agent keeps at the end of the heap."""

MAPPED_BYTES: Final = 8 << 20
"""A buffer of at least this size gets memory of its own, which goes back to the kernel as soon as
the buffer is freed."""

GIVE_BACK_S: Final = 5.0
"""The least number of seconds between two calls of `give_back`. Calls cost time, because the kernel
must clear memory for the buffers that are filled next.
"""

GARBAGE_AFTER: Final = 200_000
"""Python's garbage collector searches for reference cycles when the process has made this many more
objects than it has freed since the last search. The number is high, because imports and searches
for files make many objects but hardly any cycle.
"""

_DONTNEED: Final = 4  # MADV_DONTNEED
_MAPPING: Final = re.compile(r"[0-9a-f]+-[0-9a-f]+ ")
_LIBRARY: Final = re.compile(r"\.so(\.[0-9]+)*$")
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_libc = ctypes.CDLL(None)


def collect_seldom() -> None:
    """Makes the garbage collector search seldom (see GARBAGE_AFTER)."""
    gc.set_threshold(GARBAGE_AFTER)


def keep_freed() -> None:
    """With glibc, makes the process keep up to KEPT_BYTES of freed memory."""
    if hasattr(_libc, "mallopt"):
        _libc.mallopt(_MMAP_THRESHOLD, MAPPED_BYTES)
        _libc.mallopt(_TRIM_THRESHOLD, KEPT_BYTES)


def give_back() -> None:
    """Gives memory back to the kernel: all freed memory, and the unchanged pages of libraries."""
    if hasattr(_libc, "malloc_trim"):
        _libc.malloc_trim(0)
    if hasattr(_libc, "madvise"):
        for begin, end in _library_pages.now():
            _libc.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), _DONTNEED)


def unchanged(smaps: Iterable[str]) -> Iterator[str]:
    """Finds the mappings that have only unchanged pages of a library's file. Yields the line of
    each such mapping in /proc/self/maps. The kernel can read these pages again from the file.

    smaps: the lines of /proc/self/smaps. A mapping is left out if this process may write to it, or
    if it has pages that the process has changed ("Anonymous"), because the file does not contain
    the changes.
    """
    mapping = ""
    for line in smaps:
        if _MAPPING.match(line):
            mapping = line
        elif line.startswith("Anonymous:") and line.split()[1] == "0" and _is_library(mapping):
            yield mapping


def _is_library(mapping: str) -> bool:
    """Whether a mapping belongs to a library's file and is not writable."""
    rights, path = mapping.split()[1], mapping.split()[-1]
    return "w" not in rights and rights.endswith("p") and bool(_LIBRARY.search(path))


class _LibraryPages:
    """The address ranges of unchanged pages of libraries. Reading /proc/self/smaps takes 30 ms, so
    this object reads it once. Later the object only checks that the mappings still exist."""

    def __init__(self) -> None:
        self._found: list[str] | None = None

    def now(self) -> list[tuple[int, int]]:
        """Returns the present address ranges of the libraries' unchanged pages; none if there is no
        /proc."""
        try:
            if self._found is None:
                with open("/proc/self/smaps") as lines:
                    self._found = list(unchanged(lines))
            with open("/proc/self/maps") as lines:
                there = set(lines)
        except OSError:
            return []
        ranges = [line.split()[0].split("-") for line in self._found if line in there]
        return [(int(begin, 16), int(end, 16)) for begin, end in ranges]


_library_pages = _LibraryPages()

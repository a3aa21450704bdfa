"""The agent sets how much freed memory the C library keeps, and returns free memory to the kernel
when it has nothing to do."""

from __future__ import annotations

import subprocess
import sys

import pytest

from skidway.agent import memory

SMAPS = """\
7f00-7f08 r--p 00000000 08:01 5 /lib/libarrow.so.2600
Rss: 32 kB
Anonymous: 0 kB
7f08-7f10 r-xp 00008000 08:01 5 /lib/libarrow.so.2600
Anonymous: 0 kB
7f10-7f18 r--p 00010000 08:01 5 /lib/libarrow.so.2600
Anonymous: 8 kB
7f18-7f20 rw-p 00018000 08:01 5 /lib/libarrow.so.2600
Anonymous: 0 kB
7f20-7f28 r--s 00000000 08:01 6 /lib/shared.so
Anonymous: 0 kB
7f28-7f30 r--p 00000000 08:01 7 /log/app.log
Anonymous: 0 kB
7f30-7f38 r-xp 00000000 08:01 7 /lib/old.so (deleted)
Anonymous: 0 kB
7f38-7f40 r--p 00000000 00:00 0
Anonymous: 0 kB
""".splitlines(keepends=True)


class Library:
    """A C library with glibc's functions. It records the calls of these functions."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int, int]] = []

    def mallopt(self, parameter: int, value: int) -> int:
        self.calls.append(("mallopt", parameter, value))
        return 1

    def malloc_trim(self, kept: int) -> int:
        self.calls.append(("malloc_trim", kept, 0))
        return 1


def test_a_busy_agent_keeps_freed_memory_and_a_quiet_one_gives_it_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`keep_freed` sets how much freed memory glibc may keep, and `give_back` makes glibc return
    all free memory to the kernel."""
    library = Library()
    monkeypatch.setattr(memory, "_libc", library)
    memory.keep_freed()
    memory.give_back()
    assert library.calls == [
        ("mallopt", -3, memory.MAPPED_BYTES),
        ("mallopt", -1, memory.KEPT_BYTES),
        ("malloc_trim", 0, 0),
    ]


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the C library lacks the functions that `keep_freed` and `give_back` call, both do
    nothing."""
    monkeypatch.setattr(memory, "_libc", object())
    memory.keep_freed()
    memory.give_back()


def test_only_unchanged_pages_of_libraries_are_given_back() -> None:
    """The agent returns a page of memory to the kernel only if the page belongs to a library, and
    the process has not changed the page and cannot change it."""
    assert list(memory.unchanged(SMAPS)) == [SMAPS[0], SMAPS[3]]


def test_a_quiet_agent_has_few_pages_of_libraries_and_still_works() -> None:
    """Arrow and NumPy still work after the agent has twice returned their unchanged pages to the
    kernel."""
    code = """
import numpy, pyarrow, pyarrow.compute as pc
from skidway.agent import memory
def resident():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssFile"))
before = resident()
memory.give_back()
after = resident()
for number in range(2):
    assert pc.sum(pyarrow.array([1, 2, 3])).as_py() == 6
    assert int(numpy.arange(10).sum()) == 45
    memory.give_back()
print(before, after, resident())
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after, again = map(int, found.stdout.split())
    assert after < before * 2 / 3
    assert again < before * 2 / 3

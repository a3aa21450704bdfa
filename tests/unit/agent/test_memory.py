"""The agent tells the C library how much freed memory to keep."""

from __future__ import annotations

import pytest

from skidway.agent import memory


class Library:
    """A C library with glibc's two functions, which notes the calls."""

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
    """glibc gets the limits of the memory that it keeps, and gives everything back if asked."""
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
    """Without glibc, nothing happens."""
    monkeypatch.setattr(memory, "_libc", object())
    memory.keep_freed()
    memory.give_back()

"""Gathers the parts of an answer, which may arrive one by one. The answer is sent when the last
part has arrived.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

P = TypeVar("P")


class Gathering(Generic[P]):
    """Gathers parts, each of which has an index. When no part is missing, calls `finish` once with
    all parts, in the order of their indexes.
    """

    __slots__ = ("_finish", "_missing", "_parts")

    def __init__(self, count: int, finish: Callable[[Sequence[P]], None]) -> None:
        self._parts: list[P | None] = [None] * count
        self._missing = count
        self._finish = finish
        if not count:
            finish(())

    def put(self, at: int, part: P) -> None:
        """Stores the part at index `at`. When no part is missing any more, calls `finish`."""
        assert self._parts[at] is None
        self._parts[at] = part
        self._missing -= 1
        if not self._missing:
            self._finish([each for each in self._parts if each is not None])

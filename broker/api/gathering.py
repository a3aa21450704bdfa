"""Gathers the parts of an answer, which may arrive one by one. The answer is sent when the last
part has arrived.

If ZooKeeper has to be asked for the parts, they are asked for as others arrive, `AT_ONCE` at a
time, so that a request for thousands of them does not stand before the requests of others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Generic, TypeVar

AT_ONCE: Final = 100
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


class Asking(Generic[P]):
    """Asks for parts, and calls `finish` with all of them. `ask(at, put)` asks for the part at an
    index; it passes the part to `put`, at once or later. Asks no more when `is_wanted` returns
    False."""

    __slots__ = ("_ask", "_asked", "_away", "_count", "_gathering", "_is_asking", "_is_wanted")

    def __init__(
        self,
        count: int,
        ask: Callable[[int, Callable[[P], None]], None],
        finish: Callable[[Sequence[P]], None],
        is_wanted: Callable[[], bool],
    ) -> None:
        self._count = count
        self._ask = ask
        self._is_wanted = is_wanted
        self._asked = self._away = 0
        self._is_asking = False
        self._gathering: Gathering[P] = Gathering(count, finish)
        self._go_on()

    def _go_on(self) -> None:
        if self._is_asking:
            return  # a part came at once; the loop below goes on
        self._is_asking = True
        while self._asked < self._count and self._away < AT_ONCE and self._is_wanted():
            at = self._asked
            self._asked += 1
            self._away += 1
            self._ask(at, partial(self._put, at))
        self._is_asking = False

    def _put(self, at: int, part: P) -> None:
        self._away -= 1
        self._gathering.put(at, part)
        self._go_on()

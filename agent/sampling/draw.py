"""Decides which ranges are drawn. All functions are pure, so a draw can be repeated."""

from __future__ import annotations

import struct
from bisect import insort
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from skidway.agent.values.drawn import Drawn
from skidway.agent.values.intents import Intent

_PLACE: Final = struct.Struct("<qqqq")
_LOT_BITS: Final = 63
"""SQLite stores a lot as a signed number."""


def period_of(now_ms: int, period_ms: int) -> int:
    """The begin (ms) of the period that has this time."""
    return now_ms - now_ms % period_ms


def drawn(agent: int, period: int, period_ms: int, intent: Intent) -> Drawn:
    """The intent with its lot in this period. The lot does not depend on other intents."""
    place = _PLACE.pack(agent, period, intent.file, intent.first)
    lot = int.from_bytes(blake2b(place, digest_size=8).digest(), "little")
    return Drawn(period, period_ms, lot >> (64 - _LOT_BITS), intent)


class Draw:
    """The ranges with the least lots of one period, at most `limit` of them. All ranges that were
    offered had the same chance, whatever their order."""

    def __init__(self, period: int, limit: int, known: Sequence[Drawn] = ()) -> None:
        self.period = period
        self._limit = limit
        self._kept = sorted(known, key=_order)

    @property
    def kept(self) -> Sequence[Drawn]:
        """The drawn ranges, the least lot first."""
        return self._kept

    def offer(self, each: Drawn) -> tuple[bool, Drawn | None]:
        """Offers a range. Returns whether it is drawn, and the range that it replaces, if any."""
        if len(self._kept) >= self._limit and _order(each) >= _order(self._kept[-1]):
            return False, None
        insort(self._kept, each, key=_order)
        return True, self._kept.pop() if len(self._kept) > self._limit else None


def _order(each: Drawn) -> tuple[int, int, int, int]:
    return each.order

"""Chooses at random from which byte ranges of the log files the agent makes samples for the audit.
All functions are pure, so the same input gives the same choice.
"""

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
"""How many bits a lot (see `drawn`) has, so that SQLite can store it as a signed number of 64
bits."""


def period_of(now_ms: int, period_ms: int) -> int:
    """Returns the beginning (ms) of the period that contains this time."""
    return now_ms - now_ms % period_ms


def drawn(agent: int, period: int, period_ms: int, intent: Intent) -> Drawn:
    """Returns the intent, and its lot: a hash that decides whether the intent is chosen in this
    period. The lot does not depend on other intents.
    """
    place = _PLACE.pack(agent, period, intent.file, intent.first)
    lot = int.from_bytes(blake2b(place, digest_size=8).digest(), "little")
    return Drawn(period, period_ms, lot >> (64 - _LOT_BITS), intent)


class Draw:
    """The ranges of one period that have the lowest lots (see `drawn`), at most `limit` of them.
    Each range that was offered has the same chance to be one of them, in whatever order the ranges
    were offered.
    """

    def __init__(self, period: int, limit: int, known: Sequence[Drawn] = ()) -> None:
        self.period = period
        self._limit = limit
        self._kept = sorted(known, key=_order)

    @property
    def kept(self) -> Sequence[Drawn]:
        """The chosen ranges, sorted by their lots (see `drawn`), the lowest lot first."""
        return self._kept

    def offer(self, each: Drawn) -> tuple[bool, Drawn | None]:
        """Offers a range. Returns whether the range is now one of the chosen ranges. Also returns
        the range that was chosen before and is dropped in its favour; None if no range is dropped.
        """
        if len(self._kept) >= self._limit and _order(each) >= _order(self._kept[-1]):
            return False, None
        insort(self._kept, each, key=_order)
        return True, self._kept.pop() if len(self._kept) > self._limit else None


def _order(each: Drawn) -> tuple[int, int, int, int]:
    return each.order

"""Decides when a wait has lasted so long that an operator should know of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

SECONDS: Final = 30.0


class Patience:
    """Watches one wait."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._since_s: float | None = None
        self._said = False

    def ends(self, is_moving: bool) -> bool:
        """Call this again and again during the wait. Returns True once in each time in which
        nothing moved for `SECONDS`, as soon as they have passed."""
        if is_moving or self._since_s is None:
            self._since_s, self._said = self._monotonic(), False
        if self._said or self._monotonic() - self._since_s < SECONDS:
            return False
        self._said = True
        return True

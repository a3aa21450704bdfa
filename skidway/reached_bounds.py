"""Bounds that clients have reached. The log names each bound once in a while; metrics count every
time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from skidway.rare_lines import RareLines


class ReachedBounds:
    """Names reached bounds in the log. The names of bounds come from a fixed set. One thread uses
    it."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._lines = RareLines("bound_reached", monotonic)

    def tell(self, bound: str, limit: float, **fields: Any) -> None:
        """Logs that the bound (a setting, or a sentence's subject) is reached, unless the log has
        named it shortly before."""
        self._lines.tell(bound, bound=bound, limit=limit, **fields)

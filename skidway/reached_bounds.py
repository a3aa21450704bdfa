"""Bounds that clients have reached. A client that reaches a bound does so again and again, so the
log names each bound once in `REPEAT_AFTER_S`. Metrics count every time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from skidway import log

REPEAT_AFTER_S: Final = 600.0
_log = log.get(__name__)


class ReachedBounds:
    """Names reached bounds in the log. The names of bounds come from a fixed set. One thread uses
    it."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._named: dict[str, tuple[float, int]] = {}

    def tell(self, bound: str, limit: float, **fields: Any) -> None:
        """Logs that the bound (a setting, or a sentence's subject) is reached, unless the log has
        named it shortly before."""
        now_s = self._monotonic()
        at_s, repeats = self._named.get(bound, (None, 0))
        if at_s is not None and now_s - at_s < REPEAT_AFTER_S:
            self._named[bound] = at_s, repeats + 1
            return
        self._named[bound] = now_s, 0
        _log.warning("bound_reached", bound=bound, limit=limit, repeats=repeats, **fields)

"""Log lines that anybody on the network can cause. Whoever causes one causes it again and again, so
the log has each of them once in `REPEAT_AFTER_S`, and at most `LINES_MAX` different ones of an
event in that time. Metrics count every time. (`log` cuts long texts.)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Any, Final

from skidway import log

REPEAT_AFTER_S: Final = 600.0
LINES_MAX: Final = 100
"""Different lines of an event, if its owner says nothing else."""
_log = log.get(__name__)


class RareLines:
    """Writes the lines of one event. One thread uses it."""

    def __init__(
        self,
        event: str,
        monotonic: Callable[[], float] = time.monotonic,
        write: Callable[..., None] = _log.warning,
        lines_max: int = LINES_MAX,
    ) -> None:
        self._event = event
        self._write = write
        self._lines_max = lines_max
        self._monotonic = monotonic
        self._named: dict[Hashable, tuple[float, int]] = {}
        """When each line was written, the oldest first, and how often it was left out since."""

    def tell(self, which: Hashable, **fields: Any) -> None:
        """Writes a line, unless the log has the line `which` already, or enough other lines.
        which: by what the line differs from other lines of the event; of limited size."""
        now_s, named = self._monotonic(), self._named
        at_s, repeats = named.get(which, (-REPEAT_AFTER_S, 0))
        if which in named and now_s - at_s < REPEAT_AFTER_S:
            named[which] = at_s, repeats + 1
            return
        named.pop(which, None)
        if len(named) >= self._lines_max:
            oldest = next(iter(named))
            if now_s - named[oldest][0] < REPEAT_AFTER_S:
                return
            del named[oldest]
        named[which] = now_s, 0
        self._write(self._event, **fields, repeats=repeats)

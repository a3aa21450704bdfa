"""Notices that the wall clock was set back while the agent runs. Then a file may have an older time
of change than before although a program has just written to it.
"""

from __future__ import annotations

from skidway.agent.files.look import STEP_MS


class SetBack:
    """Owns the span of times that the wall clock shows twice because it was set back."""

    def __init__(self) -> None:
        self._noted: tuple[float, int] | None = None
        self._begin_ms = self._end_ms = 0

    def note(self, now: float, now_ms: int) -> None:
        """Compares the wall clock (ms) with the monotonic clock (s). If the wall clock was set back
        since the last call, notes the span of times that it shows twice.
        """
        if self._noted is not None:
            elapsed_ms = int((now - self._noted[0]) * 1000)
            expected_ms = self._noted[1] + elapsed_ms
            if now_ms + STEP_MS < expected_ms:
                begin_ms, end_ms = now_ms - elapsed_ms - STEP_MS, expected_ms + STEP_MS
                if begin_ms <= self._end_ms:  # the clock has not passed the last span yet
                    begin_ms = min(begin_ms, self._begin_ms)
                self._begin_ms, self._end_ms = begin_ms, max(end_ms, self._end_ms)
        self._noted = now, now_ms

    def is_later(self, changed_ns: int, before_ns: int) -> bool:
        """Whether a file with the time of change `changed_ns` may have been changed after it had
        the time of change `before_ns`, although `changed_ns` is older. The answer is yes only if
        both times are in the span that the clock shows twice. Any other older time says nothing,
        because a power failure or `touch` may have changed it.
        """
        begin_ns, end_ns = self._begin_ms * 1_000_000, self._end_ms * 1_000_000
        return begin_ns <= changed_ns < before_ns <= end_ns

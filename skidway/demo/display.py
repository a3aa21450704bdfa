"""What the demo prints while it runs: events, one below the other, and the current state.

On a terminal the state is shown below the newest event, and each new state overwrites the old one.
In a file or a pipe, the state is one plain line, without carriage returns and escape codes. This
line is printed from time to time, if it has changed.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from typing import TextIO

from skidway.cli.streams import raw

PLAIN_FIRST_S = 10.0
PLAIN_GROWTH = 1.5
"""Each pause between two plain lines is longer than the previous pause by this factor. So a slow
machine prints hardly more lines than a fast machine."""
REDRAWN_EVERY_S = 0.5


class Display:
    """Writes all output while the demo runs."""

    def __init__(self, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._out, self._clock = out, clock
        self._begin = clock()
        self._is_terminal = out.isatty()
        self._pause_s = REDRAWN_EVERY_S if self._is_terminal else PLAIN_FIRST_S
        self._drawn: list[str] = []
        self._said = ""
        self._shown_at = self._said_at = self._begin

    @property
    def is_terminal(self) -> bool:
        return self._is_terminal

    @property
    def elapsed_s(self) -> float:
        return self._clock() - self._begin

    @property
    def silent_s(self) -> float:
        """For how many seconds no event has been printed."""
        return self._clock() - self._said_at

    def is_due(self) -> bool:
        """Returns whether it is time to print the next state."""
        return self._clock() - self._shown_at >= self._pause_s

    def say(self, event: str) -> None:
        """Prints one event with its time, above the state."""
        drawn, self._said_at = self._drawn, self._clock()
        self._erase()
        seconds = int(self.elapsed_s)
        self._write([f"{seconds // 60}:{seconds % 60:02}  {event}"])
        self._draw(drawn)

    def state(self, lines: Sequence[str]) -> None:
        """Shows `lines` as the demo's present state, in place of the previous state. On a terminal
        the state may have several lines, elsewhere only one line.
        """
        self._shown_at = self._clock()
        if self._is_terminal:
            self._erase()
            self._draw(lines)
        else:
            self._pause_s *= PLAIN_GROWTH if lines else 1.0
            for each in lines:
                if each != self._said:
                    self.say(each)
                self._said = each

    def end_state(self) -> None:
        """Keeps the last state on the screen, so that later events are printed below it."""
        self._drawn = []

    def _draw(self, lines: Sequence[str]) -> None:
        if lines:
            columns = shutil.get_terminal_size().columns
            self._drawn = [each[: columns - 1] for each in lines]
            self._write(self._drawn)

    def _erase(self) -> None:
        if self._drawn:
            raw(self._out).write(f"\x1b[{len(self._drawn)}F\x1b[J")
            self._drawn = []

    def _write(self, lines: Sequence[str]) -> None:
        self._out.write("".join(f"{each}\n" for each in lines))
        self._out.flush()

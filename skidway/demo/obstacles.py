"""Says what keeps the agent from delivering: paths that it cannot read, and bytes that it has not
delivered yet. This module does no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from skidway.agent.files.plain_sizes import not_yet
from skidway.demo.outcome import DemoOutcome, Unread, fates_of
from skidway.demo.summary import shown
from skidway.errors import SkidwayError

UNREADABLE_FOR_S = 15.0
"""The demo no longer waits for a path that the agent has not been able to read for this long. For
some seconds, a path may be unreadable without a fault, for example while a program renames files.
"""

STUCK_FOR_S = 120.0
"""The demo gives up if the agent has delivered no byte of a file for this long. Even a busy machine
hardly needs so much time."""
ASK_EVERY_S = 10.0
"""Seconds between two requests for the agent's accounts while the demo waits for seals."""


class UnreadablePaths:
    """Remembers which unreadable paths the agent's /health names, and since when."""

    def __init__(self, known: Iterable[str]) -> None:
        """known: the paths that could not be read before the agent started."""
        self._since = dict.fromkeys(known, float("-inf"))

    def take(self, health: Mapping[str, Any], now_s: float) -> dict[str, Unread]:
        """Takes what the agent's /health says now. Returns the paths that it has named for
        `UNREADABLE_FOR_S`, or names and were known before. A file that is being decompressed is not
        unreadable.
        """
        passing = not_yet().strerror
        named = {
            path: Unread(topic, reason)
            for topic, reasons in health.get("unreadable", {}).items()
            for path, reason in reasons.items()
            if reason != passing
        }
        self._since = {path: self._since.get(path, now_s) for path in named}
        since = self._since
        return {x: why for x, why in named.items() if now_s - since[x] >= UNREADABLE_FOR_S}


class StuckFiles:
    """Remembers, for each file id with pending bytes, how many bytes the agent has accounted for,
    and since when this number has not changed."""

    def __init__(self, now_s: float) -> None:
        self._asked_at = now_s
        self._since: dict[int, tuple[int, float]] = {}

    def is_due(self, now_s: float) -> bool:
        """Whether it is time to ask for the agent's accounts again."""
        return now_s - self._asked_at >= ASK_EVERY_S

    def take(self, ledger: Sequence[Mapping[str, Any]], now_s: float) -> None:
        """Notes how far the agent has come in the files of `ledger` (see `pending`). Raises
        SkidwayError if a file has pending bytes, and the agent has accounted for no further byte of
        the file for `STUCK_FOR_S`. Then a line of the file probably grows for ever, and the agent
        cannot seal the file's topic."""
        self._asked_at, before = now_s, self._since
        stuck = [row for row in ledger if row["pending"]]
        counts = {row["file"]: fates_of(row).total() for row in stuck}
        self._since = {
            file: before[file] if before.get(file, (-1, 0.0))[0] == count else (count, now_s)
            for file, count in counts.items()
        }
        for row in stuck:
            if now_s - self._since[row["file"]][1] >= STUCK_FOR_S:
                raise SkidwayError(f"the agent cannot seal {row['topic']}{pending([row])}")


def unsettled(outcome: DemoOutcome) -> str:
    """Returns words about the first file that has bytes up to the cut-off for which the agent has
    not accounted yet; "" if there is no such file."""
    for file, missing in outcome.unsettled.items():
        return f": the agent says nothing of {missing:,} bytes of {shown(file.path)}"
    return ""


def pending(ledger: Sequence[Mapping[str, Any]]) -> str:
    """Returns words about the file with the most pending bytes, because pending bytes hold seals
    back; "" if no file has pending bytes. ledger: the files of `skidway agent state show`."""
    most = max(ledger, key=lambda row: row["pending"], default=None)
    if most is None or not most["pending"]:
        return ""
    return f": {most['pending']:,} bytes of {most['path']} are pending, perhaps a line that grows"

"""Says what keeps the agent from delivering: paths that it cannot read, and bytes that it has not
delivered yet. This module does no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skidway.agent.files.plain_sizes import not_yet
from skidway.demo.outcome import DemoOutcome, fates_of
from skidway.demo.summary import shown
from skidway.errors import SkidwayError

UNREADABLE_FOR_S = 15.0
"""The agent may name a path that it can read some seconds later, for example while a program
renames files."""

STUCK_FOR_S = 120.0
"""A busy machine may need long to deliver a byte, but hardly as long as this."""
ASK_EVERY_S = 10.0
"""Seconds between two requests for the agent's accounts while the demo waits for seals."""


class UnreadablePaths:
    """Owns the time since when the agent has named the same unreadable path."""

    def __init__(self) -> None:
        self._first: tuple[str, str] | None = None
        self._since = 0.0

    def take(self, health: Mapping[str, Any], now_s: float) -> None:
        """Takes what the agent's /health says now. Raises SkidwayError if the first unreadable path
        has been the same for `UNREADABLE_FOR_S`. A file that is being decompressed is no obstacle.
        """
        passing = not_yet().strerror
        paths = {
            path: reason
            for reasons in health.get("unreadable", {}).values()
            for path, reason in reasons.items()
            if reason != passing
        }
        first = min(paths.items(), default=None)
        if first != self._first:
            self._first, self._since = first, now_s
        if first is not None and now_s - self._since >= UNREADABLE_FOR_S:
            raise SkidwayError(f"the agent cannot read {shown(first[0])}: {first[1]}")


class StuckFiles:
    """Owns, by file id, how many bytes of a file with pending bytes had fates, and since when."""

    def __init__(self, now_s: float) -> None:
        self._asked_at = now_s
        self._since: dict[int, tuple[int, float]] = {}

    def is_due(self, now_s: float) -> bool:
        """Whether it is time to ask for the agent's accounts again."""
        return now_s - self._asked_at >= ASK_EVERY_S

    def take(self, ledger: Sequence[Mapping[str, Any]], now_s: float) -> None:
        """Takes the files of `skidway agent state show`. Raises SkidwayError if a file has pending
        bytes, but no byte of it got a fate for `STUCK_FOR_S`. Then a line probably grows for ever,
        and the agent cannot seal its topic."""
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
    """Returns, in words, the first file whose bytes up to the cut-off have no fate yet; "" if there
    is none."""
    for file, missing in outcome.unsettled.items():
        return f": the agent says nothing of {missing:,} bytes of {shown(file.path)}"
    return ""


def pending(ledger: Sequence[Mapping[str, Any]]) -> str:
    """Returns, in words, the file with the most bytes that are not delivered yet, because such
    bytes hold seals back; "" if there is none. ledger: the files of `skidway agent state show`."""
    most = max(ledger, key=lambda row: row["pending"], default=None)
    if most is None or not most["pending"]:
        return ""
    return f": {most['pending']:,} bytes of {most['path']} are pending, perhaps a line that grows"

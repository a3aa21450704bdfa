"""Tests the sentences about what keeps the agent from delivering."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skidway.demo import obstacles
from skidway.demo.outcome import DemoOutcome, Unread
from skidway.demo.sources import FileSize
from skidway.errors import SkidwayError

REASON = "it is a link that leads nowhere"
ROW: dict[str, Any] = {
    "file": 1, "device": 8, "inode": 1, "born_ns": 5, "path": "/w/a.log", "topic": "logs",
    "acknowledged": 7, "rejected": 0, "filtered": 0, "lost": 0, "uncertain": 0, "begin": 0,
    "pending": 3,
}  # fmt: skip


def health(**paths: str) -> dict[str, Any]:
    """Returns what the agent's /health says about unreadable paths. `paths` has a reason for each
    path."""
    return {"unreadable": {"app-logs": {f"/w/{name}": said for name, said in paths.items()}}}


def test_a_path_that_stays_unreadable_is_waited_for_only_some_seconds() -> None:
    """If the agent names the same unreadable path for some seconds, the demo no longer waits for
    it. For a path that it could not read itself before the agent started, the demo does not wait at
    all."""
    paths = obstacles.UnreadablePaths(["/w/c"])
    assert paths.take(health(b=REASON, c=REASON), 0.0) == {"/w/c": Unread("app-logs", REASON)}
    assert paths.take(health(b=REASON), 14.0) == {}
    assert paths.take(health(b=REASON), 15.0) == {"/w/b": Unread("app-logs", REASON)}


def test_a_path_that_can_be_read_soon_is_no_obstacle() -> None:
    """The demo waits for a path that was unreadable for a moment, and for a file that is being
    decompressed. An agent that does not answer names no path."""
    paths = obstacles.UnreadablePaths([])
    for now_s, answer in enumerate((health(a=REASON), health(), health(a=REASON), {}, health())):
        assert not paths.take(answer, now_s * 10.0)
    for now_s in range(100, 200, 10):
        assert not paths.take(health(a="it is being decompressed"), now_s)


def test_the_first_file_that_is_waited_for_in_vain_is_named() -> None:
    """If the demo waits for bytes, its message names the first file with bytes for which the agent
    has not accounted, and the number of these bytes. If the demo waits for a seal, its message
    names the file with the most pending bytes."""
    outcome = DemoOutcome(files=[FileSize(Path(f"/w/{i}.log"), (8, i, 5), 10, 10) for i in (1, 2)])
    outcome.take_ledger([ROW | {"acknowledged": 10}])
    said = obstacles.unsettled(outcome)
    assert said == ": the agent says nothing of 10 bytes of /w/2.log"
    outcome.take_ledger([ROW | {"acknowledged": 10}, ROW | {"acknowledged": 10, "inode": 2}])
    assert not obstacles.unsettled(outcome)
    said = obstacles.pending([ROW, ROW | {"path": "/w/b.log", "pending": 1}])
    assert said == ": 3 bytes of /w/a.log are pending, perhaps a line that grows"
    assert not obstacles.pending([ROW | {"pending": 0}])
    assert not obstacles.pending([])


def test_a_line_that_grows_for_ever_ends_the_wait_for_seals() -> None:
    """If a file has pending bytes, and none of its bytes is delivered for two minutes, the demo
    does not wait longer for the agent's seal. Its error names the file. A file of which bytes are
    delivered meanwhile, and a file without pending bytes, do not end the wait."""
    files = obstacles.StuckFiles(0.0)
    assert (files.is_due(9.0), files.is_due(10.0)) == (False, True)
    quiet = ROW | {"file": 2, "pending": 0}
    for now_s in range(10, 400, 10):
        files.take([ROW | {"acknowledged": now_s}, quiet], now_s)
    assert not files.is_due(399.0)
    for now_s in range(390, 510, 10):
        files.take([ROW | {"acknowledged": 390, "pending": now_s}], now_s)
    with pytest.raises(SkidwayError, match=r"^the agent cannot seal logs: 9 bytes of /w/a\.log"):
        files.take([ROW | {"acknowledged": 390, "pending": 9}], 510)

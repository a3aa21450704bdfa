"""Tests the table in which the agent looks up which logs began at a given path, or are at this path
now."""

from __future__ import annotations

from skidway.agent.files.copies import ORIGINALS_MAX, Copies
from skidway.agent.values.found import FileKey
from skidway.agent.values.identity import Fingerprint, Guard
from skidway.agent.values.tracked import Birth, Checkpoint, TrackedFile
from support.agent_world import Files
from support.clock import ManualClock

APP, OLD, OLDER = "/log/app.log", "/archive/app.log.1", "/archive/app.log.2"


def tracked(number: int, path: str = APP) -> TrackedFile:
    birth = Birth(
        number, number, "logs", "id", "host", path, FileKey(1, number), Fingerprint(0, b"")
    )
    return TrackedFile(birth, Checkpoint(0, 0, Guard(0, 0), ()), path, meant=path)


def test_a_moved_log_is_found_where_it_was_written_and_where_it_is() -> None:
    """A log that was moved to another directory is listed under three paths: the path at which it
    was written, its present path, and the present path without the ending that rotation has added
    (`.2`). It is not listed under paths at which it was in between. When the agent forgets the log,
    the log is listed under no path."""
    copies, log = Copies(Files(ManualClock())), tracked(1)
    copies.remember(log)
    copies.move(log, OLD)
    assert [*map(copies.born_at, (APP, OLD, "/archive/app.log"))] == [(log,)] * 3
    copies.move(log, OLDER)
    assert log.meant == OLDER
    assert [*map(copies.born_at, (APP, OLD, OLDER, "/archive/app.log"))] == [
        (log,), (), (log,), (log,),
    ]  # fmt: skip
    copies.forget(log)
    assert [*map(copies.born_at, (APP, OLD, OLDER, "/archive/app.log"))] == [()] * 4


def test_the_newest_logs_of_a_path_are_kept_the_oldest_first() -> None:
    """The logs of a path are listed from the oldest to the newest, even if an old log was moved to
    the path last. The list has at most ORIGINALS_MAX logs: the newest ones."""
    copies = Copies(Files(ManualClock()))
    logs = [tracked(number, "/other/x.log") for number in range(ORIGINALS_MAX + 1)]
    for log in logs:
        copies.remember(log)
    for log in reversed(logs):
        copies.move(log, APP)
    assert copies.born_at(APP) == tuple(logs[1:])

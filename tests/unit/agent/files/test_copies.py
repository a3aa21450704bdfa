"""The agent's tables of logs and of their copies."""

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
    """A log that was moved to another directory is listed under the path where it was written,
    under its present path, and under the name that a later rotation starts from. It is no longer
    listed under paths where it was in between. When the agent forgets the log, no list has it."""
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
    """The list of a path is sorted by age, even if an old log was moved to the path last, and has
    at most ORIGINALS_MAX logs."""
    copies = Copies(Files(ManualClock()))
    logs = [tracked(number, "/other/x.log") for number in range(ORIGINALS_MAX + 1)]
    for log in logs:
        copies.remember(log)
    for log in reversed(logs):
        copies.move(log, APP)
    assert copies.born_at(APP) == tuple(logs[1:])

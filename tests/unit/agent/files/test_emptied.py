"""Tests logs that were emptied. If a look of the agent has found a log empty, all bytes that are
written to the log later are new, even if they are the same bytes as before."""

from __future__ import annotations

import pytest

from skidway.agent.values.identity import FINGERPRINT_BYTES
from support.agent_world import World, raw, settings
from support.promises import promise

LOG = "/log/job.log"
RUN = b"Starting job\n"
LONGER = RUN + b"1 file copied\n"


def emptied(first: bytes = RUN) -> World:
    """Returns a simulated host whose agent has read a log, has then found it empty, and has
    declared a loss."""
    world = World(settings(raw("logs", LOG)))
    world.files.append(LOG, first)
    world.start()
    world.settle()
    world.files.truncate(LOG)
    world.settle()
    assert len(world.losses()) == 1
    world.clock.advance(600)
    world.settle()
    return world


@promise("1 file id")
@pytest.mark.parametrize("again", [RUN, LONGER])
@pytest.mark.parametrize("event", ["", "restart", "down"])
def test_lines_that_begin_as_before_are_all_read(again: bytes, event: str) -> None:
    """If a log was empty at a look, and a job then writes the same first lines as before, the agent
    reads all lines and declares no further loss. This is also true if the agent was restarted after
    the look, or if the job writes while no agent runs."""
    world = emptied()
    if event:
        world.kill()
    if event == "restart":
        world.start()
        world.settle()
    world.files.append(LOG, again)
    if event == "down":
        world.clock.advance(2)
        world.start()
    world.settle(60)
    assert world.values() == (RUN + again).decode().splitlines()
    assert len(world.losses()) == 1


@promise("1 file id")
def test_a_log_that_was_emptied_while_no_agent_ran() -> None:
    """If the agent finds a log empty only after its restart, and the log then gets the same lines
    again, the agent reads them."""
    world = World(settings(raw("logs", LOG)))
    world.files.append(LOG, RUN)
    world.start()
    world.settle()
    world.kill()
    world.files.truncate(LOG)
    world.start()
    world.settle()
    world.files.append(LOG, LONGER)
    world.settle()
    assert world.values() == (RUN + LONGER).decode().splitlines()


@promise("1 file id")
def test_the_same_bytes_at_the_same_time_of_change() -> None:
    """A file's time of change is coarse, so a write may leave it as it was. In this test, the agent
    finds a log empty. Then the log gets the same bytes that it had before it was emptied, but its
    time of change stays the same. The agent still reads these bytes."""
    world = emptied()
    changed_ns = world.files.by_path[LOG].changed_ns
    world.files.append(LOG, RUN).changed_ns = changed_ns
    world.settle()
    assert world.values() == (RUN + RUN).decode().splitlines()


@promise("1 copies")
def test_a_copy_of_the_old_lines_is_still_a_copy() -> None:
    """If a copy of the old lines appears after a look found the log empty, the agent reads only
    those bytes of the copy that it had not read before. It reads the log's new lines once."""
    world = emptied()
    world.files.append(f"{LOG}.1", RUN + b"unread\n")
    world.files.append(LOG, LONGER)
    world.settle()
    assert sorted(world.values()) == sorted([*(RUN + LONGER).decode().splitlines(), "unread"])


@promise("1 copies")
def test_lines_that_are_only_in_a_copy_are_read() -> None:
    """If a job writes to the log after a look found it empty, and the log is then copied, emptied
    and written to again before the next look, the agent reads the copy, too."""
    world = emptied()
    world.files.append(f"{LOG}.1", LONGER)
    world.files.append(LOG, LONGER)
    world.files.truncate(LOG)
    world.files.append(LOG, RUN + b"2 files copied\n")
    world.settle()
    assert sorted(set(world.values())) == ["1 file copied", "2 files copied", "Starting job"]


@promise("1 compression")
def test_a_copy_that_is_compressed_later_is_not_read_again() -> None:
    """With logrotate's `copytruncate` and `delaycompress`, the copy of a log is compressed at the
    next rotation. Although a look has found the log empty, the agent does not read the lines in the
    compressed copy again."""
    first = b"x" * FINGERPRINT_BYTES + b"\n"
    world = World(settings(raw("logs", LOG)))
    world.files.append(LOG, first)
    world.start()
    world.settle()
    world.files.append(f"{LOG}.1", first)
    world.files.truncate(LOG)
    world.settle()
    world.files.append(LOG, b"next\n")
    world.settle()
    world.files.rename(f"{LOG}.1", f"{LOG}.2")
    world.files.compress(f"{LOG}.2")
    world.settle()
    world.files.append(LOG, b"last\n")
    world.settle()
    assert world.values() == [first.decode().strip(), "next", "last"]

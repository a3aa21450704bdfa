"""Tests the agent's seals. A seal of a topic contains a time, here called W. The seal guarantees
that all lines that were in the topic's files at the time W are acknowledged and counted."""

from collections.abc import Sequence

import pytest

from skidway.agent.files.host import Scan
from skidway.agent.files.patterns import Pattern
from skidway.agent.values.tracked import FileState
from skidway.audit.topic.messages import Delta, Seal
from support.agent_world import World, raw, settings
from support.promises import promise

A = "/log/a.log"


@pytest.fixture
def world() -> World:
    return World(settings(raw()))


def sealed_until(world: World) -> list[int]:
    """Returns the time W (up to which all lines are counted) of each published seal."""
    return [seal.topics[0].sealed_until for seal in world.of(Seal)]


def silently(world: World, turns: int = 10) -> None:
    """Runs some turns of the agent in which announcements and seals are published, but no record is
    acknowledged."""
    world.hold(turns, 0.3)
    world.publish()


# --- the time W, and the scan that notes the sizes ----------------------------------------------


@promise("6 seal")
def test_a_seal_names_the_moment_before_its_look(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time W in a seal is before the scan that notes the files' sizes. So the seal says nothing
    about lines that are written during the scan, to files whose sizes are already noted."""
    world.files.append(A, b"1\n")
    world.start()
    world.settle(5)
    scan, written = world.files.scan, []

    def slow(patterns: Sequence[Pattern]) -> Scan:
        found = scan(patterns)
        world.clock.advance(5)
        world.files.append(A, b"late\n")
        written.append(world.clock.time_ms())
        world.clock.advance(5)
        return found

    monkeypatch.setattr(world.files, "scan", slow)
    world.clock.advance(0.3)
    world.turn()
    monkeypatch.setattr(world.files, "scan", scan)
    assert len(written) == 1
    before = set(sealed_until(world))
    world.publish()
    silently(world)
    named = set(sealed_until(world)) - before
    assert "late" not in world.values(), "it is on its way"
    assert named
    assert max(named) < written[0]


# --- seals and deltas ---------------------------------------------------------------------------


@promise("6 seal")
def test_what_a_seal_vouches_for_is_in_deltas_of_lower_numbers() -> None:
    """Before a seal, the agent sends the deltas (messages with new counts) with the counts of all
    lines that the seal covers. It does so even if its settings make it send deltas only rarely."""
    world = World(settings(raw(), audit_interval_ms=10**7, seal_interval_ms=60_000))
    world.start()
    world.settle(2)
    world.files.append(A, b"1\n2\n")
    world.clock.advance(60)
    for _ in range(20):
        world.tick()
    assert world.values() == ["1", "2"]
    newest = world.of(Seal)[-1]
    deltas = [delta for delta in world.of(Delta) if delta.number < newest.number]
    assert sum(count.count for delta in deltas for count in delta.counts) == 2


# --- when the agent does not send a seal --------------------------------------------------------


@promise("6 seal")
def test_a_file_that_is_not_what_was_read_voids_what_was_noted(world: World) -> None:
    """A seal contains a time, here called W, and says that all earlier lines are counted. If the
    bytes of a file were overwritten before W, but the file's size stayed the same, the agent does
    not send the seal for W. The noted size proves nothing, because only the old bytes were
    acknowledged."""
    world.files.append(A, b"one\ntwo\n")
    world.start()
    world.settle(5)
    world.files.overwrite(A, 0, b"ONE\nTWO\n")
    written = world.clock.time_ms()
    silently(world)
    assert "ONE" not in world.values()
    assert not [wall for wall in sealed_until(world) if wall > written]
    world.settle(5)
    assert world.values() == ["one", "two", "ONE", "TWO"]
    assert [wall for wall in sealed_until(world) if wall > written]


@promise("6 seal")
def test_a_promise_that_cannot_be_kept_voids_what_was_noted() -> None:
    """The first scan after a start notes the length of a rotated file that has intents with
    unacknowledged lines. A seal for the time W of this scan would say that all earlier lines are
    counted. If the agent then finds that other bytes were written to the file before W, it does not
    send this seal."""
    world = World(settings(raw("logs", "/log/*.log", "/log/*.1")))
    world.files.append(A, b"one\ntwo\n")
    world.start()
    silently(world, 6)
    world.files.rename(A, f"{A}.1")
    silently(world, 25)
    (tracked,) = world.agent.tracker.files.values()
    assert tracked.state is FileState.ENDED
    assert tracked.flights
    world.kill()
    world.files.overwrite(f"{A}.1", 0, b"ONE\nTWO\n")
    written = world.clock.time_ms()
    world.clock.advance(1)
    world.start()
    silently(world)
    assert world.values() == []
    assert not [wall for wall in sealed_until(world) if wall > written]
    world.settle(5)
    assert world.values() == ["ONE", "TWO"]
    assert [wall for wall in sealed_until(world) if wall > written]


@promise("6 seal")
def test_generations_that_nobody_saw_void_what_was_noted() -> None:
    """If the agent notices, while a seal waits for acknowledgements, that it has missed rotated
    files, it does not send this seal. It notes the files' sizes again for a later seal."""
    world = World(settings(raw("logs", A)))
    world.files.append(A, b"1\n")
    world.start()
    world.settle(5)
    before = set(sealed_until(world))
    world.files.append(A, b"2\n")
    silently(world, 3)
    noted = world.clock.time_ms()
    world.clock.advance(1)
    doubts = world.agent.tracker.doubts["logs"]
    for number in range(3):  # rotation keeps only one rotated file
        world.files.rename(A, f"{A}.1")
        world.files.append(A, b"%d\n" % number)
    silently(world, 1)
    assert world.agent.tracker.doubts["logs"] > doubts
    world.settle(10)
    later = [wall for wall in sealed_until(world) if wall not in before]
    assert later
    assert min(later) > noted


def test_a_rotated_file_that_could_not_be_read_at_the_start_holds_the_seal_no_longer() -> None:
    """All lines of a rotated file are delivered, but the agent cannot read the file when it starts.
    It sends no new seal of the topic until it can read the file again. Then it sends seals
    again."""
    world, rotated = World(settings(raw("logs", "/log/*.log"))), f"{A}.1"
    world.files.append(A, b"one\n")
    world.start()
    world.settle(5)
    world.files.rename(A, rotated)
    world.files.append(A, b"two\n")
    for _ in range(3):
        world.tick()
    world.publish()
    before = max(sealed_until(world))
    world.kill()
    world.files.by_path[rotated].unreadable = True
    world.start()
    world.settle(8)
    assert max(sealed_until(world)) == before
    world.files.by_path[rotated].unreadable = False
    for _ in range(3):
        world.clock.advance(600)
        world.settle(5)
    assert max(sealed_until(world)) > before
    assert world.values() == ["one", "two"]

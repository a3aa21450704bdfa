"""A running agent gets changed settings. Tests with the parameter `change` run twice, once with a
reload and once with a restart, and the results must be the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.settings import MultilineSettings, SourceSettings
from skidway.agent.state.database import StateDatabase
from skidway.audit.topic.messages import Seal
from skidway.kafka.types import TopicPartition
from support.agent_world import World, raw, settings
from support.promises import promise

A, B = "/log/a.log", "/log/b.log"


def started(*sources: SourceSettings) -> World:
    world = World(settings(*sources))
    world.start()
    return world


def restart(world: World, *sources: SourceSettings) -> None:
    world.settle(10)
    world.kill()
    for source in sources:
        world.brokers.partitions.setdefault(source.topic, 1)
        world.brokers.partitions.setdefault(source.rejected_topic, 1)
    world.settings = settings(*sources)
    world.start()


def reload(world: World, *sources: SourceSettings) -> None:
    world.settle(10)
    world.reload(settings(*sources))


BOTH = pytest.mark.parametrize("change", [restart, reload])
Change = Callable[..., None]


@BOTH
def test_a_new_source_is_read_from_its_beginning(change: Change) -> None:
    """If a source is added, the agent reads the files of this source from the first byte. The other
    sources lose no line."""
    world = started(raw("logs", A))
    world.files.append(A, b"a1\n")
    world.files.append(B, b"b1\n")
    change(world, raw("others", B), raw("logs", A))
    world.files.append(A, b"a2\n")
    world.files.append(B, b"b2\n")
    world.settle()
    assert world.values("logs") == ["a1", "a2"]
    assert world.values("others") == ["b1", "b2"]
    assert not world.losses()


@BOTH
def test_the_unread_bytes_of_a_removed_source_are_declared(change: Change) -> None:
    """If a source is removed, the agent makes no more records from its files. If such a file has
    bytes that the agent has not read, the agent declares these bytes lost."""
    world = started(raw("logs", A), raw("others", B))
    world.files.append(A, b"a1\n")
    world.files.append(B, b"b1\n")
    change(world, raw("others", B))
    world.files.append(A, b"a2\n")
    world.files.append(B, b"b2\n")
    world.settle()
    assert world.values("logs") == ["a1"]
    assert world.values("others") == ["b1", "b2"]
    assert world.only(A)["pending"] == 0
    assert [loss.source.topic for loss in world.losses()] == ["logs"]


@BOTH
def test_a_removed_source_that_is_read_to_its_end_is_closed(change: Change) -> None:
    """If the agent has read all lines of a removed source's file, it declares no loss and closes
    the file (announces its final length). The agent continues to send seals (which say that all
    earlier lines are counted) for the source's topic, so that the audit does not wait for this
    agent."""
    world = started(raw("logs", A), raw("others", B))
    world.files.append(A, b"a1\n")
    change(world, raw("others", B))
    world.settle(3)
    before = len(world.published)
    world.settle()
    assert not world.losses()
    assert world.only(A)["state"] == "closed"
    seals = [each for each in world.published[before:] if isinstance(each, Seal)]
    assert any(topic.source.topic == "logs" for seal in seals for topic in seal.topics)


@BOTH
def test_a_removed_source_is_no_longer_reported(change: Change) -> None:
    """In this test, a source has rejected most of its lines, and the agent cannot read one of the
    source's files. When the source is removed, /health no longer reports the source's topic."""
    number = ParserSettings(type="regex", pattern=r"(?P<number>\d+)")
    world = started(raw("logs", "/log/*.log", parser=number), raw("others", "/other/b.log"))
    world.files.append(A, b"bad\n" * 20)
    world.settle(10)
    world.files.append(B, b"bad\n").unreadable = True
    world.settle(10)
    assert list(world.agent.rejections.too_many()) == ["logs"]
    assert list(world.agent.tracker.unreadable) == ["logs"]
    change(world, raw("others", "/other/b.log"))
    world.settle(10)
    assert not world.agent.rejections.too_many()
    assert not world.agent.tracker.unreadable


@BOTH
def test_a_file_that_moves_to_another_topic_is_read_on_where_it_was(change: Change) -> None:
    """If the topic of a source changes, the lines after the last stored intent (promise to send
    bytes) go to the new topic under a new file id. No line is in both topics."""
    world = started(raw("logs", A))
    world.files.append(A, b"1\n2\n")
    change(world, raw("others", A))
    world.files.append(A, b"3\n4\n")
    world.settle()
    assert world.values("logs") == ["1", "2"]
    assert world.values("others") == ["3", "4"]
    assert len(world.ledger()) == 2
    assert not world.losses()


@promise("2 new settings")
def test_a_promise_that_is_on_its_way_is_kept_as_it_was_made() -> None:
    """If the agent stored an intent (a promise to send bytes) for lines before a reload, it uses
    the old settings when it sends these lines again after a kill. It uses the new settings for all
    later lines."""
    joined = MultilineSettings(type="start", pattern="^b", timeout_ms=100)
    world = started(raw("logs", A))
    world.files.append(A, b"b1\nc1\n")
    world.hold_until_sent()
    world.reload(settings(raw("logs", A, multiline=joined)))
    world.turn()
    world.kill()
    world.start()
    world.files.append(A, b"b2\nc2\n")
    world.settle()
    assert world.values("logs") == ["b1", "c1", "b2\nc2"]


def test_a_deleted_file_is_still_read_to_its_end() -> None:
    """A reload keeps a deleted file open, so the agent reads the file to its end. A restart, in
    contrast, would lose the file's unread bytes."""
    world = started(raw("logs", A, B))
    world.files.append(A, b"1\n")
    world.settle(10)
    world.files.append(A, b"2\n")
    world.files.delete(A)
    world.reload(settings(raw("logs", "/other/*.log", A, B)))
    world.settle()
    assert world.values("logs") == ["1", "2"]
    assert not world.losses()


def test_rotated_files_keep_their_source_when_the_order_of_sources_changes() -> None:
    """If a reload changes the order of the sources, rotated files that no pattern matches still
    belong to the same source as before."""
    world = started(raw("logs", A), raw("others", B))
    for path, text in ((A, b"a1\n"), (B, b"b1\n")):
        world.files.append(path, text)
    world.settle(10)
    for path in (A, B):
        world.files.rename(path, f"{path}.1")
        world.files.append(f"{path}.1", path[5:6].encode() + b"2\n")
    world.reload(settings(raw("others", B), raw("logs", A)))
    world.turn()
    for path in (A, B):
        world.files.append(path, path[5:6].encode() + b"3\n")
    world.settle()
    assert world.values("logs") == ["a1", "a2", "a3"]
    assert world.values("others") == ["b1", "b2", "b3"]
    assert not world.losses()


def test_rotated_files_keep_their_source_when_another_source_goes() -> None:
    """If a reload removes a source, rotated files of another source still belong to that source."""
    world = started(raw("logs", A), raw("others", B))
    world.files.append(B, b"b1\n")
    world.settle(10)
    world.files.rename(B, f"{B}.1")
    world.files.append(B, b"b2\n")
    world.settle(10)
    world.reload(settings(raw("others", B)))
    world.files.rename(B, f"{B}.2")
    world.files.append(B, b"b3\n")
    world.settle()
    assert world.values("others") == ["b1", "b2", "b3"]
    assert not world.losses()


def test_a_new_interval_counts_at_once_for_a_line_that_waits() -> None:
    """A last line without a line terminator waits for `idle.flush.ms`. If a reload makes this time
    shorter, the agent sends the waiting line after the shorter time."""
    world = World(settings(raw("logs", A), idle_flush_ms=3_600_000))
    world.start()
    world.files.append(A, b"1\n2")
    world.settle(10)
    assert world.values("logs") == ["1"]
    world.reload(settings(raw("logs", A), idle_flush_ms=100))
    world.settle(3)
    assert world.values("logs") == ["1", "2"]


@promise("2 floor")
def test_the_floor_of_a_new_topic_is_its_present_end() -> None:
    """If a reload adds a topic, the floor of each of its partitions is the end that the partition
    has at the reload. A floor is the offset from which the agent searches for its own records."""
    world = started(raw("logs", A))
    tp = TopicPartition("others", 0)
    world.files.append(A, b"1\n2\n")
    world.settle(10)
    world.brokers.logs[tp] += world.brokers.logs[TopicPartition("logs", 0)]
    end = len(world.brokers.logs[tp])
    assert end == 2
    world.reload(settings(raw("logs", A), raw("others", B)))
    world.turn()
    floors = {each: floor for each, _, floor in StateDatabase(world.connection).floors()}
    assert floors[tp] == end


def test_what_prevents_a_reload_is_said() -> None:
    """If a topic was deleted and created again, a reload is refused with the advice to restart the
    agent. An agent that is being drained refuses every reload."""
    world = started(raw("logs", A))
    world.settle(5)
    world.topic_ids = "another"
    assert "restart the agent" in str(world.agent.refusal(world.destinations()))
    world.topic_ids = "id"
    assert world.agent.refusal(world.destinations()) is None
    world.agent.leave()
    assert world.agent.refusal(world.destinations()) == "the agent is ending"

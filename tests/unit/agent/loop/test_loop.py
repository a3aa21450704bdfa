"""Tests the agent's loop from end to end, in memory. The tests check files, delivery, checkpoints,
and the audit messages that the agent sends."""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from skidway.agent import events
from skidway.agent.batches.rejections import TELL_EVERY_S, Untold
from skidway.agent.commands.state import given_up
from skidway.agent.files.host import Scan
from skidway.agent.files.patterns import Pattern
from skidway.agent.files.reading import LONG_LINE_BYTES_MAX
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.parsing.framing import READ_BYTES
from skidway.agent.settings import SourceSettings
from skidway.agent.state.database import StateDatabase, create_tables
from skidway.agent.values.identity import GUARD_BYTES
from skidway.audit.evidence.rereading import identity_of
from skidway.audit.topic.messages import Announcement, Certainty, Delta, Heartbeat, Seal
from skidway.audit.topic.seal_columns import NEVER_SEALED
from skidway.errors import StateRefused
from skidway.kafka.types import TopicPartition
from support.agent_press import rejected_rows
from support.agent_world import MemoryHandle, World, datum_text, raw, settings
from support.fold import Fold
from support.promises import promise

A = "/log/a.log"


@pytest.fixture
def world() -> World:
    return World(settings(raw()))


# --- delivery ---------------------------------------------------------------------------------


@promise("2 ledger")
def test_lines_arrive_in_order_and_the_ledger_adds_up(world: World) -> None:
    """Lines arrive in order, and the agent shows every byte of the file as acknowledged. A last
    line without a line terminator arrives when no program has written to the file for a while."""
    world.files.append(A, b"one\ntwo\r\n\nthree")
    world.start()
    for _ in range(5):
        world.tick(0.1)
    assert world.values() == ["one", "two", ""]
    assert world.only(A)["pending"] == 5
    world.settle()
    assert world.values() == ["one", "two", "", "three"]
    assert (world.only(A)["acknowledged"], world.only(A)["pending"]) == (15, 0)


@promise("2 framing")
def test_a_partial_line_that_was_flushed_and_then_completed(world: World) -> None:
    """If a line is sent before it is complete, the line becomes two records, one for each part. The
    origin of a record gives the record's range of bytes in the file. A reader can recognize the
    first record as partial: the range in its origin is exactly as long as the record's value, so
    the range contains no line terminator."""
    world.files.append(A, b"par")
    world.start()
    world.settle()
    world.files.append(A, b"tial\n")
    world.kill()
    world.start()
    world.settle()
    found = world.brokers.records("logs")
    assert [(datum_text(r.value), r.first, r.length) for r in found] == [
        ("par", 0, 3),
        ("tial", 3, 5),
    ]


@promise("1 announcement")
def test_nothing_is_sent_before_its_announcement_is_acknowledged(world: World) -> None:
    """The agent sends the first record of a file only after the file's announcement is
    acknowledged. The announcement says to which file the file id belongs."""
    world.files.append(A, b"x\n")
    world.start()
    for _ in range(5):
        world.clock.advance(0.3)
        world.turn(world.producer.deliver_all())
    assert world.values() == []
    world.settle()
    assert world.values() == ["x"]
    assert [m.path for m in world.of(Announcement)] == [A]


@promise("2 intent")
def test_nothing_is_sent_before_its_intent_is_durable(world: World) -> None:
    """The agent sends a batch only after it has committed the transaction that stores the batch's
    intent. An intent is the promise to send a range of bytes."""
    world.files.append(A, b"x\n")
    world.start()
    send, promised = world.producer.send, []

    def noted(*batch: Any) -> None:
        promised.append(len(StateDatabase(world.connection).intents()))
        send(*batch)

    world.producer.send = noted  # type: ignore[assignment, method-assign]
    world.hold_until_sent()
    assert promised == [1]
    intents = StateDatabase(world.connection).intents()
    assert [(i.first, i.end) for i in intents] == [(0, 2)]
    assert StateDatabase(world.connection).recipes().keys() == {intents[0].recipe}


@promise("2 re-send")
def test_killed_between_send_and_acknowledgement_the_same_is_sent_again(world: World) -> None:
    """If the agent is killed before a batch is acknowledged, it sends the records again with the
    same origins, partition, times and bytes, so that every reader recognizes the repeats."""
    world.brokers.partitions["logs"] = 3
    world.files.append(A, b"one\ntwo\nth")
    world.start()
    world.hold()
    tp = next(iter(world.producer.sent))
    world.producer.arrive(tp)
    world.kill()
    world.brokers.partitions["logs"] = 5
    world.clock.advance(3_600)
    world.start()
    world.settle()
    found = world.brokers.logs[tp]
    assert found[:2] == found[2:4]
    assert [datum_text(r.value) for r in found] == ["one", "two", "one", "two"] + (
        ["th"] if len(found) == 5 else []
    )


@promise("2 re-send")
def test_promises_of_different_moments_are_each_sent_again_with_their_own(world: World) -> None:
    """A line without a time gets the time at which it was first read. It keeps this time when it is
    sent again together with lines that were read at another time."""
    world.kill_in_flight(b"one\n", b"two\n")
    moments = [intent.read_ms for intent in StateDatabase(world.connection).intents()]
    assert len(set(moments)) == 2
    world.clock.advance(60)
    world.start()
    world.settle()
    assert [record.timestamp for record in world.brokers.records("logs")] == moments


@promise("2 new settings")
def test_new_settings_begin_behind_the_last_intent() -> None:
    """If the settings change, lines of earlier intents (stored promises to send bytes) are sent
    again with the old pattern, and later lines are sent with the new pattern."""

    def source(pattern: str) -> SourceSettings:
        return SourceSettings(
            topic="logs", paths=["/log/*"], parser=ParserSettings(type="regex", pattern=pattern)
        )

    world = World(settings(source("(?P<line>a.*)")))
    world.kill_in_flight(b"a1\nb1\n")
    world.files.append(A, b"a2\nb2\n")
    world.settings = settings(source("(?P<line>b.*)"))
    world.start()
    world.settle()
    assert world.values() == ["a1", "b2"]
    assert [row["line"] for row in rejected_rows(world.brokers)] == [b"b1", b"a2"]
    ledger = world.only(A)
    assert (ledger["acknowledged"], ledger["rejected"], ledger["pending"]) == (6, 6, 0)


@promise("2 partition")
@pytest.mark.parametrize("is_killed", [False, True])
def test_partitions_added_while_running(is_killed: bool) -> None:
    """If partitions are added to a topic while the agent runs, later records also go to the added
    partitions. The records of intents (promises to send bytes) that the agent has already stored
    keep their partitions, even if the agent is killed and sends them again."""
    source = raw(partitioning="key", key="line")
    world = World(settings(source))
    world.files.append(A, b"".join(b"k%d\n" % i for i in range(20)))
    world.start()
    world.hold()
    assert [intent.end for intent in StateDatabase(world.connection).intents()] == [70]
    world.brokers.partitions["logs"] = 4
    world.agent.update(world.destinations())
    world.files.append(A, b"".join(b"k%d\n" % i for i in range(20, 60)))
    world.hold()
    if is_killed:
        world.kill()
        world.start()
    world.settle(10)
    assert sorted(world.values()) == sorted(f"k{i}" for i in range(60))
    found = [world.brokers.logs[TopicPartition("logs", number)] for number in range(4)]
    assert [datum_text(record.value) for record in found[0][:20]] == [f"k{i}" for i in range(20)]
    assert all(record.first >= 70 for log in (found[0][20:], *found[1:]) for record in log)
    assert all(found)


def test_backpressure_stops_reading(world: World) -> None:
    """The agent stops reading when the producer takes no more batches. So it does not store more
    and more intents (promises to send bytes) that it cannot keep yet."""
    world.producer._room = 1
    world.start()
    world.producer._room = 1
    for index in range(5):
        world.files.append(A, b"%d\n" % index)
        world.clock.advance(0.3)
        world.publish()
        world.turn()
    assert len(StateDatabase(world.connection).intents()) <= 2
    world.producer._room = 100
    world.settle()
    assert world.values() == ["0", "1", "2", "3", "4"]


def test_a_record_that_the_broker_refuses_is_set_apart_alone(world: World) -> None:
    """If the broker refuses a record, all other records arrive. The agent declares the record's
    bytes lost, no delta counts the record, and the agent does not wait for the record's
    acknowledgement."""
    world.files.append(A, b"a\nb\nc\n")
    world.start()
    world.brokers.refuses = lambda record: record.first == 2
    world.settle(8, 0.1)
    assert world.values() == ["a", "c"]
    (loss,) = world.losses()
    assert (loss.first, loss.end, loss.certainty) == (2, 4, Certainty.LOST)
    assert world.only(A)["lost"] == 2
    assert sum(c.count for d in world.of(Delta) for c in d.counts) == 2


@promise("2 over-long line")
@pytest.mark.parametrize("size", [READ_BYTES - 1, READ_BYTES, READ_BYTES + 1, 2 * READ_BYTES + 17])
def test_an_overlong_line_is_rejected_with_its_whole_length(
    world: World, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """An over-long line is rejected as one line, with its whole length. The next line is delivered.
    The agent reads at most READ_BYTES new bytes at once, and the rejected record contains at most
    READ_BYTES bytes of the line."""
    counts: list[int] = []
    read = MemoryHandle.read

    def noted(handle: MemoryHandle, count: int, position: int) -> bytes:
        counts.append(count)
        return read(handle, count, position)

    monkeypatch.setattr(MemoryHandle, "read", noted)
    world.files.append(A, b"x" * size + b"\nshort\n")
    world.start()
    world.settle()
    assert world.values() == ["short"]
    (row,) = rejected_rows(world.brokers)
    assert (row["reason"], row["first"], row["length"]) == ("too-long", 0, size + 1)
    assert world.only(A)["rejected"] == size + 1
    assert max(counts) <= READ_BYTES + GUARD_BYTES
    assert 0 < len(row["line"]) <= READ_BYTES
    assert LONG_LINE_BYTES_MAX < 1 << 32


def test_lines_that_do_not_fit_are_told_and_their_topic_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At most once a minute, the agent logs how many lines the parser has rejected for each reason,
    and the position of the first of these lines. /health reports a topic while most of its lines
    are rejected."""
    told: list[Untold] = []
    monkeypatch.setattr(events, "lines_rejected", told.append)
    number = ParserSettings(type="regex", pattern=r"(?P<number>\d+)")
    world = World(settings(raw(parser=number)))
    world.files.append(A, b"1\n" + b"bad\n" * 20)
    world.start()
    world.settle(10, 0.3)
    assert told == [Untold("logs", {"no-match": 20}, 1, A, 2)]
    assert list(world.agent.rejections.too_many()) == ["logs"]
    world.files.append(A, b"bad\n")
    world.settle(10, 0.3)
    assert len(told) == 1
    world.clock.advance(TELL_EVERY_S)
    world.tick()
    assert told[1:] == [Untold("logs", {"no-match": 1}, 1, A, 82)]


def test_an_overlong_line_is_replayed(world: World) -> None:
    """After a kill, the agent sends an over-long line again exactly as before, even if the end of
    the line was written after the kill."""
    world.files.append(A, b"x" * (READ_BYTES + 5))
    world.start()
    world.hold(12, 0.3)
    assert StateDatabase(world.connection).intents()[0].length == READ_BYTES + 5
    world.kill()
    world.files.append(A, b"yz\n")
    world.start()
    world.settle()
    assert [(r["first"], r["length"]) for r in rejected_rows(world.brokers)] == [
        (0, READ_BYTES + 5)
    ]
    assert world.values() == ["yz"]


# --- files ------------------------------------------------------------------------------------


@promise("1 file id")
def test_rotation_by_rename_keeps_the_id_and_closes_it(world: World) -> None:
    """A renamed file keeps its file id and is read to its end. The agent then closes the file id
    with an announcement that contains the file's final length."""
    world.files.append(A, b"1\n")
    world.start()
    world.settle(5)
    world.files.append(A, b"2\n")
    world.files.rename(A, "/log/a.log.1")
    world.files.append("/log/a.log.1", b"3\n")
    world.files.append(A, b"4\n")
    world.settle(60)
    assert sorted(world.values()) == ["1", "2", "3", "4"]
    closures = [m for m in world.of(Announcement) if m.length is not None]
    assert [(m.path, m.length) for m in closures] == [(A, 6)]
    assert {each["path"]: each["state"] for each in world.ledger()} == {
        "/log/a.log.1": "closed", A: "open"
    }  # fmt: skip
    assert world.losses() == []


def test_disks_that_are_numbered_anew_keep_their_files(world: World) -> None:
    """If a disk gets another device number when the machine is restarted, files keep their file
    ids, whether or not the agent has closed them (announced their final length). Nothing is sent
    again or declared lost."""
    world.settings = settings(raw("logs", "/log/*"))
    world.files.append("/log/a.log.1", b"1\n")
    world.files.append(A, b"2\n")
    world.start()
    world.settle(5)
    world.files.rename("/log/a.log.1", "/log/a.log.2")
    world.settle(40)
    before = {each["file"] for each in world.ledger()}
    world.kill()
    world.files.device = 2
    world.files.append(A, b"3\n")
    world.start()
    world.settle(10)
    assert sorted(world.values()) == ["1", "2", "3"]
    assert {each["file"] for each in world.ledger()} == before
    assert world.losses() == []
    world.kill()
    world.start()  # a second restart
    world.settle(10)
    assert sorted(world.values()) == ["1", "2", "3"]


def test_another_file_on_another_device_is_another_file(world: World) -> None:
    """If a disk is replaced, a file with the same name and inode but with other bytes counts as
    another file."""
    world.files.append(A, b"1\n")
    world.start()
    world.settle(5)
    world.kill()
    world.files.device = 2
    world.files.overwrite(A, 0, b"x")
    world.start()
    world.settle(10)
    assert sorted(world.values()) == ["1", "x"]
    assert len({each["file"] for each in world.ledger()}) == 2


@promise("1 announcement")
def test_bytes_behind_a_closure_get_a_new_id(world: World) -> None:
    """Bytes that are written to a file after the agent closed it (announced its final length) get a
    new file id. The announcement of the new id contains the closed file id and the position at
    which that id ended."""
    world.settings = settings(raw("logs", "/log/*"))
    world.files.append(A, b"1\n")
    world.start()
    world.settle(5)
    world.files.rename(A, "/log/a.log.1")
    world.settle(40)
    world.files.append("/log/a.log.1", b"2\n")
    world.settle(10)
    assert world.values() == ["1", "2"]
    new = world.of(Announcement)[-1]
    assert (new.begin, new.predecessor_position, new.length) == (2, 2, None)
    assert new.predecessor == world.of(Announcement)[0].file


def test_a_quiet_file_is_closed_after_its_rotation_too(world: World) -> None:
    """The agent closes a rotated file (announces its final length), even if no program had written
    to the file for a long time before the rotation. No file descriptor stays open."""
    world.files.append(A, b"1\n")
    world.start()
    world.settle(60)
    world.files.rename(A, "/log/a.log.1")
    world.settle(60)
    assert [each["state"] for each in world.ledger()] == ["closed"]
    assert world.files.open_count == 0


@pytest.mark.parametrize("is_restarted", [False, True])
def test_bytes_behind_a_closure_are_found_out_of_the_pattern(
    world: World, is_restarted: bool
) -> None:
    """If a program writes to a rotated file that the agent has closed (whose final length it has
    announced), the agent finds the new bytes, although no pattern matches the file's name."""
    world.files.append(A, b"1\n")
    world.start()
    world.settle(5)
    world.files.rename(A, "/log/a.log.1")
    world.settle(60)
    world.files.rename("/log/a.log.1", "/log/a.log.2")
    if is_restarted:
        world.kill()
    world.files.append("/log/a.log.2", b"2\n")
    if is_restarted:
        world.start()
    world.settle()
    assert world.values() == ["1", "2"]
    assert world.losses() == []


def test_rotation_while_the_agent_was_down(world: World) -> None:
    """If a file is renamed while the agent is down, the agent finds the file in its directory by
    the file's inode, although no pattern matches the new name."""
    world.files.append(A, b"1\n")
    world.start()
    world.settle(5)
    world.kill()
    world.files.append(A, b"2\n")
    world.files.rename(A, "/log/a.log.1")
    world.files.append(A, b"3\n")
    world.start()
    world.settle()
    assert sorted(world.values()) == ["1", "2", "3"]
    assert world.losses() == []


def test_a_deleted_file_that_is_held_open_is_drained(world: World) -> None:
    """The agent reads the last lines of a deleted file from the file descriptor that the agent
    still has open."""
    world.files.append(A, b"1\n")
    world.start()
    world.settle(5)
    world.files.append(A, b"2\n3")
    world.files.delete(A)
    world.settle(60)
    assert world.values() == ["1", "2", "3"]
    assert world.losses() == []
    assert world.ledger()[0]["state"] == "closed"
    assert world.files.open_count == 0


def test_another_file_with_the_inode_of_a_deleted_one_is_read_from_its_start(
    world: World,
) -> None:
    """If a file gets the inode of a deleted file, the agent reads the new file from its start. It
    does so even if both files have the same bytes, or if the agent is restarted after the deletion.
    The new file's announcement names the deleted file as the predecessor."""
    for generation in range(3):
        if generation:
            world.files.delete(A)
            world.settle(60)
            world.files.reuse_last_inode()
        if generation == 2:
            world.kill()
        world.files.append(A, b"started\nfinished\n")
        if generation != 1:
            world.start()
        world.settle(5)
    assert world.values() == ["started", "finished"] * 3
    assert world.losses() == []
    born = [m for m in world.of(Announcement) if m.length is None]
    assert [m.begin for m in born] == [0, 0, 0]
    assert [m.predecessor for m in born] == [None, born[0].file, born[1].file]
    assert {each["path"] for each in world.ledger()} == {A}


def test_a_file_that_vanished_unread_is_a_loss_without_an_end(world: World) -> None:
    """If a file is deleted while the agent is down, and the agent has not read the whole file, the
    agent declares a loss that begins at the agent's position in the file. The loss has no end,
    because the agent does not know the file's length."""
    world.files.append(A, b"1\n")
    world.start()
    world.settle(5)
    world.kill()
    world.files.append(A, b"2\n")
    world.files.delete(A)
    world.start()
    world.settle(5)
    (loss,) = world.losses()
    assert (loss.first, loss.end, loss.certainty) == (2, None, Certainty.LOST)
    assert "vanished" in loss.reason
    assert loss.from_bucket is not None


@promise("1 file id")
def test_truncation_gives_a_new_id_and_declares_what_was_unread(world: World) -> None:
    """A rotation by copytruncate keeps the log's inode but replaces its bytes. After the rotation,
    the log gets a new file id, and the agent declares lost all unread bytes that were cut off."""
    world.files.append(A, b"first line of the old content\n")
    world.start()
    world.settle(5)
    world.files.append(A, b"unread\n")
    world.files.truncate(A)
    world.files.append(A, b"new\n")
    world.settle()
    assert world.values() == ["first line of the old content", "new"]
    lost = [x for x in world.losses() if x.certainty is Certainty.LOST]
    assert [(x.first, x.end) for x in lost] == [(30, None)]
    old, new = world.ledger()
    assert (old["state"], new["predecessor"], new["begin"]) == ("closed", old["file"], 0)


@pytest.mark.parametrize("header", [b"", b"the same header in each\n" * 80])
def test_content_replaced_in_place_is_noticed_although_the_file_grew(
    world: World, header: bytes
) -> None:
    """A file may be truncated between two scans and grow beyond the agent's position again. The
    agent notices the change by the bytes before its position, even if the file's first bytes are
    the same."""
    world.files.append(A, header + b"old content, some of it\n")
    world.start()
    world.settle(5)
    world.files.truncate(A)
    world.files.append(A, header + b"quite another content, and longer than before\n")
    world.settle()
    assert world.values()[-1] == "quite another content, and longer than before"
    assert Certainty.LOST in {loss.certainty for loss in world.losses()}


@promise("1 file id")
def test_a_file_cut_by_a_power_loss_goes_on_where_it_is_proven(world: World) -> None:
    """A file that a power failure has shortened gets a new file id. The new id begins at the
    highest position up to which the file's bytes are proven to be unchanged. Later bytes that the
    agent may have sent before, under the old id, are declared uncertain."""
    for index in range(5):
        world.files.append(A, b"line %d\n" % index)
        if index == 0:
            world.start()
        world.settle(4)
    world.kill()
    world.files.truncate(A, 25)  # offset 25 is in the middle of the fourth line
    world.start()
    world.settle()
    old, new = world.ledger()
    assert (new["begin"], new["predecessor"]) == (21, old["file"])
    assert world.values()[-1] == "line"
    uncertain = [x for x in world.losses() if x.certainty is Certainty.UNCERTAIN]
    assert [(x.file, x.first, x.end) for x in uncertain] == [(new["file"], 21, 25)]


@promise("2 set apart")
def test_promised_bytes_that_are_gone_are_lost(world: World) -> None:
    """If neither the file nor the brokers have some bytes that the agent has promised to send (in
    an intent), the agent declares these bytes lost."""
    world.files.append(A, b"1\n")
    world.start()
    world.settle(5)
    world.kill_in_flight(b"2\n3\n", survivors=5)
    world.files.truncate(A, 2)
    world.files.append(A, b"other\n")
    world.start()
    world.settle()
    assert world.values() == ["1", "other"]
    old = world.ledger()[0]["file"]
    kinds = {(x.first, x.end, x.certainty) for x in world.losses() if x.file == old}
    assert (2, 6, Certainty.LOST) in kinds


@promise("6 unreadable")
def test_an_unreadable_file_is_named_and_holds_the_seal_back(world: World) -> None:
    """The agent reports a file that it cannot read, and reads the other files. A seal contains a
    time for a topic, and says that all lines of the topic before this time are counted. While the
    file is unreadable, the agent sends no seal with a time for the file's topic."""
    world.files.append(A, b"1\n").unreadable = True
    world.files.append("/log/b.log", b"2\n")
    world.start()
    world.settle(10)
    assert world.values() == ["2"]
    assert world.agent.tracker.unreadable == {"logs": {A: "Permission denied"}}
    [named] = world.of(Seal)  # the seal contains the topic, but no time
    assert [(x.source.topic, x.sealed_until) for x in named.topics] == [("logs", NEVER_SEALED)]
    world.files.by_path[A].unreadable = False
    world.settle(10)
    assert sorted(world.values()) == ["1", "2"]
    assert max(x.sealed_until for seal in world.of(Seal) for x in seal.topics) > NEVER_SEALED


def test_what_was_lost_of_a_file_that_is_gone_can_be_asked_for_a_week(world: World) -> None:
    """`skidway agent state show` lists the losses of a deleted file for a week, even after a
    restart. After the week the agent forgets the losses, so that its state does not grow."""
    world.files.append(A, b"1\n")
    world.start()
    world.settle(10)
    world.kill()
    world.files.delete(A)
    world.start()
    world.settle(60)
    for _ in range(2):
        world.kill()
        world.start()
        world.settle(10)
        assert [each["path"] for each in world.ledger()] == [A]
        world.clock.advance(3 * 86_400)
    world.clock.advance(2 * 86_400)
    world.settle(10)
    assert (world.ledger(), StateDatabase(world.connection).losses()) == ([], [])
    assert len(world.losses()) == 1


def test_a_source_that_was_removed_leaves_a_loss(world: World) -> None:
    """If a source is removed from the settings, the unread bytes of its files are declared lost."""
    world.files.append(A, b"1\n")
    world.start()
    world.settle(5)
    world.kill()
    world.files.append(A, b"2\n")
    world.settings = settings(raw("logs", "/other/*.log"))
    world.start()
    world.settle(5)
    (loss,) = world.losses()
    assert "no source" in loss.reason
    assert world.ledger()[0]["lost"] == 2


@promise("6 topic without a source")
def test_a_topic_without_a_source_is_sealed_on(world: World) -> None:
    """If the agent no longer has a source for a topic, it continues to send seals for this topic. A
    seal says that all earlier lines are counted. Without it, the audit would wait for this agent,
    although only other hosts still send to the topic."""
    world.files.append(A, b"1\n")
    world.start()
    world.settle(5)
    world.kill()
    world.settings = settings(raw("other", "/other/*.log", optional=True))
    world.brokers.partitions.update({"other": 1, "other.rejected": 1})
    world.start()
    world.settle(5)
    sealed = {each.source.topic: each for each in world.of(Seal)[-1].topics}
    assert sealed.keys() == {"logs", "logs.rejected", "other", "other.rejected"}
    assert sealed["logs"].sealed_until == sealed["other"].sealed_until
    assert sealed["logs"].source.topic_id == "id-logs"
    assert world.losses() == []
    world.kill()
    world.cluster_id = "cluster-2"
    world.start()
    world.settle(5)
    assert {each.source.topic for each in world.of(Seal)[-1].topics} == {"other", "other.rejected"}


def test_another_topic_means_another_id(world: World) -> None:
    """If the settings move a file to another topic, the file gets a new file id that begins where
    the old id ended."""
    world.files.append(A, b"1\n")
    world.start()
    world.settle(5)
    world.kill()
    world.files.append(A, b"2\n")
    world.settings = settings(raw("others"))
    world.brokers.partitions |= {"others": 1, "others.rejected": 1}
    world.start()
    world.settle(10)
    assert (world.values("logs"), world.values("others")) == (["1"], ["2"])
    assert world.losses() == []
    old, new = world.ledger()
    assert (new["predecessor"], new["begin"], old["state"]) == (old["file"], 2, "closed")


def test_descriptors_stay_bounded() -> None:
    """The agent can read many files with a few open file descriptors."""
    world = World(settings(raw(), max_open_files=8))
    for index in range(40):
        world.files.append(f"/log/{index:02}.log", b"%d\n" % index)
    world.start()
    for _ in range(30):
        world.tick(0.3)
        assert world.files.open_count <= 9
    assert sorted(map(int, world.values())) == list(range(40))


# --- accounts ---------------------------------------------------------------------------------


@promise("2 checkpoint")
def test_deltas_have_numbers_without_holes_and_count_what_was_passed(world: World) -> None:
    """Even if the agent is killed, every record is counted once and the message numbers have no
    gaps. A delta is the agent's message of counts. Each count in a delta contains the number of the
    previous delta that counted the same bucket."""
    world.start()
    for index in range(12):
        world.files.append(A, b"%d\n" % index)
        world.tick(0.4)
        if index % 4 == 3:
            world.kill()
            world.start()
    world.settle()
    numbered = [m for m in world.published if isinstance(m, Delta | Seal)]
    assert sorted({m.number for m in numbered}) == list(
        range(1, len({m.number for m in numbered}) + 1)
    )
    by_number = {m.number: m for m in numbered if isinstance(m, Delta)}
    assert sum(c.count for d in by_number.values() for c in d.counts) == 12
    last: dict[int, int] = {}
    for number, delta in sorted(by_number.items()):
        for count in delta.counts:
            assert count.previous == last.get(count.bucket, 0)
            last[count.bucket] = number


@pytest.mark.parametrize("successor", [b"", b"next\n"])
def test_a_file_rotated_between_the_scan_and_its_opening_is_read(
    world: World, monkeypatch: pytest.MonkeyPatch, successor: bytes
) -> None:
    """If a file is renamed after the agent's scan has found it and before the agent opens it, the
    agent still reads the file, and declares nothing lost. It seals the topic only after it has
    counted the file's line."""
    world.files.append(A, b"old\n")
    scan = world.files.scan

    def rotated_behind(patterns: Sequence[Pattern]) -> Scan:
        found = scan(patterns)
        monkeypatch.setattr(world.files, "scan", scan)
        world.files.rename(A, A + ".1")  # no pattern matches this name
        if successor:
            world.files.append(A, successor)
        return found

    monkeypatch.setattr(world.files, "scan", rotated_behind)
    world.start()
    world.settle()
    assert world.values() == ["old", *successor.decode().split()]
    assert world.losses() == []
    counted = world.deltas()[0]
    assert (counted.counts[0].count, counted.counts[0].bytes) == (1, 4)
    sealed = [seal.number for seal in world.of(Seal) if seal.topics[0].sealed_until != NEVER_SEALED]
    assert counted.number < sealed[0] < sealed[-1]


def test_a_file_that_went_away_before_it_was_opened_holds_one_seal_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file may be deleted after the agent's scan has found it and before the agent opens it. Then
    the agent delays only the seal of this scan, because a seal says that all earlier lines are
    counted. The next scan notices that the file is gone."""
    world.files.append(A, b"old\n")
    looked_ms: list[int] = []
    scan = world.files.scan

    def gone_behind(patterns: Sequence[Pattern]) -> Scan:
        found = scan(patterns)
        monkeypatch.setattr(world.files, "scan", scan)
        world.files.delete(A)
        looked_ms.append(world.clock.time_ms())
        return found

    monkeypatch.setattr(world.files, "scan", gone_behind)
    world.start()
    world.settle()
    sealed = [topic.sealed_until for seal in world.of(Seal) for topic in seal.topics]
    assert set(sealed) > {NEVER_SEALED}
    assert min(set(sealed) - {NEVER_SEALED}) > looked_ms[0]


@promise("1 two agents")
def test_a_file_that_grew_is_known_again_after_the_state_was_deleted(world: World) -> None:
    """When a file has grown, the agent announces the file again with a longer fingerprint (a hash
    of the file's first bytes). The audit recognizes the file by this fingerprint after the agent's
    state was deleted."""
    world.files.append(A, b"first\n")
    world.start()
    world.settle()
    for _ in range(3):
        world.files.append(A, b"x" * 999 + b"\n")
        world.settle(5)
    world.kill()
    before, world.published = world.of(Announcement), []
    world.connection = sqlite3.connect(":memory:", isolation_level=None)
    create_tables(world.connection, "machine")
    world.start()
    world.settle()
    known = {identity_of(message) for message in before}
    assert known & {identity_of(message) for message in world.of(Announcement)}
    assert len(before) == 2


@promise("1 two agents")
@pytest.mark.parametrize("tells_births", [True, False])
def test_a_small_file_that_grew_is_known_by_its_birth(world: World, tells_births: bool) -> None:
    """If a small file grows and the agent's state is deleted, the audit recognizes the file by its
    birth time, even if the disk has another device number."""
    world.files.knows_births = tells_births
    world.files.append(A, b"first\n")
    world.start()
    world.settle()
    world.kill()
    world.files.append(A, b"second\n")
    world.files.device += 1
    world.connection = sqlite3.connect(":memory:", isolation_level=None)
    create_tables(world.connection, "machine")
    world.start()
    world.settle()
    known = Fold(world.published).evidence().topics.values()
    assert any(topic.rereadings for topic in known) is tells_births


@promise("6 doublings")
@pytest.mark.parametrize("tells_births", [True, False])
@pytest.mark.parametrize("is_another", [True, False], ids=["deleted", "truncated"])
def test_headers_that_come_again_in_one_inode_throw_nothing_into_doubt_again(
    world: World, is_another: bool, tells_births: bool
) -> None:
    """After the agent's state was lost, only one file counts as possibly read twice: the file that
    exists at the agent's next start. Later files with the same inode and the same first lines do
    not count as read twice."""
    world.files.knows_births = tells_births
    world.files.append(A, b"header\n")
    world.start()
    world.settle()
    world.kill()
    world.connection = sqlite3.connect(":memory:", isolation_level=None)
    create_tables(world.connection, "machine")
    world.clock.advance(1)
    world.start()
    world.settle()
    second = world.of(Announcement)[-1].agent
    begun = world.clock.time_ms()
    for _ in range(3):
        world.files.append(A, b"line\n")
        world.settle()
        if is_another:
            world.files.delete(A)
            world.files.reuse_last_inode()
        else:
            world.files.truncate(A)
        world.files.append(A, b"header\n")
        world.settle()
    ids = {x.file for x in world.of(Announcement)}
    [topic] = [x for x in Fold(world.published).evidence().topics.values() if x.rereadings]
    [reread] = topic.rereadings[second]
    assert (len(ids), reread.until_ms < begun) == (5, True)


@promise("1 two agents")
def test_a_file_that_was_truncated_is_known_again_after_the_state_was_deleted(
    world: World,
) -> None:
    """After the agent's state was deleted, the audit still recognizes a truncated file, although
    the new state does not contain the file id that the file had before the truncation."""
    world.files.append(A, b"old\n")
    world.start()
    world.settle()
    world.files.truncate(A)
    world.files.append(A, b"new\n")
    world.settle()
    world.kill()
    before, world.published = world.of(Announcement), []
    world.connection = sqlite3.connect(":memory:", isolation_level=None)
    create_tables(world.connection, "machine")
    world.start()
    world.settle()
    [again] = world.of(Announcement)
    assert identity_of(again) in {identity_of(message) for message in before}
    assert [x.fingerprint for x in before if x.predecessor is not None] == [again.fingerprint]


@promise("6 seal")
def test_a_seal_vouches_only_for_what_is_acknowledged(world: World) -> None:
    """While bytes of a topic's files are on their way to the brokers, the agent sends no seal for
    the topic or for the topic of its rejected lines. A seal says that all earlier lines are
    counted."""
    world.files.append(A, b"1\n")
    world.start()
    world.hold(10, 0.3)
    world.publish()
    assert world.of(Seal) == []
    world.settle(5)
    seal = world.of(Seal)[0]
    assert [topic.source.topic for topic in seal.topics] == ["logs", "logs.rejected"]
    assert seal.topics[0].offsets == ((0, 0),)
    assert seal.topics[0].at < seal.number


def test_a_quiet_agent_proves_its_life() -> None:
    """An idle agent sends heartbeats. Each heartbeat contains the number of the agent's last
    message."""
    world = World(settings(raw(), heartbeat_interval_ms=1_000, seal_interval_ms=10**7))
    world.start()
    world.settle(20)
    beats = world.of(Heartbeat)
    assert len(beats) >= 4
    assert {beat.number for beat in beats} == {beats[-1].number}


@promise("1 announcement", "clocks announcement")
def test_files_are_announced_again_every_day(world: World) -> None:
    """The agent announces its files every day. When old messages of the audit topic expire, a
    reader still learns from the newer announcements to which file a file id belongs."""
    world.files.append(A, b"1\n")
    world.start()
    world.settle(3)
    world.clock.advance(86_400)
    world.settle(3)
    assert [m.file for m in world.of(Announcement)] == [world.ledger()[0]["file"]] * 2


def test_an_unacknowledged_announcement_is_sent_again_after_a_kill(world: World) -> None:
    """An announcement that was not acknowledged before a kill is sent again, because the agent
    sends no record of a file before the file's announcement is acknowledged."""
    world.files.append(A, b"1\n")
    world.start()
    world.turn()
    world.kill()
    world.start()
    world.settle(5)
    assert world.values() == ["1"]


def test_buckets_of_another_size_begin_a_chain_of_their_own(world: World) -> None:
    """If the setting for the bucket size changes, counts that were made with the old bucket size
    are still sent with the old size. The old and new counts are not mixed, and no count is lost."""
    world.settings = settings(raw(), audit_interval_ms=10**7, seal_interval_ms=10**7)
    world.start()
    world.settle(3)
    world.files.append(A, b"1\n2\n")
    world.settle(5)
    assert world.of(Delta) == []
    world.kill()
    world.settings = settings(raw(), audit_bucket_ms=5_000)
    world.files.append(A, b"3\n")
    world.start()
    world.settle(10)
    counts = [count for delta in world.of(Delta) for count in delta.counts]
    assert [(c.bucket_ms, c.count, c.previous) for c in counts] == [(1_000, 2, 0), (5_000, 1, 0)]


# --- the state --------------------------------------------------------------------------------


class FullDisk(sqlite3.Connection):
    """A database connection on a disk that is full while `full` is set."""

    full = False

    def execute(self, statement: str, *args: object) -> sqlite3.Cursor:  # type: ignore[override]
        if self.full and statement == "COMMIT":
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        return super().execute(statement, *args)  # type: ignore[arg-type]


@pytest.fixture
def full_disk(world: World) -> Iterator[FullDisk]:
    copy = sqlite3.connect(":memory:", isolation_level=None, factory=FullDisk)
    world.connection.backup(copy)
    world.connection = copy
    yield copy
    copy.close()


def test_a_full_disk_stops_reading_and_loses_nothing(world: World, full_disk: FullDisk) -> None:
    """While the disk is full, the agent stores no new intents (promises to send bytes), and so
    sends nothing new. When the disk has room again, the agent continues by itself."""
    world.files.append(A, b"1\n")
    world.start()
    world.settle(3)
    full_disk.full = True
    world.files.append(A, b"2\n3\n")
    world.settle(5)
    assert world.values() == ["1"]
    assert world.agent.full_reason is not None
    full_disk.full = False
    world.settle(10)
    assert world.values() == ["1", "2", "3"]
    assert world.agent.full_reason is None
    assert world.only(A)["pending"] == 0


def test_a_kill_on_a_full_disk_loses_nothing(world: World, full_disk: FullDisk) -> None:
    """A kill on a full disk loses nothing, because the agent sends bytes only after it has durably
    stored their intent (its promise to send them)."""
    world.files.append(A, b"1\n2\n")
    world.start()
    world.settle(1)
    full_disk.full = True
    world.settle(5)
    world.kill()
    full_disk.full = False
    world.start()
    world.settle(10)
    assert world.values() == ["1", "2"]


@promise("2 another cluster")
def test_lines_on_their_way_to_another_cluster_refuse_to_start(world: World) -> None:
    """The agent refuses to start if its state has intents (promises to send bytes) for another
    cluster, or for a topic that was deleted and created again since."""
    world.kill_in_flight(b"1\n")
    world.cluster_id = "cluster-2"
    with pytest.raises(StateRefused, match="cluster-2"):
        world.start()
    world.cluster_id = "cluster-1"
    world.topic_ids = "made-again"
    with pytest.raises(StateRefused, match="made again"):
        world.start()


@promise("6 seal of a topic made again")
def test_what_was_on_its_way_to_a_topic_made_again_can_be_given_up(world: World) -> None:
    """If a topic was deleted and created again while lines were on their way to it, `skidway agent
    state give-up` lets the agent start again. These lines are then declared uncertain, and later
    lines go to the new topic."""
    world.files.append(A, b"1\n")
    world.start()
    world.settle(5)
    world.kill_in_flight(b"2\n")
    world.topic_ids = "made-again"
    with pytest.raises(StateRefused, match="state give-up logs"):
        world.start()
    assert [each.length for each in given_up(StateDatabase(world.connection), "logs")] == [2]
    assert given_up(StateDatabase(world.connection), "logs") == []
    world.start()
    world.files.append(A, b"3\n")
    world.settle(10)
    assert world.values() == ["1", "3"]
    (loss,) = world.losses()
    assert (loss.certainty, loss.first, loss.end) == (Certainty.UNCERTAIN, 2, 4)
    assert "given up" in loss.reason or "gave up" in loss.reason
    assert [(each["uncertain"], each["pending"]) for each in world.ledger()] == [(2, 0), (0, 0)]
    [declared] = [x.number for x in world.of(Delta) if x.losses]
    sealed = [x for x in world.of(Seal) if x.topics[0].source.topic_id == "made-again-logs"]
    assert sealed
    assert all(x.topics[0].at >= declared for x in sealed), "it is of what the old one had, too"


def test_a_topic_made_again_gives_new_ids_when_nothing_was_on_its_way(world: World) -> None:
    """A topic that was deleted and created again is another topic, so its files get new file ids.
    The new ids begin where the old ids ended."""
    world.files.append(A, b"1\n")
    world.start()
    world.settle(5)
    world.kill()
    world.topic_ids = "made-again"
    world.start()
    world.files.append(A, b"2\n")
    world.settle(5)
    assert world.values() == ["1", "2"]
    assert [a.source.topic_id for a in world.of(Announcement) if a.length is None] == [
        "id-logs", "made-again-logs"
    ]  # fmt: skip


def test_a_quiet_agent_sleeps_longer() -> None:
    """An agent that has nothing to read and nothing to send sleeps longer between two turns of its
    loop than a busy agent. After a report that files have changed, the next sleep is short
    again."""
    world = World(settings(raw(), reconcile_interval_ms=60_000, seal_interval_ms=60_000))
    world.files.append(A, b"1\n")
    world.start()
    world.tick()
    assert world.agent.patience_s() <= 0.2
    world.settle(20)
    while not world.agent.is_settled:
        world.turn()
    assert 0.2 < world.agent.patience_s() <= 1.0
    world.agent.touch([], everything=True)
    assert world.agent.patience_s() == pytest.approx(0.1)


def test_a_settled_agent_says_so(world: World) -> None:
    """An agent that was asked to stop reads no new lines. As soon as all records that were on their
    way are acknowledged, it says that it is settled (has nothing more to send), although a file has
    lines that it has not read."""
    world.files.append(A, b"1\n")
    world.start()
    world.hold()
    world.agent.is_stopping = True
    world.files.append(A, b"2\n")
    world.hold()
    assert world.producer.pending_count == 1
    assert not world.agent.is_settled
    world.settle(5)
    assert world.agent.is_settled
    assert world.values() == ["1"]
    assert (world.only(A)["acknowledged"], world.only(A)["pending"]) == (2, 2)

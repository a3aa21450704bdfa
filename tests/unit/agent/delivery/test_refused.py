"""Tests what the agent does with records that a broker refuses for good. Before the agent declares
such a record lost, it reads the partition back to find out whether an earlier attempt to send the
record arrived."""

from __future__ import annotations

import numpy as np
import pytest

from skidway.agent.delivery import refused
from skidway.agent.delivery.read_back import Rows
from skidway.agent.delivery.refused import Sought
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.state.database import StateDatabase, StateFull
from skidway.audit.topic.messages import Certainty, Seal
from skidway.kafka.types import TopicPartition
from support.agent_press import AGENT, rejected_rows
from support.agent_world import Record, World, raw, settings
from support.promises import promise

A = "/log/a.log"
FIRST = TopicPartition("logs", 0)


@pytest.fixture
def world() -> World:
    """An agent that has sent three lines in two batches, and has no answer of the broker yet."""
    world = World(settings(raw()))
    for piece in (b"one\ntwo\n", b"three\n"):
        world.files.append(A, piece)
        if world.loop is None:
            world.start()
        world.hold()
    return world


def is_two(record: Record) -> bool:
    return record.first == 4


def apart(world: World) -> list[tuple[int, int | None, Certainty]]:
    return [(loss.first, loss.end, loss.certainty) for loss in world.losses()]


@promise("2 refused record")
def test_what_an_earlier_attempt_brought_is_acknowledged(world: World) -> None:
    """If a line arrived at the first attempt, but the answer was lost and the broker refuses the
    retry, the line is counted once. The agent does not declare the line lost or uncertain."""
    world.producer.arrive(FIRST)
    world.producer.interrupt(FIRST)
    world.brokers.refuses = is_two
    for _ in range(8):
        world.tick(0.1)
    ledger = world.only()
    assert (ledger["acknowledged"], ledger["pending"], world.losses()) == (14, 0, [])
    assert sum(count for _, count, _ in world.counted()) == 3
    assert world.refused_logs.begun == [{FIRST: 0}]


def test_what_arrived_below_others_that_were_sent_again_is_found(world: World) -> None:
    """The agent also searches below the last acknowledged offset for a refused record. In this
    test, two batches arrive, and then the producer gets a new producer id and sends both again. The
    first batch arrives a second time, and only this copy is acknowledged. The broker refuses a
    record of the second batch, so the only copy of this record is below the acknowledged offset."""
    world.producer.arrive(FIRST)
    world.producer.arrive(FIRST)
    world.producer.interrupt(FIRST, is_known=False)
    world.turn([*world.producer.arrive(FIRST), *world.producer.answer()])
    world.hold(2)
    assert world.only()["acknowledged"] == 8
    world.brokers.refuses = lambda record: record.first == 8
    for _ in range(8):
        world.tick(0.1)
    assert (world.only()["acknowledged"], world.losses()) == (14, [])


@promise("2 refused record")
def test_what_no_attempt_brought_is_lost_after_the_wait(world: World) -> None:
    """If no attempt to send a refused line arrived, the agent declares the line lost as soon as no
    attempt can arrive any more. Until then the agent sends later lines, but no seal, because a seal
    says that all earlier lines are counted."""
    world.producer.interrupt(FIRST, survivors=2)
    world.brokers.late.clear()
    world.brokers.refuses = is_two
    sealed = len(world.of(Seal))
    for _ in range(8):
        world.tick(0.1)
    assert world.values() == ["one", "three"]
    assert (world.losses(), world.only()["pending"], len(world.of(Seal))) == ([], 14, sealed)
    said = world.agent.reading_back
    assert said is not None
    assert said["refused"] == {"records": 1, "partitions": [], "late_batches_for_s": 0}
    assert not world.agent.is_settled
    world.settle(10)
    assert apart(world) == [(4, 8, Certainty.LOST)]
    assert "the brokers do not have it" in world.losses()[0].reason
    ledger = world.only()
    assert (ledger["acknowledged"], ledger["lost"], ledger["pending"]) == (10, 4, 0)
    assert world.agent.reading_back is None
    assert len(world.of(Seal)) > sealed


def test_an_attempt_that_comes_during_the_wait_is_found(world: World) -> None:
    """A connection is lost while the agent sends a record, and the broker refuses the record when
    the agent sends it again. The batch of the first attempt may still arrive at the broker, so the
    agent waits. If this batch arrives during the wait, the agent finds the record."""
    world.files.append(A, b"four\n")
    world.producer.interrupt(FIRST, survivors=1)
    world.brokers.refuses = is_two
    world.turn(world.producer.arrive(FIRST))
    world.hold(2)
    world.brokers.refuses = lambda record: False
    world.brokers.arrive_late(FIRST)
    world.settle(10)
    assert (world.only()["acknowledged"], world.losses()) == (19, [])
    assert set(world.values()) == {"one", "two", "three", "four"}


def test_an_attempt_that_comes_behind_later_lines_is_lost(world: World) -> None:
    """If a refused line arrives late, after later lines of its file, the agent declares the line
    lost, because readers drop the line as a repeat."""
    world.producer.interrupt(FIRST, survivors=1)
    world.brokers.refuses = is_two
    for _ in range(3):
        world.tick(0.1)
    assert world.values() == ["one", "three"]
    world.brokers.refuses = lambda record: False
    world.brokers.arrive_late(FIRST)
    world.settle(10)
    assert "two" in world.values()
    assert apart(world) == [(4, 8, Certainty.LOST)]
    assert sum(count for _, count, _ in world.counted()) == 2


def test_what_expired_unread_is_uncertain(world: World) -> None:
    """The agent searches a partition for a refused line, beginning at an offset that is called
    the partition's floor. If the log begins at a higher offset, the agent declares the line
    uncertain, because the line may have arrived and then expired."""
    world.producer.arrive(FIRST)
    world.producer.interrupt(FIRST)
    world.brokers.starts[FIRST] = 2
    world.brokers.refuses = is_two
    world.settle(10)
    assert apart(world) == [(4, 8, Certainty.UNCERTAIN)]
    assert "expired" in world.losses()[0].reason
    assert world.only()["uncertain"] == 4


def test_while_the_partition_does_not_come_nothing_is_decided(world: World) -> None:
    """While the partition of a refused record cannot be read, the agent reports the partition and
    does not decide what became of the line. When the partition can be read again, the agent finds
    the line."""
    world.producer.arrive(FIRST)
    world.producer.interrupt(FIRST)
    world.brokers.refuses = is_two
    world.refused_logs.silent.add(FIRST)
    world.settle(200)
    assert (world.losses(), world.only()["pending"]) == ([], 14)
    assert world.agent.not_read_back[FIRST] > 50
    world.refused_logs.silent.clear()
    world.settle(3)
    assert (world.only()["acknowledged"], world.losses()) == (14, [])


@promise("2 refused record")
def test_what_a_process_before_may_have_sent_is_read_back_too(world: World) -> None:
    """After a restart, the agent sends a line of an unfinished intent (stored promise to send
    bytes) again. If the broker refuses this line at once, the agent still finds the copy that
    arrived before the restart."""
    world.producer.arrive(FIRST)
    world.kill()
    world.brokers.refuses = is_two
    world.start()
    for _ in range(8):
        world.tick(0.1)
    assert (world.only()["acknowledged"], world.losses()) == (14, [])


def test_killed_before_its_intent_is_passed_nothing_was_declared(world: World) -> None:
    """If the agent is killed before the checkpoint is past the bytes of the refused record, it has
    not declared a loss yet. So it may send the line again after the next start. In this test, the
    broker then accepts the line."""
    world.brokers.refuses = is_two
    world.turn(world.producer.arrive(FIRST))
    world.turn(world.producer.arrive(FIRST))
    world.turn(world.producer.arrive(FIRST))
    assert (
        len(StateDatabase(world.connection).intents()),
        StateDatabase(world.connection).losses(),
    ) == (2, [])
    world.kill()
    world.brokers.refuses = lambda record: False
    world.start()
    world.settle(10)
    assert (world.only()["acknowledged"], world.losses()) == (14, [])


def test_after_a_crash_it_is_not_sent_behind_later_lines(world: World) -> None:
    """If the agent has sent later lines after a refused line and then crashes, it does not send the
    refused line again, but declares it lost. Otherwise the line would come after later lines of its
    file, and readers would drop it."""
    world.producer.interrupt(FIRST, survivors=2)
    world.brokers.late.clear()
    world.brokers.refuses = is_two
    for _ in range(4):
        world.tick(0.1)
    assert world.values() == ["one", "three"]
    world.kill()
    world.brokers.refuses = lambda record: False
    world.start()
    world.settle(10)
    assert world.values() == ["one", "three"]
    assert apart(world) == [(4, 8, Certainty.LOST)]
    assert world.only()["acknowledged"] == 10


@promise("2 refused record")
def test_after_a_crash_its_neighbours_are_sent() -> None:
    """After a crash, only the refused line is lost. The intent (stored promise to send bytes) of
    the refused line also has records for another topic, which have not arrived yet. The agent sends
    these records after the crash."""
    picky = ParserSettings(type="regex", pattern="(?P<line>[^x].*)")
    world = World(settings(raw(parser=picky)))
    world.files.append(A, b"x1\na1\nx2\na2\n")
    world.start()
    world.hold()
    world.brokers.refuses = lambda record: record.first == 3
    for _ in range(8):
        world.turn(world.producer.arrive(FIRST) if world.producer.sent[FIRST] else [])
    assert world.values() == ["a2"]
    world.kill()
    world.start()
    world.settle(10)
    assert (world.values(), apart(world)) == (["a2"], [(3, 6, Certainty.LOST)])
    assert [row["line"] for row in rejected_rows(world.brokers)] == [b"x1", b"x2"]
    ledger = world.only()
    assert (ledger["acknowledged"], ledger["rejected"], ledger["lost"]) == (3, 6, 3)


def test_nothing_behind_it_is_sent_before_that_mark_is_durable(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An intent is a stored promise to send certain bytes. Before the agent sends the lines after a
    refused record, a transaction must store in the record's intent that the record was refused. If
    the disk is full, these lines wait."""

    def full(_state: StateDatabase, _changes: object) -> None:
        raise StateFull("the disk is full")

    world.brokers.refuses = is_two
    monkeypatch.setattr(StateDatabase, "commit", full)
    for _ in range(8):
        world.tick(0.1)
    assert world.values() == ["one"]
    monkeypatch.undo()
    for _ in range(8):
        world.tick(0.1)
    assert world.values() == ["one", "three"]


def test_with_many_undecided_nothing_is_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent may not know yet whether refused records arrived. While there are too many such
    records, the agent reads no files."""
    monkeypatch.setattr(refused, "RECORDS_MAX", 1)
    world.producer.arrive(FIRST)
    world.producer.interrupt(FIRST)
    world.brokers.refuses = is_two
    world.refused_logs.silent.add(FIRST)
    world.settle(5)
    world.files.append(A, b"four\n")
    world.settle(5)
    assert "four" not in world.values()
    world.refused_logs.silent.clear()
    world.settle(5)
    assert world.values()[-1] == "four"


def test_a_record_is_there_where_readers_keep_it(world: World) -> None:
    """A refused record counts as found if the log has a record with the same agent, file id and
    byte range. There is a second condition: no record of later lines of the file comes before this
    record in the log. If a part of the log has expired, the second condition does not apply,
    because an expired copy of the record may have come before the later lines."""
    world.brokers.refuses = is_two
    refusals = []
    for _ in range(4):
        refusals += world.agent.outbound.settle(world.producer.deliver_all()).refusals
        world.agent.outbound.pump()
    (wanted,) = refusals

    def found(*rows: tuple[int, int, int, int], gap: bool = False) -> bool:
        sought = Sought(AGENT, [wanted])
        if gap:
            sought.gap(FIRST)
        for row in rows:
            agent, file, first, length = (np.array([each], np.int64) for each in row)
            sought.add(Rows(FIRST, agent, file, first, length, first))
        assert sought.has_all() == sought.has(wanted)
        return sought.has(wanted)

    mine = (AGENT, wanted.file)
    assert found((*mine, 0, 4), (*mine, 4, 4), (*mine, 8, 6))
    assert not found((*mine, 8, 6), (*mine, 4, 4))
    assert found((*mine, 8, 6), (*mine, 4, 4), gap=True)
    assert not found((*mine, 4, 3))
    assert not found((AGENT, wanted.file + 1, 4, 4), (AGENT + 1, wanted.file, 4, 4))

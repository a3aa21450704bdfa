"""The agent looks on the brokers for records that it cannot send again. The whole loop runs in
memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from skidway.agent.batches import recipe as recipes
from skidway.agent.commands.state import given_up
from skidway.agent.delivery import inquiry
from skidway.agent.loop import beginning
from skidway.agent.settings import ParserSettings
from skidway.agent.state.database import StateDatabase
from skidway.audit.topic.messages import Certainty, Seal
from skidway.kafka.types import TopicPartition
from support.agent_press import rejected_rows
from support.agent_world import World, datum_text, raw, settings
from support.promises import promise

A, B = "/log/a.log", "/log/b.log"
FIRST = TopicPartition("logs", 0)


@pytest.fixture
def world() -> World:
    return World(settings(raw()))


@pytest.fixture
def picky() -> World:
    """An agent whose parser rejects lines that do not begin with "a"."""
    return World(settings(raw(parser=ParserSettings(type="regex", pattern="(?P<line>a.*)"))))


@pytest.fixture
def upgrade(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function; once it is called, the agent runs as another version of the program."""

    def to(name: str = "another") -> None:
        monkeypatch.setattr(recipes, "program_version", lambda: name)

    return to


@promise("2 found or sent")
def test_what_is_found_counts_and_the_rest_is_sent(world: World, upgrade: Any) -> None:
    """After an upgrade, records that are found on the broker count as acknowledged, and the others
    are sent once."""
    world.kill_in_flight(b"one\ntwo\n", b"three\n", arrives=FIRST)
    world.files.append(A, b"four\n")
    upgrade()
    world.start()
    world.settle()
    assert world.values() == ["one", "two", "three", "four"]
    assert world.losses() == []
    ledger = world.only()
    assert (ledger["acknowledged"], ledger["pending"], ledger["uncertain"]) == (19, 0, 0)
    assert sum(count for _, count, _ in world.counted()) == 4
    assert sum(size for *_, size in world.counted()) == 19


def test_an_intent_of_which_a_part_is_found_is_divided(picky: World, upgrade: Any) -> None:
    """If only the data topic, or only the topic of rejected lines, has the records of an intent (a
    stored promise to send a range of bytes), the intent is divided. The missing records get an
    intent of their own, with the old time of reading."""
    picky.kill_in_flight(b"a1\nb1\na2\nb2\n", arrives=FIRST)
    (read_ms,) = {intent.read_ms for intent in StateDatabase(picky.connection).intents()}
    upgrade()
    picky.clock.advance(3_600)
    picky.start()
    picky.settle()
    assert picky.values() == ["a1", "a2"]
    assert [row["line"] for row in rejected_rows(picky.brokers)] == [b"b1", b"b2"]
    assert {r.timestamp for r in picky.brokers.records("logs.rejected")} == {read_ms}
    ledger = picky.only()
    assert (ledger["acknowledged"], ledger["rejected"], ledger["pending"]) == (6, 6, 0)
    assert sorted(picky.counted()) == [("logs", 2, 6), ("logs.rejected", 2, 6)]
    assert StateDatabase(picky.connection).intents() == []


@promise("2 found or sent")
def test_parts_that_arrived_are_promised_until_the_checkpoint_passes_them(
    picky: World, upgrade: Any
) -> None:
    """Parts of an intent that were found on the brokers stay promised until the checkpoint passes
    them. So no part is read as new if the agent is killed before its checkpoint."""
    picky.kill_in_flight(b"a1\nb1\na2\nb2\n", arrives=FIRST)
    upgrade("second")
    picky.start()
    picky.hold_until_sent()
    kept = [(each.first, each.end) for each in StateDatabase(picky.connection).intents()]
    assert kept[-3:] == [(3, 6), (6, 9), (9, 12)]
    picky.kill()
    upgrade("third")
    picky.start()
    picky.settle()
    assert picky.values() == ["a1", "a2"]
    assert (picky.only()["acknowledged"], picky.only()["rejected"], picky.losses()) == (6, 6, [])
    assert sorted(picky.counted()) == [("logs", 2, 6), ("logs.rejected", 2, 6)]


@promise("2 floor")
def test_parts_that_arrived_hold_the_floor_until_the_checkpoint_passes_them(
    picky: World, upgrade: Any
) -> None:
    """After a crash the agent looks for records at and after a certain offset, the floor. Records
    of an intent that were found keep the floor at or below their offsets, even if records of
    another file are acknowledged at higher offsets. So after another crash the records are found
    again, and not sent again."""
    picky.kill_in_flight(b"a1\nb1\na2\nb2\n", arrives=FIRST)
    upgrade("second")
    picky.start()
    picky.hold_until_sent()
    picky.files.append(B, b"a3\n")
    for _ in range(8):
        picky.hold(1)
        if picky.producer.sent[FIRST]:
            picky.turn([*picky.producer.arrive(FIRST), *picky.producer.answer()])
    assert picky.only(B)["acknowledged"] == 3
    picky.kill()
    upgrade("third")
    picky.start()
    picky.settle()
    assert picky.values() == ["a1", "a2", "a3"]
    assert picky.losses() == []


def test_rejected_records_that_are_found_count_as_rejected(picky: World, upgrade: Any) -> None:
    """Rejected records that are found are counted for the rejected topic, and as rejected in the
    ledger."""
    picky.kill_in_flight(b"b1\nb2\n", survivors=5)
    picky.brokers.arrive_late(TopicPartition("logs.rejected", 0))
    upgrade()
    picky.start()
    picky.settle()
    assert len(rejected_rows(picky.brokers)) == 2
    assert picky.only()["rejected"] == 6
    assert picky.counted() == [("logs.rejected", 2, 6)]


@promise("2 read back")
def test_late_batches_are_waited_for(world: World, upgrade: Any) -> None:
    """Batches that were on their way when the agent was killed, and that arrive while the restarted
    agent waits for such batches, are found and not sent again."""
    world.kill_in_flight(b"one\n", survivors=5)
    upgrade()
    world.start()
    for _ in range(8):
        world.tick(0.1)
    assert world.values() == []
    world.brokers.arrive_late(FIRST)
    world.settle()
    assert world.values() == ["one"]
    assert (world.only()["acknowledged"], world.losses()) == (4, [])


def test_where_all_is_found_nothing_is_waited_for(world: World, upgrade: Any) -> None:
    """If all promised records are found, the agent goes on at once and waits for no late
    batches."""
    world.kill_in_flight(b"one\n", arrives=FIRST)
    upgrade()
    world.settings = settings(raw(), read_back_wait_ms=3_600_000)
    world.start()
    for _ in range(4):
        world.tick(0.1)
    assert world.only()["acknowledged"] == 4


@promise("2 read back")
def test_without_brokers_nothing_is_decided(world: World, upgrade: Any) -> None:
    """While the brokers are away the agent sets nothing apart, sends no seal, and names the
    partitions that it cannot read."""
    world.kill_in_flight(b"one\n")
    upgrade()
    world.brokers.away = True
    world.start()
    sealed = len(world.of(Seal))
    for _ in range(60):
        world.tick(1.0)
    assert (world.losses(), world.only()["pending"], len(world.of(Seal))) == ([], 4, sealed)
    said = world.agent.reading_back
    assert said is not None
    assert said["bytes"] == 4
    assert "logs-0" in str(said["partitions"])
    assert world.agent.not_read_back[FIRST] > 50
    world.brokers.away = False
    world.settle()
    assert (world.values(), world.agent.reading_back) == (["one"], None)
    assert world.agent.not_read_back == {}


def test_other_files_are_read_meanwhile(world: World, upgrade: Any) -> None:
    """Files whose records are being searched for are not read on. All other files are read."""
    world.kill_in_flight(b"one\n")
    world.files.append(B, b"two\n")
    upgrade()
    world.brokers.away = True
    world.start()
    world.settle(10)
    assert world.values() == ["two"]


def test_a_partition_that_does_not_come_keeps_back_its_own_files_only(upgrade: Any) -> None:
    """While one broker is away, the agent finds out which records arrived for every file that has
    no partition on that broker."""
    world = World(settings(raw()), partitions=8)
    for number in range(6):
        world.files.append(f"/log/{number}.log", b"line %d\n" % number)
    world.start()
    world.hold()
    lost = next(iter(world.producer.sent))
    world.kill()
    upgrade()
    world.start()
    world.logs.silent.add(lost)
    world.settle(10)
    kept = [each for each in world.ledger() if each["pending"]]
    assert 0 < len(kept) < 6
    assert list(world.agent.not_read_back) == [lost]
    world.logs.silent.clear()
    world.settle(10)
    assert sorted(world.values()) == [f"line {number}" for number in range(6)]
    assert world.losses() == []


def test_a_file_that_cannot_be_read_keeps_nobody_else_back(
    world: World, monkeypatch: pytest.MonkeyPatch, upgrade: Any
) -> None:
    """While one file is unreadable, the agent goes on with the files that come after it in the
    search for records. The unreadable file's lines are sent in order as soon as the file can be
    read."""
    files = [A, B, "/log/c.log"]
    for path in files:
        world.files.append(path, path.encode() + b" 1\n")
    world.start()
    world.hold()
    for path in files:
        world.files.append(path, path.encode() + b" 2\n")
    world.hold()
    world.kill()
    upgrade()
    monkeypatch.setattr(inquiry, "SEARCH_BYTES", 1)
    world.files.by_path[A].unreadable = True
    world.start()
    world.settle(60)
    assert sorted(world.values()) == sorted(f"{p} {n}" for p in files[1:] for n in (1, 2))
    world.files.by_path[A].unreadable = False
    world.settle(60)
    assert world.values()[-2:] == [f"{A} 1", f"{A} 2"]
    assert world.losses() == []


def test_a_file_that_was_renamed_during_the_search_is_not_gone(world: World, upgrade: Any) -> None:
    """A file renamed during the search is read at its new name, and nothing is lost."""
    world.kill_in_flight(b"one\n", b"two\n", arrives=FIRST)
    upgrade()
    world.settings = settings(raw(), reconcile_interval_ms=3_600_000)
    world.start()
    world.tick(0.1)
    world.files.rename(A, "/log/a.log.1")
    world.settle()
    assert world.values() == ["one", "two"]
    assert world.losses() == []


def test_what_expired_unread_is_uncertain(world: World, upgrade: Any) -> None:
    """If the first offset of the log is higher than the floor, missing records are declared
    uncertain, because they may have arrived and expired."""
    world.kill_in_flight(b"one\n", arrives=FIRST)
    world.brokers.starts[FIRST] = 1
    upgrade()
    world.start()
    world.settle()
    (loss,) = world.losses()
    assert (loss.first, loss.end, loss.certainty) == (0, 4, Certainty.UNCERTAIN)
    assert "expired" in loss.reason
    assert world.only()["uncertain"] == 4


def test_bytes_that_are_gone_are_lost_but_for_what_is_found(world: World) -> None:
    """Bytes of a deleted file that are found on the broker are counted as delivered, and its other
    bytes are declared lost with their range."""
    world.kill_in_flight(b"one\n", b"two\n", arrives=FIRST)
    world.files.delete(A)
    world.start()
    world.settle()
    assert world.values() == ["one"]
    found = {(loss.first, loss.end, loss.certainty) for loss in world.losses()}
    assert (4, 8, Certainty.LOST) in found
    assert not any(each.certainty is Certainty.UNCERTAIN for each in world.losses())
    ledger = world.only()
    assert (ledger["acknowledged"], ledger["lost"], ledger["pending"]) == (4, 4, 0)


@promise("2 found or sent")
def test_killed_after_the_decision_it_is_read_back_again(world: World, upgrade: Any) -> None:
    """If the agent is killed after it divided an intent, it searches the brokers for the parts
    again, and sends those that it does not find."""
    world.kill_in_flight(b"one\n", b"two\n", arrives=FIRST)
    upgrade("second")
    world.start()
    world.hold_until_sent()
    world.kill(survivors=5)
    world.brokers.arrive_late(FIRST)
    upgrade("third")
    world.start()
    world.settle()
    assert world.values() == ["one", "two"]
    assert (world.only()["acknowledged"], world.losses()) == (8, [])
    assert sum(count for _, count, _ in world.counted()) == 2


def test_what_was_given_up_is_read_back_where_its_topic_is_the_same(world: World) -> None:
    """If an operator gave up records although their topic was not made again, the agent searches
    the brokers for them. It sends the records that it does not find, by the current settings."""
    world.kill_in_flight(b"one\n", b"two\n", arrives=FIRST)
    assert len(given_up(StateDatabase(world.connection), "logs")) == 2
    world.start()
    world.settle()
    assert world.values() == ["one", "two"]
    assert world.losses() == []


def test_a_record_that_readers_would_drop_is_not_sent(
    picky: World, monkeypatch: pytest.MonkeyPatch, upgrade: Any
) -> None:
    """The new version accepts a line that the old version rejected, but the line's partition
    already has later records of the file. So the line is declared lost and not sent."""
    picky.kill_in_flight(b"b1\na1\n", arrives=FIRST)
    upgrade()
    build = recipes._BUILDERS["raw"]
    monkeypatch.setitem(recipes._BUILDERS, "regex", build)
    picky.start()
    picky.settle()
    assert [datum_text(r.value) for r in picky.brokers.records("logs")] == ["a1"]
    (loss,) = picky.losses()
    assert (loss.first, loss.end, loss.certainty) == (0, 3, Certainty.LOST)
    assert "behind" in loss.reason


def test_lines_that_end_elsewhere_for_this_version_are_not_cut(
    picky: World, monkeypatch: pytest.MonkeyPatch, upgrade: Any
) -> None:
    """A missing part of an intent is sent only if the version of the program that promised it and
    the version that runs both end records at the part's bounds; otherwise the part is declared
    lost."""
    picky.kill_in_flight(b"a1\nb1\n", arrives=FIRST)
    upgrade()
    bounds = lambda intent, _: np.array([intent.first, intent.end])  # noqa: E731
    monkeypatch.setattr(inquiry, "_record_bounds", bounds)
    picky.start()
    picky.settle()
    (loss,) = picky.losses()
    assert (loss.first, loss.end, loss.certainty) == (3, 6, Certainty.LOST)
    assert "end elsewhere" in loss.reason


def test_states_of_before_have_no_floors_and_are_read_from_the_beginning(
    world: World, upgrade: Any
) -> None:
    """If a version without floors made an intent, the agent searches for the records of this intent
    from offset 0."""
    world.files.append(A, b"one\n")
    world.start()
    world.settle(5)
    world.kill_in_flight(b"two\n", arrives=FIRST)
    assert dict.fromkeys(tp for tp, *_ in StateDatabase(world.connection).floors()) == {FIRST: None}
    world.connection.execute("DELETE FROM floors")
    upgrade()
    world.start()
    world.settle()
    assert world.values() == ["one", "two"]
    assert world.logs.begun[0][FIRST] == 0


@promise("2 floor")
def test_no_partition_begins_at_its_end_while_something_is_on_its_way(world: World) -> None:
    """While records are on their way, the end of a partition without a floor does not become its
    floor, because the records may lie at lower offsets."""
    world.start()
    state, destinations = StateDatabase(world.connection), world.destinations()
    assert FIRST in beginning.without_floor(state, destinations)
    world.kill_in_flight(b"one\n", arrives=FIRST)
    world.connection.execute("DELETE FROM floors")
    assert beginning.without_floor(state, destinations) == []

"""An intent is a stored promise to send certain bytes. If the agent cannot make the records of an
intent again exactly as before, for example after an upgrade, it searches the brokers for these
records, and sends only the missing ones. In these tests, the agent's whole loop runs in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from skidway.agent import parsers
from skidway.agent.batches import press, program_versions
from skidway.agent.batches.source_recipes import derived_schema
from skidway.agent.commands.state import given_up
from skidway.agent.delivery import inquiry, presses
from skidway.agent.loop import beginning
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.recipe import Recipe
from skidway.agent.settings import BATCH_BYTES_MIN
from skidway.agent.state.database import StateDatabase
from skidway.audit.topic.messages import Certainty, Seal
from skidway.errors import ConfigurationRefused
from skidway.kafka.types import TopicPartition
from skidway.schemas.codec import Codec
from support.agent_press import rejected_rows
from support.agent_world import World, datum_text, pa_binary, raw, settings
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
    """A function that a test calls to let the agent's next start run another version of the
    program."""

    def to(name: str = "another") -> None:
        monkeypatch.setattr(program_versions, "program_version", lambda: name)

    return to


@promise("2 found or sent")
def test_what_is_found_counts_and_the_rest_is_sent(world: World, upgrade: Any) -> None:
    """After an upgrade, records of intents that the agent finds on the broker count as
    acknowledged. The agent sends the other records of the intents once."""
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


@pytest.mark.parametrize(
    ("arrives", "missing"), [("logs", "logs.rejected"), ("logs.rejected", "logs")]
)
def test_an_intent_of_which_a_part_is_found_is_divided(
    picky: World, upgrade: Any, arrives: str, missing: str
) -> None:
    """An intent is a stored promise to send a range of bytes. If only some of the intent's records
    arrived, either those for the data topic or the rejected ones, the agent divides the intent. The
    missing records get new intents, with the time at which the old intent's bytes were read."""
    picky.kill_in_flight(b"a1\nb1\na2\nb2\n", arrives=TopicPartition(arrives, 0))
    (read_ms,) = {intent.read_ms for intent in StateDatabase(picky.connection).intents()}
    upgrade()
    picky.clock.advance(3_600)
    picky.start()
    picky.settle()
    assert picky.values() == ["a1", "a2"]
    assert [row["line"] for row in rejected_rows(picky.brokers)] == [b"b1", b"b2"]
    assert {r.timestamp for r in picky.brokers.records(missing)} == {read_ms}
    ledger = picky.only()
    assert (ledger["acknowledged"], ledger["rejected"], ledger["pending"]) == (6, 6, 0)
    assert sorted(picky.counted()) == [("logs", 2, 6), ("logs.rejected", 2, 6)]
    assert StateDatabase(picky.connection).intents() == []


@promise("2 found or sent")
def test_parts_that_arrived_are_promised_until_the_checkpoint_passes_them(
    picky: World, upgrade: Any
) -> None:
    """An intent is a stored promise to send certain bytes. If the agent finds parts of an intent on
    the brokers, these parts stay in intents until the checkpoint is past these parts. So if the
    agent is killed before its checkpoint, it does not read these parts as new bytes."""
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


@promise("2 found or sent")
def test_promised_bytes_are_not_promised_again_while_brokers_are_asked(
    world: World, upgrade: Any
) -> None:
    """While the agent does not know yet which records of an intent the brokers have, it does not
    read the intent's bytes as new bytes, even if the file is rotated. It reads other files
    meanwhile."""
    world.kill_in_flight(b"one\ntwo\n", b"three\n", arrives=FIRST)
    before = StateDatabase(world.connection).intents()
    upgrade()
    world.start()
    world.logs.silent = {FIRST, TopicPartition("logs.rejected", 0)}
    (tracked,) = world.agent.tracker.files.values()
    world.files.rename(A, f"{A}.1")
    world.clock.advance(60)
    world.agent.reader.wake(tracked)
    world.turn()
    assert StateDatabase(world.connection).intents() == before
    world.files.append(B, b"other\n")
    for _ in range(4):
        world.clock.advance(60)
        world.publish()
        world.turn()
    files = {each.file for each in StateDatabase(world.connection).intents()}
    assert len(files) == 2
    world.logs.silent = set()
    world.settle()
    assert sorted(world.values()) == ["one", "other", "three", "two"]
    assert StateDatabase(world.connection).intents() == []


@promise("2 floor")
def test_parts_that_arrived_hold_the_floor_until_the_checkpoint_passes_them(
    picky: World, upgrade: Any
) -> None:
    """After a crash, the agent searches a partition for its records. The offset at which the search
    begins is the floor. While the checkpoint is not past the records that the agent found, the
    floor stays at or below the offsets of these records. This is so even if records of another file
    are acknowledged at higher offsets. So after another crash, the agent finds the records again
    and does not send them again."""
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
    """If the agent finds records of rejected lines on the broker, it counts these records for the
    topic of rejected lines. `skidway agent state show` lists their bytes as rejected."""
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
    """The restarted agent waits for batches that may have been on their way when it was killed. If
    a batch arrives during this wait, the agent finds its records and does not send them again."""
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
    """If the agent finds all records of its intents, it continues at once and does not wait for
    late batches."""
    world.kill_in_flight(b"one\n", arrives=FIRST)
    upgrade()
    world.settings = settings(raw(), read_back_wait_ms=3_600_000)
    world.start()
    for _ in range(4):
        world.tick(0.1)
    assert world.only()["acknowledged"] == 4


@promise("2 read back")
def test_without_brokers_nothing_is_decided(world: World, upgrade: Any) -> None:
    """While the agent cannot reach the brokers, it declares no line lost or uncertain, and reports
    the partitions that it cannot read. It sends no seal, because a seal says that all earlier lines
    are counted."""
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
    """While the agent searches the brokers for records of a file, it does not continue to read in
    this file. It reads all other files."""
    world.kill_in_flight(b"one\n")
    world.files.append(B, b"two\n")
    upgrade()
    world.brokers.away = True
    world.start()
    world.settle(10)
    assert world.values() == ["two"]


def test_a_partition_that_does_not_come_keeps_back_its_own_files_only(upgrade: Any) -> None:
    """While one broker is down, the agent still finds out which records arrived in the partitions
    of the other brokers. A file has to wait only if its partition is on the broker that is down."""
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
    """While the agent searches the brokers for records, an unreadable file does not stop the
    search: the agent continues with the next files. The unreadable file's lines are sent in order
    as soon as the file can be read."""
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
    """If a file is renamed while the agent searches the brokers for the file's records, the agent
    reads the file under its new name, and nothing is lost."""
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
    """The floor is the offset at which the agent's search begins. If the log begins at a higher
    offset, the agent declares missing records uncertain, because they may have arrived and then
    expired."""
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
    """If a file was deleted, the agent searches the broker for the records of the file's intents
    (stored promises to send certain bytes). The bytes of records that the agent finds count as
    delivered. The other bytes are declared lost, with their range."""
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
    """An intent is a stored promise to send certain bytes. If the agent is killed after it divided
    an intent into parts, it searches the brokers for the parts again. It sends the parts that it
    does not find."""
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
    """With `skidway agent state give-up`, an operator tells the agent to give up the unacknowledged
    lines of a topic. If the topic was not deleted and created again, the agent then searches the
    brokers for the records of these lines. It sends the lines that it does not find, with the
    current settings."""
    world.kill_in_flight(b"one\n", b"two\n", arrives=FIRST)
    assert len(given_up(StateDatabase(world.connection), "logs")) == 2
    world.start()
    world.settle()
    assert world.values() == ["one", "two"]
    assert world.losses() == []


def test_a_record_that_readers_would_drop_is_not_sent(
    picky: World, monkeypatch: pytest.MonkeyPatch, upgrade: Any
) -> None:
    """A new version of the agent may accept a line that the old version rejected. If the line's
    partition already has later records of the file, readers would drop the line as a repeat. So the
    agent declares the line lost and does not send it."""
    picky.kill_in_flight(b"b1\na1\n", arrives=FIRST)
    upgrade()
    monkeypatch.setitem(parsers._by_name, "regex", parsers.BY_NAME["raw"])
    picky.start()
    picky.settle()
    assert [datum_text(r.value) for r in picky.brokers.records("logs")] == ["a1"]
    (loss,) = picky.losses()
    assert (loss.first, loss.end, loss.certainty) == (0, 3, Certainty.LOST)
    assert "behind" in loss.reason


def test_lines_that_end_elsewhere_for_this_version_are_not_cut(
    picky: World, monkeypatch: pytest.MonkeyPatch, upgrade: Any
) -> None:
    """An intent is a stored promise to send certain bytes. The brokers lack a part of an intent
    that another version of the agent made. The running version sends this part only if, in both
    versions, a record begins where the part begins, and a record ends where the part ends.
    Otherwise the agent declares the part lost."""
    picky.kill_in_flight(b"a1\nb1\n", arrives=FIRST)
    upgrade()
    bounds = lambda intent, *_: np.array([intent.first, intent.end])  # noqa: E731
    monkeypatch.setattr(inquiry, "_record_bounds", bounds)
    picky.start()
    picky.settle()
    (loss,) = picky.losses()
    assert (loss.first, loss.end, loss.certainty) == (3, 6, Certainty.LOST)
    assert "end elsewhere" in loss.reason


@promise("2 found or sent")
def test_settings_that_the_program_refuses_now_do_not_stop_the_agent(
    picky: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An intent (a stored promise to send certain bytes) has the settings with which it was made.
    If the running version of the program refuses these settings, the agent does not stop. It finds
    out which records of the intent arrived, and sends the lines of the missing records with the
    present settings."""
    picky.kill_in_flight(b"a1\n", b"a2\n", arrives=FIRST)
    promised = {each.fingerprint for each in StateDatabase(picky.connection).recipes().values()}
    build = press.build_parser

    def strict(recipe: Recipe, codec: Any) -> Any:
        if recipe.fingerprint in promised:
            raise ConfigurationRefused("no longer")
        return build(recipe, codec)

    monkeypatch.setattr(press, "build_parser", strict)
    picky.settings = settings(raw(parser=ParserSettings(type="regex", pattern="(?P<line>[a].*)")))
    picky.start()
    picky.settle()
    assert picky.values() == ["a1", "a2"]
    assert picky.losses() == []


def test_a_partition_without_a_floor_is_read_from_the_beginning(world: World, upgrade: Any) -> None:
    """A floor is the offset at which the search for records begins. A partition has no floor if,
    for example, it was added while the agent had intents (stored promises to send bytes). The agent
    searches such a partition from offset 0."""
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
    """If a partition has no floor and no records are on their way, the agent uses the partition's
    present end as the floor. It does not do so while records are on their way, because these
    records may already be at lower offsets."""
    world.start()
    state, destinations = StateDatabase(world.connection), world.destinations()
    assert FIRST in beginning.without_floor(state, destinations)
    world.kill_in_flight(b"one\n", arrives=FIRST)
    world.connection.execute("DELETE FROM floors")
    assert beginning.without_floor(state, destinations) == []


def test_an_intent_of_many_lines_is_sent_in_parts(
    world: World, upgrade: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier version may have made an intent with more lines than this version reads at a time.
    After the upgrade, the agent divides the intent's missing records, so that it never handles more
    lines together, and sends each of them once."""
    counts = []
    press_ = press.Press.press

    def noted(self: press.Press, agent: int, readings: Any, *others: Any) -> press.Pressed:
        counts.append(sum(each.data.count(b"\n") for each in readings))
        return press_(self, agent, readings, *others)

    world.kill_in_flight(b"".join(b"%d\n" % number for number in range(10)))
    monkeypatch.setattr(press.Press, "press", noted)
    for module in (inquiry, presses):
        monkeypatch.setattr(module, "READ_LINES", 3)
    upgrade()
    world.start()
    world.settle()
    assert world.values() == [str(number) for number in range(10)]
    assert counts == [3, 3, 3, 1]
    assert world.losses() == []


def test_mixed_streams_are_divided_only_between_records(upgrade: Any) -> None:
    """If an intent has mixed lines of a container's two streams, and the broker has its first
    records, the agent sends the others once, after an upgrade, as whole lines."""
    time = b"2026-11-20T08:15:01Z"
    texts = (b"stdout P a", b"stderr F b", b"stdout F c", b"stdout F d")
    lines = [b"%s %s\n" % (time, text) for text in texts]
    small = settings(raw(container="cri"), batch_size=BATCH_BYTES_MIN)
    world = World(small)
    filler = b"%s stdout F %s\n" % (time, b"x" * 12_000)
    world.kill_in_flight(filler + b"".join(lines) + filler, arrives=FIRST)
    upgrade()
    world.start()
    world.settle()
    codec = Codec(derived_schema(small.sources[0]))
    values = pa_binary([each.value[5:] for each in world.brokers.records("logs")])
    rows = codec.decode(values).batch.column("line").to_pylist()
    assert [row for row in rows if len(row) < 9] == ["ac", "b", "d"]
    assert len(rows) == 5
    assert world.losses() == []

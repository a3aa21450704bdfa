"""Tests the search for one line, which says for every tier whether the tier has the line. The
clusters are in memory, and the output is a local directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from skidway.audit.output.local import LocalOutput
from skidway.audit.topic.count_columns import Count, Filtered
from skidway.audit.topic.messages import Certainty, Delta, Loss
from skidway.audit.tracing import trace
from skidway.audit.tracing.host_files import HostFile, HostState
from skidway.audit.tracing.lines import Fate, State
from skidway.audit.tracing.places import FilePlace, RecordPlace
from skidway.audit.tracing.rendering import sentence
from skidway.audit.tracing.trace import Story
from skidway.errors import UsageError
from skidway.kafka.types import TopicPartition
from support.audit_senders import AGENT as AGENT_SENDER
from support.audit_senders import LOGS
from support.line_world import (
    AGENT,
    FILE,
    HOST,
    HOUR_MS,
    NOW_MS,
    OTHER_AGENT,
    PATH,
    LineWorld,
    batch,
)

LINES = [b"first line", b"second line", b"third line"]
SECOND = FilePlace(13, HOST, PATH)  # a byte in the middle of the second line


@pytest.fixture
def world(tmp_path: Path) -> LineWorld:
    made = LineWorld(tmp_path)
    made.announce()
    return made


def states(story: Story) -> list[State]:
    return [fate.state for fate in story.fates]


def fate(story: Story, tier: str) -> Fate:
    return next(each for each in story.fates if each.tier == tier)


def traced(
    world: LineWorld, place: FilePlace = SECOND, *, clusters: Sequence[str] = ("dc1", "offline")
) -> Story:
    (story,) = trace.trace_file(world.site(clusters=clusters), place, None, None)
    return story


def test_a_line_that_every_tier_has(world: LineWorld) -> None:
    """Given a byte inside a line, `skidway audit trace` finds the line's record in each cluster,
    and the line's row. The command says where each record and the row are, and which time each of
    them has."""
    world.append(batch([b"other"], agent=OTHER_AGENT, file=9))
    world.append(batch(LINES))
    path = world.load((0, LINES[0]), (11, LINES[1]), (23, LINES[2]), offset=1)
    story = traced(world)
    assert states(story) == [State.FOUND] * 4
    assert (story.first, story.length) == (11, len(LINES[1]) + 1)
    assert fate(story, "broker").place == "cluster dc1, logs-0 at offset 2"
    assert fate(story, "mirror").place == "cluster offline, dc1.logs-0 at offset 2"
    assert fate(story, "hdfs").place.endswith(path)
    assert fate(story, "hdfs").time_ms == NOW_MS + 5_000
    assert fate(story, "broker").time_ms == NOW_MS
    assert story.is_everywhere
    assert sentence(story) == "Every tier has the line."


def test_a_line_is_named_by_its_record_or_by_its_file_id(world: LineWorld) -> None:
    """A person can name a line in three ways: by host, path and byte; by topic, partition and
    offset; or by a row's file id and first byte. `skidway audit trace` gives the same result (what
    happened to the line in each tier) for all three."""
    world.append(batch(LINES))
    world.load((0, LINES[0]), (11, LINES[1]), (23, LINES[2]), offset=0)
    story = traced(world)
    assert traced(world, FilePlace(11, file=FILE, agent=AGENT)) == story
    for topic in ("logs", "dc1.logs"):
        assert trace.trace_record(world.site(), RecordPlace(topic, 0, 1)) == story


def test_a_line_before_the_announcement_is_found_too(world: LineWorld) -> None:
    """`skidway audit trace` first reads the part of the log that begins an hour before the
    announcement of the line's file (the message that the agent has found the file). If the record
    is not in this part, because its event time is earlier, the command reads the older part too,
    and finds the record."""
    world.append(batch(LINES, time_ms=5))
    world.append(batch([b"new"], agent=OTHER_AGENT, file=9))
    world.load((11, LINES[1]), offset=1, time_ms=5)
    assert states(traced(world)) == [State.FOUND] * 4


def test_a_line_that_a_tier_does_not_have_yet(world: LineWorld) -> None:
    """A mirror may not have copied the line's record yet, and the record may not be loaded into the
    output yet. `skidway audit trace` then says "not yet" for each of these tiers, and its sentence
    names the first tier without the line."""
    world.append(batch(LINES), only="dc1")
    world.load((0, LINES[0]), offset=0)
    story = traced(world)
    assert states(story) == [State.FOUND, State.FOUND, State.PENDING, State.PENDING]
    assert sentence(story) == "The first tier without the line is mirror: not yet."
    assert not story.is_everywhere


def test_a_line_that_a_tier_lacks(world: LineWorld) -> None:
    """If a mirror has another record at the offset that the line's record has in the source
    cluster, the mirror lacks the line. An output lacks the line if the partition was loaded past
    the offset and the output has no row of the line."""
    world.append(batch(LINES), only="dc1")
    world.append(batch([b"an impostor"] * 3, agent=OTHER_AGENT, file=9), only="offline")
    world.load((0, LINES[0]), (23, LINES[2]), (40, b"x"), offset=0)
    story = traced(world)
    assert states(story) == [State.FOUND, State.FOUND, State.MISSING, State.MISSING]
    assert fate(story, "mirror").detail == "offset 1 has another record"


def test_a_record_that_expired_in_the_source_is_found_in_the_mirror(world: LineWorld) -> None:
    """If the source cluster's log no longer has the record, `skidway audit trace` searches the
    mirror's log. The result says that the record has expired in the source cluster."""
    world.append(batch(LINES))
    world.append(batch([b"x"], first=100))
    world.clusters["dc1"].log(TopicPartition("logs", 0)).expire(3)
    story = traced(world)
    assert states(story)[:3] == [State.FOUND, State.EXPIRED, State.FOUND]


def test_a_rejected_line(world: LineWorld) -> None:
    """`skidway audit trace` calls a line in the topic of rejects "rejected", and not "missing"."""
    world.append(batch(LINES), suffix=".rejected")
    world.load((11, LINES[1]), offset=1, suffix=".rejected")
    story = traced(world)
    assert states(story) == [State.FOUND, State.REJECTED, State.REJECTED, State.FOUND]
    assert story.is_everywhere


def test_a_line_that_was_declared_lost(world: LineWorld) -> None:
    """If the agent declared a range of bytes lost, `skidway audit trace` says that a line in this
    range is lost, with the agent's reason."""
    loss = Loss(LOGS, AGENT, FILE, 5, 20, Certainty.LOST, "the file was deleted")
    world.say(Delta(AGENT_SENDER, 1, NOW_MS, losses=(loss,)))
    story = traced(world)
    assert fate(story, "broker").state is State.LOST
    assert "the file was deleted" in fate(story, "broker").detail
    beside = traced(world, FilePlace(20, HOST, PATH))
    assert fate(beside, "broker").state is State.MISSING


def test_a_line_that_a_rule_left_out(world: LineWorld) -> None:
    """`skidway audit trace` says that a line was filtered under three conditions: no tier has the
    line, no agent declared the line lost, and rules of the line's agent left out records of the
    topic. The command names these rules."""
    count = Count(LOGS, AGENT, NOW_MS, 60_000, 0, 0, 0, filtered=(Filtered("debug", 3, 90),))
    world.say(Delta(AGENT_SENDER, 1, NOW_MS, counts=(count,)))
    story = traced(world)
    assert fate(story, "broker").state is State.FILTERED
    assert "debug (3)" in fate(story, "broker").detail


def key_of(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def test_a_line_on_the_way(world: LineWorld, tmp_path: Path) -> None:
    """If a line comes after the agent's position in the file, `skidway audit trace` says that the
    agent has not delivered the line yet. If the command runs on the line's host, it also shows the
    line's text."""
    log = tmp_path / "app.log"
    log.write_bytes(b"\n".join(LINES) + b"\n")
    file = HostFile(AGENT, FILE, str(log), PATH, "logs", *key_of(log), 0, 11, "open", 34)
    world.host = HostState({FILE: file}, [])
    story = traced(world)
    assert (story.text, story.first) == (LINES[1] + b"\n", 11)
    assert states(story) == [State.PENDING, State.PENDING, State.PENDING]


def test_files_that_have_had_the_same_path(world: LineWorld, tmp_path: Path) -> None:
    """After a rotation, a path may mean every file that has had this path, so `skidway audit trace`
    shows a line of each of them. The file that was announced last comes first. If the command runs
    on the files' host, a path means only the file that is there now. A person can name the other
    files by their file ids."""
    world.announce(file=4, time_ms=NOW_MS)
    world.append(batch(LINES))
    world.append(batch([b"later"], file=4))
    world.load((0, LINES[0]), offset=0)
    place = FilePlace(0, HOST, PATH)
    site = world.site(clusters=("dc1",))
    assert [x.name.file for x in trace.trace_file(site, place, None, None)] == [4, FILE]
    log = tmp_path / "app.log"
    log.write_bytes(b"later\n")
    file = HostFile(AGENT, 4, str(log), PATH, "logs", *key_of(log), 0, 6, "open", 6)
    world.host = HostState({4: file}, [])
    assert traced(world, FilePlace(0, HOST, str(log))).name.file == 4
    assert traced(world, FilePlace(0, HOST, file=FILE)).name.file == FILE


def test_a_tier_that_was_not_looked_at_is_no_proof(world: LineWorld) -> None:
    """If no option says where `skidway audit trace` finds one of the configured tiers, the state of
    the line in this tier is unknown. The command then does not say that every tier has the line."""
    world.append(batch(LINES))
    site = world.site(clusters=("dc1",), tiers=("broker", "mirror", "hdfs"))
    (story,) = trace.trace_file(site, SECOND, None, None)
    assert states(story) == [State.FOUND, State.FOUND, State.UNKNOWN, State.UNKNOWN]
    assert not story.is_everywhere


def test_a_line_behind_an_open_transaction_is_not_missing(world: LineWorld) -> None:
    """While a transaction is open, nobody can read what is behind it. `skidway audit trace` then
    says where the transaction is open, and not that the log ends there or that the line is missing,
    however the line is named."""
    world.append(batch([b"other"], agent=OTHER_AGENT, file=9))
    world.append(batch(LINES))
    here, copy = (
        world.clusters[name].log(TopicPartition(topic, 0))
        for name, topic in (("dc1", "logs"), ("offline", "dc1.logs"))
    )
    words = "a transaction is open at offset 1 of {}: nothing can be read from there on"
    here.stable = copy.stable = 1
    whole, here.batches = here.batches, here.batches[:1]
    story = traced(world, clusters=("dc1",))
    assert states(story)[:2] == [State.FOUND, State.PENDING]
    assert fate(story, "broker").detail == words.format("logs-0")
    for offset, why in ((3, words.format("logs-0")), (4, "has the offsets 0 to 3 only")):
        with pytest.raises(UsageError, match=why):
            trace.trace_record(world.site(clusters=("dc1",)), RecordPlace("logs", 0, offset))
    here.stable, here.batches = None, whole
    story = traced(world)
    assert fate(story, "mirror").state is State.PENDING
    assert fate(story, "mirror").detail == words.format("dc1.logs-0")


def test_an_emptied_log_has_no_offsets(world: LineWorld) -> None:
    """Of a log from which all records have expired, `skidway audit trace` says that it is empty."""
    world.append(batch(LINES))
    log = world.clusters["dc1"].log(TopicPartition("logs", 0))
    log.batches, log.start = [], log.end
    with pytest.raises(UsageError, match="logs-0 is empty"):
        trace.trace_record(world.site(clusters=("dc1",)), RecordPlace("logs", 0, 1))


def test_a_row_whose_record_has_expired_everywhere(world: LineWorld) -> None:
    """If no cluster has the record any more, its event time is unknown. Then `skidway audit trace`
    looks for the row in all hours of the output."""
    for name in ("dc1", "offline"):
        world.append(batch(LINES), only=name)
        log = next(iter(world.clusters[name].topics.values())).logs[0]
        log.batches, log.start = [], log.end
    for hours in (1, 40, 2):
        world.load((11 + hours, LINES[1]), offset=9, time_ms=NOW_MS - hours * HOUR_MS, file=9)
    path = world.load((11, LINES[1]), offset=1, time_ms=NOW_MS - 40 * HOUR_MS)
    world.load((0, LINES[0]), offset=0, time_ms=NOW_MS)
    story = traced(world)
    assert states(story) == [State.FOUND, State.EXPIRED, State.EXPIRED, State.FOUND]
    assert fate(story, "hdfs").place.endswith(path)


def test_only_files_of_the_records_hour_are_opened(
    world: LineWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the record of a line was found, `skidway audit trace` opens only Parquet files of the hour
    of its event time. It reads the names of the output's topics once."""
    world.append(batch(LINES))
    for hours in (1, 0, -1):
        world.load((11 + hours, LINES[1]), offset=1 - hours, time_ms=NOW_MS - hours * HOUR_MS)
    opened: list[str] = []
    listed: list[str] = []
    note_calls(monkeypatch, "open", opened)
    note_calls(monkeypatch, "names", listed)
    assert states(traced(world)) == [State.FOUND] * 4
    hours = {path.split("hour=")[1][:2] for path in opened if path.endswith(".parquet")}
    assert hours == {"04"}
    assert listed.count("_skidway") == 1


def note_calls(monkeypatch: pytest.MonkeyPatch, method: str, noted: list[str]) -> None:
    """Replaces the output's method of the given name. The new method takes a path, adds the path to
    the list `noted`, and then calls the old method."""
    original = getattr(LocalOutput, method)

    def call(self: LocalOutput, path: str) -> object:
        noted.append(path)
        return original(self, path)

    monkeypatch.setattr(LocalOutput, method, call)


def test_rows_that_are_there_twice_are_told(world: LineWorld) -> None:
    """If a line has two rows, `skidway audit trace` says so."""
    world.append(batch(LINES))
    world.load((11, LINES[1]), offset=1)
    world.load((11, LINES[1]), offset=1)
    assert "2 rows have this line" in fate(traced(world), "hdfs").detail


def test_a_file_that_nobody_announced_is_refused(world: LineWorld) -> None:
    """If no agent of the host has announced a file with the given path, or if no log has the given
    offset, the command refuses the question with a sentence."""
    with pytest.raises(UsageError, match="No agent has announced web1:/other"):
        traced(world, FilePlace(0, HOST, "/other"))
    with pytest.raises(UsageError, match="logs-0 is empty"):
        trace.trace_record(world.site(), RecordPlace("logs", 0, 5))

"""Tests the search for all lines of a host that contain a given text. The clusters are in memory,
and the output is a local directory."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from skidway.audit.output.local import LocalOutput
from skidway.audit.tracing import find
from skidway.audit.tracing.find import FindQuestion, Found, words_of
from skidway.audit.tracing.host_files import HostFile, HostState
from skidway.audit.tracing.lines import State
from skidway.audit.tracing.log_search import LogSearch
from skidway.errors import UsageError
from skidway.kafka.batch import read_header
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

LINES = [b"order 1 shipped", b"order 2 shipped", b"order 3 lost"]


@pytest.fixture
def world(tmp_path: Path) -> LineWorld:
    made = LineWorld(tmp_path)
    made.announce()
    return made


def question(text: str, **more: object) -> FindQuestion:
    span = {"since_ms": NOW_MS - HOUR_MS, "until_ms": NOW_MS + HOUR_MS}
    return FindQuestion(text, HOST, **(span | more))  # type: ignore[arg-type]


def states(found: Found, at: int = 0) -> list[State]:
    return [fate.state for fate in found.stories[at].fates]


def on_host(world: LineWorld, path: Path, data: bytes, position: int) -> None:
    path.write_bytes(data)
    os.utime(path, (NOW_MS / 1000, NOW_MS / 1000))
    inode = path.stat().st_ino
    file = HostFile(AGENT, FILE, str(path), PATH, "logs", inode, 0, position, "open", len(data))
    world.host = HostState({FILE: file}, [])


def test_a_text_is_found_in_all_tiers(world: LineWorld) -> None:
    """`skidway audit find` finds each line of the given host whose record contains the given text,
    and no line of another host. For every tier it says whether the tier has the line."""
    world.append(batch(LINES, agent=OTHER_AGENT, file=9))
    world.append(batch(LINES))
    world.load((0, LINES[0]), (16, LINES[1]), (32, LINES[2]), offset=3)
    found = find.find(world.site(), question("order 2"))
    assert found.count == 1
    assert (found.stories[0].first, states(found)) == (16, [State.FOUND] * 4)
    assert find.find(world.site(), question("shipped")).count == 2


def test_a_text_is_found_where_only_rows_are_left(world: LineWorld) -> None:
    """If a row contains the text, `skidway audit find` finds the row's line even if the line's
    record has expired in every cluster."""
    for name in ("dc1", "offline"):
        world.append(batch(LINES), only=name)
        log = next(iter(world.clusters[name].topics.values())).logs[0]
        log.batches, log.start = [], log.end
    world.load((0, LINES[0]), (16, LINES[1]), (32, LINES[2]), offset=0)
    found = find.find(world.site(), question("order 2"))
    assert states(found) == [State.FOUND, State.EXPIRED, State.EXPIRED, State.FOUND]


def test_a_line_of_the_host_that_no_tier_has(world: LineWorld, tmp_path: Path) -> None:
    """If only the host's file has a line, `skidway audit find` finds the line there. If the agent's
    position in the file is after the line, the command says that the broker lacks the line.
    Otherwise it says that the agent has not delivered the line yet."""
    world.append(batch(LINES[:2]))
    on_host(world, tmp_path / "app.log", b"\n".join(LINES) + b"\n", position=1_000)
    found = find.find(world.site(clusters=("dc1",)), question("order 3"))
    assert (found.count, states(found)) == (1, [State.FOUND, State.MISSING])
    on_host(world, tmp_path / "app.log", b"\n".join(LINES) + b"\n", position=32)
    found = find.find(world.site(clusters=("dc1",)), question("order 3"))
    assert states(found) == [State.PENDING, State.PENDING]


def test_a_text_that_a_parser_has_cut_apart(world: LineWorld, tmp_path: Path) -> None:
    """A parser may divide a line into fields, so that the record does not contain the searched text
    as it is in the host's file. `skidway audit find` then finds the line in the file, and finds the
    line's record by the line's position."""
    world.append(batch([b"0", b"1"], first=0))
    on_host(world, tmp_path / "app.log", b"a\nb\n", position=4)
    found = find.find(world.site(clusters=("dc1",)), question("b"))
    assert (found.count, states(found)) == (1, [State.FOUND] * 2)
    assert found.stories[0].text == b"b\n"


def test_a_file_without_an_agents_state(world: LineWorld, tmp_path: Path) -> None:
    """`skidway audit find` can search a file that an option names, also on a machine without an
    agent. The command looks for each line of the file under every file id that the path has had."""
    log = tmp_path / "app.log"
    world.announce(file=4, path=str(log))
    world.append(batch([b"0", b"1"], file=4))
    log.write_bytes(b"a\nb\nc\n")
    os.utime(log, (NOW_MS / 1000, NOW_MS / 1000))
    site = world.site(clusters=("dc1",))
    found = find.find(site, question("b", paths=(str(log),)))
    assert (found.count, states(found)) == (1, [State.FOUND] * 2)
    assert states(find.find(site, question("c", paths=(str(log),)))) == [State.FOUND, State.MISSING]


def test_lines_before_the_time_span_are_left_out(world: LineWorld, tmp_path: Path) -> None:
    """`skidway audit find` leaves out lines of the host's file that were written before the
    searched span of time, even if records of later lines of the file are in the span."""
    world.append(batch(LINES[:1], time_ms=NOW_MS - 9 * HOUR_MS))
    on_host(world, tmp_path / "app.log", LINES[0] + b"\n", position=16)
    assert find.find(world.site(clusters=("dc1",)), question("order 1")).count == 0
    world.append(batch(LINES[1:2], first=16))
    on_host(world, tmp_path / "app.log", b"\n".join(LINES[:2]) + b"\n", position=32)
    found = find.find(world.site(clusters=("dc1",)), question("order"))
    assert [story.first for story in found.stories] == [16]


def test_lines_after_the_time_span_are_left_out(world: LineWorld, tmp_path: Path) -> None:
    """`skidway audit find` leaves out lines of the host's file whose records have event times after
    the searched span of time."""
    world.append(batch(LINES[:1]))
    world.append(batch(LINES[1:2], first=16, time_ms=NOW_MS + HOUR_MS))
    on_host(world, tmp_path / "app.log", b"\n".join(LINES[:2]) + b"\n", position=32)
    found = find.find(world.site(clusters=("dc1",)), question("order"))
    assert (found.count, [story.first for story in found.stories]) == (1, [0])


def test_only_files_of_the_hours_asked_for_are_opened(
    world: LineWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`skidway audit find` opens only Parquet files of the hours in the searched span of time. It
    reads the names of the output's topics once, however many topics the host has."""
    world.announce(file=5, path="/var/log/other.log", source=replace(LOGS, topic="other"))
    for hour in range(-3, 4):
        world.append(batch(LINES[:1], first=16 * hour + 48, time_ms=NOW_MS + hour * HOUR_MS))
        world.load(
            (16 * hour + 48, LINES[0]), offset=hour + 3, time_ms=NOW_MS + hour * HOUR_MS
        )  # fmt: skip
    opened: list[str] = []
    listed: list[str] = []
    note_calls(monkeypatch, "open", opened)
    note_calls(monkeypatch, "names", listed)
    asked = question("order 1", since_ms=NOW_MS - 2 * HOUR_MS, until_ms=NOW_MS)
    found = find.find(world.site(), asked)
    assert [story.first for story in found.stories] == [32, 16]
    hours = {path.split("hour=")[1][:2] for path in opened if path.endswith(".parquet")}
    assert hours == {"02", "03"}
    assert listed.count("_skidway") == 1
    assert "" not in listed


def note_calls(monkeypatch: pytest.MonkeyPatch, method: str, noted: list[str]) -> None:
    """Replaces the output's method of the given name. The new method takes a path, adds the path to
    the list `noted`, and then calls the old method."""
    original = getattr(LocalOutput, method)

    def call(self: LocalOutput, path: str) -> object:
        noted.append(path)
        return original(self, path)

    monkeypatch.setattr(LocalOutput, method, call)


def test_records_outside_of_the_time_span_are_left_out(world: LineWorld) -> None:
    """`skidway audit find` finds only records with event times in the searched span."""
    world.append(batch(LINES[:1], time_ms=NOW_MS - 9 * HOUR_MS))
    world.append(batch(LINES[1:2], first=16))
    world.append(batch(LINES[2:], first=32, time_ms=NOW_MS + 9 * HOUR_MS))
    found = find.find(world.site(clusters=("dc1",)), question("order"))
    assert [story.first for story in found.stories] == [16]


def test_the_output_is_bounded(world: LineWorld) -> None:
    """The result of `skidway audit find` has at most `limit` lines, those with the latest event
    times. It also has the number of all lines that were found."""
    for at in range(10):
        world.append(batch([b"order"], first=at * 6, time_ms=NOW_MS + at))
    asked = question("order", limit=3)
    found = find.find(world.site(clusters=("dc1",)), asked)
    assert [story.first for story in found.stories] == [54, 48, 42]
    assert found.count == 10
    assert next(iter(words_of(found, asked))).startswith("10 lines have the text; the newest 3")


def test_a_text_of_too_many_lines_is_refused(
    world: LineWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`skidway audit find` stores a bounded number of lines. If more lines have the text, the
    command ends with an error."""
    monkeypatch.setattr(find, "HITS_MAX", 2)
    world.append(batch(LINES))
    assert find.find(world.site(), question("shipped")).count == 2
    with pytest.raises(UsageError, match="More than 2 lines have this text"):
        find.find(world.site(), question("order"))


def test_records_sent_again_are_one_line(world: LineWorld) -> None:
    """If a record was sent twice, `skidway audit find` finds one line."""
    world.append(batch(LINES))
    world.append(batch(LINES))
    assert find.find(world.site(), question("order 1")).count == 1


def test_batches_of_other_agents_are_not_unpacked() -> None:
    """If one batch shows that a producer id belongs to an agent of another host, `skidway audit
    find` reads only the headers of further batches with this producer id. So the command does not
    notice if the records of these batches are damaged."""
    search = LogSearch([AGENT], text=b"order")
    mine, other = batch(LINES, producer_id=1), batch(LINES, agent=OTHER_AGENT, producer_id=2)
    for each, count in ((mine, 3), (other, 0), (mine, 3)):
        assert len(search.take("logs", 0, read_header(each), memoryview(each))) == count
    other[-1] ^= 1
    assert search.take("logs", 0, read_header(other), memoryview(other)) == []
    assert search.skipped == 3


def test_a_producer_id_belongs_to_one_topic_of_the_search() -> None:
    """In topics that come from two source clusters, the same producer id may belong to two agents,
    because each cluster assigns its own ids. `skidway audit find` does not mix up the two
    agents."""
    search = LogSearch([AGENT], text=b"order")
    other, mine = batch(LINES, agent=OTHER_AGENT, producer_id=1), batch(LINES, producer_id=1)
    assert search.take("dc2.logs", 0, read_header(other), memoryview(other)) == []
    assert len(search.take("dc1.logs", 0, read_header(mine), memoryview(mine))) == 3


def test_batches_without_producer_id_are_always_looked_at() -> None:
    """`skidway audit find` always searches batches without a producer id, because they may come
    from any agent."""
    search = LogSearch([AGENT], text=b"order")
    for agent, count in ((OTHER_AGENT, 0), (AGENT, 3), (OTHER_AGENT, 0), (AGENT, 3)):
        each = batch(LINES, agent=agent)
        assert len(search.take("logs", 0, read_header(each), memoryview(each))) == count


def test_a_host_that_nobody_announced_is_refused(world: LineWorld) -> None:
    """If no agent of the given host has announced a file, `skidway audit find` refuses the question
    with a sentence."""
    asked = FindQuestion("x", "nobody", 0, NOW_MS)
    with pytest.raises(UsageError, match="No agent of nobody has announced a file"):
        find.find(world.site(), asked)

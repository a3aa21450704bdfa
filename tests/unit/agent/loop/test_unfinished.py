"""Tests how the agent reads a record that stays unfinished while its file grows, such as a progress
bar. A program appends to such a record every second, and ends the record with a line feed only
after hours. A seal says that all lines before a certain time are counted. As long as bytes of one
file are unread, the agent sends no seal for the file's topic."""

from __future__ import annotations

from typing import Any

import pytest

from skidway.agent import events
from skidway.agent.accounts.sealing import HELD_S
from skidway.agent.files.reading import UNFINISHED_S
from skidway.agent.parsing.framing import READ_BYTES
from skidway.agent.settings import MultilineSettings
from skidway.audit.topic.messages import Seal
from support.agent_press import rejected_rows
from support.agent_world import World, datum_text, raw, settings
from support.promises import promise

JOB, OTHER = "/log/job.log", "/log/other.log"
BAR = "\r 45% [==>  ]"


def made(**source: Any) -> World:
    """Returns a simulated host with a running agent. `source` contains settings of the agent's only
    source."""
    world = World(settings(raw(**source), seal_interval_ms=1_000, idle_flush_ms=5_000))
    world.start()
    return world


def draw(world: World, text: bytes, seconds: float) -> None:
    """Lets `seconds` pass. In each second, appends `text` to the log JOB and runs a turn of the
    agent."""
    for _ in range(int(seconds)):
        world.files.append(JOB, text)
        world.tick(1.0)


def records(world: World) -> list[tuple[str, int, int]]:
    """Returns, for each record in the topic `logs`, its value, and the position and the length of
    its bytes in the file."""
    found = world.brokers.records("logs")
    return [(datum_text(each.value), each.first, each.length) for each in found]


def lengths(world: World) -> list[int]:
    """Returns how many bytes of the file each record in the topic `logs` has. Asserts that the
    records follow one another in the file without a gap."""
    found = records(world)
    ends = [first + length for _, first, length in found]
    assert [first for _, first, _ in found] == [0, *ends[:-1]]
    return [length for _, _, length in found]


@promise("6 seal")
def test_a_record_that_never_ends_holds_back_no_seal_for_long() -> None:
    """If a program writes a progress bar to a log without a pause, the agent still sends seals.

    The time in the newest seal is never more than twice UNFINISHED_S plus ten seconds ago.
    """
    world = made()
    told, latest = 0, [world.clock.time_ms()]
    for _ in range(int(4 * UNFINISHED_S)):
        draw(world, BAR.encode(), 1)
        for message in world.published[told:]:
            if isinstance(message, Seal):
                latest.append(message.topics[0].sealed_until)
        told = len(world.published)
        assert world.clock.time_ms() - latest[-1] <= (2 * UNFINISHED_S + 10) * 1_000
    assert len(set(latest)) >= 4
    assert world.agent.held_seals == {}


@promise("2 framing")
def test_what_is_written_slowly_stays_one_record() -> None:
    """A line that a program writes in less than UNFINISHED_S becomes one record."""
    world = made()
    draw(world, b"x", UNFINISHED_S - 10)
    assert records(world) == []
    world.files.append(JOB, b"\n")
    world.settle(3)
    assert lengths(world) == [UNFINISHED_S - 9]
    draw(world, b"y", UNFINISHED_S - 10)  # each record may take UNFINISHED_S
    assert len(records(world)) == 1


@promise("2 re-send")
def test_a_killed_agent_sends_the_parts_of_a_record_again() -> None:
    """If the agent is killed after it divided a record that never ends, it sends each part again
    with the same origin."""
    world = made()
    draw(world, BAR.encode(), UNFINISHED_S - 10)
    for _ in range(15):
        world.files.append(JOB, BAR.encode())
        world.hold(1, 1.0)
    assert world.producer.pending_count == 1
    (sent,) = [each for batches in world.producer.sent.values() for each in batches]
    world.producer.arrive(sent.tp)
    world.kill()
    world.files.append(JOB, b"\n")
    world.start()
    world.settle()
    first, again, rest = records(world)
    assert first == again
    assert first[2] + rest[2] == world.only(JOB)["acknowledged"]
    assert rest[1] == first[2]


@promise("2 over-long line")
def test_an_overlong_line_that_never_ends_is_divided() -> None:
    """A line of more than READ_BYTES bytes that still grows is divided after UNFINISHED_S, like a
    shorter line."""
    world = made()
    world.files.append(JOB, b"x" * (2 * READ_BYTES + 5))
    draw(world, b"y", UNFINISHED_S - 10)
    assert rejected_rows(world.brokers) == []
    draw(world, b"y", 15)
    (row,) = rejected_rows(world.brokers)
    assert (row["reason"], row["first"]) == ("too-long", 0)
    assert row["length"] > 2 * READ_BYTES + UNFINISHED_S - 10
    assert world.agent.pending_bytes < 20


@promise("2 over-long line")
def test_a_long_line_is_divided_only_where_the_file_ends() -> None:
    """The agent does not divide an over-long line while the file has bytes of it that are not read.

    It does not matter how long ago the line began. While the producer takes no batches, the agent
    reads nothing, so a large part of a line may be unread.
    """
    world = made()
    world.files.append(JOB, b"x" * (2 * READ_BYTES))
    draw(world, b"y", 2)
    world.producer._room = 0
    draw(world, b"y" * 20_000, UNFINISHED_S)
    world.producer._room = 1_000
    world.files.append(JOB, b"\n")
    world.settle()
    (row,) = rejected_rows(world.brokers)
    assert row["length"] == 2 * READ_BYTES + 2 + 20_000 * UNFINISHED_S + 1


@promise("2 framing")
def test_a_record_of_lines_that_never_ends_is_divided_between_lines() -> None:
    """If a record of several lines gets more and more lines, the agent divides the record after
    UNFINISHED_S, but only between two lines."""
    rule = MultilineSettings(type="start", pattern="^[A-Z]", timeout_ms=5_000)
    world = made(multiline=rule)
    world.files.append(JOB, b"A")
    draw(world, b"\n at ", UNFINISHED_S + 10)
    ((value, first, length),) = records(world)
    assert (first, value[0]) == (0, "A")
    assert length == len(value) + 1  # the record ends with a line feed
    assert length >= 5 * UNFINISHED_S - 10


@promise("2 framing")
def test_no_code_unit_is_divided() -> None:
    """In UTF-16, the agent divides a record that never ends only between two code units."""
    world = made(encoding="utf-16le")
    world.files.append(JOB, b"x")
    draw(world, b"\0x", 3 * UNFINISHED_S)
    world.files.append(JOB, b"\0\n\0")
    world.settle()
    assert rejected_rows(world.brokers) == []
    assert len(records(world)) == 3
    assert all(length % 2 == 0 for length in lengths(world))
    assert "".join(value for value, *_ in records(world)) == "x" * (3 * int(UNFINISHED_S) + 1)


@promise("2 framing")
def test_no_character_and_no_line_end_is_divided() -> None:
    """The agent divides a record that never ends neither inside a character nor between CR and LF,
    so no part is rejected, and no empty record appears."""
    world, text = made(), ("\N{FULL BLOCK}" * 4 * int(UNFINISHED_S)).encode()
    for at in range(0, len(text) - 5, 4):  # each piece ends in another place of a character
        draw(world, text[at : at + 4], 1)
    draw(world, b"", 1)
    world.files.append(JOB, text[at + 4 :] + b"\r")
    draw(world, b"\r", UNFINISHED_S)
    world.files.append(JOB, b"\nnext\n")
    world.settle()
    assert rejected_rows(world.brokers) == []
    values = [value for value, *_ in records(world)]
    assert len(values) > 3
    assert values[-1] == "next"
    assert "" not in values
    assert "".join(values[:-1]).rstrip("\r").encode() == text


def test_a_longer_time_without_changes_applies_to_growing_files_too() -> None:
    """If `idle.flush.ms` is longer than UNFINISHED_S, the agent divides a record only after
    `idle.flush.ms`."""
    world = World(settings(raw(), idle_flush_ms=int(2 * UNFINISHED_S * 1_000)))
    world.start()
    draw(world, b"x", 2 * UNFINISHED_S - 10)
    assert records(world) == []
    draw(world, b"x", 15)
    assert len(records(world)) == 1


# --- seals that wait for long ---------------------------------------------------------------------


@promise("6 seal")
def test_a_file_that_holds_back_a_seal_for_long_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a seal waits for more than HELD_S seconds because bytes of a file are not delivered, the
    agent's log and /health name the file."""
    told: list[tuple[str, str, str]] = []
    monkeypatch.setattr(events, "seal_held_back", lambda *said: told.append(said))
    rule = MultilineSettings(type="start", pattern="^[A-Z]", timeout_ms=3_600_000)
    world = made(multiline=rule)
    world.files.append(JOB, b"A\n")
    world.tick(1.0)
    world.hold(int(HELD_S) - 10, 1.0)
    assert (world.agent.held_seals, told) == ({}, [])
    world.hold(20, 1.0)
    assert world.agent.held_seals == {"logs": {JOB: "2 bytes are not delivered"}}
    world.hold(120, 1.0)
    assert told == [("logs", JOB, "2 bytes are not delivered")]
    world.files.append(JOB, b"B\n")
    world.settle(5)
    assert world.agent.held_seals == {}


def test_a_file_is_named_although_the_agent_drops_each_seal() -> None:
    """The agent drops a seal, and begins another one, if a file of the topic was truncated. A file
    that holds back all these seals is named as well."""
    world = World(settings(raw("logs", JOB, OTHER), seal_interval_ms=1_000, idle_flush_ms=5_000))
    world.start()
    world.files.append(JOB, b"job\n")
    world.files.append(OTHER, b"other\n")
    world.tick(1.0)
    for _ in range(int(HELD_S) // 60 + 1):
        world.files.truncate(OTHER)
        world.hold(2, 1.0)
        world.files.append(OTHER, b"other\n")
        world.hold(58, 1.0)
    assert JOB in world.agent.held_seals["logs"]

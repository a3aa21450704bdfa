"""The real agent reads the log of a container runtime under random schedules of writes, rotations,
kills, batches that reach brokers late, and new settings.

The runtime divides long texts into parts, each in a line of its own, and writes the lines of both
streams (stdout and stderr) into one log. Every part is a cell, a piece of text that occurs nowhere
else. The model knows the stream and the tag of each part: F if the text ends with the part, and P
if it does not. The agent must deliver every part once, and must join only parts that follow one
another in their stream. It must not divide a text if each part comes within `idle.flush.ms` of the
part before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pytest

from skidway.agent.batches.source_recipes import derived_schema
from skidway.agent.parsing import containers
from skidway.agent.parsing.joints import PARTS_MAX
from skidway.agent.settings import AgentSettings, SourceSettings
from skidway.audit.topic.messages import Seal
from skidway.kafka.types import TopicPartition
from skidway.schemas.codec import Codec
from support import agent_world
from support.agent_schedule import (
    BEGINNING,
    PATH,
    REJECTED_CODEC,
    TOPIC,
    Schedule,
    run_traced,
    source,
)
from support.agent_world import Brokers, Record, World, pa_binary, records_of, settings
from support.promises import promise
from support.randomness import Seeds

CELLS: Final = re.compile(r"[abcxy]\d{5}")
PATTERNS = (r"(?P<line>(?s:[^x].*))", r"(?P<line>(?s:[^y].*))")
LINES_MAX = 3


def cri(pattern: str, partitioning: str, lines_max: int) -> SourceSettings:
    return source(pattern, partitioning, lines_max=lines_max, container="cri")


CODEC = Codec(derived_schema(cri(PATTERNS[0], "file", 0)))


@dataclass(frozen=True)
class Part:
    """A part of a text that the container has printed. `number` is the part's number among all
    parts of its stream. `is_last` says whether the text ends with this part (tag F)."""

    file: int
    number: int
    stream: str
    is_last: bool

    def goes_on_in(self, other: Part) -> bool:
        """Returns whether the other part continues the text of this part."""
        is_next = (other.file, other.number) == (self.file, self.number + 1)
        return is_next and other.stream == self.stream and not self.is_last


class Container(Schedule):
    """One random run. If `faults` contains "patient", the runtime writes the parts of each text
    soon after one another."""

    steps = 160

    def __init__(self, seed: int, partitioning: str, faults: frozenset[str]) -> None:
        self.lines_max = LINES_MAX if "multiline" in faults else 0
        first = settings(cri(PATTERNS[0], partitioning, self.lines_max))
        world = World(first, partitions=2)
        world.brokers = Watched(self)
        super().__init__(seed, partitioning, faults, world, kills=4)
        self.parts: dict[str, Part] = {}
        self.cell_after: dict[tuple[int, str, int], str] = {}
        self.counts = {"stdout": 0, "stderr": 0}
        self.rest = b""  # the rest of the last line, if only its beginning is written
        self.joined = 0
        self.cells_of_value: dict[bytes, list[str]] = {}  # cells (unique texts) in a value

    # --- events -------------------------------------------------------------------------------

    def actions(self) -> Iterator[tuple[Any, float]]:
        yield self.write, 10
        yield self.rotate, 1
        yield self.pass_time, 3
        yield self.grow, 0.2
        if any(self.world.brokers.late.values()):
            yield self.arrive_late, 3
        yield from self.of_agent((self.reload, 1))

    def write(self) -> None:
        """Writes a few lines, as the runtime does. Sometimes it writes the last line only up to the
        end of the line's timestamp. The next call writes the rest."""
        data = self.rest
        self.rest = b""
        waiting: dict[str, list[bool]] = {"stdout": [], "stderr": []}  # is_last of their parts
        for _ in range(self.random.randint(1, 3)):
            stream = self.random.choice(["stdout", "stdout", "stderr"])
            count = self.random.choice([1, 1, 2, 3])
            lasts = [False] * (count - 1) + [self.random.random() < 0.8]
            waiting[stream] += lasts
        while any(waiting.values()):
            stream = self.random.choice([each for each in waiting if waiting[each]])
            data += self.line(stream, waiting[stream].pop(0))
        cut = data.rfind(b"\n", 0, -1) + 1 + 34  # after the timestamp of the last line
        if self.random.random() < 0.2 and "patient" not in self.faults:
            data, self.rest = data[:cut], data[cut:]
        self.world.files.append(PATH, data)
        self.say(f"write {data!r}")

    def line(self, stream: str, is_last: bool) -> bytes:
        """Returns a log line of the given stream, as the runtime writes it, with one new part of a
        text. `is_last` says whether the text ends with this part."""
        cell = self.new_cell()
        file = self.rotations
        number = self.counts[stream] = self.counts[stream] + 1
        self.parts[cell] = Part(file, number, stream, is_last)
        self.cell_after[file, stream, number] = cell
        self.written[cell] = self.world.clock.time_ms()
        seconds, tag = self.random.randrange(60), "F" if is_last else "P"
        return f"2026-11-20T08:15:{seconds:02d}.123456789Z {stream} {tag} {cell}\n".encode()

    def rotate(self) -> None:
        if not self.rest:
            super().rotate()

    def pass_time(self) -> None:
        if "patient" in self.faults:
            self.world.clock.advance(0.05)
        else:
            super().pass_time()

    def drawn(self) -> AgentSettings:
        lines_max = self.random.choice([0, LINES_MAX]) if self.lines_max else 0
        return settings(cri(self.random.choice(PATTERNS), self.partitioning, lines_max))

    def reload(self) -> None:
        self.world.reload(self.drawn())
        self.say("reload")

    def start(self) -> None:
        if self.random.random() < 0.5:
            self.world.settings = self.drawn()
        super().start()
        self.say("start")

    # --- checks -------------------------------------------------------------------------------

    def cells_in(self, tp: TopicPartition, log: list[Record]) -> list[str]:
        new = [record for record in log if record.value not in self.cells_of_value]
        for record, text in zip(new, texts_in(tp, new), strict=True):
            self.cells_of_value[record.value] = CELLS.findall(text)
        return [cell for record in log for cell in self.cells_of_value[record.value]]

    def cells_between(self, file: int, first: int, end: int | None) -> list[str]:
        return CELLS.findall(self.content.get(file, b"")[first:end].decode())

    def read_message(self, message: Any) -> None:
        """Checks seals. A seal gives a time, and says that all lines that were written before this
        time are counted. Asserts that each of these lines has arrived at the brokers."""
        if isinstance(message, Seal):
            there = self.cells_there() | set(CELLS.findall(self.rest.decode()))
            for topic in message.topics:
                if topic.source.topic == TOPIC:
                    missing = self.written_before(topic.sealed_until) - there
                    assert not missing, f"sealed until {topic.sealed_until} without {missing}"

    def check_append(self, row: dict[str, Any]) -> None:
        """Checks one row. All parts in one line of the row must belong to the same text of the
        container. The row may have several lines only if the setting `multiline` joins these lines.
        The row must name the stream of its parts."""
        texts = [CELLS.findall(line) for line in row["line"].split("\n")]
        assert len(texts) <= max(self.lines_max, 1), "a record of too many lines"
        assert not any(re.match(BEGINNING, text[0]) for text in texts[1:]), "two records in one"
        for text in texts:
            found = [self.parts[cell] for cell in text]
            assert all(x.goes_on_in(y) for x, y in pairwise(found)), row
            assert {x.stream for x in found} == {row["container_stream"]}, row
            self.joined += len(text) - 1
            if sum(map(len, texts)) < (self.lines_max or PARTS_MAX):
                self.check_whole(text, found[-1])

    def check_whole(self, text: list[str], last: Part) -> None:
        """Asserts that a record does not end within a text: the part that was written after the
        record's last part (`last`) must not continue the text of `last`. Checks this only if
        `faults` contains "patient" (the runtime writes all parts of a text without a pause)."""
        follower = self.cell_after.get((last.file, last.stream, last.number + 1))
        if "patient" in self.faults and follower is not None:
            assert not last.goes_on_in(self.parts[follower]), f"{text} goes on in {follower}"

    def finish(self) -> None:
        if self.rest:
            self.world.files.append(PATH, self.rest)
        self.rest = b""
        self.settle()
        rows, straddles, sums = self.load()
        assert dict(rows) == dict.fromkeys(self.written, 1)
        assert not self.world.losses()
        assert not straddles
        assert self.agent_sums() == sums, "the equation does not hold"
        assert self.joined, "no two parts were joined"


class Watched(Brokers):
    """Simulated brokers. They let the present run (a `Container` object) check each record that the
    agent appends."""

    def __init__(self, schedule: Container) -> None:
        super().__init__()
        self._schedule = schedule

    def append(self, sent: agent_world.Sent) -> int:
        if sent.tp.topic == TOPIC and sent.base < 0:
            for row in rows_of(records_of(sent.encoded)):
                self._schedule.check_append(row)
        return super().append(sent)


def rows_of(log: list[Record]) -> list[dict[str, Any]]:
    values = pa_binary([record.value[5:] for record in log])
    rows: list[dict[str, Any]] = CODEC.decode(values).batch.to_pylist()
    return rows


def texts_in(tp: TopicPartition, log: list[Record]) -> list[str]:
    if not log:
        return []
    if tp.topic == TOPIC:
        return [row["line"] for row in rows_of(log)]
    rows = REJECTED_CODEC.decode(pa_binary([r.value[5:] for r in log])).batch.to_pylist()
    return [row["line"].decode() for row in rows]


@promise("2 framing", "2 intent")
@pytest.mark.parametrize("partitioning", ["file", "spread"])
@pytest.mark.parametrize("also", ["", "multiline"])
def test_parts_of_a_containers_lines_are_neither_lost_nor_doubled(
    partitioning: str, also: str, seeds: Seeds
) -> None:
    """If a runtime divides lines into parts, no part is lost or doubled because of kills, rotations
    or changed settings, and only parts of the same text are joined."""
    run_all(seeds(range(15_000, 15_008)), partitioning, also)


@promise("2 framing")
@pytest.mark.parametrize("also", ["", "multiline"])
def test_no_text_is_divided_if_its_parts_come_in_time(also: str, seeds: Seeds) -> None:
    """If each part of a text comes before `idle.flush.ms` has passed since the previous part, the
    parts become one record, even if the agent is killed between two parts."""
    run_all(seeds(range(16_000, 16_010)), "file", "patient", also)


def test_the_schedules_find_streams_that_are_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The schedules are able to find errors: if the agent is changed so that it joins parts of two
    streams, the model's check fails."""
    zeros = lambda lines: np.zeros(len(lines.streams), np.int64)  # noqa: E731
    monkeypatch.setattr(containers, "stream_numbers", zeros)
    with pytest.raises(AssertionError, match="seed"):
        run_all(range(15_000, 15_100), "file", "")


def run_all(seeds: range, partitioning: str, *faults: str) -> None:
    for seed in seeds:
        run_traced(Container(seed, partitioning, frozenset(faults)), seed)

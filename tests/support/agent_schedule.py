"""Makes random schedules, which are runs of the real agent with random events. A model is a test
that runs many schedules and computes the correct result of each. Most models of the agent use this
module to make the events, and to remember what happened to every line.

Each model decides which lines are written, how often each event happens, and what it checks. Every
line consists of cells: a cell is a text of six characters that occurs nowhere else. A schedule
remembers when each cell was written, which cells the host destroyed, and which bytes the file of
each file id contains.
"""

from __future__ import annotations

import collections
import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Set
from typing import Any, Final

import numpy as np

from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.settings import MultilineSettings, SourceSettings
from skidway.agent.values.tracked import TrackedFile
from skidway.audit.counts import bucket, checksum, marks
from skidway.kafka.types import TopicPartition
from skidway.schemas.codec import Codec
from skidway.schemas.single_object import schema_text
from support.agent_world import MemoryFile, Record, World, datum_text, pa_binary

TOPIC, REJECTED, PATH = "logs", "logs.rejected", "/log/a"
CELL = 6
TRACED = 60
BUCKET_MS = 1_000
REJECTED_CODEC = Codec(schema_text("Rejected"))

Sums = dict[tuple[str, int], list[int]]
"""The number of records, the number of bytes and the checksum, for each topic and bucket (time
window)."""


BEGINNING: Final = "[abc]"
"""With `multiline`, a record begins at a line whose first cell (unique piece of text) begins with
one of these letters."""


def source(
    pattern: str,
    partitioning: str,
    path: str = f"{PATH}*",
    *,
    lines_max: int = 0,
    **others: Any,
) -> SourceSettings:
    """Returns the settings of a source with a regex parser. The agent rejects records that do not
    match the pattern. `lines_max` is the largest number of lines in a record, or 0 if each line is
    a record."""
    joined = MultilineSettings(
        type="start", pattern=f"^{BEGINNING}", max_lines=max(lines_max, 1), timeout_ms=700
    )
    return SourceSettings(
        topic=TOPIC,
        paths=[path],
        parser=ParserSettings(type="regex", pattern=pattern),
        multiline=joined if lines_max else None,
        key="line" if partitioning == "key" else None,
        partitioning=partitioning,
        **others,
    )


class Schedule(ABC):
    """One random run of the agent. `faults` names the unusual events that may happen in this
    run."""

    steps = 0

    def __init__(
        self, seed: int, partitioning: str, faults: Set[str], world: World, kills: int
    ) -> None:
        self.random = random.Random(seed)
        self.partitioning, self.faults = partitioning, faults
        self.world = world
        self.world.brokers.partitions = {TOPIC: 2, REJECTED: 1}
        self.kills = kills
        self.cells = self.rotations = 0
        self.written: dict[str, int] = {}  # when each cell was written, in ms
        self.gone: set[str] = set()
        self.content: dict[int, bytes] = {}  # the newest known bytes of each file id
        self.trace: list[str] = []

    def run(self) -> None:
        """Runs all steps and then `finish`. Raises AssertionError if a check fails."""
        for _ in range(self.steps):
            actions = list(self.actions())
            weights = [weight for _, weight in actions]
            self.random.choices([action for action, _ in actions], weights)[0]()
            self.check_ledger()
        self.finish()

    @abstractmethod
    def actions(self) -> Iterator[tuple[Any, float]]:
        """Yields the events that may happen now, each with its relative frequency."""

    def of_agent(self, *further: tuple[Any, float]) -> Iterator[tuple[Any, float]]:
        """Yields the events that may happen to the agent now, each with its relative frequency. If
        the agent does not run, it may start. Otherwise it may do its usual work or crash, or one of
        the `further` events may happen."""
        if self.world.loop is None:
            yield self.start, 8
            return
        yield self.turn, 14
        yield self.arrive, 12
        yield self.answer, 10
        yield self.publish, 6
        yield from further
        yield from self.crashes()

    @abstractmethod
    def finish(self) -> None:
        """Lets the agent run until no batch is in flight, and then runs the final checks."""

    def settle(self) -> None:
        """Lets the agent work without further crashes, long enough that no batch is in flight
        afterwards."""
        self.kills = 0
        if self.world.loop is None:
            self.start()
        for _ in range(40):
            self.go_on()
        self.arrive_all_late()
        self.publish()

    @abstractmethod
    def read_message(self, message: Any) -> None:
        """The schedule calls this method for each message that the agent has published to the
        audit. A model overrides the method to check or remember the message."""

    def say(self, what: str) -> None:
        """Adds the description of an event to the trace. If the schedule fails, the error contains
        the end of the trace."""
        self.trace.append(what)

    # --- the host -----------------------------------------------------------------------------

    def new_cell(self) -> str:
        """Returns a cell, which is a piece of text that occurs nowhere else. The cell's first
        character decides which patterns match the cell."""
        self.cells += 1
        return f"{self.random.choice('abcxy')}{self.cells:05d}"

    def append(self, text: str) -> None:
        """Appends text to the log, and notes the time at which the text's cells (unique pieces of
        text) were written."""
        self.world.files.append(PATH, self.encoded(text))
        for cell in cells_of(text.encode()):
            self.written[cell] = self.world.clock.time_ms()

    def encoded(self, text: str) -> bytes:
        """Returns the bytes of a text. With the fault `utf-16`, each file has a random byte order
        and begins with its byte order mark."""
        if "utf-16" not in self.faults:
            return text.encode()
        file = self.world.files.by_path.get(PATH)
        if file is None or not file.data:
            return ("\ufeff" + text).encode(self.random.choice(["utf-16-le", "utf-16-be"]))
        return text.encode("utf-16-be" if file.data.startswith(b"\xfe\xff") else "utf-16-le")

    def leave_hole(self) -> None:
        """Appends NUL bytes to the log, like those that a power loss or a truncation may leave in a
        file."""
        if PATH in self.world.files.by_path:
            self.world.files.append(PATH, bytes(self.random.choice([2, 40, 300, 5000])))
            self.say("hole")

    def write_cells(self, cells_max: int, end_share: float) -> None:
        """Writes a few cells (unique pieces of text) to the log. `end_share` is the probability
        that a line ends after a cell."""
        text = ""
        for _ in range(self.random.randint(1, cells_max)):
            text += self.new_cell()
            if self.random.random() < end_share:
                text += self.random.choice(["\n", "\n", "\r\n", "\n\n"])
        self.append(text)
        self.say(f"write {text!r}")

    def pass_time(self) -> None:
        self.world.clock.advance(self.random.choice([0.05, 0.3, 1.5]))

    def rotate(self) -> None:
        if PATH in self.world.files.by_path:
            self.rotations += 1
            self.world.files.rename(PATH, f"{PATH}.{self.rotations}")
            self.say(f"rotate to a.{self.rotations}")

    def truncate(self) -> None:
        file = self.world.files.by_path.get(PATH)
        if file is not None:
            self.lose_content(file.data)
            self.world.files.truncate(PATH)
            self.say("truncate")

    def lose_content(self, data: bytearray) -> None:
        self.remember()
        self.gone.update(cells_of(data))

    def sync(self) -> None:
        self.world.files.sync()

    def lose_power(self) -> None:
        """Simulates a power loss of the host. Kills the agent and cuts off the ends of the log
        files, but keeps the agent's state."""
        self.kill()
        for file in self.world.files.by_path.values():
            self._lose_tail(file)
        self.say("POWER LOSS")

    def _lose_tail(self, file: MemoryFile) -> None:
        """Cuts off the end of a file at a random position after its durable bytes, but never inside
        a cell (a unique piece of text). With the fault `holes`, NUL bytes may replace the end."""
        kept = self.random.randint(min(file.durable, len(file.data)), len(file.data))
        while kept < len(file.data) and file.data[kept : kept + 1] not in b"abcxy\r\n":
            kept += 1
        kept -= kept % 2 if "utf-16" in self.faults else 0
        self.gone.update(cells_of(file.data[kept:]))
        size = len(file.data) - kept
        del file.data[kept:]
        if "holes" in self.faults and self.random.random() < 0.7:
            file.data += bytes(size)
        file.durable = kept
        file.changed_ns += 1

    # --- the cluster --------------------------------------------------------------------------

    def grow(self) -> None:
        partitions = self.world.brokers.partitions
        for topic in (TOPIC, REJECTED):
            partitions[topic] = min(partitions[topic] + 1, 4)
        if self.world.loop is not None and self.random.random() < 0.5:
            self.world.loop.update(self.world.destinations())
        self.say("grow")

    def arrive(self) -> None:
        waiting = [tp for tp, sent in self.world.producer.sent.items() if sent]
        if waiting:
            refused = self.world.producer.arrive(self.random.choice(waiting))
            if refused:
                self.turn(refused)

    def answer(self) -> None:
        self.turn(self.world.producer.answer())

    def publish(self) -> None:
        before = len(self.world.published)
        self.world.publish()
        for message in self.world.published[before:]:
            self.read_message(message)

    def arrive_late(self) -> None:
        """Lets a batch arrive that was sent over a connection that is now closed, perhaps by an
        agent that was killed."""
        waiting = [tp for tp, sent in self.world.brokers.late.items() if sent]
        self.world.brokers.arrive_late(self.random.choice(waiting))

    def arrive_all_late(self) -> None:
        while any(self.world.brokers.late.values()):
            self.arrive_late()

    # --- the agent ----------------------------------------------------------------------------

    def crashes(self) -> Iterator[tuple[Any, float]]:
        """Yields the crashes that may happen now, each with its relative frequency. Yields nothing
        if the agent has crashed as often as this schedule allows."""
        if self.kills:
            yield self.kill, 2
            if "power" in self.faults:
                yield self.lose_power, 2

    def start(self) -> None:
        self.world.start()

    def kill(self) -> None:
        self.kills -= 1
        self.world.kill(self.random.randint(0, 5))
        self.say("KILL")

    def turn(self, deliveries: Any = ()) -> None:
        self.world.turn(deliveries)
        self.remember()

    def go_on(self) -> None:
        """Lets time pass. Lets all batches arrive that were sent, and gives the agent the
        answers."""
        self.world.clock.advance(0.4)
        self.publish()
        self.turn(self.world.producer.deliver_all())
        self.check_ledger()

    # --- memory and checks --------------------------------------------------------------------

    def remember(self) -> None:
        """Stores the bytes of each file that still exists and that the agent reads."""
        if self.world.loop is None:
            return
        by_inode = {f.inode: f for f in self.world.files.by_path.values()}
        for tracked in self.world.loop.tracker.files.values():
            file = by_inode.get(tracked.birth.key.inode)
            if file is not None and tracked.state == "open":
                self.saw(tracked, bytes(file.data))

    def saw(self, tracked: TrackedFile, data: bytes) -> None:
        """Stores the current bytes of a file, under its file id."""
        self.content[tracked.file] = data

    def cells_between(self, file: int, first: int, end: int | None) -> list[str]:
        """Returns the cells (unique pieces of text) in the remembered bytes of a file id, from the
        position `first` up to `end` (None: up to the last byte)."""
        return cells_of(self.content.get(file, b"")[first:end])

    def check_ledger(self) -> None:
        if self.world.loop is None:
            return
        for tracked in self.world.loop.tracker.files.values():
            tally, begin = tracked.tally, tracked.birth.begin
            settled = tally.acknowledged + tally.rejected + tally.filtered + tally.uncertain
            lost = tracked.position - begin - settled  # bytes that were in an intent and are lost
            assert 0 <= lost <= tally.lost, "the ledger does not add up"
            assert begin <= tracked.position <= tracked.read_position <= tracked.promised

    def cells_there(self) -> set[str]:
        """Returns the cells (unique pieces of text) of all records in the brokers' logs."""
        logs = self.world.brokers.logs
        return {cell for tp, log in logs.items() for cell in self.cells_in(tp, log)}

    def cells_in(self, tp: TopicPartition, log: list[Record]) -> list[str]:
        """Returns the cells (unique pieces of text) in the records of a partition."""
        return cells_in(tp, log)

    def written_before(self, wall_ms: int) -> set[str]:
        """Returns the cells (unique pieces of text) that were written before this time. An agent's
        seal with this time says that the agent's deltas (messages with counts) count all these
        cells."""
        return {cell for cell, wall in self.written.items() if wall < wall_ms}

    def load(self) -> tuple[collections.Counter[str], int, Sums]:
        """Returns what a loader would count in the brokers' logs: the number of times that each
        cell (unique piece of text) occurs, the number of straddles, and the sums of each topic and
        bucket. A straddle is a record of which only a part is a repeat. Records that are repeats as
        a whole are ignored."""
        rows: collections.Counter[str] = collections.Counter()
        sums: Sums = collections.defaultdict(lambda: [0, 0, 0])
        straddles = 0
        for tp, log in self.world.brokers.logs.items():
            names = ("agent", "file", "first", "length")
            columns = [np.array([getattr(r, name) for r in log], np.int64) for name in names]
            walked = marks.walk(*columns, {})
            straddles += int(walked.straddle.sum())
            hashes = checksum.record_hash(*columns).tolist()
            kept = (walked.keep | walked.straddle).tolist()
            for record, keep, hash_ in zip(log, kept, hashes, strict=True):
                if keep:
                    rows.update(self.cells_in(tp, [record]))
                    at = bucket.start_of(record.timestamp, BUCKET_MS)
                    _add(sums[tp.topic, at], 1, record.length, hash_)
        return rows, straddles, dict(sums)

    def agent_sums(self) -> Sums:
        """Returns the sums of all deltas (messages with counts) that the agent has published."""
        sums: Sums = collections.defaultdict(lambda: [0, 0, 0])
        for delta in self.world.deltas():
            for count in delta.counts:
                entry = sums[count.source.topic, count.bucket]
                _add(entry, count.count, count.bytes, count.checksum)
        return dict(sums)


def _add(entry: list[int], records: int, size: int, hash_: int) -> None:
    entry[0] += records
    entry[1] += size
    entry[2] = checksum.signed(entry[2] + hash_)


def cells_of(data: bytes | bytearray) -> list[str]:
    """Returns the cells (unique pieces of text) in `data`, which contains lines or parts of
    lines."""
    joined = plain_text(bytes(data)).replace("\r", "").replace("\n", "")
    return [joined[at : at + CELL] for at in range(0, len(joined), CELL)]


def plain_text(data: bytes) -> str:
    """Returns the ASCII text of UTF-8 or UTF-16 bytes, without NUL bytes and byte order marks."""
    return data.replace(b"\0", b"").replace(b"\xff\xfe", b"").replace(b"\xfe\xff", b"").decode()


def cells_in(tp: TopicPartition, log: list[Record]) -> list[str]:
    """Returns the cells (unique pieces of text) in the records of a partition of TOPIC or
    REJECTED."""
    return [cell for text in texts_in(tp, log) for cell in cells_of(text.encode())]


def texts_in(tp: TopicPartition, log: list[Record]) -> list[str]:
    """Returns the text of each record of a partition, without the line feed at the end of the text.
    The partition belongs to a data topic or to its rejected topic."""
    if not tp.topic.endswith(".rejected"):
        return [datum_text(record.value) for record in log]
    if not log:
        return []
    rows = REJECTED_CODEC.decode(pa_binary([r.value[5:] for r in log])).batch.to_pylist()
    return [plain_text(row["line"]) for row in rows]


def run_traced(schedule: Schedule, seed: int) -> None:
    """Runs a schedule. If a check fails, raises an AssertionError with the seed and the last
    events."""
    try:
        schedule.run()
    except AssertionError as error:
        trace = "\n".join(schedule.trace[-TRACED:])
        raise AssertionError(f"seed {seed}: {error}\n{trace}") from error

"""The real agent runs under random schedules with the settings that leave bytes out or close files:
`start_at: end`, `ignore.older.ms` and `close.inactive.ms`.

Some logs exist before the agent starts. Logs grow, stay unchanged for an hour, and are rotated and
deleted. Starts and reloads change the settings and add directories. At each of the agent's scans
for files, the model uses the settings to decide from which position each file must be read
(`Log.begin`). In the end, each line after this position is delivered once, or declared lost because
the host deleted it. No other line is delivered. The announcement of each file names this position.
The agent's count of ignored old files is exact.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from skidway.agent.files import recognition
from skidway.agent.files.endings import STILL_S, Endings
from skidway.agent.files.first_looks import FirstLooks
from skidway.agent.files.host import Scan
from skidway.agent.files.ignored import Left
from skidway.agent.files.look import SLACK_MS
from skidway.agent.files.patterns import Pattern
from skidway.agent.loop import beginning
from skidway.agent.settings import AgentSettings
from skidway.agent.state.database import StateDatabase
from skidway.audit.counts import bucket
from skidway.audit.topic.messages import Announcement, Certainty, Delta, Loss, Seal
from support.agent_schedule import BUCKET_MS, TOPIC, Schedule, cells_of, run_traced, source
from support.agent_world import Files, MemoryFile, World, settings
from support.promises import promise
from support.randomness import Seeds

PATHS = ("/log/a.log", "/log/b.log", "/srv/c.log", "/opt/d.log")
DIRECTORIES = ("/log", "/srv", "/opt")
OLDER_MS = 3_600_000
LONG_S = 4_000.0
"""A time in seconds, a little longer than OLDER_MS. If a file has not changed for this long, the
agent ignores it as too old."""


@dataclass(eq=False)
class Log:
    """A file of the host, and how the agent must treat it according to the settings.

    - path: the file's path now. base: the path at which the program wrote the file.
    - begin: the position from which the agent must read the file; None as long as the agent must
      ignore the file. due_ms: the time at which `begin` was set.
    - is_old: at the last scan, the file was too old to be read (`ignore.older.ms`).
    - is_free: the agent may read the file or ignore it, because the file was rotated before the
      first scan.
    - seen_ns: the file's time of change at the last scan.
    """

    file: MemoryFile
    path: str
    base: str
    begin: int | None = None
    due_ms: int = 0
    is_old: bool = False
    is_free: bool = False
    is_gone: bool = False
    seen_ns: int | None = None

    @property
    def due(self) -> list[str]:
        """The cells (unique pieces of text) of this file that the agent must deliver."""
        return [] if self.begin is None else cells_of(self.file.data[self.begin :])


class Skipping(Schedule):
    """One random run, in which an agent reads several logs while its settings change."""

    steps = 140

    def __init__(self, seed: int, faults: frozenset[str]) -> None:
        self.faults = faults
        self.directories = 1
        self.start_at, self.older_ms, self.inactive_ms = "beginning", None, None
        super().__init__(seed, "file", faults, World(self.configured()), kills=4)
        self.world.files = Watched(self)
        self.logs: list[Log] = []
        self.looked: set[str] = set()
        self.look_ns = 0
        self.since_ms: int | None = None
        self.now_ms: int | None = None  # when the running agent process last scanned for files
        self.uncertain: set[str] = set()
        self.unsure: set[str] = set()  # lines that the agent may never have seen
        self.has_deleted = False
        self.has_unseen = False  # whether a log was created and rotated between two scans

    # --- events -------------------------------------------------------------------------------

    def run(self) -> None:
        before: list[Callable[[], None]] = [self.write, self.write, self.rotate, self.pass_time]
        for _ in range(self.random.randint(0, 8)):
            self.random.choice(before)()
        super().run()

    def actions(self) -> Iterator[tuple[Any, float]]:
        yield self.write, 10
        yield self.rotate, 1.5
        yield self.pass_time, 4
        if "delete" in self.faults:
            yield self.delete, 0.7
        if "forbid" in self.faults:
            yield self.forbid, 0.7
        if any(self.world.brokers.late.values()):
            yield self.arrive_late, 3
        yield from self.of_agent((self.reload, 1), (self.touch, 4))

    def write(self) -> None:
        """Writes a few cells (unique pieces of text) to a log, or makes an empty log."""
        path = self.random.choice(PATHS)
        log = self.at(path)
        text = ""
        for _ in range(self.random.choice([0, 1, 1, 2, 3]) if log is None else 1):
            end = self.random.choice(["", "\n", "\n", "\r\n"])
            text += self.new_cell() + end
        file = self.world.files.append(path, self.bytes_of(text, log))
        if log is None:
            self.logs.append(Log(file, path, path))
        for cell in cells_of(text.encode()):
            self.written[cell] = self.world.clock.time_ms()
        self.say(f"write {path} {text!r}")

    def bytes_of(self, text: str, log: Log | None) -> bytes:
        if "utf-16" not in self.faults:
            return text.encode()
        if log is None or not log.file.data:
            order = self.random.choice(["utf-16-le", "utf-16-be"])
            return ("\ufeff" + text if text else "").encode(order)
        return text.encode("utf-16-be" if is_big_endian(log.file.data) else "utf-16-le")

    def rotate(self) -> None:
        """Renames a log. If no pattern matches the new name, the next log is written at once: the
        agent expects to find a file at the log's path."""
        log = self.at(self.random.choice(PATHS))
        if log is None:
            return
        self.rotations += 1
        if "narrow" in self.faults:
            for number in range(len(self.logs), 0, -1):
                older = self.at(f"{log.base}.{number}")
                if older is not None:
                    self.move(older, f"{log.base}.{number + 1}")
            self.move(log, f"{log.base}.1")
            data = self.bytes_of("\n", None)
            self.logs.append(Log(self.world.files.append(log.base, data), log.base, log.base))
        else:
            self.move(log, f"{log.base}.{self.rotations}")

    def move(self, log: Log, path: str) -> None:
        self.world.files.rename(log.path, path)
        self.say(f"move {log.path} to {path}")
        log.path = path

    def delete(self) -> None:
        there = [log for log in self.logs if not log.is_gone]
        if not there:
            return
        log = self.random.choice(there)
        for cell in cells_of(log.file.data):
            stood_ms = self.written[cell] - (log.seen_ns or 0) // 1_000_000
            # While the file was ignored, a seal may have covered the time of this old line. So a
            # loss that is declared later need not name the line's bucket.
            was_old = self.written[cell] < log.due_ms - OLDER_MS
            if log.begin is None or log.seen_ns is None or was_old or stood_ms >= STILL_S * 1000:
                self.unsure.add(cell)
        self.remember()
        self.world.files.delete(log.path)
        log.is_gone = self.has_deleted = True
        self.say(f"delete {log.path}")

    def forbid(self) -> None:
        """Makes a file unreadable, or makes an unreadable file readable again."""
        log = self.random.choice([log for log in self.logs if not log.is_gone] or [None])
        if log is not None:
            log.file.unreadable = not log.file.unreadable
            self.say(f"{log.path} unreadable: {log.file.unreadable}")

    def pass_time(self) -> None:
        if "older" in self.faults and self.random.random() < 0.2:
            self.world.clock.advance(LONG_S)
            self.say("a long time passes")
        else:
            super().pass_time()

    def at(self, path: str) -> Log | None:
        return next((x for x in self.logs if x.path == path and not x.is_gone), None)

    # --- the agent ----------------------------------------------------------------------------

    def draw(self) -> None:
        """Chooses new settings at random."""
        if "end" in self.faults:
            self.start_at = self.random.choice(["end", "end", "beginning"])
        if "older" in self.faults:
            self.older_ms = self.random.choice([OLDER_MS, OLDER_MS, None])
        if self.random.random() < 0.3:
            self.directories = min(self.directories + 1, len(DIRECTORIES))

    def configured(self) -> AgentSettings:
        ending = "*.log" if "narrow" in self.faults else "*"
        encoding = "utf-16" if "utf-16" in self.faults else "utf-8"
        tailed: Any = replace(
            source(r"(?P<line>[^x].*)", "file", encoding=encoding),
            paths=[f"{each}/{ending}" for each in DIRECTORIES[: self.directories]],
            start_at=self.start_at,
            ignore_older_ms=self.older_ms,
        )
        return settings(tailed, close_inactive_ms=self.inactive_ms)

    def start(self) -> None:
        self.draw()
        if "inactive" in self.faults:
            self.inactive_ms = self.random.choice([500, 2_000, None])
        self.world.settings = self.configured()
        self.now_ms = None
        self.since_ms = beginning.since(StateDatabase(self.world.connection)).get(TOPIC)
        super().start()
        self.say(f"start {self.described()}")

    def kill(self) -> None:
        super().kill()
        self.world.files.open_count = 0

    def reload(self) -> None:
        self.draw()
        self.world.reload(self.configured())
        self.say(f"reload {self.described()}")

    def described(self) -> str:
        return f"{self.directories} {self.start_at} {self.older_ms} {self.inactive_ms}"

    def touch(self) -> None:
        """Tells the agent that a file has changed, as the kernel does. Then runs a turn (one pass
        of the agent's loop)."""
        log = self.at(self.random.choice(PATHS))
        if log is not None:
            self.say(f"touch {log.path}")
            self.judge(log, self.now_ms)
            self.world.agent.touch([log.path])
            self.turn()

    # --- what the model expects from the agent ------------------------------------------------

    def look(self) -> None:
        """Decides from which position the agent must read each file. Is called when the agent scans
        for files."""
        self.now_ms = self.world.clock.time_ms()
        for log in self.logs:
            if log.is_gone or os.path.dirname(log.base) not in DIRECTORIES[: self.directories]:
                continue
            if self.means(log.path):
                self.judge(log, self.now_ms)
            else:
                self.judge_rotated(log)
            log.seen_ns = log.file.changed_ns
        self.looked.update(DIRECTORIES[: self.directories])
        self.look_ns = max([self.look_ns, *(log.file.changed_ns for log in self.logs)])
        self.since_ms = self.now_ms

    def means(self, path: str) -> bool:
        """Returns whether one of the agent's patterns matches the path."""
        is_there = os.path.dirname(path) in DIRECTORIES[: self.directories]
        return is_there and ("narrow" not in self.faults or path.endswith(".log"))

    def judge(self, log: Log, now_ms: int | None) -> None:
        """Decides from which position the agent must read a file whose path a pattern matches.
        `now_ms` is the time at which the agent's process last scanned for files, or None before the
        first scan. Without this time, the method decides nothing about a file whose age matters."""
        if log.begin is not None or not log.file.data or not self.means(log.path):
            return
        is_first = os.path.dirname(log.path) not in self.looked
        if is_first and self.start_at == "end":
            self.begin(log, unfinished_line(log.file.data, is_wide="utf-16" in self.faults))
        elif self.older_ms is None:
            self.begin(log, 0)
        elif now_ms is not None:
            changed_ms = log.file.changed_ns // 1_000_000
            is_missed = not is_first and self.since_ms is not None
            is_missed &= changed_ms >= (self.since_ms or 0) - SLACK_MS
            log.is_old = now_ms - changed_ms > self.older_ms and not is_missed
            if not log.is_old:
                self.begin(log, 0)

    def judge_rotated(self, log: Log) -> None:
        """Decides whether the agent must read a rotated file whose name no pattern matches. The
        agent must read the file if an earlier scan included the log's directory, and the file has
        changed since the previous scan. In all other cases the agent may read or ignore the file.
        """
        self.has_unseen |= log.seen_ns is None
        if log.begin is not None or not log.file.data:
            return
        if os.path.dirname(log.base) in self.looked and log.file.changed_ns > self.look_ns:
            self.begin(log, 0)
        else:
            log.is_free = True

    def begin(self, log: Log, position: int) -> None:
        log.begin, log.due_ms = position, self.world.clock.time_ms()
        log.is_old = False
        self.say(f"{log.path} is due from {position}")

    # --- checks -------------------------------------------------------------------------------

    def read_message(self, message: Any) -> None:
        if isinstance(message, Delta):
            for loss in message.losses:
                if loss.certainty is Certainty.UNCERTAIN:
                    self.uncertain.update(self.cells_between(loss.file, loss.first, loss.end))
        if isinstance(message, Seal):
            for topic in message.topics:
                if topic.source.topic == TOPIC:
                    self.check_sealed(topic.sealed_until)

    def check_sealed(self, until_ms: int) -> None:
        """Asserts that each line that the agent had to read, and that was written before the seal's
        time `until_ms`, has arrived."""
        due = {
            cell
            for log in self.logs
            if log.due_ms < until_ms and not log.is_gone and not log.is_free
            for cell in log.due
        }
        missing = (due & self.written_before(until_ms)) - self.cells_there() - self.uncertain
        assert not missing, f"sealed until {until_ms} without {missing}"

    def finish(self) -> None:
        for log in self.logs:
            log.file.unreadable = False
        self.settle()
        for _ in range(40):
            self.go_on()
        self.check_files()
        self.check_rows()

    def check_files(self) -> None:
        """Asserts that each file's announcement names the position from which the agent must read
        the file, that the count of ignored files is right, and that idle files are closed."""
        begins = {
            each.inode: each.begin
            for each in self.world.of(Announcement)
            if each.predecessor is None
        }
        for log in self.logs:
            if not log.is_free and not log.is_gone and log.begin is not None:
                assert begins.get(log.file.inode) == log.begin, f"{log.path} begins elsewhere"
        old = [x for x in self.logs if x.is_old and not x.is_gone and self.means(x.path)]
        left = self.world.agent.tracker.ignored.by_topic.get(TOPIC, Left())
        assert left[:2] == (len(old), sum(len(x.file.data) for x in old)), left
        if self.inactive_ms is not None and not self.has_deleted:
            assert not self.world.files.open_count, "an idle file is open"

    def check_rows(self) -> None:
        rows, straddles, sums = self.load()
        losses = self.world.losses()
        for log in self.logs:
            due = set(log.due)
            for cell in cells_of(log.file.data):
                where = f"{cell} of {log.path}: {rows[cell]} times"
                if log.is_free or cell in self.uncertain:
                    assert rows[cell] <= 1, where
                elif cell not in due:
                    assert not rows[cell], f"{where}, although the settings leave it out"
                elif log.is_gone and not rows[cell]:
                    assert self.is_declared(cell, losses), f"{where}, and no loss says so"
                else:
                    assert rows[cell] == 1, where
        if not self.has_deleted and not self.has_unseen:
            assert not losses, losses[0].reason
        if not losses:
            assert not straddles
            assert self.agent_sums() == sums, "the equation does not hold"

    def is_declared(self, cell: str, losses: list[Loss]) -> bool:
        """Returns whether one of the losses covers the bucket (time window) in which the line
        `cell` was written. Also returns True if the agent may never have seen the line."""
        written = bucket.start_of(self.written[cell], BUCKET_MS)
        late_ms = self.world.settings.lateness_ms
        return cell in self.unsure or any(
            (x.from_bucket or 0) - late_ms <= written <= (x.to_bucket or 0) for x in losses
        )


class Watched(Files):
    """The host's files. Before each of the agent's scans, calls `Skipping.look`."""

    def __init__(self, schedule: Skipping) -> None:
        super().__init__(schedule.world.clock)
        self._schedule = schedule

    def scan(self, patterns: Sequence[Pattern]) -> Scan:
        self._schedule.look()
        return super().scan(patterns)


def is_big_endian(data: bytes | bytearray) -> bool:
    return data.startswith(b"\xfe\xff")


def unfinished_line(data: bytearray, *, is_wide: bool) -> int:
    """Returns the byte position after the last line terminator in `data`, where an unfinished line
    may begin. If `is_wide`, `data` is UTF-16."""
    if not is_wide:
        return data.rfind(b"\n") + 1
    end = b"\0\n" if is_big_endian(data) else b"\n\0"
    ends = [at + 2 for at in range(0, len(data), 2) if data[at : at + 2] == end]
    return max(ends, default=0)


def run_all(seeds: range, *faults: str) -> None:
    for seed in seeds:
        run_traced(Skipping(seed, frozenset(faults)), seed)


@promise("1 start at the end")
@pytest.mark.parametrize("also", ["", "narrow", "utf-16", "forbid", "delete"])
def test_only_what_was_there_at_the_first_look_is_skipped(also: str, seeds: Seeds) -> None:
    """With `start_at: end`, the agent skips exactly the whole lines that existed at its first scan
    for a pattern's files, whatever kills, rotations, reloads and further patterns follow."""
    run_all(seeds(range(11_000, 11_008)), "end", also)


@promise("1 old files")
@pytest.mark.parametrize("also", ["", "narrow", "forbid", "delete"])
def test_only_files_that_stood_still_are_left_alone(also: str, seeds: Seeds) -> None:
    """With `ignore.older.ms`, the agent ignores exactly the files that were too old when it found
    them. If such a file changes later, the agent reads the whole file. The agent also reads a file
    that has changed since the agent's last scan, even if the agent was down for so long that the
    file is old at the next scan."""
    run_all(seeds(range(12_000, 12_008)), "older", also)


@promise("1 closed early")
@pytest.mark.parametrize("also", ["", "narrow", "forbid", "delete"])
def test_closing_idle_files_loses_and_doubles_nothing(also: str, seeds: Seeds) -> None:
    """With `close.inactive.ms`, the agent closes files that do not change, and delivers each line
    once. If a closed file is deleted, the agent declares the file's unread lines lost.
    """
    run_all(seeds(range(13_000, 13_008)), "inactive", also)


@promise("1 start at the end", "1 old files", "1 closed early")
@pytest.mark.parametrize("also", ["", "narrow", "utf-16", "delete"])
def test_all_three_settings_together(also: str, seeds: Seeds) -> None:
    """If `start_at: end`, `ignore.older.ms` and `close.inactive.ms` are used together, the agent
    obeys all three settings. `start_at: end` is for the files that the first scan of a directory
    finds: the agent skips the lines that these files already have. `ignore.older.ms` is for the
    files that later scans find: the agent ignores files that are too old."""
    run_all(seeds(range(14_000, 14_008)), "end", "older", "inactive", "forbid", also)


@pytest.mark.parametrize(
    ("broken", "faults", "first"),
    [
        (
            (FirstLooks, "load", lambda _self, _seen, _since: None),
            ("end",),
            11_002,
        ),
        ((FirstLooks, "end_look", lambda _self, _sources: None), ("end",), 11_000),
        ((FirstLooks, "is_missed", lambda _self, _topic, _found: False), ("older",), 11_011),
        ((recognition, "is_old", lambda _source, _found, _now_ms: False), ("older",), 11_012),
        (
            (Endings, "lose", lambda self, tracked, _: self.end(tracked)),
            ("inactive", "delete"),
            11_001,
        ),
    ],
    ids=[
        "every-start-is-a-first-look",
        "every-look-is-a-first-look",
        "what-changed-without-an-agent-is-old",
        "nothing-is-old",
        "what-is-deleted-unread-is-not-declared",
    ],
)
def test_the_schedules_find_each_broken_rule(
    broken: tuple[Any, str, Any],
    faults: tuple[str, ...],
    first: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The schedules are able to find errors: if the agent is changed so that it breaks one of its
    rules about the bytes to read, the model's check fails. To save time, the search begins at a
    seed (`first`) at which it does."""
    monkeypatch.setattr(*broken)
    with pytest.raises(AssertionError, match="seed"):
        run_all(range(first, first + 200), *faults)

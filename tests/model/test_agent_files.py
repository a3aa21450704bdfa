"""The real agent runs under random schedules on a simulated host that treats log files as real
hosts do.

The host links, renames, moves, copies, truncates and deletes files, reuses inodes and takes away
permissions. Some of its file systems do not record when a file was created. The agent may be
running or down while the host does any of this. The test knows every line and the file that
contains it. The test fails in four cases: a line is missing and was not declared lost; a line was
delivered twice and was not declared as possibly doubled; the agent declared a loss although no line
is missing; the agent declared a line as possibly doubled although no line can be doubled.
"""

from __future__ import annotations

import collections
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from skidway.agent.files.endings import STILL_S
from skidway.agent.state.database import StateDatabase
from skidway.agent.values.found import UNMEASURED
from skidway.agent.values.identity import FINGERPRINT_BYTES
from skidway.audit.counts import bucket
from skidway.audit.topic.messages import Certainty, Delta, Loss
from support.agent_world import DAMAGED_BYTES, World, datum_text, raw, settings
from support.promises import promise
from support.randomness import Seeds

APP, LINK, TARGET = "/log/app.log", "/links/app.log", "/pods/0.log"
PATTERNS = {"kubelet": LINK, "glob": "/log/app*", "copied over, glob": "/log/app*"}
BUCKET_MS = 1_000
STEPS = 60


@dataclass
class Line:
    text: str
    written_ms: int
    is_destroyed: bool = False  # whether the host has destroyed the line's bytes

    # False if nothing shows that the line existed. An example is a line whose file was written and
    # deleted between two of the agent's scans for files.
    has_trace: bool = True
    traced_by_others: bool = False  # whether only other rotated files show that the file existed


@dataclass
class Host:
    """The programs that write logs, and the tools that rotate these logs. `scheme` says how logs
    are rotated and how rotated files are named."""

    world: World
    random: random.Random
    scheme: str
    # Whether each new file begins with a line that no other file has. The agent recognizes a file
    # by its first bytes, and this line is longer than these bytes.
    has_header: bool = False
    was_looked_at: bool = False
    lines: dict[str, Line] = field(default_factory=dict)
    serial: int = 0
    compressing: str = ""
    # a deleted backup may have had the last copy of some lines
    has_lost_copy: bool = False
    freed: int = 0  # the inode of the last file that was deleted
    trace: list[str] = field(default_factory=list)

    @property
    def path(self) -> str:
        """Returns the path of the file to which the program writes."""
        return TARGET if self.scheme == "kubelet" else APP

    @property
    def pattern(self) -> str:
        return PATTERNS.get(self.scheme, APP)

    def say(self, what: str) -> None:
        self.trace.append(f"{self.world.clock.time_ms()} {what}")

    def number(self) -> int:
        self.serial += 1
        return self.serial

    # Events that change files.

    def write(self) -> None:
        is_new = self.path not in self.world.files.by_path
        if is_new and self.scheme == "kubelet":
            self.world.files.link(LINK, TARGET)
        lines = [Line(f"line {self.number()}", self.world.clock.time_ms())]
        data = "".join(f"{each.text}\n" for each in lines)
        if is_new and self.has_header:
            data = f"{self.number():0{FINGERPRINT_BYTES}d}\n" + data
        elif is_new and self.random.random() < 0.5:
            data = "Starting job\n" + data  # so several files have the same first bytes
        self.lines |= {each.text: each for each in lines}
        self.world.files.append(self.path, data.encode())
        self.say(f"write {data!r}")

    def rotate(self) -> None:
        if self.path not in self.world.files.by_path:
            return
        if self.scheme in ("numbers", "glob"):
            self.shift()
        name = {
            "numbers": f"{APP}.1",
            "glob": f"{APP}.1",
            "dates": f"/log/app-20261121-{self.number():06d}.log",
            "log4j2": f"/log/app-11-21-2026-{self.number()}.log",
            "any name": f"/log/closed-app-{self.number()}x",
            "olddir": f"/old/app.log-{self.number():08d}",
            "kubelet": f"{TARGET}.20261121-{self.number():06d}",
            "copytruncate": "",
            "copied over": "",
            "copied over, glob": "",
        }[self.scheme]
        if not name:
            self.copytruncate()
        else:
            self.world.files.rename(self.path, name)
            self.say(f"rename to {name}")

    def shift(self) -> None:
        files = self.world.files
        self.finish_compressing()
        rotated = [path.removesuffix(".gz")[len(APP) + 1 :] for path in files.by_path]
        last = max((int(number) for number in rotated if number.isdigit()), default=0)
        for number in range(last, 0, -1):
            for ending in ("", ".gz"):
                if f"{APP}.{number}{ending}" in files.by_path:
                    files.rename(f"{APP}.{number}{ending}", f"{APP}.{number + 1}{ending}")

    def copytruncate(self) -> None:
        """Copies the log to app.log.1 and then truncates the log. With the scheme "copytruncate",
        an older app.log.1 is renamed first; else the copy is written over it. Does nothing if the
        agent has not scanned for files since the last copy. If the log were copied twice between
        two scans, nobody could say which earlier content of the log each copy has."""
        if not self.was_looked_at:
            return
        self.was_looked_at = False
        if self.scheme == "copytruncate":
            self.shift()
        elif f"{APP}.1" in self.world.files.by_path:
            self.destroy(f"{APP}.1")
            self.world.files.truncate(f"{APP}.1")
        file = self.world.files.by_path[APP]
        self.world.files.append(f"{APP}.1", bytes(file.data))
        self.world.files.truncate(APP)
        self.say("copytruncate")

    def destroy(self, path: str) -> None:
        file = self.world.files.by_path[path]
        files = StateDatabase(self.world.connection).files()
        known = {(x.birth.key.inode, x.birth.born_ns): x for x in files}
        tracked = known.get((file.inode, file.born_ns))
        for text in file.data.decode().splitlines():
            if text in self.lines and not self.lies_elsewhere(text, path):
                line = self.lines[text]
                line.is_destroyed = True
                others = self.world.files.by_path.keys() - {self.path, path}
                is_expected = self.scheme not in ("any name", "glob") and bool(others)
                is_expected &= path != self.path
                line.has_trace = tracked is not None or is_expected
                line.traced_by_others = tracked is None and is_expected
                if tracked is not None and tracked.changed_ns is not None:
                    stood_ms = line.written_ms - tracked.changed_ns // 1_000_000
                    # If the file had not changed for STILL_S before this line was written, the
                    # agent may treat the file as read to its end. Then nothing shows that this line
                    # existed.
                    line.has_trace &= stood_ms < STILL_S * 1000

        if not self.world.files.by_path.keys() - {self.path, path}:
            for line in self.lines.values():
                line.has_trace &= not line.traced_by_others

    def lies_elsewhere(self, text: str, path: str) -> bool:
        return any(
            f"{text}\n".encode() in bytes(file.data)
            for other, file in self.world.files.by_path.items()
            if other != path
        )

    def delete(self, path: str) -> None:
        self.destroy(path)
        inode = self.world.files.by_path[path].inode
        self.world.files.delete(path)
        self.freed = inode
        self.has_lost_copy |= path.endswith(".bak")
        self.say(f"delete {path}")

    def delete_oldest(self) -> None:
        rotated = [path for path in self.world.files.by_path if path != self.path]
        if rotated:
            self.delete(min(rotated, key=self.first_line))

    def first_line(self, path: str) -> int:
        """Returns the number N of the first line "line N" in a file, or 0 if the file has no such
        line. The oldest file has the lowest number."""
        found = re.search(rb"line (\d+)", self.world.files.by_path[path].data)
        return int(found[1]) if found else 0

    def compress(self) -> None:
        """Either compresses a rotated file at once, or only begins the compression. In the second
        case the plain file and the compressed file both exist for a while."""
        self.finish_compressing()
        known = [APP, TARGET, f"{self.path}.bak", f"{self.path}.bak.gz"]
        plain = [x for x in self.world.files.by_path if not x.endswith(".gz") and x not in known]
        if plain:
            path = self.random.choice(sorted(plain))
            self.say(f"compress {path}")
            if self.random.random() < 0.5:
                self.world.files.delete(f"{path}.gz")
                self.world.files.append(f"{path}.gz", DAMAGED_BYTES).plain_size = UNMEASURED
                self.compressing = path
            else:
                self.pack(path)

    def pack(self, path: str) -> None:
        """Compresses a file. The compressed file may get the inode that was freed last."""
        inode = self.world.files.by_path[path].inode
        packed = self.world.files.compress(path, keeps_time=self.random.random() < 0.5)
        if self.freed and self.random.random() < 0.5:
            packed.inode = self.freed
        self.freed = inode

    def finish_compressing(self) -> None:
        path, self.compressing = self.compressing, ""
        packed = self.world.files.by_path.get(f"{path}.gz")
        if packed is not None and path in self.world.files.by_path:
            packed.data = bytearray(self.world.files.by_path[path].data)
            packed.plain_size = UNMEASURED
            packed.changed_ns += 1
            self.world.files.delete(path)
            self.say(f"compressed {path}")

    def run_again(self) -> None:
        """Does the same as `rm app.log; job > app.log`, but only while the agent is down. The new
        file gets the inode of the deleted file, and may have the same first bytes as that file."""
        if self.path in self.world.files.by_path and self.world.loop is None:
            beginning = bytes(self.world.files.by_path[self.path].data)
            self.delete(self.path)
            file = self.world.files.append(self.path, b"")
            file.inode = self.freed
            if self.random.random() < 0.5 and beginning.startswith(b"Starting job\n"):
                self.world.files.append(self.path, b"Starting job\n")
            self.write()

    def backup(self) -> None:
        """Does the same as `cp app.log app.log.bak`, if there is no backup yet."""
        file = self.world.files.by_path.get(self.path)
        copy = f"{self.path}.bak"
        if file is not None and copy not in self.world.files.by_path:
            self.world.files.append(copy, bytes(file.data))
            self.say("backup")

    def forbid(self) -> None:
        path = self.random.choice(sorted(self.world.files.by_path))
        file = self.world.files.by_path[path]
        file.unreadable = not file.unreadable
        self.say(f"{path} unreadable: {file.unreadable}")


class Schedule:
    """One random run of the agent on the host."""

    def __init__(self, seed: int, scheme: str, faults: frozenset[str]) -> None:
        self.random = random.Random(seed)
        # With the rotation schemes "olddir" and "any name", the agent could not find out that a
        # file was deleted, or that the deleted file was a rotated file of the log. So these schemes
        # run without faults that delete files.
        self.faults = faults - ({"again", "delete"} if scheme in ("olddir", "any name") else set())
        pattern = PATTERNS.get(scheme, APP)
        held = 99 if scheme == "olddir" else self.random.choice([1, 9])
        self.world = World(settings(raw("logs", pattern), max_open_files=held))
        self.world.files.knows_births = "births" not in faults
        has_header = bool(faults & {"copies", "compress"})
        self.host = Host(self.world, self.random, scheme, has_header)

    def run(self) -> None:
        self.host.write()  # if the agent found no file at the path, it would declare a loss
        self.world.start()
        self.world.settle(3)
        for _ in range(STEPS):
            actions, weights = zip(*self.actions(), strict=True)
            self.random.choices(actions, weights)[0]()
        self.finish()

    def actions(self) -> Iterator[tuple[Callable[[], None], float]]:
        yield self.host.write, 8
        yield self.host.rotate, 3
        yield self.pass_time, 4
        if "delete" in self.faults:
            yield self.host.delete_oldest, 1
        if "again" in self.faults:
            yield self.host.run_again, 1
        if "copies" in self.faults:
            yield self.host.backup, 0.5
        if "compress" in self.faults:
            yield self.host.compress, 2
        if "forbid" in self.faults and self.world.files.by_path:
            yield self.host.forbid, 0.5
        if "blind" in self.faults:
            yield self.forbid_search, 0.5 if self.world.files.may_search else 2
        if not self.world.files.is_mounted:
            yield self.mount, 1
        if self.world.loop is None:
            yield self.start, 4
        else:
            yield self.turn, 8
            yield self.tick, 6
            # With the scheme "olddir", the agent finds a moved file only if it still has the file
            # open. So runs with this scheme do not kill the agent.
            if self.host.scheme != "olddir":
                yield self.kill, 1

    def pass_time(self) -> None:
        self.world.clock.advance(self.random.choice([0.05, 0.3, 2.0, 30.0]))

    def forbid_search(self) -> None:
        self.world.files.may_search = not self.world.files.may_search
        self.host.say(f"may search: {self.world.files.may_search}")

    def mount(self) -> None:
        self.world.files.is_mounted = True
        self.world.files.device += self.random.choice([0, 1])
        self.host.say(f"mounted, device {self.world.files.device}")

    def start(self) -> None:
        if "mounts" in self.faults and self.random.random() < 0.5:
            self.world.files.is_mounted = False
        self.world.start()
        self.host.say("START")

    def turn(self) -> None:
        self.world.turn()
        self.host.say("turn")

    def tick(self) -> None:
        self.world.settle(3, 0.2)
        self.host.was_looked_at = True
        for line in self.host.lines.values():
            line.traced_by_others = False
        self.host.say("tick")

    def kill(self) -> None:
        self.world.kill(0)
        self.host.say("KILL")

    def finish(self) -> None:
        self.host.finish_compressing()
        self.world.files.is_mounted = self.world.files.may_search = True
        for file in self.world.files.by_path.values():
            file.unreadable = False
        if self.host.path not in self.world.files.by_path:
            self.host.write()  # while the log's link leads to no file, the agent delays its seal
        if self.world.loop is None:
            self.world.start()
        self.world.settle(60, 0.5)
        self.check()

    # --- the oracle ---------------------------------------------------------------------------

    def check(self) -> None:
        losses = [loss for delta in self.world.of(Delta) for loss in delta.losses]
        records = {
            (r.file, r.first, datum_text(r.value)) for r in self.world.brokers.records("logs")
        }
        # `records` is a set, so a record that was sent again counts only once.
        found = collections.Counter(text for _, _, text in records)
        for text, line in self.host.lines.items():
            if found[text] == 0 and line.has_trace:
                where = "" if line.is_destroyed else ", which lies on the host"
                assert _covers(losses, line), f"SILENT LOSS of {text}{where}"
                # With some schemes, the agent may declare that lines are lost although the host
                # still has these lines.
                if self.host.scheme not in UNSURE:
                    assert line.is_destroyed, f"{text} lies on the host and was not read"
            elif found[text] > 1:
                assert self.is_doubt(text, losses), f"SILENT DOUBLING of {text}"
        destroyed = any(line.is_destroyed for line in self.host.lines.values())
        is_sure = self.host.scheme not in UNSURE and "births" not in self.faults
        if is_sure and not destroyed and not self.host.has_lost_copy:
            lost = [loss for loss in losses if loss.certainty is Certainty.LOST]
            assert not lost, f"FALSE LOSS: {lost[0].reason}"
        may_doubt = self.faults & {"copies", "compress"} or self.host.scheme in UNSURE
        if self.world.files.knows_births and not may_doubt and not destroyed:
            doubts = [loss for loss in losses if loss.certainty is Certainty.UNCERTAIN]
            assert not doubts, f"FALSE DOUBT: {doubts[0].reason}"

    def is_doubt(self, text: str, losses: list[Loss]) -> bool:
        """Returns whether at least one of the records with this text is in a range that the agent
        declared lost or possibly doubled."""
        return any(
            record.file == loss.file
            and loss.first <= record.first
            and (loss.end is None or record.end <= loss.end)
            for record in self.world.brokers.records("logs")
            if datum_text(record.value) == text
            for loss in losses
        )


def _covers(losses: list[Loss], line: Line) -> bool:
    written = bucket.start_of(line.written_ms, BUCKET_MS)
    return any((loss.from_bucket or 0) <= written <= (loss.to_bucket or written) for loss in losses)


COPIES = ["copytruncate", "copied over", "copied over, glob"]
UNSURE = ("olddir", *COPIES)
"""With these schemes, the agent may declare lines lost or possibly doubled that are not."""

RENAMES = ["numbers", "glob", "dates", "log4j2", "any name", "olddir", "kubelet"]


def run(seed: int, scheme: str, *faults: str) -> None:
    schedule = Schedule(seed, scheme, frozenset(faults))
    try:
        schedule.run()
    except AssertionError as error:
        losses = [x for delta in schedule.world.of(Delta) for x in delta.losses]
        said = "\n".join(f"{x.certainty}: {x.reason}" for x in losses)
        trace = "\n".join([*schedule.host.trace[-70:], said])
        raise AssertionError(f"seed {seed}, {scheme}, {faults}: {error}\n{trace}") from error


@promise("1 generations")
@pytest.mark.parametrize("scheme", [*RENAMES, *COPIES])
def test_rotations_by_any_name_lose_and_double_nothing(scheme: str, seeds: Seeds) -> None:
    """Every line arrives once, and the agent declares no loss and no doubling, however files are
    rotated and whenever the agent is down. With the schemes in UNSURE, a line may instead be
    declared lost or possibly doubled."""
    for seed in seeds(range(20)):
        run(seed, scheme)


@promise("1 generations")
@pytest.mark.parametrize("scheme", RENAMES)
def test_what_is_destroyed_is_declared_and_nothing_else(scheme: str, seeds: Seeds) -> None:
    """Even if rotated files are deleted, freed inodes are reused, or files are made unreadable, the
    agent loses no line that the host still has. It declares every destroyed line lost, unless
    nothing shows that the line existed."""
    for seed in seeds(range(1_000, 1_020)):
        run(seed, scheme, "delete", "again", "forbid")


@promise("6 unreadable")
@pytest.mark.parametrize("scheme", [x for x in RENAMES if x != "olddir"])
def test_where_nobody_may_look_nothing_is_gone(scheme: str, seeds: Seeds) -> None:
    """While the logs' file system is not mounted, or their directory cannot be searched, the agent
    does not treat the logs as deleted. No line is lost or doubled, and the agent declares no loss.
    This is so even if the file system is mounted again with another device number."""
    for seed in seeds(range(5_000, 5_010)):
        run(seed, scheme, "mounts")
        run(seed, scheme, "blind")
        run(seed, scheme, "mounts", "blind")


@promise("1 compression")
@pytest.mark.parametrize("scheme", ["numbers", "glob", "dates", "log4j2", "kubelet"])
def test_compressed_generations_lose_and_double_nothing(scheme: str, seeds: Seeds) -> None:
    """Whenever a rotated file is compressed, each of its lines arrives once, or the agent declares
    the line as possibly doubled. If a rotated file is deleted, the agent may also declare the
    file's lines lost.
    """
    for seed in seeds(range(4_000, 4_020)):
        run(seed, scheme, "compress")
        run(seed, scheme, "compress", "delete")


@promise("1 copies")
@pytest.mark.parametrize("scheme", ["numbers", "dates", "log4j2", "kubelet"])
def test_copies_are_known_or_declared(scheme: str, seeds: Seeds) -> None:
    """If a copy of a log appears, the agent either does not read the copy or declares the copied
    bytes as possibly doubled."""
    for seed in seeds(range(3_000, 3_020)):
        run(seed, scheme, "delete", "copies")


@pytest.mark.parametrize("scheme", RENAMES)
def test_without_times_of_birth_doubts_are_declared(scheme: str, seeds: Seeds) -> None:
    """On file systems that do not record when files were created, the agent cannot always
    distinguish two files. But it still declares every loss and every possible doubling."""
    for seed in seeds(range(2_000, 2_020)):
        run(seed, scheme, "delete", "again", "copies", "births")

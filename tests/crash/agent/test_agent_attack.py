"""A real agent is killed and reloaded again and again, while programs write to logs and rotate them
in every way. Afterwards every line was delivered, rejected or left out, exactly once. There is one
exception: lines of logs that are truncated or compressed can be missing or doubled, and the agent
then declares this.

Each line, except the headers of files, contains a number that no other line has. A line is left out
if a rule drops it, or if it is the header of a file."""

from __future__ import annotations

import collections
import contextlib
import gzip
import os
import random
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import yaml

from support.agent_process import AgentProcess, values
from support.brokers import SkidwayBroker
from support.processes import NotReady, eventually
from support.promises import promise
from support.randomness import Seeds

Make = Callable[..., AgentProcess]

HEADER = b"kind,number,text\n"
NUMBER = re.compile(rb"<(\d+)>")
ATTACK_S = 15.0
RSS_MB_MAX = 450
"""The largest resident memory (RSS, in MB) that the agent may have. Its batches and its readings
have limited sizes, so its memory does not depend on the size of its files."""


class Log:
    """A log, its writer, and the numbers of the lines that must become records or must be
    rejected."""

    def __init__(self, path: Path, chance: random.Random) -> None:
        self.path, self.random = path, chance
        self.wanted: dict[str, set[int]] = {"row": set(), "reject": set()}
        self.filtered_bytes = self.generations = 0
        self.file: BinaryIO = self.open()

    def open(self) -> BinaryIO:
        file = self.path.open("ab", buffering=0)
        file.write(HEADER)
        self.filtered_bytes += len(HEADER)
        return file

    def write(self, number: int) -> None:
        kind = self.random.choices(["row", "debug", "bad", "long"], [60, 20, 10, 0.3])[0]
        text = b"%s,<%d>,%s" % (kind.encode(), number, b"x" * self.random.randrange(80))
        if kind == "bad":
            text += b",more"
        elif kind == "long":
            text += b"y" * self.random.choice([600_000, 1_100_000, 2_500_000])
        line = text + b"\n"
        if kind == "debug":
            self.filtered_bytes += len(line)
        else:
            self.wanted["row" if kind == "row" else "reject"].add(number)
        self.file.write(line)  # in one write, so that the agent never takes half a line for one

    def rotate(self) -> None:
        """Renames the log. The writer continues with a new file."""
        self.generations += 1
        self.path.rename(f"{self.path}.{self.generations}")
        self._reopen()

    def _reopen(self) -> None:
        self.file.close()
        self.file = self.open()

    @property
    def is_sure(self) -> bool:
        """Whether the test requires that no line of this log is missing or doubled."""
        return True


class Compressed(Log):
    """A log whose rotated files are compressed at once."""

    def rotate(self) -> None:
        self.generations += 1
        plain = Path(f"{self.path}.{self.generations}")
        self.path.rename(plain)
        self._reopen()
        status = plain.stat()
        Path(f"{plain}.gz").write_bytes(gzip.compress(plain.read_bytes(), 1))
        os.utime(f"{plain}.gz", ns=(status.st_atime_ns, status.st_mtime_ns))
        plain.unlink()

    @property
    def is_sure(self) -> bool:
        return False  # see docs/open.md, Compressed generations


class Linked(Log):
    """A log that is a link to the newest of several files. Rotation makes the link point to a new
    file."""

    def open(self) -> BinaryIO:
        self.generations += 1
        real = self.path.parent / "real" / f"{self.path.stem}-{self.generations}.log"
        real.parent.mkdir(exist_ok=True)
        real.write_bytes(b"")
        new = self.path.with_suffix(".new")
        new.symlink_to(real)
        new.rename(self.path)
        return super().open()

    def rotate(self) -> None:
        self._reopen()


class Truncated(Log):
    """A log that is copied and then truncated."""

    def rotate(self) -> None:
        self.generations += 1
        Path(f"{self.path}.{self.generations}").write_bytes(self.path.read_bytes())
        os.truncate(self.path, 0)

    @property
    def is_sure(self) -> bool:
        return False


class Holed(Truncated):
    """A log whose program continues at its old position after a truncation, and so leaves NUL
    bytes."""

    def rotate(self) -> None:
        os.truncate(self.path, 0)

    def open(self) -> BinaryIO:
        self.path.touch()
        file = self.path.open("r+b", buffering=0)
        file.write(HEADER)
        return file


class Writers:
    """One thread that writes to all logs and rotates them."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.random = chance
        kinds = {"a": Log, "b": Log, "c": Compressed, "d": Linked, "e": Truncated, "f": Holed}
        self.logs = [kind(folder / f"{name}.log", chance) for name, kind in kinds.items()]
        self.count = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Writers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        for log in self.logs:
            log.file.close()

    def _run(self) -> None:
        while not self._is_over.wait(0.002):
            log = self.random.choice(self.logs)
            for _ in range(self.random.choice([1, 1, 5, 60])):
                self.count += 1
                log.write(self.count)
            if self.random.random() < 0.01:
                log.rotate()


def attack(process: AgentProcess, chance: random.Random, seconds: float) -> collections.Counter:
    """Kills and reloads the agent at random moments. The pauses between the actions have random
    lengths. After only some starts of the agent, this function waits until the agent is healthy.
    Returns how often this function took each action (for example "kill"), how often the agent had
    ended by itself ("ended"), and the agent's largest RSS in MB ("rss")."""
    done: collections.Counter[str] = collections.Counter()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        what = chance.choices(["kill", "hup", "term", "run"], [4, 5, 1, 2])[0]
        done[what] += 1
        if what in ("kill", "term"):
            process.program.kill() if what == "kill" else process.program.stop()
            process.start(ready=chance.random() < 0.7)
        elif what == "hup":
            for _ in range(chance.randint(1, 6)):
                change(process, chance)
                with contextlib.suppress(ProcessLookupError):
                    process.program.signal(signal.SIGHUP)
                time.sleep(chance.choice([0, 0.01, 0.1, 0.6]))
        time.sleep(chance.choice([0.05, 0.3, 1.0]))
        done["rss"] = max(done["rss"], rss_mb(process))
        if not process.program.running:  # SIGHUP came before the agent had a handler
            done["ended"] += 1
            process.start(ready=False)
    return done


def change(process: AgentProcess, chance: random.Random) -> None:
    """Writes a new settings file. The changed settings do not decide whether a line becomes a
    record, a reject or a filtered line."""
    first = process.settings["sources"][0]
    first["max.line.bytes"] = chance.choice([524_288, 300_000])
    first["partitioning"] = chance.choice(["file", "spread"])
    others = [{"topic": "others", "paths": ["/nowhere/*.log"]}] if chance.random() < 0.3 else []
    process.settings["sources"] = [first, *others]
    process.settings["linger.ms"] = chance.choice([0, 10, 50])
    new = process.config.with_suffix(".new")
    new.write_text(yaml.safe_dump(process.settings))
    new.rename(process.config)


def rss_mb(process: AgentProcess) -> int:
    try:
        text = Path(f"/proc/{process.program.pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    return int(found[1]) // 1024 if found else 0


def numbers(broker: str, name: str) -> collections.Counter[int]:
    """Returns how often each line number is in the topic `name`. A record that the agent sent twice
    counts only once."""
    found: collections.Counter[int] = collections.Counter()
    for value in values(broker, name):
        found.update(map(int, NUMBER.findall(value)))
    return found


def has_seen(process: AgentProcess, logs: list[Log]) -> bool:
    """Returns whether the agent's state has at least one file of each log."""
    ledger = process.ledger()
    return all(any(of_name(x["path"], log) for x in ledger) for log in logs)


def of_name(path: str, log: Log) -> bool:
    """Returns whether a file is the log, or one of the log's rotated files."""
    return re.match(rf"{log.path.stem}[-.]", Path(path).name) is not None


def of_log(ledger: list[dict[str, Any]], log: Log, fate: str) -> int:
    return sum(x[fate] for x in ledger if of_name(x["path"], log))


def declared(process: AgentProcess, log: Log) -> int:
    """Returns how many lines of the agent's output say that lines of `log` may be lost or
    doubled."""
    own = re.compile(
        rf'"event": "(?:bytes_set_apart|generations_unseen)".*/{log.path.stem}[-.][^/"]*"'
    )
    return sum(own.search(line) is not None for line in process.program.output().splitlines())


@promise("2 ledger")
def test_every_line_is_in_one_place_after_an_attack(
    agent: Make, tmp_path: Path, own_broker: SkidwayBroker, seeds: Seeds
) -> None:
    """The agent is killed and reloaded in quick succession, while logs are renamed, compressed,
    linked to new files and truncated. Still each line becomes one record of the topic or one
    reject, or is left out by a rule. There is one exception: lines of truncated or compressed logs
    can be missing or doubled, and the agent then declares this. The agent's memory stays
    bounded."""
    (seed,) = seeds(range(1))
    attacked(agent, tmp_path, own_broker, seed, ATTACK_S)


def attacked(
    agent: Make, folder: Path, own_broker: SkidwayBroker, seed: int, seconds: float
) -> None:
    chance = random.Random(seed)
    logs = folder / "log"
    logs.mkdir()
    process = agent({
        "topic": "logs",
        "paths": [str(logs / "*.log")],
        "parser": {"type": "csv", "columns": ["kind", "number", "text"]},
        "shape": 'drop kind = "debug" as debug',
    })  # fmt: skip
    process.settings |= {"rejected.share.max": 1, "topic.partitions": 3, "read.back.wait.ms": 2000}
    process.start()
    with Writers(logs, random.Random(seed + 1)) as writers:
        # The attack begins when the agent has seen each log. If the agent saw a log for the first
        # time after a truncation, the agent would not read the copies of the log.
        eventually(lambda: has_seen(process, writers.logs), every_s=0.5, what="a look at all logs")
        done = attack(process, chance, seconds)
    if not process.healthy():
        with contextlib.suppress(NotReady):
            process.program.kill()
        process.start()

    def is_settled() -> bool:
        assert process.program.running, process.program.output()[-3000:]
        ledger = process.ledger()
        sizes = {log.path.resolve(): log.path.stat().st_size for log in writers.logs}
        return bool(ledger) and not any(x["pending"] for x in ledger) and process.settled(sizes)

    eventually(is_settled, every_s=1, what="all lines")
    done["rss"] = max(done["rss"], rss_mb(process))
    rows, rejects = (numbers(own_broker.address, name) for name in ("logs", "logs.rejected"))
    ledger = process.ledger()
    print(f"seed {seed}: {writers.count:,} lines, {len(rows):,} rows, {len(rejects):,} rejects,",
          f"{sum(x['filtered'] for x in ledger):,} bytes filtered,", dict(done))  # fmt: skip
    for log in writers.logs:
        counts = [
            found[number]
            for fate, found in (("row", rows), ("reject", rejects))
            for number in log.wanted[fate]
        ]
        missing, doubled = counts.count(0), sum(count > 1 for count in counts)
        said = declared(process, log)
        print(f"{log.path.name}: {missing:,} missing, {doubled:,} twice, {said} times declared")
        if log.is_sure:
            assert (missing, doubled, said) == (0, 0, 0), log.path
            assert of_log(ledger, log, "filtered") == log.filtered_bytes, log.path
        else:
            assert said or (missing, doubled) == (0, 0), f"{log.path}: nothing declared"
    wanted = {
        fate: set().union(*(log.wanted[fate] for log in writers.logs)) for fate in ("row", "reject")
    }
    assert set(rows) <= wanted["row"]
    assert set(rejects) <= wanted["reject"] | wanted["row"]
    assert done["rss"] < RSS_MB_MAX, f"the agent needed {done['rss']} MB"

"""A host's writers: numbered lines in logs, and the ways to rotate them."""

from __future__ import annotations

import gzip
import os
import random
import shutil
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

LINE = r"(?P<time>\S+) (?P<host>\S+) (?P<log>\S+) (?P<number>\d+) (?P<text>.*)"
KEPT = 4
"""Generations; the oldest is deleted with the next rotation."""
TICK_S = 0.05
LINES_A_TICK = 3


class Line:
    """What the oracle knows of a line: its number is unique among all hosts."""

    __slots__ = ("host", "number", "time_ms", "topic")

    def __init__(self, topic: str, host: str, number: int, time_ms: int) -> None:
        self.topic, self.host, self.number, self.time_ms = topic, host, number, time_ms


def renamed(path: Path) -> None:
    """app.log -> app.log.1 -> app.log.2 ...; the writer opens a new one."""
    _shift(path, "")
    path.rename(f"{path}.1")


def compressed(path: Path) -> None:
    """The same, and the generation is compressed at once."""
    _shift(path, ".gz")
    first = Path(f"{path}.1")
    path.rename(first)
    _compress(first)


def dated(path: Path) -> None:
    """Its generations have a moment in their names."""
    moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S%f")
    path.rename(f"{path}-{moment}")
    for old in sorted(path.parent.glob(f"{path.name}-*"))[:-KEPT]:
        old.unlink()


def copied(path: Path) -> None:
    """copytruncate: it is declared lost what might have been written in between."""
    _shift(path, "")
    shutil.copyfile(path, f"{path}.1")
    os.truncate(path, 0)


WAYS: dict[str, Callable[[Path], None]] = {
    "renamed": renamed, "compressed": compressed, "dated": dated, "copied": copied,
}  # fmt: skip


def _shift(path: Path, suffix: str) -> None:
    for number in range(KEPT - 1, 0, -1):
        old = Path(f"{path}.{number}{suffix}")
        if old.exists():
            old.rename(f"{path}.{number + 1}{suffix}")


def _compress(path: Path) -> None:
    """As gzip(1): the time of change goes with it, the plain file goes last."""
    status = path.stat()
    whole = Path(f"{path}.gz")
    with path.open("rb") as plain, gzip.open(whole, "wb") as out:
        shutil.copyfileobj(plain, out)
    os.utime(whole, ns=(status.st_atime_ns, status.st_mtime_ns))
    path.unlink()


class Host:
    """One thread that writes to each log of a host and rotates it now and then.

    lines: all that were written. Each is written with one call, so it is in its file whole.
    """

    def __init__(self, name: str, folder: Path, index: int, seed: int, rotate_s: float) -> None:
        self.name, self.lines = name, list[Line]()
        self._chance = random.Random(f"{seed} {name}")
        self._number = index * 1_000_000_000
        self._rotate_s = rotate_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._logs = [
            (topic, way, folder / topic / f"{way}.log")
            for topic in TOPICS
            for way in WAYS_OF[topic]
        ]
        for _, _, path in self._logs:
            path.parent.mkdir(parents=True, exist_ok=True)

    def start(self) -> None:
        """From now on it writes."""
        self._thread.start()

    def stop(self) -> None:
        """It has written its last line."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        due = {path: self._next() for _, _, path in self._logs}
        while not self._stop.wait(TICK_S):
            for topic, way, path in self._logs:
                self._write(topic, path, self._chance.randrange(LINES_A_TICK))
                if time.monotonic() >= due[path] and path.exists():
                    WAYS[way](path)
                    due[path] = self._next()

    def _next(self) -> float:
        return time.monotonic() + self._chance.uniform(0.2, 1.8) * self._rotate_s

    def _write(self, topic: str, path: Path, count: int) -> None:
        now = datetime.now(UTC)
        time_ms = int(now.timestamp() * 1000)
        text = []
        for _ in range(count):
            self._number += 1
            text.append(
                f"{now.isoformat(timespec='milliseconds')} {self.name} {path.stem} {self._number}"
                f" {'x' * self._chance.randrange(120)}\n"
            )
            self.lines.append(Line(topic, self.name, self._number, time_ms))
        if text:
            with path.open("ab", buffering=0) as out:
                out.write("".join(text).encode())


TOPICS = ("app", "web", "cut")
WAYS_OF = {"app": ("renamed", "dated"), "web": ("compressed",), "cut": ("copied",)}
"""What is cut has a topic of its own: each truncation is declared lost, however well it went."""


def sources(folder: Path) -> list[dict[str, object]]:
    """The agent's sources of such a host."""
    return [
        {
            "topic": topic,
            "paths": [str(folder / topic / "*.log")],
            "parser": {"type": "regex", "pattern": LINE},
            "timestamp": {"fields": ["time"], "format": "rfc3339"},
        }
        for topic in TOPICS
    ]

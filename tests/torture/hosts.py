"""The writers of a host. They write numbered lines to logs, and rotate the logs in several ways."""

from __future__ import annotations

import gzip
import json
import math
import os
import random
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from support.processes import eventually
from torture.faults import HOSTS

LINE = r"(?P<time>\S+) (?P<host>\S+) (?P<log>\S+) (?P<number>\d+) (?P<text>.*)"
MARKED = LINE.replace("(?P<text>.*)", "(?P<mark>x?)(?P<text>.*)")
"""Another pattern for the same lines as LINE. It has one more group, which becomes one more
column."""
FIELDS = ("time", "host", "log", "number", "text")
TIMESTAMP = {"type": "long", "logicalType": "timestamp-millis"}
KEPT = 4
"""How many rotated files of each log are kept. A rotation that makes one more file deletes the
oldest one."""
GOES_ON = ("renamed", "dated")
"""After a log is rotated in one of these ways, its writer keeps writing to the old file for a
while. The other ways of rotation compress or truncate the old file at once, so the writer must not
write to this file again."""
CUT_SELDOM = 8
"""Logs that are rotated by copytruncate (see `copied`) are rotated this many times less often than
other logs. At each truncation the agent declares a loss. The torture does not require lines of
buckets with a declared loss to arrive, so with more truncations it would check fewer lines."""
END = " ."
COPY = "/copy-"
"""If a COPY fault copies a log, the copy's path contains this text. The patterns of the agent's
sources match copies too, so the lines of a copied log arrive twice."""
UNFIT, HALVED = 1 / 200, 1 / 20
TICK_S = 0.05
LINES_A_TICK = 3
ROTATED_WITHIN_S = 10.0
"""After a rotation, the writer creates a new file under the log's name within this time, in
seconds."""


class Line:
    """A written line, as the oracle remembers it. `topic` is the name of the line's topic in the
    mirror. `number` is unique among all hosts. `time_ms` is the time in the line."""

    __slots__ = ("fits", "host", "number", "time_ms", "topic")

    def __init__(
        self, topic: str, host: str, number: int, time_ms: int, *, fits: bool = True
    ) -> None:
        self.topic, self.host, self.number, self.time_ms = topic, host, number, time_ms
        self.fits = fits
        """Whether the line matches the pattern in the agent's settings. If so, the line must become
        a row. Otherwise the agent must reject it."""


def renamed(path: Path) -> None:
    """Renames app.log to app.log.1, app.log.1 to app.log.2 and so on. The writer then opens a new
    app.log."""
    _shift(path, "")
    path.rename(f"{path}.1")


def compressed(path: Path) -> None:
    """Renames the files as `renamed` does, and then compresses the new app.log.1 at once."""
    _shift(path, ".gz")
    first = Path(f"{path}.1")
    path.rename(first)
    _compress(first)


def dated(path: Path) -> None:
    """Renames the log to a name that contains the current time."""
    moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S%f")
    path.rename(f"{path}-{moment}")
    for old in sorted(path.parent.glob(f"{path.name}-*"))[:-KEPT]:
        old.unlink()


def copied(path: Path) -> None:
    """Rotates by copytruncate. Lines that are written between the copy and the truncation may be
    lost, and the agent declares a loss."""
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
    """Compresses the file as gzip(1) does: the compressed file gets the plain file's modification
    time, and the plain file is removed last."""
    status = path.stat()
    whole = Path(f"{path}.gz")
    with path.open("rb") as plain, gzip.open(whole, "wb") as out:
        shutil.copyfileobj(plain, out)
    os.utime(whole, ns=(status.st_atime_ns, status.st_mtime_ns))
    path.unlink()


class Host:
    """The writers of all logs of a host. One thread writes to all these logs, and rotates each of
    them now and then.

    `lines` contains all lines that were written so far. Some lines are written in two halves, and
    some do not match the pattern in the agent's settings. As real programs do, the thread may keep
    writing to a rotated file for a while, until it opens the log again.
    """

    def __init__(self, name: str, folder: Path, index: int, seed: int, rotate_s: float) -> None:
        self.name, self.lines = name, list[Line]()
        self._chance = random.Random(f"{seed} {name}")
        self._number = index * 1_000_000_000
        self._rotate_s = rotate_s
        self._strays = folder / STRAY
        self._open: dict[Path, BinaryIO] = {}
        self._opens_at: dict[Path, float] = {}
        self._rest: dict[Path, bytes] = {}
        self.failed: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._logs = [
            (topic, way, folder / topic / f"{way}.log")
            for topic in topics_of(HOSTS[name])
            for way in WAYS_OF[topic]
        ]

    def begin(self) -> list[Path]:
        """Writes the first line of each log, so that an agent can find the log. Returns the paths
        of the logs."""
        for topic, _, path in self._logs:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._write(topic, path, 1)
        return [path for _, _, path in self._logs]

    def start(self) -> None:
        """Starts writing."""
        self._thread.start()

    def stop(self) -> None:
        """Stops the thread, which first writes the second halves of all lines that are half
        written."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def link(self) -> Callable[[], None]:
        """Gives a log a second name in its directory, by a symbolic or a hard link. The returned
        function removes the link."""
        log, name = self._strays / "renamed.log", self._strays / f"link-{time.time_ns()}.log"
        link = os.link if self._chance.random() < 0.5 else os.symlink
        eventually(log.exists, within_s=ROTATED_WITHIN_S, what="the log is there")
        with suppress(FileNotFoundError):  # the log is being rotated
            link(log, name)
        return lambda: name.unlink(missing_ok=True)

    def copy(self) -> Callable[[], None]:
        """Copies the whole lines of a log to a file in the same directory. The returned function
        removes the copy."""
        log, name = self._strays / "renamed.log", self._strays / f"{COPY[1:]}{time.time_ns()}.log"
        eventually(log.exists, within_s=ROTATED_WITHIN_S, what="the log is there")
        with suppress(FileNotFoundError):  # the log is being rotated
            data = log.read_bytes()
            name.write_bytes(data[: data.rfind(b"\n") + 1])
        return lambda: name.unlink(missing_ok=True)

    def _run(self) -> None:
        try:
            self._write_and_rotate()
        except BaseException as error:
            self.failed = error
            raise

    def _write_and_rotate(self) -> None:
        due = {path: self._next(way) for _, way, path in self._logs}
        while not self._stop.wait(TICK_S):
            for topic, way, path in self._logs:
                self._write(topic, path, self._chance.randrange(LINES_A_TICK))
                if time.monotonic() >= due[path] and path.exists():
                    self._rotate(way, path)
                    due[path] = self._next(way)
        for path in list(self._rest):
            self._out(path).write(self._rest.pop(path))

    def _rotate(self, way: str, path: Path) -> None:
        if way in GOES_ON:
            self._opens_at[path] = time.monotonic() + self._chance.random()
        else:
            self._out(path).write(self._rest.pop(path, b""))
            self._open.pop(path).close()
        WAYS[way](path)

    def _out(self, path: Path) -> BinaryIO:
        """Returns the file to which the lines of the log `path` are written now. Opens the log if
        no file is open, or if the open file was rotated and the time to keep writing to it is
        over."""
        if path in self._open and time.monotonic() >= self._opens_at.get(path, math.inf):
            del self._opens_at[path]
            if rest := self._rest.pop(path, b""):
                self._open[path].write(rest)
            self._open.pop(path).close()
        if path not in self._open:
            self._open[path] = path.open("ab", buffering=0)
        return self._open[path]

    def _next(self, way: str) -> float:
        every_s = self._rotate_s * (CUT_SELDOM if way == "copied" else 1)
        return time.monotonic() + self._chance.uniform(0.2, 1.8) * every_s

    def _write(self, topic: str, path: Path, count: int) -> None:
        now, full = datetime.now(UTC), f"{HOSTS[self.name]}.{topic}"
        time_ms = int(now.timestamp() * 1000)
        text = []
        for _ in range(count):
            self._number += 1
            fits = self._chance.random() >= UNFIT
            text.append(
                f"{now.isoformat(timespec='milliseconds')} {self.name} {path.stem} {self._number}"
                f" {'x' * self._chance.randrange(120)}{END}\n"
                if fits
                else f"this is no line: {self._number}{END}\n"
            )
            self.lines.append(Line(full, self.name, self._number, time_ms, fits=fits))
        out = self._out(path)  # if a line is half written, this file has its first half
        data = self._rest.pop(path, b"") + "".join(text).encode()
        if data and self._thread.is_alive() and self._chance.random() < HALVED:
            half = self._chance.randrange(len(data))
            self._rest[path] = data[half:]
            data = data[:half]
        if data:
            out.write(data)


STRAY, REMADE = "stray", "gone"
WAYS_OF = {
    "app": ("renamed", "dated"), "web": ("compressed",), "cut": ("copied",), STRAY: ("renamed",),
    REMADE: ("renamed",),
}  # fmt: skip
"""How the logs of each topic are rotated. Three kinds of logs have topics of their own: logs that
are truncated (`cut`), logs that get links and copies (STRAY), and logs whose topic is deleted and
created again (REMADE). The reason is that a truncation, a copy or a deletion affects the verdicts
on a whole topic. For example, the agent declares a loss at each truncation, even if nothing was
lost."""
ONLY_IN = {REMADE: "dc1"}


def topics_of(datacenter: str) -> list[str]:
    """The topics to which the agents of a datacenter's hosts send lines."""
    return [topic for topic in WAYS_OF if ONLY_IN.get(topic, datacenter) == datacenter]


def all_topics() -> list[str]:
    """All topics, by their names in the mirror, such as `dc1.app`."""
    return [f"{each}.{topic}" for each in sorted(set(HOSTS.values())) for topic in topics_of(each)]


def sources(host: str, logs: Path, schemas: Path, *, evolved: bool) -> list[dict[str, object]]:
    """The setting `sources` of a host's agent. If `evolved` is true, the lines of each source get
    one more column."""
    return [
        {
            "topic": topic,
            "paths": [str(logs / topic / "*.log")],
            "parser": {"type": "regex", "pattern": MARKED if evolved else LINE},
            "timestamp": {"fields": ["time"], "format": "rfc3339"},
            "schema": str(_schema(schemas, topic, evolved=evolved)),
        }
        for topic in topics_of(HOSTS[host])
    ]


def _schema(folder: Path, topic: str, *, evolved: bool) -> Path:
    fields: list[dict[str, object]] = [{"name": name, "type": "string"} for name in FIELDS]
    fields.append({"name": "timestamp", "type": TIMESTAMP})
    if evolved:
        fields.append({"name": "mark", "type": "string", "default": ""})
    path = folder / f"{topic}-{len(fields)}.avsc"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text(json.dumps({"type": "record", "name": topic, "fields": fields}))
    return path

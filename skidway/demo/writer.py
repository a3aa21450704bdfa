"""The application whose logs the default demo moves: it writes and rotates logs of three formats.

    python -m skidway.demo.writer FOLDER LINES SECONDS

The writer appends to FOLDER/<stream>/<stream>.log. When that file is large enough, it becomes
<stream>.log.1. The earlier <stream>.log.1 becomes .2, and so on, as with logrotate. The writer
spreads LINES evenly over SECONDS, then writes AFTERWARDS_PER_S lines per second until SIGTERM. It
writes only whole lines. If a killed writer left part of a line, the next writer ends that line. The
ended line is a torn line; it is counted separately, and is not in the number of lines.

FOLDER/written.json has the number of lines, torn lines and bytes of each stream, over all runs. At
every start the writer counts the lines and bytes in the log files again. It takes the number of
torn lines from the existing written.json.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from skidway.files import make_directory

EVERY_S: Final = 0.1
LINES_AT_ONCE_MAX: Final = 30_000
AFTERWARDS_PER_S: Final = 200
GENERATIONS: Final = 6
"""The writer rotates so often that one run writes about this many files for each stream."""
ROTATED_BYTES_MIN: Final = 65_536
LINE_BYTES: Final = 95
READ_BYTES: Final = 1 << 20

WRITTEN = "written.json"
RAW, REGEX, JSON = "worker-logs", "access-logs", "order-logs"
STATES = ("placed", "paid", "packed", "sent")
PATHS = ("cart", "search", "item", "checkout", "help")


def raw_line(number: int, now: datetime) -> str:
    """Returns a line of free text, like a line in the log of a worker process."""
    return (
        f"{now:%Y-%m-%d %H:%M:%S} worker-{number % 7} INFO task {number} is done: "
        f"{number % 913} rows in {number % 97} ms, queue {PATHS[number % 5]}"
    )


def regex_line(number: int, now: datetime) -> str:
    """Returns a line of a web server's access log."""
    return (
        f"10.0.{number % 16}.{number % 251} - - [{now:%d/%b/%Y:%H:%M:%S} +0000] "
        f'"GET /{PATHS[number % 5]}/{number} HTTP/1.1" {404 if number % 50 == 0 else 200} '
        f"{300 + number % 4000}"
    )


def json_line(number: int, now: datetime) -> str:
    """Returns an event of a shop, as a JSON line."""
    return (
        f'{{"time":"{now:%Y-%m-%dT%H:%M:%SZ}","order":{number},"state":"{STATES[number % 4]}",'
        f'"cents":{number % 100_000},"customer":{number % 5003}}}'
    )


FORMATS: Final[Mapping[str, Callable[[int, datetime], str]]] = {
    RAW: raw_line,
    REGEX: regex_line,
    JSON: json_line,
}


@dataclass(slots=True)
class Tally:
    """The number of lines, torn lines and bytes in the files of a stream."""

    lines: int = 0
    torn: int = 0
    bytes: int = 0


class Stream:
    """Writes one log file, and rotates it. No other object may write to this file or to the rotated
    files.
    """

    def __init__(self, folder: Path, name: str, torn: int, rotated_bytes: int) -> None:
        """`torn` is the number of torn lines that earlier writers left."""
        make_directory(folder / name)
        self._folder, self._name, self._rotated_bytes = folder / name, name, rotated_bytes
        self._path = self._folder / f"{name}.log"
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC)
        self._size = os.fstat(self._file).st_size
        self.tally = Tally(torn=torn)
        for path in self._generations():
            self._count(path)
        self.tally.lines -= torn
        self._end_torn_line()

    def append(self, count: int, now: datetime) -> None:
        """Writes `count` more lines."""
        line, first = FORMATS[self._name], self.tally.lines
        data = "".join(f"{line(first + at, now)}\n" for at in range(count)).encode()
        self._write(data)
        self.tally.lines += count
        if self._size >= self._rotated_bytes:
            self._rotate()

    def close(self) -> None:
        os.close(self._file)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._file, view) :]
        self._size += len(data)
        self.tally.bytes += len(data)

    def _rotate(self) -> None:
        os.close(self._file)
        free = 1  # the lowest free number; after a kill it may lie between used numbers
        while os.path.exists(f"{self._path}.{free}"):
            free += 1
        for number in range(free - 1, 0, -1):
            os.rename(f"{self._path}.{number}", f"{self._path}.{number + 1}")
        os.rename(self._path, f"{self._path}.1")
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC)
        self._size = 0

    def _generations(self) -> list[Path]:
        return sorted(self._folder.glob(f"{self._name}.log*"))

    def _count(self, path: Path) -> None:
        with path.open("rb") as file:
            while block := file.read(READ_BYTES):
                self.tally.lines += block.count(b"\n")
                self.tally.bytes += len(block)

    def _end_torn_line(self) -> None:
        if self._size and self._path.read_bytes()[-1:] != b"\n":
            self._write(b"\n")
            self.tally.torn += 1


class Writer:
    """Writes all streams on schedule."""

    def __init__(self, folder: Path, lines: int, seconds: float) -> None:
        self._folder = folder
        self._lines, self._seconds = lines, seconds
        torn = {name: tally.torn for name, tally in written(folder).items()}
        size = max(ROTATED_BYTES_MIN, lines * LINE_BYTES // len(FORMATS) // GENERATIONS)
        self.streams = {name: Stream(folder, name, torn.get(name, 0), size) for name in FORMATS}
        self._made = 0
        self._tell()

    def run(self, stopped: threading.Event) -> None:
        """Writes lines on schedule until `stopped` is set."""
        begin = time.monotonic()
        while not stopped.wait(EVERY_S):
            self.write(due(time.monotonic() - begin, self._lines, self._seconds))
        for stream in self.streams.values():
            stream.close()

    def write(self, until: int) -> None:
        """Writes lines until this run has written `until` lines in all. One call writes at most
        `LINES_AT_ONCE_MAX` lines."""
        now = datetime.now(UTC)
        missing = min(until - self._made, LINES_AT_ONCE_MAX)
        for at, stream in enumerate(self.streams.values()):
            stream.append(share(self._made, missing, at), now)
        self._made += missing
        self._tell()

    def _tell(self) -> None:
        path = self._folder / WRITTEN
        told = path.with_suffix(".new")
        told.write_text(
            json.dumps({name: asdict(each.tally) for name, each in self.streams.items()})
        )
        told.rename(path)


def due(elapsed_s: float, lines: int, seconds: float) -> int:
    """Returns how many lines the writer must have written `elapsed_s` seconds after its start."""
    if elapsed_s < seconds:
        return int(lines * elapsed_s / seconds)
    return lines + int((elapsed_s - seconds) * AFTERWARDS_PER_S)


def share(made: int, count: int, stream: int) -> int:
    """Returns how many of the next `count` lines belong to the stream with the index `stream`. The
    streams take turns, line by line. `made` is the number of earlier lines of all streams."""
    kinds = len(FORMATS)
    return (made + count - stream + kinds - 1) // kinds - (made - stream + kinds - 1) // kinds


def written(folder: Path) -> dict[str, Tally]:
    """Returns the writer's own counts, by stream. The result is empty if the writer has not run
    yet.
    """
    try:
        document = json.loads((folder / WRITTEN).read_text())
    except FileNotFoundError:
        return {}
    return {name: Tally(**each) for name, each in document.items()}


def files(folder: Path) -> list[Path]:
    """Returns every file of the writer, including the rotated files."""
    return sorted(path for name in FORMATS for path in (folder / name).glob(f"{name}.log*"))


def main() -> int:
    """Runs the writer as a program."""
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    folder, lines, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    make_directory(folder)
    Writer(folder, lines, seconds).run(stopped)
    return 0


if __name__ == "__main__":
    sys.exit(main())

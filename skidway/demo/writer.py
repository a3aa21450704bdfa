"""The application whose logs the default demo moves: it writes and rotates logs of three formats.

    python -m skidway.demo.writer FOLDER LINES SECONDS

The writer appends to FOLDER/<topic>/<topic>.log. When that file has enough lines, it becomes
<topic>.log.1, the next one becomes <topic>.log.2, and so on: no number is used twice. The writer
spreads LINES evenly over SECONDS, then writes AFTERWARDS_PER_S lines per second until SIGTERM. It
writes only whole lines. A killed writer may leave a part of a line (a torn line) at the end of its
file; the next writer begins a new file.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from skidway.agent.values import path_texts
from skidway.files import make_directory

EVERY_S: Final = 0.1
AFTERWARDS_PER_S: Final = 200
GENERATIONS: Final = 6
"""How often one run rotates the log of each topic, at least."""

RAW, REGEX, JSON = TOPICS = ("worker-logs", "access-logs", "order-logs")
ACCESS_LINE = (
    r'(?P<client>[0-9.]+) - - \[(?P<time>[^\]]+)\] "(?P<method>[A-Z]+) (?P<path>[^ ]+) [^"]*" '
    r"(?P<status>\d+) (?P<size>\d+)"
)
ORDER_FIELDS = {
    "time": "string", "order": "long", "state": "string", "cents": "long", "customer": "long"
}  # fmt: skip
STATES = ("placed", "paid", "packed", "sent")
PATHS = ("cart", "search", "item", "checkout", "help")


def sources(folder: Path, schema: Path) -> list[dict[str, Any]]:
    """Returns the agent's setting `sources` for the writer's files. Writes the schema of the JSON
    lines in these files to the file `schema`."""
    fields = [{"name": name, "type": kind} for name, kind in ORDER_FIELDS.items()]
    record = {"type": "record", "name": "Order", "namespace": "skidway.demo", "fields": fields}
    make_directory(schema.parent)
    schema.write_text(json.dumps(record, indent=1))
    parts: dict[str, dict[str, Any]] = {
        RAW: {"parser": {"type": "raw"}},
        REGEX: {
            "parser": {"type": "regex", "pattern": ACCESS_LINE},
            "timestamp": {"fields": ["time"], "format": "%d/%b/%Y:%H:%M:%S %z"},
        },
        JSON: {
            "parser": {"type": "json"},
            "schema": str(schema),
            "timestamp": {"fields": ["time"], "format": "rfc3339"},
        },
    }
    logs = path_texts.literal(str(folder))
    return [{"topic": x, "paths": [f"{logs}/{x}/{x}.log"]} | part for x, part in parts.items()]


def files(folder: Path) -> list[Path]:
    """Returns every file of the writer, including the rotated files."""
    return sorted(path for topic in TOPICS for path in (folder / topic).glob(f"{topic}.log*"))


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


FORMATS: Final = {RAW: raw_line, REGEX: regex_line, JSON: json_line}


class Stream:
    """Writes and rotates one log file. No other object may write to this file."""

    def __init__(self, folder: Path, topic: str, rotated_lines: int) -> None:
        make_directory(folder / topic)
        self._path = folder / topic / f"{topic}.log"
        self._line, self._rotated_lines = FORMATS[topic], rotated_lines
        self._begin = self._lines = 0
        if self._path.exists():
            self._rotate()

    def write(self, until: int, now: datetime) -> None:
        """Writes lines until this run has written `until` lines to the log."""
        with self._path.open("ab") as file:
            file.writelines(f"{self._line(x, now)}\n".encode() for x in range(self._lines, until))
        self._lines = until
        if self._lines - self._begin >= self._rotated_lines:
            self._rotate()

    def _rotate(self) -> None:
        number = len(list(self._path.parent.iterdir()))
        self._path.rename(f"{self._path}.{number}")
        self._begin = self._lines


def main() -> int:
    """Runs the writer as a program."""
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    folder, lines, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    rotated_lines = max(lines // len(TOPICS) // GENERATIONS, AFTERWARDS_PER_S)
    streams = [Stream(folder, topic, rotated_lines) for topic in TOPICS]
    begin = time.monotonic()
    while not stopped.wait(EVERY_S):
        elapsed_s, now = time.monotonic() - begin, datetime.now(UTC)
        until = int(lines * min(elapsed_s / seconds, 1))
        until += int(max(elapsed_s - seconds, 0) * AFTERWARDS_PER_S)
        for stream in streams:
            stream.write(-(-until // len(TOPICS)), now)  # rounded up, so that no line is missing
    return 0


if __name__ == "__main__":
    sys.exit(main())

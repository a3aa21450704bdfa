"""Finds the files that the demo tails. With --quick, these are the logs of the demo's own programs.
Without --quick, they are the files that the demo's writer writes. The files named with --logs are
always tailed, too."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from skidway.agent.files.decompressed import (
    Bounds,
    Decompressor,
    begins_compressed,
    is_decompressed,
)
from skidway.agent.files.host import shown
from skidway.agent.files.operating_system import OperatingSystem
from skidway.agent.files.patterns import patterns_of
from skidway.agent.values import path_texts
from skidway.agent.values.found import Found
from skidway.demo import writer
from skidway.errors import UsageError

SPARK_LINE = (
    r"(?P<date>\d{4}-\d\d-\d\d) (?P<time>\d\d:\d\d:\d\d\.\d{3}) (?P<level>[A-Z]+) +"
    r"\[(?P<thread>[^\]]*)\] (?P<logger>[^ ]*) - (?P<message>.*)"
)
OWN_SCHEMA = {
    "type": "record",
    "name": "SkidwayLog",
    "namespace": "skidway.demo",
    "fields": [
        {"name": "time", "type": "string"},
        {"name": "level", "type": "string"},
        {"name": "program", "type": "string"},
        {"name": "event", "type": "string"},
    ],
}
ACCESS_LINE = (
    r'(?P<client>[0-9.]+) - - \[(?P<time>[^\]]+)\] "(?P<method>[A-Z]+) (?P<path>[^ ]+) [^"]*" '
    r"(?P<status>\d+) (?P<size>\d+)"
)
ORDER_SCHEMA = {
    "type": "record",
    "name": "Order",
    "namespace": "skidway.demo",
    "fields": [
        {"name": "time", "type": "string"},
        {"name": "order", "type": "long"},
        {"name": "state", "type": "string"},
        {"name": "cents", "type": "long"},
        {"name": "customer", "type": "long"},
    ],
}
AT_REST_S = 10.0
"""A file that was not written to for this long is at rest. The agent sends the last line of such a
file, even if the line has no newline."""
READ_BYTES = 1 << 20
MAGIC_BYTES = 8

FileKey = tuple[int, int, int | None]
"""Device, inode and time of birth (ns), as the agent's state has them. The time is None if the file
system does not store it."""

OWN_TOPIC, ZOOKEEPER_TOPIC, SPARK_TOPIC, GIVEN_TOPIC = (
    "skidway-logs", "zookeeper-logs", "spark-logs", "app-logs",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FileSize:
    """How many bytes of a file the agent is to deliver. `key` stays the same if the file is
    renamed, and no other file gets this key later. `length_bytes` includes a last line that still
    grows.
    """

    path: Path
    key: FileKey
    size_bytes: int
    length_bytes: int


def of_programs(logs: Path, schema: Path) -> list[dict[str, Any]]:
    """Returns the agent's setting `sources` for the logs of the demo's programs. Writes the schema
    of the JSON lines in these logs to the file `schema`."""
    _write_schema(schema, OWN_SCHEMA)
    logs = Path(path_texts.literal(str(logs)))
    return [
        {
            "topic": ZOOKEEPER_TOPIC,
            "paths": [str(logs / "zookeeper.log")],
            "format": "zookeeper",
        },
        {
            "topic": SPARK_TOPIC,
            "optional": True,  # only a load with Spark writes it
            "paths": [str(logs / "spark.log")],
            "parser": {"type": "regex", "pattern": SPARK_LINE},
            "multiline": {"type": "start", "pattern": r"^\d{4}-\d\d-\d\d "},
            "timestamp": {"fields": ["date", "time"], "format": "%Y-%m-%d %H:%M:%S.%f"},
        },
        {
            "topic": OWN_TOPIC,
            "paths": [str(logs / "*.json")],
            "parser": {"type": "json"},
            "schema": str(schema),
            "timestamp": {"fields": ["time"], "format": "rfc3339"},
        },
    ]


def of_writer(folder: Path, schema: Path) -> list[dict[str, Any]]:
    """Returns the agent's setting `sources` for the writer's files. Writes the schema of the JSON
    lines in these files to the file `schema`."""
    _write_schema(schema, ORDER_SCHEMA)
    folder = Path(path_texts.literal(str(folder)))
    return [
        {
            "topic": writer.RAW,
            "paths": [str(folder / writer.RAW / f"{writer.RAW}.log")],
            "parser": {"type": "raw"},
        },
        {
            "topic": writer.REGEX,
            "paths": [str(folder / writer.REGEX / f"{writer.REGEX}.log")],
            "parser": {"type": "regex", "pattern": ACCESS_LINE},
            "timestamp": {"fields": ["time"], "format": "%d/%b/%Y:%H:%M:%S %z"},
        },
        {
            "topic": writer.JSON,
            "paths": [str(folder / writer.JSON / f"{writer.JSON}.log")],
            "parser": {"type": "json"},
            "schema": str(schema),
            "timestamp": {"fields": ["time"], "format": "rfc3339"},
        },
    ]


def given(patterns: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the agent's setting `sources` for the files named with --logs. The setting is empty
    if this option is not given.
    """
    paths = [os.path.abspath(pattern) for pattern in patterns]
    return [{"topic": GIVEN_TOPIC, "paths": paths, "parser": {"type": "raw"}}] if paths else []


def check_given(patterns: Sequence[str]) -> None:
    """Raises UsageError if a pattern is not UTF-8 or not valid, or matches no regular file."""
    for pattern in patterns:
        if shown(pattern) != pattern:
            raise UsageError(f"--logs {shown(pattern)}: the pattern is not UTF-8")
        path = os.path.abspath(pattern)
        if (why := path_texts.refusal(path)) is not None:
            raise UsageError(f"--logs {pattern!r} {why}")
        scan = OperatingSystem().scan(patterns_of([path]))
        if not scan.found:
            unread = [*scan.unreadable, *scan.refused]
            reasons = "".join(f"; {shown(path)}: {said}" for path, said in unread[:1])
            raise UsageError(f"--logs {pattern!r}: the pattern matches no regular file{reasons}")


def unreadable(found: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Returns the files and directories that the sources' patterns match and that cannot be read,
    each with the reason."""
    scan = OperatingSystem().scan(
        patterns_of([text for source in found for text in source["paths"]])
    )
    reasons = {path: said for path, said in scan.unreadable if path not in scan.dead}
    for file in scan.found:
        try:
            os.close(os.open(file.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
        except OSError as error:
            reasons[file.path] = error.strerror or str(error)
    return dict(sorted(reasons.items()))


def noted(
    found: Sequence[Mapping[str, Any]],
    more: Iterable[Path] = (),
    check: Callable[[], None] = lambda: None,
) -> list[FileSize]:
    """Returns the present sizes of all files that the sources' patterns match, and of the files
    `more`. Lists each file once, even if it has several names. Often calls `check` meanwhile, which
    may raise an error."""
    host = OperatingSystem()
    patterns = patterns_of([text for source in found for text in source["paths"]])
    files = [*host.scan(patterns).found, *filter(None, (host.look(str(path)) for path in more))]
    files.sort(key=lambda file: file.path)
    each_once: dict[FileKey, Found] = {}
    for file in files:
        each_once.setdefault(key_of(file), file)
    sizes = ((key, file, _size(file, check)) for key, file in each_once.items())
    return [FileSize(Path(x.path), key, size, max(size, x.size)) for key, x, size in sizes]


def key_of(file: Found) -> FileKey:
    """Returns what distinguishes a file from all other files, whatever their names are."""
    return (*file.key, file.born_ns)


def _size(file: Found, check: Callable[[], None]) -> int:
    """Returns how many bytes of the (decompressed) file the agent is to deliver. The agent does not
    send a line that still grows, so only whole lines count in a file that was written to lately."""
    as_found = file.size if file.size >= 0 else 1  # the plain size of a compressed file is unknown
    try:
        with open(file.real_path, "rb") as opened:
            status = os.fstat(opened.fileno())
            if (status.st_dev, status.st_ino) != (file.key.device, file.key.inode):
                return as_found  # another file is at the path by now
            if _is_compressed(file.real_path, opened):
                return _plain_size(file.real_path, opened, check)
            if time.time() - status.st_mtime > AT_REST_S:
                return status.st_size
            return _last_line_end(opened, status.st_size, check)
    except OSError:
        return as_found  # the agent reports the reason


def _is_compressed(path: str, opened: BinaryIO) -> bool:
    return is_decompressed(path) and begins_compressed(path, opened.read(MAGIC_BYTES))


def _plain_size(path: str, opened: BinaryIO, check: Callable[[], None]) -> int:
    """Returns how many bytes of a compressed file can be decompressed now."""
    size, plain = 0, Decompressor(path, opened.fileno(), Bounds())
    with contextlib.suppress(OSError):
        while part := plain.read(READ_BYTES):
            size += len(part)
            check()
    return size


def _last_line_end(opened: BinaryIO, end: int, check: Callable[[], None]) -> int:
    while end:
        begin = max(end - READ_BYTES, 0)
        opened.seek(begin)
        at = opened.read(end - begin).rfind(b"\n")
        if at >= 0:
            return begin + at + 1
        end = begin
        check()
    return 0


def _write_schema(path: Path, schema: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(schema, indent=1))

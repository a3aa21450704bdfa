"""Finds the files that the demo tails. With --quick, these are the logs of the demo's own programs.
Without --quick, they are the files that the demo's writer writes. The files named with --logs are
always tailed, too."""

from __future__ import annotations

import contextlib
import glob
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skidway.demo import writer

ZOOKEEPER_LINE = (
    r"(?P<date>\d{4}-\d\d-\d\d) (?P<time>\d\d:\d\d:\d\d,\d{3}) \[myid:(?P<myid>[^\]]*)\] - "
    r"(?P<level>[A-Z]+) +\[(?P<thread>.*):(?P<class>[^:@]*)@(?P<line>\d+)\] - (?P<message>.*)"
)
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
FileKey = tuple[int, int] | str

_ESCAPED = re.compile(rb"\\x([0-9a-f]{2})")

OWN_TOPIC, ZOOKEEPER_TOPIC, SPARK_TOPIC, GIVEN_TOPIC = (
    "skidway-logs", "zookeeper-logs", "spark-logs", "app-logs",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FileSize:
    """The size of a file at one moment. `key` (see `file_of`) stays the same if the file is
    renamed."""

    path: Path
    key: FileKey
    size_bytes: int


def of_programs(logs: Path, schema: Path) -> list[dict[str, Any]]:
    """Returns the agent's setting `sources` for the logs of the demo's programs. Writes the schema
    of the JSON lines in these logs to the file `schema`."""
    _write_schema(schema, OWN_SCHEMA)
    return [
        {
            "topic": ZOOKEEPER_TOPIC,
            "paths": [str(logs / "zookeeper.log")],
            "parser": {"type": "regex", "pattern": ZOOKEEPER_LINE},
            "timestamp": {"fields": ["date", "time"], "format": "%Y-%m-%d %H:%M:%S,%f"},
        },
        {
            "topic": SPARK_TOPIC,
            "paths": [str(logs / "spark.log")],
            "parser": {"type": "regex", "pattern": SPARK_LINE},
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
    paths = [str(Path(pattern).absolute()) for pattern in patterns]
    return [{"topic": GIVEN_TOPIC, "paths": paths, "parser": {"type": "raw"}}] if paths else []


def tailed(found: Sequence[Mapping[str, Any]]) -> list[Path]:
    """Returns every file that the sources' patterns match now, each once, even if it has several
    names."""
    paths = {
        Path(path)
        for source in found
        for pattern in source["paths"]
        for path in glob.glob(pattern, recursive=True)
    }
    files = {file_of(path): path for path in sorted(paths, reverse=True) if path.is_file()}
    return sorted(files.values())


def file_of(path: Path) -> FileKey:
    """Returns a key that is the same for all names of one file, hard links included. If the file
    does not exist, the key is the path."""
    try:
        stamp = path.stat()
    except OSError:
        return str(path)
    return stamp.st_dev, stamp.st_ino


def path_of(text: str) -> Path:
    r"""Converts a file name in the agent's account to a path. The account escapes bytes that are
    not UTF-8, as in `\xff`.
    """
    if os.path.lexists(text):
        return Path(text)
    name = _ESCAPED.sub(lambda found: bytes([int(found[1], 16)]), os.fsencode(text))
    return Path(os.fsdecode(name)) if os.path.lexists(name) else Path(text)


def measured(paths: Sequence[Path]) -> list[FileSize]:
    """Returns the present sizes of these files. Leaves out files that do not exist any more."""
    found = []
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            stamp = path.stat()
            found.append(FileSize(path, (stamp.st_dev, stamp.st_ino), stamp.st_size))
    return found


def _write_schema(path: Path, schema: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(schema, indent=1))

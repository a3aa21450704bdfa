"""Finds the files that the demo tails. With --quick, these are the logs of the demo's own programs.
Without --quick, they are the files that the demo's writer writes. The files named with --logs are
always tailed, too."""

from __future__ import annotations

import glob
import json
import os
import re
import time
from collections.abc import Mapping, Sequence
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
AT_REST_S = 10.0
"""A file that was not written to for this long counts as finished, even if its last line has no
line end."""

FileKey = tuple[int, int] | str

_ESCAPED = re.compile(rb"\\x([0-9a-f]{2})")

OWN_TOPIC, ZOOKEEPER_TOPIC, SPARK_TOPIC, GIVEN_TOPIC = (
    "skidway-logs", "zookeeper-logs", "spark-logs", "app-logs",
)  # fmt: skip


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


def size_to_cut(path: Path, at_rest_s: float = AT_REST_S) -> int:
    """Returns the size up to which the agent is to read a file. If the file was not written to for
    `at_rest_s` seconds, returns its full size. Otherwise returns the position of the end of its
    last whole line."""
    stamp = path.stat()
    if time.time() - stamp.st_mtime > at_rest_s:
        return stamp.st_size
    with path.open("rb") as file:
        end = file.seek(0, 2)
        while end > 0:
            begin = max(end - 65_536, 0)
            file.seek(begin)
            at = file.read(end - begin).rfind(b"\n")
            if at >= 0:
                return begin + at + 1
            end = begin
    return 0


def _write_schema(path: Path, schema: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(schema, indent=1))

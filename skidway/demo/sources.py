"""What the demo tails: the logs that its own programs write, and those named with --logs."""

from __future__ import annotations

import glob
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
AT_REST_S = 10.0
"""A file that was not written for so long may end without a line end for good."""

OWN_TOPIC, ZOOKEEPER_TOPIC, SPARK_TOPIC, GIVEN_TOPIC = (
    "skidway-logs", "zookeeper-logs", "spark-logs", "app-logs",
)  # fmt: skip


def sources(logs: Path, schema: Path, given: Sequence[str]) -> list[dict[str, Any]]:
    """The agent's `sources`; writes the schema of our own JSON lines to its file."""
    schema.parent.mkdir(parents=True, exist_ok=True)
    schema.write_text(json.dumps(OWN_SCHEMA, indent=1))
    found: list[dict[str, Any]] = [
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
    if given:
        paths = [str(Path(pattern).absolute()) for pattern in given]
        found.append({"topic": GIVEN_TOPIC, "paths": paths, "parser": {"type": "raw"}})
    return found


def tailed(found: Sequence[Mapping[str, Any]]) -> list[Path]:
    """Every file that the sources' patterns match now."""
    paths = {
        Path(path)
        for source in found
        for pattern in source["paths"]
        for path in glob.glob(pattern, recursive=True)
    }
    return sorted(path for path in paths if path.is_file())


def size_to_cut(path: Path, at_rest_s: float = AT_REST_S) -> int:
    """Where a file can be cut: at its end if it is at rest, else behind its last line end."""
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

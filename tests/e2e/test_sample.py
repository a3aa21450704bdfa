"""Tests `skidway audit sample` with real programs. Agents report the content of sampled lines, and
the command finds rows and records whose content differs from that of the lines."""

from __future__ import annotations

import contextlib
import io
import json
import platform
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skidway.cli.commands import main
from skidway.demo.site import DATACENTER
from support.pipeline import AUDIT_TOPIC, Oracle, Pipeline, source
from support.processes import Program, eventually
from support.promises import promise

HOST = platform.node()
PERIOD_MS = 12_000
LEVELS = {"type": "regex", "pattern": r"(?P<level>[A-Z]+) (?P<number>\d+) (?P<text>.*)"}
LEVELS_TYPES = LEVELS | {"types": {"number": "int"}}
TOPICS: dict[str, dict[str, Any]] = {
    "changed-row": {"parser": LEVELS_TYPES},
    "changed-record": {},
    "removed-file": {},
    "killed-agent": {},
}
WRONG = """
import sys
from dataclasses import replace
from skidway.agent.delivery.presses import Presses
right = Presses.press
def wrong(self, taken, outbound, now):
    taken = [
        replace(x, reading=replace(x.reading, data=x.reading.data.replace(b"paid 5", b"paid 6")))
        for x in taken
    ]
    return right(self, taken, outbound, now)
Presses.press = wrong
from skidway.cli.commands import main
sys.exit(main(sys.argv[1:]))
"""
"""A Python program that runs an agent with a bug: if a line contains `paid 5`, the agent sends
`paid 6` instead."""


class Samples:
    """The pipeline on which this module's tests run, and methods that run commands on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        sources = [source(topic, folder / topic, **parts) for topic, parts in TOPICS.items()]
        self.pipeline = Pipeline(
            folder,
            sources,
            settings={
                "agent": {"sample.ranges": 50, "sample.interval.ms": PERIOD_MS},
                "loader": {"spark.above.offsets": 1_000_000, "metrics.listener": None},
            },
        )
        config = str(self.pipeline.site.config("agent"))
        self.pipeline.programs["agent"] = Program(
            [sys.executable, "-c", WRONG, "agent", "run", "--config", config],
            self.pipeline.site.logs / "agent.json",
        )

    def log(self, topic: str) -> Oracle:
        return Oracle(self.folder / topic)

    def deliver(self, topic: str, name: str, lines: list[str], log: Oracle | None = None) -> Path:
        """Appends lines to the file `name` of the topic's log, or of `log` if it is given. Waits
        until the agent has delivered the lines, and returns the file's path."""
        log = log or self.log(topic)
        path = log.append(name, lines)
        eventually(lambda: self.pipeline.settled_bytes(log.folder) >= log.bytes)
        return path

    def load(self, topic: str) -> None:
        self.pipeline.wait_mirrored([topic, f"{topic}.rejected", AUDIT_TOPIC])
        self.pipeline.load([topic, f"{topic}.rejected"])

    def run(self, verb: str, *options: str) -> tuple[int, dict[str, Any]]:
        """Runs the subcommand `verb` of `skidway audit`. Returns its exit status and the JSON
        document that it prints."""
        site = self.pipeline.site
        named = ["--config", str(site.config("audit"))]
        if verb == "sample":
            named += ["--cluster", site.address("broker-dc1")]
            named += ["--agent-config", str(site.config("agent"))]
            named += ["--output", site.output]
        if verb in ("sample", "why"):
            named += ["--registry", site.url("registry")]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = main(["audit", verb, "--json", *named, *options])
        assert status in (0, 1), out.getvalue()
        return status, dict(json.loads(out.getvalue()))

    def told(self, topic: str, count: int) -> tuple[int, dict[str, Any]]:
        """Waits until `skidway audit sample` has compared at least `count` lines of the topic.
        Returns the exit status and the topic's part of the JSON document."""
        seen: list[Any] = []

        def compared() -> tuple[int, dict[str, Any]] | None:
            status, document = self.run("sample", "--topic", topic)
            seen[:] = [document]
            found = (x for x in document["topics"] if x["topic"] == f"{DATACENTER}.{topic}")
            topic_found = next(found, None)
            if topic_found is None or topic_found["compared"] < count:
                return None
            return status, topic_found | {"whole": document}

        try:
            found = eventually(compared, every_s=0.5)
        except AssertionError as error:
            raise AssertionError(json.dumps(seen, indent=1)) from error
        assert isinstance(found, tuple)
        return found

    def file_with(self, topic: str, column: str, value: object) -> tuple[Path, pa.Table]:
        """Returns the path of the topic's Parquet file that has `value` in this column, and its
        content."""
        for path in (Path(self.pipeline.site.output) / f"{DATACENTER}.{topic}").rglob("*.parquet"):
            table = pq.ParquetFile(path).read()
            if column in table.column_names and value in table.column(column).to_pylist():
                return path, table
        raise AssertionError(f"no row of {topic} has {column} {value}")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Samples]:
    made = Samples(tmp_path_factory.mktemp("samples"))
    try:
        made.pipeline.start()
        # Normally the first load creates the output. The fixture creates it already here, because
        # each test must also work if no load has run before.
        Path(made.pipeline.site.output).mkdir(parents=True, exist_ok=True)
        yield made
    finally:
        made.pipeline.stop()


@promise("6 content")
def test_a_changed_row_is_found_and_explained(site: Samples) -> None:
    """If all rows have the content of their lines, `skidway audit sample` finds no difference. If
    one value of one row is changed in the output, the command names host, file, byte, row and
    field, and shows the line's text. The bucket is then not complete, and `skidway audit why` names
    the changed row as the cause. After a reload of the hour, all rows agree with their lines, and
    the bucket is complete again."""
    topic = "changed-row"
    lines = [f"INFO {number} shipped" for number in range(20)]
    path = site.deliver(topic, "app.log", [*lines, "no level"])
    site.load(topic)
    status, found = site.told(topic, 20)
    assert (status, found["rows"], found["equal"]) == (0, 20, 20), found
    (rejects,) = (x for x in found["whole"]["topics"] if x["topic"].endswith(".rejected"))
    assert (rejects["rows"], rejects["equal"]) == (1, 1)

    file, table = site.file_with(topic, "number", 7)
    values = [70 if each == 7 else each for each in table.column("number").to_pylist()]
    at = table.column_names.index("number")
    changed = pa.array(values, table.schema.field("number").type)
    pq.write_table(table.set_column(at, table.schema.field("number"), changed), file)
    status, found = site.told(topic, 20)
    assert (status, found["equal"]) == (1, 19)
    (difference,) = found["differences"]
    first = sum(len(line) + 1 for line in lines[:7])
    assert (difference["host"], difference["path"]) == (HOST, str(path))
    assert (difference["first"], difference["length"]) == (first, len(lines[7]) + 1)
    row = table.column("_offset").to_pylist().index(first)
    below = file.relative_to(site.pipeline.site.output)
    assert difference["place"] == f"{below} row {row}"
    assert difference["offset"] == table.column("_kafka_offset").to_pylist()[row]
    assert (difference["line"], difference["fields"]) == (lines[7], ["number"])
    assert difference["values"]["number"] == 70
    assert difference["record"].endswith("has the right content")

    assert site.run("sample", "--topic", topic, "--tell")[0] == 1
    cause = content_differs(site, topic)
    assert (cause["host"], cause["path"], cause["tier"]) == (HOST, str(path), "hdfs")
    assert cause["ranges"] == [{"first": first, "end": first + len(lines[7]) + 1}]
    assert (cause["line"]["kind"], cause["line"]["text"]) == ("differing", lines[7])
    assert cause["command"]["line"].startswith("skidway audit sample --day ")
    assert "--tell" in cause["command"]["line"]

    hour = str(below.parent)
    begin = f"{hour[hour.index('dt=') + 3 : hour.index('/hour')]}T{hour[-2:]}"
    end = datetime.fromisoformat(f"{begin}:00") + timedelta(hours=1)
    loader = str(site.pipeline.site.config("loader"))
    site.pipeline.run(
        "load", "reload", f"{DATACENTER}.{topic}", "--config", loader,
        "--from", begin, "--to", end.strftime("%Y-%m-%dT%H"),
    )  # fmt: skip
    status, document = site.run("sample", "--topic", topic, "--tell")
    assert status == 0, document
    eventually(lambda: is_complete(site, topic), every_s=0.5)


def is_complete(site: Samples, topic: str) -> bool:
    """Returns whether every bucket of the topic is complete."""
    _, document = site.run("report", "--all", "--topic", f"{DATACENTER}.{topic}")
    return {x["verdict"] for x in document["buckets"]} == {"complete"}


def content_differs(site: Samples, topic: str) -> dict[str, Any]:
    """Waits until `skidway audit why` says that a bucket of the topic is incomplete because of the
    cause "content differs". Returns this cause's entry in the JSON document."""
    seen: list[Any] = []

    def named() -> dict[str, Any] | None:
        seen[:] = [site.run("why", f"{DATACENTER}.{topic}")]
        for bucket in seen[0][1]["buckets"]:
            for each in bucket["causes"]:
                if (each["cause"], each["verdict"]) == ("content differs", "incomplete"):
                    return dict(each)
        return None

    try:
        found = eventually(named, every_s=0.5)
    except AssertionError as error:
        raise AssertionError(json.dumps(seen, indent=1)) from error
    assert isinstance(found, dict)
    return found


@promise("6 content")
def test_what_an_agent_sent_wrongly_is_found_in_records_and_rows(site: Samples) -> None:
    """If an agent sends a record whose content differs from its line, `skidway audit sample` finds
    this record before the load. After the load it finds the record's row, and says that not only
    the row but also the record differs from the line."""
    topic = "changed-record"
    lines = ["order 1 paid 4", "order 2 paid 5", "order 3 paid 7"]
    path = site.deliver(topic, "app.log", lines)
    status, found = site.told(topic, 3)
    assert (status, found["records"], found["rows"], found["equal"]) == (1, 3, 0, 2)
    (difference,) = found["differences"]
    assert (difference["tier"], difference["place"]) == ("broker", DATACENTER)
    assert (difference["path"], difference["first"]) == (str(path), len(lines[0]) + 1)
    assert difference["line"] == lines[1]
    assert difference["values"] == {"line": "order 2 paid 6"}

    site.load(topic)
    status, found = site.told(topic, 3)
    assert (status, found["records"], found["rows"], found["equal"]) == (1, 0, 3, 2)
    (difference,) = found["differences"]
    assert (difference["tier"], difference["line"]) == ("hdfs", lines[1])
    assert difference["record"].endswith("differs, too")
    assert difference["fields"] == []
    assert site.run("sample", "--topic", topic, "--tell")[0] == 1
    content_differs(site, topic)


def test_a_removed_file_is_not_compared(site: Samples) -> None:
    """An agent reports its samples (ranges of bytes in log files) at the end of a sampling period.
    If a file is deleted before this time, the agent reports the file's range as gone. `skidway
    audit sample` does not compare such a range, and does not report it as a difference."""
    topic = "removed-file"
    eventually(lambda: time.time() * 1000 % PERIOD_MS < PERIOD_MS / 4, within_s=30)
    path = site.deliver(topic, "app.log", ["one", "two"])
    path.unlink()

    def gone() -> dict[str, Any] | None:
        _, document = site.run("sample")
        mine = [x for x in document["gone"] if x["path"] == str(path)]
        return mine[0] if mine else None

    found = eventually(gone, every_s=0.5)
    assert isinstance(found, dict)
    assert (found["first"], found["end"]) == (0, 8)
    assert found["reason"]
    _, document = site.run("sample", "--topic", topic)
    assert not document["topics"]


def test_a_killed_agent_tells_each_range_once(site: Samples) -> None:
    """If the agent is killed again and again, from the delivery of lines until after the end of the
    sampling period, the audit still gets every sample, and counts none of them twice."""
    topic, log = "killed-agent", site.log("killed-agent")
    for number in range(6):
        site.deliver(topic, "app.log", [f"line {number}"], log)
        site.pipeline.restart("agent")
    end = time.time() + PERIOD_MS / 1000
    while time.time() < end:
        site.pipeline.restart("agent")
    status, found = site.told(topic, 6)
    assert (status, found["equal"], found["whole"]["untold_ranges"]) == (0, 6, 0)

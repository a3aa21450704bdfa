"""One agent reads logs of many formats at the same time, and is killed while it reads. Every line
of every log becomes a row, becomes a rejected line, or is left out by a rule. The audit reports the
right number of each kind.

The lines are those of real logs (tests/data). The expected rows come from Python's modules csv,
json and re, and from the fields that the Loghub project found in the logs.
"""

from __future__ import annotations

import collections
import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from support.pipeline import AUDIT_TOPIC, Pipeline
from support.processes import WITHIN_S, eventually
from support.promises import promise

DATA = Path(__file__).parents[1] / "data"
LOGS = DATA / "logs"
LINES = 200
COPIES = 20
TIMEOUT = {"timeout.ms": 2_000}
IP = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\d)")


@dataclass
class Log:
    """A log in one format.

    - settings: the settings of the agent's source, without topic and paths.
    - path: where the log is, below the folder of its topic.
    - head, tail: the bytes that are written to the log before and after the kill.
    - rows: the fields that each row must have, in order.
    - rejects: the texts of the rejected lines.
    - filtered: for each rule, how many lines it leaves out, or None if this depends on the lines'
      hashes.
    """

    settings: dict[str, Any]
    head: bytes
    tail: bytes
    rows: list[dict[str, Any]]
    rejects: list[str] = field(default_factory=list)
    filtered: dict[str, int | None] = field(default_factory=dict)
    path: str = "app.log"


def log_of(settings: dict[str, Any], data: bytes, *rest: Any, cut: int = 0, **more: Any) -> Log:
    """Returns a log with the bytes `data`. The log's first part (`head`) ends at the byte position
    `cut`. If `cut` is 0, the first part is the first half of `data`. `rest` and `more` contain the
    log's other fields."""
    cut = cut or len(data) // 2
    return Log(settings, data[:cut], data[cut:], *rest, **more)


def truth(name: str) -> list[dict[str, str]]:
    with (LOGS / f"{name}.truth.csv").open(newline="") as file:
        return list(csv.DictReader(file))[:LINES]


def lines_of(name: str) -> list[str]:
    """Returns the first LINES lines of a log in tests/data, with their line terminators."""
    return (LOGS / f"{name}.log").read_bytes().decode().splitlines(keepends=True)[:LINES]


# --- the logs -------------------------------------------------------------------------------------


def cri() -> Log:
    """A container's log, in which long lines are divided into parts. It contains stack traces. The
    parser's pattern begins with a time, so a record begins at each line that begins with one."""
    sample = (DATA / "traces" / "java.txt").read_text().replace("=== ", "")
    records = re.split(r"(?m)^(?=\d{4}-)", sample)[1:]
    pattern = re.compile(
        r"(?P<time>\S+ \S+) (?P<level>[A-Z]+) +\[(?P<thread>[^]]*)\] (?P<logger>\S+) - "
        r"(?P<message>.*)\n",
        re.DOTALL,
    )
    found = [(each, pattern.fullmatch(each)) for each in records * COPIES]
    wrapped = [b"".join(map(wrapped_line, text.splitlines())) for text, _ in found]
    half = len(b"".join(wrapped[: len(wrapped) // 2]))
    settings = {
        "container": "cri",
        "multiline": {"type": "java", **TIMEOUT},
        "parser": {"type": "log4j", "pattern": "%d{yyyy-MM-dd HH:mm:ss,SSS} %-5p [%t] %c - %m%n"},
    }
    rows = [{**m.groupdict(), "pod": "web-1", "namespace": "shop"} for _, m in found if m]
    rejects = [wrapped[at].decode().removesuffix("\n") for at, x in enumerate(found) if not x[1]]
    return log_of(
        settings, b"".join(wrapped), rows, rejects, cut=half, path="pods/shop_web-1_3f0c/app/0.log"
    )


def wrapped_line(line: str) -> bytes:
    """Returns a line as containerd writes it: divided into parts, each with a time, a stream and a
    tag."""
    parts = [line[at : at + 60] for at in range(0, max(len(line), 1), 60)]
    tags = ["P"] * (len(parts) - 1) + ["F"]
    time = "2026-11-20T08:15:01.123456789Z"
    texts = zip(tags, parts, strict=True)
    return "".join(f"{time} stdout {tag} {part}\n" for tag, part in texts).encode()


def jsonl(folder: Path) -> Log:
    """A log of JSON lines, with members that the schema does not have."""
    fields = [
        {"name": "line", "type": "long"},
        {"name": "content", "type": "string"},
        {"name": "_extra", "type": {"type": "map", "values": "string"}, "default": {}},
    ]
    schema = folder / "openssh.avsc"
    schema.write_text(json.dumps({"type": "record", "name": "openssh", "fields": fields}))
    lines, rows = [], []
    for each in truth("openssh"):
        member = {"line": int(each["LineId"]), "content": each["Content"], "host": "LabSZ"}
        lines.append(json.dumps(member | {"ctx": {"pid": int(each["Pid"])}}))
        extra = {"host": "LabSZ", "ctx": json.dumps({"pid": int(each["Pid"])})}
        rows.append({"line": member["line"], "content": member["content"], "_extra": extra})
    bad = '{"line": "none", "content": "x"}'
    lines.insert(50, bad)
    settings = {"parser": {"type": "json"}, "schema": str(schema)}
    return log_of(settings, "".join(f"{x}\n" for x in lines).encode(), rows, [bad])


def delimited() -> Log:
    """A CSV log with quotation marks and a header."""
    path = LOGS / "hadoop.truth.csv"
    text = "".join(path.read_text().splitlines(keepends=True)[: LINES + 1])
    header = text.splitlines()[0]
    names = ["id", "date", "time", "level", "thread", "logger", "message", "event", "template"]
    rows = [
        dict(zip(names, each.values(), strict=True), id=int(each["LineId"]))
        for each in truth("hadoop")
    ]
    settings = {
        "parser": {"type": "csv", "columns": names, "header": header, "types": {"id": "int"}},
        "timestamp": {"fields": ["date", "time"], "format": "%Y-%m-%d %H:%M:%S,%f"},
    }
    return log_of(settings, text.encode(), rows, [], {"csv header": 1})


def logfmt() -> Log:
    """A log in the format logfmt. The schema has no columns for some of the keys."""
    pattern = re.compile(r"(\S+ \S+) - ([A-Z]+) +\[(.*)\] - (.*)")
    lines, rows = [], []
    for line in lines_of("zookeeper"):
        found = pattern.fullmatch(line.rstrip("\r\n"))
        assert found is not None, line
        time, level, thread, message = found.groups()
        said = time.replace(" ", "T").replace(",", ".") + "Z"
        text, place = json.dumps(message), json.dumps(thread)
        lines.append(f"ts={said} level={level} msg={text} thread={place}")
        rows.append({"ts": said, "level": level, "msg": message, "_extra": {"thread": thread}})
    lines.insert(70, "no pairs at all")
    settings = {
        "parser": {"type": "logfmt", "columns": ["level", "msg"]},
        "timestamp": {"fields": ["ts"], "format": "rfc3339"},
    }
    return log_of(settings, "".join(f"{x}\n" for x in lines).encode(), rows, ["no pairs at all"])


def log4j() -> Log:
    """The log of a Java program that uses log4j. The agent's parser gets the same conversion
    pattern that log4j had when it wrote the log."""
    lines = lines_of("hadoop")
    rows = [
        {
            "time": f"{each['Date']} {each['Time']}",
            "level": each["Level"],
            "thread": each["Process"],
            "logger": each["Component"],
            "message": each["Content"],
        }
        for each in truth("hadoop")
    ]
    settings = {
        "parser": {"type": "log4j", "pattern": "%d{yyyy-MM-dd HH:mm:ss,SSS} %p [%t] %c: %m%n"},
        "multiline": {"type": "java", **TIMEOUT},
    }
    half = len("".join(lines[: LINES // 2]))
    return log_of(settings, "".join(lines).encode(), rows, cut=half)


def wide() -> Log:
    """A log in UTF-16, as programs for Windows write it."""
    lines = lines_of("spark")
    pattern = re.compile(r"(?P<time>\S+ \S+) (?P<level>[A-Z]+) (?P<logger>[^:]+): (?P<message>.*)")
    rows = [pattern.fullmatch(x.rstrip("\r\n")).groupdict() for x in lines]  # type: ignore[union-attr]
    data = ("\ufeff" + "".join(lines)).encode("utf-16-le")
    half = 2 + 2 * len("".join(lines[: LINES // 2]))
    return log_of({"format": "spark", "encoding": "utf-16"}, data, rows, cut=half)


def shaped() -> Log:
    """A log with rules that leave out some records and mask IP addresses in the others."""
    shape = """
        drop message starts with "pam_unix" as pam
        sample 1/3 where message contains "[preauth]" as preauth
        mask message for ips
    """
    lines = lines_of("openssh")
    texts = [each["Content"] for each in truth("openssh")]
    kept = [text for text in texts if not text.startswith("pam_unix")]
    rows = [{"message": IP.sub("[ip]", text)} for text in kept]
    bad = "who is 10.11.12.13?"
    lines.insert(30, f"{bad}\r\n")
    settings = {
        "parser": {
            "type": "regex",
            "pattern": r"(?P<time>\w+ +\d+ \S+) \S+ sshd\[(?P<pid>\d+)\]: (?P<message>.*)",
        },
        "timestamp": {"fields": ["time"], "format": "%b %d %H:%M:%S"},
        "shape": shape,
    }
    filtered = {"pam": len(texts) - len(kept), "preauth": None}
    assert filtered["pam"]
    return log_of(settings, "".join(lines).encode(), rows, [IP.sub("[ip]", bad)], filtered)


# --- the run --------------------------------------------------------------------------------------


@dataclass
class Told:
    """What the fixture `told` returns: the pipeline after everything was loaded, the logs, and the
    audit's report."""

    pipeline: Pipeline
    logs: dict[str, Log]
    report: dict[str, Any]


def logs_in(folder: Path) -> dict[str, Log]:
    return {
        "cri": cri(),
        "jsonl": jsonl(folder),
        "delimited": delimited(),
        "logfmt": logfmt(),
        "log4j": log4j(),
        "wide": wide(),
        "shaped": shaped(),
    }


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """Writes the first halves of all logs, kills the agent while it reads them, writes the rest,
    and loads everything."""
    folder = tmp_path_factory.mktemp("formats")
    files, logs = folder / "files", logs_in(folder)
    sources = [
        {"topic": name, "paths": [str(files / name / log.path)], **log.settings}
        for name, log in logs.items()
    ]
    agent = {"idle.flush.ms": 600_000, "close.rotated.ms": 600_000, "reconcile.interval.ms": 500}
    pipeline = Pipeline(folder, sources, settings={"agent": agent})
    try:
        for name, log in logs.items():
            append(files / name / log.path, log.head)
        pipeline.start()
        eventually(lambda: pipeline.settled_bytes(files), what="something is settled")
        pipeline.kill("agent")
        for name, log in logs.items():
            append(files / name / log.path, log.tail)
        pipeline.start("agent")
        size = sum(len(log.head + log.tail) for log in logs.values())
        eventually(lambda: pipeline.settled_bytes(files) >= size, what=f"{size} bytes are settled")
        topics = [topic for name in logs for topic in (name, f"{name}.rejected")]
        pipeline.wait_mirrored([*topics, AUDIT_TOPIC])
        pipeline.load(topics)
        yield Told(pipeline, logs, complete_report(pipeline))
    finally:
        pipeline.stop()


def append(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab", buffering=0) as log:
        assert log.write(data) == len(data)


def complete_report(pipeline: Pipeline) -> dict[str, Any]:
    """Waits until all buckets of all topics are complete, and returns the audit's report."""
    found: dict[str, Any] = {}

    def is_complete() -> bool:
        found.update(pipeline.audit("report"))
        return {bucket["verdict"] for bucket in found["buckets"]} == {"complete"}

    def open_buckets() -> list[Any]:
        return [each for each in found["buckets"] if each["verdict"] != "complete"]

    try:
        eventually(is_complete, within_s=WITHIN_S, every_s=0.3)
    except AssertionError:
        raise AssertionError(f"not complete: {open_buckets()[:3]}") from None
    return found


# --- the checks -----------------------------------------------------------------------------------

NAMES = ("cri", "jsonl", "delimited", "logfmt", "log4j", "wide", "shaped")


def rows_of(told: Told, topic: str) -> list[dict[str, Any]]:
    rows = told.pipeline.rows(topic).to_pylist()
    return sorted(rows, key=lambda row: int(row["_offset"]))


def filtered_of(told: Told, name: str) -> dict[str, int]:
    """Returns how many records of the topic `name` each rule left out, according to the audit."""
    (topic,) = (each for each in told.report["topics"] if each["topic"] == name)
    return {each["rule"]: each["records"] for each in topic["filtered_by_rule"]}


@promise("all programs", "2 ledger")
@pytest.mark.parametrize("name", NAMES)
def test_every_line_is_a_row_a_reject_or_was_left_out(told: Told, name: str) -> None:
    """Each line of a log becomes a row, becomes a rejected line, or is left out by a rule. The
    bytes of these three kinds of lines add up to the size of the log."""
    log, rows = told.logs[name], rows_of(told, name)
    rejected = rows_of(told, f"{name}.rejected")
    out = filtered_of(told, name)
    assert len(rows) + sum(out.values()) == len(log.rows) + sum(
        count for count in log.filtered.values() if count is not None
    )
    assert out.keys() == log.filtered.keys()
    assert all(out[rule] == count for rule, count in log.filtered.items() if count is not None)
    assert len(rejected) == len(log.rejects)
    (entry,) = (
        x for x in told.pipeline.ledger() if x["announced_path"].endswith(f"{name}/{log.path}")
    )
    told_bytes = entry["acknowledged"] + entry["rejected"] + entry["filtered"]
    assert told_bytes == entry["bytes"] == len(log.head + log.tail)
    assert sum(row["_length"] for row in rows) == entry["acknowledged"]
    assert bool(out) == bool(entry["filtered"])


@pytest.mark.parametrize("name", NAMES)
def test_rows_have_the_fields_that_other_parsers_find(told: Told, name: str) -> None:
    """The rows are in the order of the log's lines, and each row has the fields that independent
    parsers found in its line. If a rule leaves out a share of the lines, both statements hold for
    the rows of the remaining lines."""
    log = told.logs[name]
    found = [fields_of(row, log.rows[0]) for row in rows_of(told, name)]
    if None not in log.filtered.values():
        assert found == log.rows
        return
    wanted = iter(log.rows)
    assert all(each in wanted for each in found), "a row is no line of the log"
    assert 0 < len(found) < len(log.rows)


def fields_of(row: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """Returns those fields of a row that `wanted` also has. pyarrow returns a map as a list of
    pairs; this function makes a dict of it."""
    return {
        name: dict(row[name]) if isinstance(value, dict) else row[name]
        for name, value in wanted.items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_rejected_lines_are_there_as_they_were_written(told: Told, name: str) -> None:
    """A line that does not fit its parser is in the topic for rejected lines, with its text. The
    text is as it was written, except where the source's settings mask a part of it."""
    found = [row["line"] for row in rows_of(told, f"{name}.rejected")]
    texts = [line.decode().rstrip("\r\n") if isinstance(line, bytes) else line for line in found]
    assert texts == told.logs[name].rejects


@promise("6 filtered", "6 complete before a time")
def test_the_audit_calls_all_of_it_complete(told: Told) -> None:
    """For each topic, the audit's report shows as many records in every tier as there are rows.
    `skidway audit complete` answers yes for the first two hours of a topic, even if rules left out
    records, and counts exactly the rows of these hours."""
    counted: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for bucket in told.report["buckets"]:
        for place in bucket["places"]:
            counted[bucket["topic"]][place["tier"]] += place["count"]
    for name in NAMES:
        rows = told.pipeline.rows(name).num_rows
        assert counted[name] == dict.fromkeys(("agent", "broker", "mirror", "hdfs"), rows)
    for name in ("cri", "shaped"):
        times = told.pipeline.rows(name).column("_timestamp").to_pylist()
        since = min(times).replace(microsecond=0)
        end = max(times).replace(microsecond=0) + timedelta(seconds=1)
        until = min(since + timedelta(hours=2), end)
        span = ["--since", since.isoformat(), "--until", until.isoformat(), "--wait", "60s"]
        answer = told.pipeline.audit("complete", "--topic", name, *span)
        assert answer["ok"], answer["sentences"]
        records = {each["topic"]: each["records"] for each in answer["topics"]}
        assert records[name] == sum(each < until for each in times)

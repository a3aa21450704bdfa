"""Tests which bucket `skidway audit why` explains, what it prints, and with which status it
ends."""

from __future__ import annotations

import argparse
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from skidway.audit.commands import first_line, options
from skidway.audit.commands.first_line import FirstLines, line_of_file
from skidway.audit.evidence.ledger import DATABASE, Ledger
from skidway.audit.explanation.explanation import ByteRange, Explanation
from skidway.audit.explanation.next_command import NextCommand
from skidway.audit.explanation.offsets import OffsetRange
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.verdict import BucketVerdict, Status
from skidway.audit.topic import messages
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import Heartbeat, Message, Range, Tier
from skidway.audit.topic.recount_result import RecountResult
from skidway.cli.commands import main
from skidway.errors import Unreachable
from skidway.kafka.types import TopicPartition
from skidway.schemas.consuming.rejected_examples import RejectedExample
from skidway.schemas.consuming.rejected_lines import Wanted
from support.audit_senders import AGENT, BROKER, LOGS, REJECTED
from support.clock import ManualClock
from support.memory_kafka import MemoryClient, MemoryCluster
from support.one_bucket import (
    HDFS,
    LATENESS,
    LOSS,
    MIRROR,
    SIZE,
    START,
    count,
    delta,
    good,
    seal,
)

NOW = START + 3 * SIZE
VERDICT = BucketVerdict(LOGS, START, SIZE, Status.COMPLETE, (), True)
AGO = "http://127.0.0.1:1"  # nobody listens there

Why = Callable[..., tuple[int, Any]]


@pytest.fixture
def why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Why:
    """Returns a function that stores the given messages, runs `audit why` on this store, and
    returns the exit status and the output of the command."""

    def run(
        said: list[Message], *options: str, now: int = NOW, topic: tuple[str, ...] = ("dc1.logs",)
    ) -> tuple[int, Any]:
        store = tmp_path / "store"
        store.mkdir(exist_ok=True)
        ledger = Ledger(store / DATABASE)
        ledger.take(map(messages.encode, said), now_ms=now)
        ledger.close()
        monkeypatch.setattr("skidway.audit.commands.why.SystemClock", lambda: ManualClock(now))
        config = tmp_path / "audit.yml"
        config.write_text(
            f"bootstrap.servers: 127.0.0.1:1\nstore.dir: {store}\nlateness.ms: {LATENESS}\n"
        )
        away = ["--collector", AGO, "--agent-health", f"{AGO}/health"]
        named = ["--config", str(config), *away, *topic]
        status = main(["audit", "why", *named, *options])
        out = capsys.readouterr()
        return status, json.loads(out.out) if "--json" in options else out.out + out.err

    return run


def short(bucket: int, number: int) -> list[Message]:
    """Returns messages about a bucket in which the output lacks two records."""
    parts = {"ranges": (Range(LOGS, 0, 10, 20),)}
    return [
        delta(AGENT, number, count(bucket=bucket)),
        *(delta(x, 2, count(bucket=bucket), **parts) for x in (BROKER, MIRROR)),
        delta(HDFS, 2, count(3, bucket=bucket)),
        seal(AGENT, number + 1, NOW, number),
    ]


def test_json_says_how_long_after_its_end_a_tier_had_all_records(
    why: Why, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --json, `audit why` prints for each place of a bucket its count and `latency_ms`: the
    time between the bucket's end and the moment at which the place first had all records.
    `latency_ms` is null if the place lacks records. It is null for all places if no collector
    answers, or if the collector's answer is not understood."""
    said = [*good(), *short(START + SIZE, 3)]
    _, found = why(said, "--json")
    unknown = {x["tier"]: (x["count"], x["latency_ms"]) for x in found["buckets"][0]["places"]}
    assert unknown == dict.fromkeys(("agent", "broker", "mirror"), (5, None)) | {"hdfs": (3, None)}

    end, asked = START + 2 * SIZE, []
    arrivals = [
        {"tier": x["tier"], "place": x["place"], "records": x["count"], "time_ms": end + 1_500}
        for x in found["buckets"][0]["places"]
    ]

    def answered(*question: str) -> dict[str, Any]:
        asked.append(question)
        return {"changes": [], "arrivals": arrivals}

    monkeypatch.setattr("skidway.audit.commands.history.bucket_history", answered)
    _, found = why(said, "--json")
    assert {x["tier"]: x["latency_ms"] for x in found["buckets"][0]["places"]} == {
        "agent": 1_500, "broker": 1_500, "mirror": 1_500, "hdfs": None,
    }  # fmt: skip
    assert asked == [(AGO, "dc1.logs", "1970-01-01T00:11:00Z")]
    arrivals[0]["tier"] = "moon"
    _, found = why(said, "--json")
    assert not any(x["latency_ms"] for x in found["buckets"][0]["places"])


def test_the_oldest_bucket_that_should_be_complete_is_explained(why: Why) -> None:
    """Without the argument BUCKET, `audit why` explains the oldest overdue bucket (one that should
    be complete by now), says how many other overdue buckets there are, and ends with status 1."""
    status, said = why([*good(), *short(START + SIZE, 3)], "--json")
    [bucket] = said["buckets"]
    assert (status, said["others"], bucket["bucket"]) == (1, 0, "1970-01-01T00:11:00Z")
    [cause] = bucket["causes"]
    assert (cause["cause"], cause["tier"], cause["host"]) == ("load not run", "hdfs", "l1")
    assert cause["offsets"] == [{"partition": 0, "first": 10, "end": 20}]
    assert cause["command"] == {"host": "l1", "line": "skidway load run"}
    status, text = why(
        [],
    )
    assert "dc1.logs 1970-01-01T00:11:00Z is incomplete." in text
    assert "next:  on l1: skidway load run" in text
    assert "covers all causes" not in text


def test_without_a_topic_one_bucket_of_each_topic_is_named(why: Why) -> None:
    """Without the argument TOPIC, `audit why` names one bucket of each topic that has buckets with
    problems: the bucket that `why TOPIC` would explain. It prints the gravest cause of this bucket,
    the next command to run, and the number of other buckets with problems."""
    said = [*good(), *short(START + SIZE, 3)]
    status, text = why(said, topic=())
    assert status == 1
    assert "on l1: skidway load run" in text
    assert "skidway audit why TOPIC explains" in text
    bucket_ms = START + 4 * SIZE
    lost = replace(LOSS, from_bucket=bucket_ms, to_bucket=bucket_ms)
    later = delta(AGENT, 5, count(bucket=bucket_ms), losses=(lost,))
    status, found = why([later], "--json", topic=(), now=NOW + 4 * SIZE)
    [row] = found["topics"]
    assert (status, row["topic"], row["bucket"]) == (1, "dc1.logs", "1970-01-01T00:14:00Z")
    assert (row["verdict"], row["others"]) == ("lost", 1)
    assert row["cause"]["cause"] == "declared loss"


def test_without_a_topic_nothing_is_named_if_all_is_well(why: Why) -> None:
    """If no bucket has a problem, `audit why` says so, and ends with status 0."""
    status, text = why(good(), topic=())
    assert (status, text) == (0, "Every bucket that is due is complete or accepted.\n")


def test_a_bucket_that_is_named_is_explained_alone(why: Why) -> None:
    """If the argument BUCKET names a complete bucket, `audit why` explains nothing and ends with
    status 0, whatever the verdicts on other buckets are."""
    said = [*good(), *short(START + SIZE, 3)]
    status, document = why(said, "1970-01-01T00:10:30Z", "--json")
    assert (status, document["buckets"][0]["causes"], document["others"]) == (0, [], 0)


def test_rows_that_wait_for_a_load_hide_no_other_cause(why: Why) -> None:
    """Between two loads, the newest buckets always lack rows. Therefore `audit why` explains a
    bucket that waits for its load only if no bucket has another problem."""
    bucket_ms = START + 4 * SIZE
    lost = replace(LOSS, from_bucket=bucket_ms, to_bucket=bucket_ms)
    later = delta(AGENT, 5, count(bucket=bucket_ms), losses=(lost,))
    status, said = why([*good(), *short(START + SIZE, 3), later], "--json", now=NOW + 4 * SIZE)
    [bucket] = said["buckets"]
    assert (status, said["others"], said["alike"]) == (1, 1, 0)
    assert bucket["bucket"] == "1970-01-01T00:14:00Z"
    assert bucket["causes"][0]["cause"] == "declared loss"


def test_findings_with_one_cause_place_and_command_are_told_together(why: Why) -> None:
    """A silent host gives two reasons why a bucket is not complete: the host's counts are missing,
    and other tiers have more records than the host has counted. `audit why` prints both reasons,
    but the cause, the place and the command to run only once."""
    said = [
        delta(AGENT, 1, count(3)),
        *(delta(x, 1, count()) for x in (BROKER, MIRROR, HDFS)),
    ]
    status, text = why(said, "1970-01-01T00:10:00Z", now=NOW + 100 * SIZE)
    assert status == 1
    assert text.count("  host silent: ") > 1
    assert text.count("next:  on web1: systemctl start skidway-agent") == 1
    assert text.count("No message of the host's agent arrives") == 1


def test_an_acceptance_of_several_causes_is_told_as_the_last_resort(why: Why) -> None:
    """An acceptance covers all causes of a bucket, even missing rows that the next load would
    bring. So if a bucket has several causes, `audit why` names `audit accept` only in the last line
    of its output, and says that you should first run the commands for the other causes."""
    advice = "An acceptance covers all causes of the bucket: run the other commands first."
    said = [*good()[:3], delta(HDFS, 1, count(3)), delta(AGENT, 2, losses=(LOSS,))]
    _, text = why([*said, seal(AGENT, 3, NOW, 2)])
    assert "declared loss: " in text
    *_, before, last = text.strip().splitlines()
    assert before == f"  {advice}"
    assert last.startswith("  then: skidway audit accept dc1.logs ")
    assert text.count("audit accept") == 1


def test_a_bucket_that_is_too_young_is_not_to_be_accepted(why: Why) -> None:
    """A declared loss makes a bucket lost at once, but nobody can accept a bucket that is too young
    to be complete. Until it is old enough, `audit why` advises to run `audit why` once more, and
    does not name `audit accept`."""
    said = [*good()[:4], delta(AGENT, 2, losses=(LOSS,))]
    status, text = why(said, "1970-01-01T00:10:00Z", now=START + SIZE)
    assert status == 1
    assert "declared loss: " in text
    assert "next:  skidway audit why dc1.logs 1970-01-01T00:10:00Z" in text
    assert "audit accept" not in text


def test_no_other_commands_are_advised_if_there_are_none(why: Why) -> None:
    """If `audit accept` is the only advice for each cause of a bucket, `audit why` does not mention
    other commands."""
    other = replace(LOSS, file=4, reason="it was truncated")
    said = [*good()[:4], delta(AGENT, 2, losses=(LOSS, other)), seal(AGENT, 3, NOW, 2)]
    _, text = why(said)
    assert text.count("declared loss: ") == 2
    assert "run the other commands first" not in text
    assert text.count("  next: skidway audit accept ") == text.count("audit accept") == 1


def test_one_acceptance_covers_all_buckets_with_the_same_causes(why: Why) -> None:
    """If a loss concerns several successive buckets, `audit why` prints one `audit accept` for all
    of them, with the first and the last of these buckets. The series ends before a bucket with
    another cause."""
    buckets = [START + at * SIZE for at in range(4)]
    lost = replace(LOSS, from_bucket=START, to_bucket=buckets[2])
    counts = [count(bucket=x) for x in buckets]
    said = [
        delta(AGENT, 1, *counts, losses=(lost,)),
        *(delta(x, 1, *counts) for x in (MIRROR, HDFS)),
        delta(BROKER, 1, *counts[:3], count(4, bucket=buckets[3])),
        seal(AGENT, 2, NOW + SIZE * 2, 1),
    ]
    status, document = why(said, "--json", now=NOW + SIZE * 2)
    [bucket] = document["buckets"]
    assert (status, document["others"], document["alike"]) == (1, 3, 2)
    line = bucket["causes"][0]["accept"]["line"]
    assert line.startswith(
        "skidway audit accept dc1.logs 1970-01-01T00:10:00Z 1970-01-01T00:12:00Z --reason "
    )
    assert bucket["causes"][0]["command"]["line"] == line
    _, text = why([], now=NOW + SIZE * 2)
    assert "3 other buckets need a look, too. 2 of them have the same causes" in text


def test_a_recount_that_differs_is_told_once_and_of_no_bucket(why: Why) -> None:
    """A recount may find other files in an output than the loader has committed, although every
    bucket is complete. `audit why` reports this difference once, and names no bucket."""
    bad = RecountResult(NOW, "l1", "/logs", LOGS, None, 1, 1, 5, 1, 0, ("twice: copy.parquet",))
    status, text = why([*good(), bad])
    assert status == 1
    assert text.startswith("The output has other rows of dc1.logs than were counted.\n")
    assert text.count("copy.parquet") == 1
    assert "move copies out of the output" in text
    assert " is complete" not in text


def test_a_complete_bucket_with_a_warning_is_not_called_complete_alone(why: Why) -> None:
    """If a bucket is complete but has a warning, its heading in the output of `audit why` has the
    word "complete" and the warning."""
    counted = Count(REJECTED, 7, START, SIZE, 5, 10, 1)
    ranges = (Range(REJECTED, 0, 0, 5),)
    tiers = (BROKER, MIRROR, replace(HDFS, producer="/logs/dc1.logs.rejected"))
    said = [
        delta(AGENT, 3, counted),
        *(delta(x, 1 if x.tier is Tier.HDFS else 2, counted, ranges=ranges) for x in tiers),
        seal(AGENT, 4, NOW, 3),
    ]
    status, text = why([*good(), *said])
    assert status == 1
    assert "dc1.logs.rejected 1970-01-01T00:10:00Z is complete, with a warning." in text


def test_a_silent_host_is_named_although_every_bucket_is_complete(why: Why) -> None:
    """A silent host sends no counts, so all buckets may be complete without it. In this case `audit
    why` also judges the newest bucket that is old enough to be complete. The host's counts are
    missing in this bucket, so `audit why` names the host."""
    later = NOW + 200_000
    heard = [Heartbeat(x, 1, later) for x in (BROKER, MIRROR, HDFS)]
    status, document = why([*good(), *heard], "--json", now=later)
    [bucket] = document["buckets"]
    assert [x["cause"] for x in bucket["causes"]] == ["host silent"]
    assert bucket["causes"][0]["host"] == "web1"
    assert status == 1


def test_if_all_is_well_it_says_so(why: Why) -> None:
    """If every bucket is complete and no host is silent, `audit why` ends with status 0."""
    heard = [Heartbeat(x, 1, NOW) for x in (BROKER, MIRROR, HDFS)]
    status, text = why([*good(), seal(AGENT, 3, NOW, 2), *heard])
    assert (status, text) == (0, "Every bucket that is due is complete or accepted.\n")


def test_an_unknown_topic_is_refused(why: Why) -> None:
    """If no audit message names the topic, `audit why` ends with status 2."""
    assert why([Heartbeat(BROKER, 0, NOW)])[0] == 2


def test_a_line_is_read_from_its_file_also_after_a_rotation(tmp_path: Path) -> None:
    """`audit why` shows the first missing line. After a rotation, the file at the announced path
    has other lines. So it reads the line from the file with the announced inode, at the line's
    position."""
    path = tmp_path / "app.log"
    path.write_text("one\ntwo\nthree\n")
    inode = os.stat(path).st_ino
    assert line_of_file(path, 4, inode) == "two"
    path.rename(tmp_path / "app.log.1")
    path.write_text("new\nlines\nof another\n")
    assert line_of_file(path, 4, inode) == "two"
    (tmp_path / "app.log.1").rename(tmp_path / "other.log")
    assert line_of_file(path, 4, inode) is None, "another program's file may have the inode"
    path.unlink()
    os.mkfifo(path)
    assert line_of_file(path, 0, None) is None, "a pipe has no lines, and nobody waits for them"
    path.unlink()
    path.write_text("new\nlines\n")
    assert line_of_file(path, 10_000, None) is None


def test_the_first_doubled_line_is_read_on_its_host(tmp_path: Path) -> None:
    """If two agents have read the same file, all its lines are doubled. `audit why` then shows the
    first line of the file, but only if it runs on the file's host."""
    path = tmp_path / "app.log"
    path.write_text("one\ntwo\n")
    found = Explanation(
        Cause.READ_TWICE, Tier.AGENT, agent=7, host=socket.gethostname(), path=str(path),
        ranges=(ByteRange(0, None),), status=Status.UNKNOWN, words="", command=NextCommand("", ""),
    )  # fmt: skip
    lines = FirstLines(argparse.Namespace(), None, {})
    line = lines.of(VERDICT, found)
    assert line is not None
    assert line.document() == {"kind": "doubled", "where": f"{path} at byte 0", "text": "one"}
    assert lines.of(VERDICT, replace(found, host="elsewhere")) is None


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Replaces the brokers by a cluster in memory that has a mirrored topic of rejects. Returns the
    list of the requests for rejected lines that this cluster gets."""
    cluster = MemoryCluster()
    cluster.create("dc1.logs.rejected")
    asked: list[Any] = []

    @contextmanager
    def client_of(*_: object) -> Iterator[Any]:
        yield MemoryClient(cluster, ManualClock())

    def example(_: Any, topic: str, wanted: Wanted, is_meant: Any) -> RejectedExample:
        asked.append((topic, wanted.since, wanted.until))
        assert is_meant({"agent": 7})
        assert not is_meant({"agent": 8})
        tp = TopicPartition(topic, 0)
        return RejectedExample(tp, 5, START, "no-match", "", "web1", "/a.log", 10, "the text")

    monkeypatch.setattr(options, "client_of", client_of)
    monkeypatch.setattr(first_line, "rejected_example", example)
    return asked


def test_a_rejected_line_is_read_from_the_topic_of_rejects(brokers: list[Any]) -> None:
    """`audit why` shows a line that an agent rejected. It reads the line from the topic of rejects
    and never from the host's file, because only in the topic are the line's secrets masked. It
    reads lines for at most READ_MAX causes, and none for rejects of the loader."""
    found = Explanation(
        Cause.REJECTED, Tier.AGENT, agent=7, host=socket.gethostname(), path="/a.log",
        ranges=(ByteRange(10, None),), status=Status.COMPLETE, words="",
        command=NextCommand("", ""),
    )  # fmt: skip
    rejects = replace(VERDICT, source=REJECTED)
    lines = FirstLines(argparse.Namespace(), None, {})
    assert lines.of(rejects, replace(found, tier=Tier.HDFS)) is None
    assert not brokers
    lines = FirstLines(argparse.Namespace(), None, {})
    line = lines.of(rejects, found)
    assert line is not None
    assert line.document() == {
        "kind": "rejected",
        "where": "dc1.logs.rejected-0 at offset 5 (web1:/a.log byte 10, no-match)",
        "text": "the text",
    }
    assert brokers == [("dc1.logs.rejected", START, START + SIZE)]
    for _ in range(first_line.READ_MAX):
        lines.of(rejects, found)
    assert len(brokers) == first_line.READ_MAX


@pytest.mark.usefixtures("brokers")
def test_a_missing_line_that_no_schema_decodes_is_noted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If a record on the brokers is Avro, and --registry is not given, `audit why` shows the
    record's bytes, and says that --registry is missing."""

    class NoRegistry:
        def schema(self, _schema_id: int) -> str:
            raise Unreachable("no registry answers")

    value = pa.array([b"\0\0\0\0\x07\x04hi"], pa.binary())
    monkeypatch.setattr(first_line, "_value_at", lambda *_: value)
    monkeypatch.setattr(first_line, "topic_here", lambda *_: "dc1.logs")
    monkeypatch.setattr(first_line, "registry", lambda _: (NoRegistry(), False))
    found = Explanation(
        Cause.LOAD_NOT_RUN, Tier.HDFS, offsets=(OffsetRange(0, 5, 6),), status=Status.OPEN,
        words="", command=NextCommand("", ""),
    )  # fmt: skip
    line = FirstLines(argparse.Namespace(), None, {}).of(VERDICT, found)
    assert line is not None
    assert (line.where, line.text) == ("dc1.logs-0 at offset 5", "\0\0\0\0\x07\x04hi")
    assert "name their registry with --registry" in capsys.readouterr().err

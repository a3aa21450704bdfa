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

import numpy as np
import pyarrow as pa
import pytest

from skidway.audit.commands import first_line, options
from skidway.audit.commands.first_line import FirstLines, line_of_file
from skidway.audit.evidence.ledger import DATABASE, Ledger, ledger_of
from skidway.audit.evidence.pruning import OldBucket, digest_of
from skidway.audit.evidence.tallies import BucketTallies
from skidway.audit.explanation.document import text as told
from skidway.audit.explanation.explanation import ByteRange, Explanation
from skidway.audit.explanation.next_command import NextCommand
from skidway.audit.explanation.offsets import OffsetRange
from skidway.audit.judgement.acceptances import Signature, acceptances
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import BucketVerdict, Status
from skidway.audit.reports.topic_names import is_named, with_rejects
from skidway.audit.settings import AuditSettings
from skidway.audit.topic import messages, source_report
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import Heartbeat, Message, Range, Seal, Tier
from skidway.audit.topic.notes import Note
from skidway.audit.topic.recount_result import RecountResult
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.audit.topic.source_report import SourceReport, UnreadPath
from skidway.audit.tracing.host_files import HostFile, HostState
from skidway.cli.commands import main
from skidway.cli.moments import parse_moment
from skidway.errors import Unreachable
from skidway.invocation import installed
from skidway.kafka.batch import seal as seal_batch
from skidway.kafka.columns import decode, encode
from skidway.kafka.types import TopicPartition
from skidway.schemas.consuming.rejected_examples import RejectedExample
from skidway.schemas.consuming.rejected_lines import Wanted
from support.audit_senders import AGENT, BROKER, LOGS, REJECTED
from support.clock import ManualClock
from support.ledgers import take
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
    from_the_broker_on,
    good,
    seal,
)

NOW = START + 3 * SIZE
LATER = START + 4 * SIZE
VERDICT = BucketVerdict(LOGS, START, SIZE, Status.COMPLETE, (), True)
AGO = "http://127.0.0.1:1"  # nobody listens there

Why = Callable[..., tuple[int, Any]]


@pytest.fixture
def why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Why:
    """Returns a function that stores the given messages, runs `audit why` on this store, and
    returns the exit status and the output of the command."""

    def run(
        said: list[Message],
        *options: str,
        now: int = NOW,
        topic: tuple[str, ...] = ("dc1.logs",),
        more: str = "",
    ) -> tuple[int, Any]:
        store = tmp_path / "store"
        store.mkdir(exist_ok=True)
        ledger = Ledger(store / DATABASE)
        take(ledger, map(messages.encode, said), now_ms=now)
        ledger.close()
        monkeypatch.setattr("skidway.audit.commands.why.SystemClock", lambda: ManualClock(now))
        config = tmp_path / "audit.yml"
        config.write_text(
            f"bootstrap.servers: 127.0.0.1:1\nstore.dir: {store}\nlateness.ms: {LATENESS}\n{more}"
        )
        away = ["--collector", AGO, "--agent-health", f"{AGO}/health"]
        named = ["--config", str(config), *away, *topic]
        status = main(["audit", "why", *named, *options])
        out = capsys.readouterr()
        return status, json.loads(out.out) if "--json" in options else out.out + out.err

    return run


def short(bucket: int, number: int) -> list[Message]:
    """Returns messages about the bucket that begins at `bucket`. The output lacks two of the
    bucket's five records. The agent's messages have the numbers `number` and `number` + 1."""
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
    answers, or if the command does not understand the collector's answer."""
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
    assert cause["command"] == {"host": "l1", "line": "systemctl start skidway-loader"}
    status, text = why(
        [],
    )
    assert "dc1.logs 1970-01-01T00:11:00Z is incomplete." in text
    assert "next:  on l1: systemctl start skidway-loader" in text
    assert "covers all causes" not in text


def test_without_a_topic_one_bucket_of_each_topic_is_named(why: Why) -> None:
    """Without the argument TOPIC, `audit why` names one bucket of each topic that has buckets with
    problems: the bucket that `why TOPIC` would explain. It prints the gravest cause of this bucket,
    the next command to run, and the number of other buckets with problems."""
    said = [*good(), *short(START + SIZE, 3)]
    status, text = why(said, topic=())
    assert status == 1
    assert "on l1: systemctl start skidway-loader" in text
    assert "skidway audit why TOPIC --config " in text
    bucket_ms = START + 4 * SIZE
    lost = replace(LOSS, from_bucket=bucket_ms, to_bucket=bucket_ms)
    later = delta(AGENT, 5, count(bucket=bucket_ms), losses=(lost,))
    status, found = why([later], "--json", topic=(), now=NOW + 4 * SIZE)
    [row] = found["topics"]
    assert (status, row["topic"], row["bucket"]) == (1, "dc1.logs", "1970-01-01T00:14:00Z")
    assert (row["verdict"], row["others"]) == ("lost", 1)
    assert row["cause"]["cause"] == "declared loss"


def test_without_a_topic_no_acceptance_is_advised(why: Why) -> None:
    """Without a topic, `audit why` shows only one cause of a bucket. An acceptance would cover all
    causes, so the command advises to run `audit why` for this bucket, which shows all of them."""
    said = [*good()[:4], delta(AGENT, 2, losses=(LOSS,)), seal(AGENT, 3, NOW, 2)]
    status, text = why(said, topic=())
    assert (status, "declared loss" in text, "audit accept" in text) == (1, True, False)
    assert "skidway audit why dc1.logs 1970-01-01T00:10:00Z" in text


def test_without_a_topic_the_command_has_the_options_that_were_given(
    why: Why, tmp_path: Path
) -> None:
    """The commands that `audit why` without a topic prints have the options with which it ran, so
    they read the same settings and the same evidence."""
    said = [*good()[:4], delta(AGENT, 2, losses=(LOSS,)), seal(AGENT, 3, NOW, 2)]
    _, text = why(said, "--set", "silence.ms=180000", topic=())
    given = f"--config {tmp_path}/audit.yml --set silence.ms=180000"
    assert f"skidway audit why dc1.logs 1970-01-01T00:10:00Z {given}" in text
    assert f"skidway audit why TOPIC {given} explains one of them, with all causes." in text


def test_without_a_topic_nothing_is_named_if_all_is_well(why: Why) -> None:
    """If no bucket has a problem, `audit why` says so, and ends with status 0."""
    status, text = why(good(), topic=())
    assert (status, text) == (0, "Every bucket that is due is complete or accepted.\n")


def test_without_a_topic_nothing_is_denied_that_is_wrong(why: Why) -> None:
    """If no bucket has a problem, but something else has, `audit why` says this first, and does not
    say that all is well beside it."""
    path = UnreadPath(LOGS.topic, "/log/old.log", "Permission denied", holds=False)
    body = source_report.body_of(SourceReport(unread=(path,)))
    told = Note(source_report.KIND, "7", "web1", "dc1", 1, 9, NOW, body)
    _, text = why([*good(), told], topic=())
    first, last = text.splitlines()
    assert "/log/old.log" in first
    assert last == "Apart from this, every bucket that is due is complete or accepted."


CHANGED = RecountResult(NOW, "l1", "/logs", LOGS, None, 1, 1, 5, 1, 0, ("gone: part-1.parquet",))


def test_without_a_topic_a_recount_that_differs_is_told(why: Why) -> None:
    """If the newest recount of an output differs from the counts, `audit why` without a topic shows
    this in a row without a bucket, and ends with status 1. It does so even if a bucket of the same
    topic has a row, too."""
    status, text = why([*good(), CHANGED], topic=())
    assert (status, "gone: part-1.parquet" in text) == (1, True)
    assert (
        f"on l1: {installed('loader').call} audit recount --output /logs --topic dc1.logs --tell"
        in text
    )
    assert "Every bucket" not in text
    status, found = why(short(START + SIZE, 3), "--json", topic=())
    assert (status, [x["bucket"] for x in found["topics"]]) == (1, ["1970-01-01T00:11:00Z", None])
    [_, row] = found["topics"]
    assert (row["topic"], row["cause"]["cause"]) == ("dc1.logs", "output changed")
    assert row["cause"]["accept"] is None
    agrees = replace(CHANGED, time_ms=NOW + 1, faults=0, reasons=())
    _, found = why([agrees], "--json", topic=())
    assert [x["bucket"] for x in found["topics"]] == ["1970-01-01T00:11:00Z"]


@pytest.mark.parametrize("is_short", [False, True])
def test_without_a_topic_hosts_that_do_not_report_are_named(why: Why, is_short: bool) -> None:
    """If no host has counted anything since an expected host became silent, no bucket shows that
    this host is silent. So `audit why` without a topic also names the expected hosts that do not
    report, as reports do, and the command that shows all hosts. It ends with status 1."""
    later = NOW + 200_000
    heard = [Heartbeat(x, 2 if is_short else 1, later) for x in (BROKER, MIRROR, HDFS)]
    said = [*good(), *(short(START + SIZE, 3) if is_short else []), *heard]
    status, text = why(said, topic=(), now=later)
    assert status == 1
    assert "1 of 1 expected hosts does not report (silent: web1)." in text
    assert "next: skidway audit hosts --config " in text
    status, found = why([], "--json", topic=(), now=later)
    assert (status, found["hosts"]["missed"], bool(found["topics"])) == (1, 1, is_short)


def test_without_a_topic_and_without_a_count_nothing_is_called_complete(why: Why) -> None:
    """If nothing was ever counted, `audit why` says so and ends with status 1, as a report does."""
    status, text = why([Heartbeat(BROKER, 0, NOW)], topic=())
    assert (status, text) == (1, "Nothing was counted: there is no bucket to judge.\n")


def test_a_bucket_that_is_named_is_explained_alone(why: Why) -> None:
    """If the argument BUCKET names a complete bucket, `audit why` explains nothing and ends with
    status 0, whatever the verdicts on other buckets are."""
    said = [*good(), *short(START + SIZE, 3)]
    status, document = why(said, "1970-01-01T00:10:30Z", "--json")
    assert (status, document["buckets"][0]["causes"], document["others"]) == (0, [], 0)


def test_a_bucket_in_which_nothing_was_counted_is_not_only_called_complete(why: Why) -> None:
    """If the argument BUCKET names a bucket in which nothing was ever counted, for example a bucket
    that ended before the first message, `audit why` says that nothing was counted in this
    bucket."""
    heard = [Heartbeat(x, 1, NOW) for x in (BROKER, MIRROR, HDFS)]
    status, text = why([*good(), *heard], "1970-01-01T00:01:00Z")
    empty = "dc1.logs 1970-01-01T00:01:00Z is complete; nothing was counted in it."
    assert (status, text.splitlines()) == (0, [empty])
    _, text = why([], "1970-01-01T00:10:00Z")
    assert text.splitlines() == ["dc1.logs 1970-01-01T00:10:00Z is complete."]
    _, document = why([], "1970-01-01T00:01:00Z", "--json")
    assert document["buckets"][0]["counted"] is False


def test_a_counter_that_is_only_behind_makes_no_empty_bucket_wanting(why: Why) -> None:
    """If nothing was counted in the newest bucket that is due, and the counters were heard but have
    not counted up to this time yet, `audit why` ends with status 0. It explains this bucket if the
    argument BUCKET names it."""
    heard = [Heartbeat(x, 1, LATER, lag_ms=SIZE) for x in (BROKER, MIRROR, HDFS)]
    said = [*from_the_broker_on(), *heard]
    status, text = why(said, now=LATER)
    assert (status, "counter behind" in text) == (0, False), text
    _, text = why(said, "1970-01-01T00:12:30Z", now=LATER)
    assert "counter behind" in text


@pytest.mark.parametrize("is_followed", [True, False])
def test_a_deleted_bucket_of_another_length_is_not_called_complete(
    why: Why, tmp_path: Path, is_followed: bool
) -> None:
    """If the argument BUCKET is a time in a bucket whose counts were deleted because of its age,
    `audit why` says that the bucket is unknown, and ends with status 1. This is so even if the
    deleted bucket was shorter than a minute, and whether or not there are later buckets of another
    length."""
    counted = Count(LOGS, 7, START, 10_000, 5, 50, 99)
    said = [
        delta(AGENT, 1, counted), *(delta(x, 1, counted) for x in (BROKER, MIRROR, HDFS)),
        seal(AGENT, 2, NOW, 1),
    ]  # fmt: skip
    assert why(said, "1970-01-01T00:10:05Z")[0] == 0
    ledger = Ledger(tmp_path / "store" / DATABASE)
    tallies = ledger.evidence().topic(LOGS).tallies[START, 10_000]
    assert isinstance(tallies, BucketTallies)
    assert ledger.prune([OldBucket(LOGS, START, 10_000, digest_of(tallies.columns))], 0) == 1
    ledger.close()
    later = [*short(START + SIZE, 3)] if is_followed else []
    status, document = why(later, "1970-01-01T00:10:05Z", "--json")
    [bucket] = document["buckets"]
    assert (status, bucket["bucket_ms"], bucket["verdict"]) == (1, START, "unknown")
    [cause] = bucket["causes"]
    assert "older than the audit keeps" in cause["words"]
    assert cause["command"]["line"].startswith(
        "skidway audit report --history --topic dc1.logs --bucket 1970-01-01T00:10:00Z"
    )
    assert cause["accept"] is None


def test_late_counts_of_a_deleted_bucket_can_be_accepted(why: Why, tmp_path: Path) -> None:
    """If counts arrive after their bucket's counts were deleted, `audit why` first names the
    command that shows the history of the bucket, and then the command that accepts the late
    counts."""
    assert why(good(), "1970-01-01T00:10:05Z")[0] == 0
    ledger = Ledger(tmp_path / "store" / DATABASE)
    tallies = ledger.evidence().topic(LOGS).tallies[START, SIZE]
    assert isinstance(tallies, BucketTallies)
    assert ledger.prune([OldBucket(LOGS, START, SIZE, digest_of(tallies.columns))], 0) == 1
    ledger.close()
    status, document = why([delta(AGENT, 9, count())], "1970-01-01T00:10:05Z", "--json")
    found = [x for x in document["buckets"][0]["causes"] if x["cause"] == "older than kept"]
    assert status == 1
    assert "--history" in found[0]["command"]["line"]
    assert "skidway audit accept dc1.logs" in found[0]["accept"]["line"]


def test_what_nobody_can_accept_in_a_bucket_is_sent_to_another_bucket(why: Why) -> None:
    """A declared loss may concern buckets in which nothing was counted. `audit accept` does not
    know such a bucket. So `audit why` names no command that accepts something in such a bucket. It
    names the command that explains another bucket: the last one that the loss names, in which a
    person can accept the loss."""
    later = START + 5 * SIZE
    lost = replace(LOSS, from_bucket=START, to_bucket=START + 2 * SIZE)
    said = [*good()[:4], delta(AGENT, 2, losses=(lost,)), seal(AGENT, 3, later, 2)]
    said += [Heartbeat(x, 2, later) for x in (BROKER, MIRROR, HDFS)]
    status, text = why(said, "1970-01-01T00:11:30Z", now=later)
    heading = "dc1.logs 1970-01-01T00:11:00Z is lost; nothing was counted in it."
    assert (status, text.splitlines()[0]) == (1, heading)
    assert "nothing was counted in this bucket, so nothing of it can be accepted" in text
    assert "audit accept" not in text
    assert "next:  skidway audit why dc1.logs 1970-01-01T00:12:00Z --config " in text
    _, text = why([], "1970-01-01T00:12:00Z", now=later)
    assert "  next: skidway audit accept dc1.logs 1970-01-01T00:12:00Z --reason " in text
    assert ("logs", START + 2 * SIZE) in _accepted(said, text.partition("next: ")[2])


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
    but explains their common cause and names the command to run only once."""
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
    of its output. The line before it says that the other commands should be run first."""
    advice = "An acceptance covers all causes of the bucket: run the other commands first."
    said = [*good()[:3], delta(HDFS, 1, count(3)), delta(AGENT, 2, losses=(LOSS,))]
    _, text = why([*said, seal(AGENT, 3, NOW, 2)])
    assert "declared loss: " in text
    *_, before, last = text.strip().splitlines()
    assert before == f"  {advice}"
    assert last.startswith("  then: skidway audit accept dc1.logs ")
    assert text.count("audit accept") == 1


def test_an_accepted_bucket_is_explained_with_who_accepted_it(why: Why) -> None:
    """For an accepted bucket, `audit why` prints the reasons why the bucket is not complete, says
    who accepted them and why, and advises no command."""
    said = [*good()[:4], delta(AGENT, 2, losses=(LOSS,)), seal(AGENT, 3, NOW, 2)]
    ledger = ledger_of(map(messages.encode, said))
    found = verdicts(ledger.evidence(), Policy(lateness_ms=LATENESS), NOW)
    accepted = acceptances(found, Signature(NOW, "ann", "the disk broke"))
    said = [*said, *accepted]
    status, text = why(said, "1970-01-01T00:10:00Z")
    assert (status, text.splitlines()[0]) == (0, "dc1.logs 1970-01-01T00:10:00Z is lost, accepted.")
    assert "truncated" in text
    assert "accepted by ann (the disk broke)" in text
    assert "next:" not in text
    _, document = why(said, "1970-01-01T00:10:00Z", "--json")
    [acceptance] = document["buckets"][0]["acceptances"]
    assert (acceptance["person"], acceptance["reason"]) == ("ann", "the disk broke")


def test_a_bucket_that_is_too_young_is_not_to_be_accepted(why: Why) -> None:
    """A declared loss makes a bucket lost at once, but nobody can accept a bucket that is too young
    to be complete. Until the bucket is old enough, `audit why` says from which time on it can be
    judged, advises to run `audit why` once more then, and does not name `audit accept`."""
    said = [*good()[:4], delta(AGENT, 2, losses=(LOSS,))]
    status, text = why(said, "1970-01-01T00:10:00Z", now=START + SIZE)
    assert status == 1
    assert "declared loss: " in text
    again = "skidway audit why dc1.logs 1970-01-01T00:10:00Z --config "
    assert f"next:  from 1970-01-01T00:11:10Z on: {again}" in text
    assert text.count(again) == text.count("from 1970-01-01T00:11:10Z on: ")
    assert "audit accept" not in text
    _, document = why([], "1970-01-01T00:10:00Z", "--json", now=START + SIZE)
    assert document["buckets"][0]["causes"][0]["from"] == "1970-01-01T00:11:10Z"


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


def _with_rejects(rows: dict[int, int], *, lost: bool) -> list[Message]:
    """Returns messages about three buckets of a topic and of its rejects. In each bucket, five
    records were delivered, and four were rejected. rows: how many rejects of a bucket became rows,
    by the bucket's number; in other buckets all became rows. lost: if true, the agent declared a
    loss that concerns all three buckets; if false, the broker lacks a record of the first
    bucket."""
    buckets = [START + at * SIZE for at in range(3)]
    counts = [count(bucket=x) for x in buckets]
    short = counts if lost else [count(4, bucket=START), *counts[1:]]
    rejects = [count(4, bucket=x, source=REJECTED) for x in buckets]
    written = [replace(x, count=rows.get(at, 4)) for at, x in enumerate(rejects)]
    loss = replace(LOSS, from_bucket=START + LATENESS, to_bucket=buckets[2])
    both = (Range(LOGS, 0, 0, 15), Range(REJECTED, 0, 0, 12))
    output = replace(HDFS, producer="/logs/dc1.logs.rejected")
    return [
        delta(AGENT, 1, *counts, *rejects, losses=(loss,) if lost else ()),
        *(delta(x, 1, *short, *rejects, ranges=both) for x in (BROKER, MIRROR)),
        delta(HDFS, 1, *short),
        delta(output, 1, *written, ranges=both[1:]),
        Seal(AGENT, 2, LATER, (SealedTopic(LOGS, LATER, 1), SealedTopic(REJECTED, LATER, 1))),
    ]


def _accepted(said: list[Message], line: str) -> set[tuple[str, int]]:
    """Returns the buckets, each as (topic, start), in which the command `audit accept` of this line
    would accept a finding or a warning. line: a line that `audit why` printed."""
    _, _, _, name, first, *last = line.partition(" --reason")[0].split()
    until = parse_moment((last or [first])[0], LATER, "LAST")
    evidence = ledger_of(map(messages.encode, said)).evidence()
    found = verdicts(evidence, Policy(lateness_ms=LATENESS, rejects_share=1), LATER)
    covered = [
        x
        for x in found
        if is_named(x.source, with_rejects([name]))
        and parse_moment(first, LATER, "BUCKET") <= x.bucket <= until
    ]
    signed = Signature(LATER, "ann", "as why said")
    return {(x.source.topic, x.bucket) for x in acceptances(covered, signed)}


@pytest.mark.parametrize(("rows", "last"), [({}, 2), ({1: 1}, 0), ({2: 1}, 1), ({0: 1}, 2)])
def test_one_acceptance_covers_no_rejects_with_another_cause(
    why: Why, rows: dict[int, int], last: int
) -> None:
    """An acceptance of a topic also covers the topic of its rejects. The printed `audit accept`
    names a series of buckets. The series ends before the first bucket whose rejects have a cause
    that `audit why` has not shown. `audit why` explains only the first bucket of the series, and
    says how many further buckets the command accepts."""
    said = _with_rejects(rows, lost=True)
    _, document = why(said, "--json", now=LATER, more="rejects.share.max: 1\n")
    shown = {(x["topic"].removeprefix("dc1."), x["bucket_ms"]) for x in document["buckets"]}
    assert shown == {("logs", START), ("logs.rejected", START)}
    line = document["buckets"][0]["causes"][0]["accept"]["line"]
    accepted = _accepted(said, line)
    assert max(accepted) == ("logs.rejected", START + last * SIZE)
    assert (document["alike"], len(accepted - shown)) == (2 * last, 2 * last)
    assert document["others"] == 4


def test_rejects_of_the_same_minute_are_explained_if_they_would_be_accepted(why: Why) -> None:
    """In this test, a bucket of a topic lacks a record in the broker tier, and the rejects of the
    same minute lack only rows. `audit why` explains both, because the printed `audit accept` covers
    both. The rejects of the next minute lack rows, too, but `audit why` does not explain them: the
    command that accepts the rejects of the first minute also accepts those of the next minute."""
    said = _with_rejects({0: 1, 1: 1}, lost=False)
    status, document = why(said, "--json", now=LATER, more="rejects.share.max: 1\n")
    found = {x["topic"]: [y["tier"] for y in x["causes"]] for x in document["buckets"]}
    assert found["dc1.logs.rejected"] == ["hdfs"]
    assert found["dc1.logs"][0] == "broker"
    assert (status, document["others"], document["alike"]) == (1, 1, 1)
    line = document["buckets"][0]["causes"][0]["accept"]["line"]
    assert _accepted(said, line) == {("logs", START), ("logs.rejected", START)}


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


def known(path: Path, file: int = 3) -> HostFile:
    """Returns what the agent of this host (agent 7) knows of a file."""
    found = path.stat()
    return HostFile(
        7, file, str(path), str(path), "logs", found.st_dev, found.st_ino, 0, 0, "open", 0
    )


def test_a_line_is_read_from_its_file_also_after_a_rotation(tmp_path: Path) -> None:
    """`audit why` shows the first missing line. After a rotation, the file at the known path has
    other lines. So `audit why` reads the line from the file with the known device and inode, at the
    line's position."""
    path = tmp_path / "app.log"
    path.write_text("one\ntwo\nthree\n")
    file = known(path)
    assert line_of_file(file, 4) == "two"
    assert line_of_file(replace(file, device=file.device + 1), 4) is None, "another file system"
    path.rename(tmp_path / "app.log.1")
    path.write_text("new\nlines\nof another\n")
    assert line_of_file(file, 4) == "two"
    (tmp_path / "app.log.1").rename(tmp_path / "other.log")
    assert line_of_file(file, 4) is None, "another program's file may have the inode"
    path.unlink()
    os.mkfifo(path)
    assert line_of_file(known(path), 0) is None, "a pipe has no lines, and nobody waits for them"
    path.unlink()
    path.write_text("new\nlines\n")
    assert line_of_file(known(path), 10_000) is None


@pytest.mark.parametrize("cause", [Cause.READ_TWICE, Cause.DECLARED_LOSS])
def test_a_line_is_read_on_its_host_from_a_known_file(tmp_path: Path, cause: Cause) -> None:
    """`audit why` shows the first line of a doubled or missing part of a file, but only if it runs
    on the file's host, by the name in its settings, and only from a file that this host's agent
    knows. So a message that names any other file of the host makes nobody print it."""
    path, secret = tmp_path / "app.log", tmp_path / "shadow"
    path.write_text("one\ntwo\n")
    secret.write_text("root:secret\n")
    file = None if cause is Cause.READ_TWICE else 3
    found = Explanation(
        cause, Tier.AGENT, agent=7, file=file, host=socket.gethostname(), path=str(path),
        ranges=(ByteRange(0, None),), status=Status.UNKNOWN, words="", command=NextCommand("", ""),
    )  # fmt: skip
    state = HostState({3: known(path)}, [])
    lines = FirstLines(argparse.Namespace(), None, lambda: state)
    line = lines.of(VERDICT, found)
    assert line is not None
    assert (line.where, line.text) == (f"{path} at byte 0", "one")
    elsewhere = replace(found, host="web1.example")
    assert lines.of(VERDICT, elsewhere) is None
    named = AuditSettings(bootstrap_servers="k:1", host_name="web1.example")
    assert FirstLines(argparse.Namespace(), named, lambda: state).of(VERDICT, elsewhere) == line
    forged = replace(found, path=str(secret))
    said = lines.of(VERDICT, forged)
    assert said is None if file is None else said == line, "only the known path of the id counts"
    assert lines.of(VERDICT, replace(forged, file=4)) is None
    assert lines.of(VERDICT, replace(found, file=3, agent=8)) is None
    path.unlink()
    path.symlink_to(secret)
    assert lines.of(VERDICT, found) is None, "the path leads to another file now"
    assert FirstLines(argparse.Namespace(), None, lambda: None).of(VERDICT, found) is None


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
    lines = FirstLines(argparse.Namespace(), None, lambda: None)
    assert lines.of(rejects, replace(found, tier=Tier.HDFS)) is None
    assert not brokers
    lines = FirstLines(argparse.Namespace(), None, lambda: None)
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
def test_a_rejected_line_that_the_brokers_do_not_have_is_noted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """If the brokers do not have the topic of rejects, `audit why` says why it shows no rejected
    line: for example, because the mirror has not copied the topic yet."""
    found = Explanation(
        Cause.REJECTED, Tier.AGENT, agent=7, status=Status.COMPLETE, words="",
        command=NextCommand("", ""),
    )  # fmt: skip
    rejects = replace(VERDICT, source=replace(REJECTED, topic="new.rejected"))
    assert FirstLines(argparse.Namespace(), None, lambda: None).of(rejects, found) is None
    assert "rejected lines of new.rejected can be shown: these brokers" in capsys.readouterr().err


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
    record = (TopicPartition("dc1.logs", 0), 5, value)
    monkeypatch.setattr(first_line, "_record_of_bucket", lambda *_: record)
    monkeypatch.setattr(first_line, "topic_here", lambda *_: "dc1.logs")
    monkeypatch.setattr(first_line, "registry", lambda _: (NoRegistry(), False))
    found = Explanation(
        Cause.LOAD_NOT_RUN, Tier.HDFS, offsets=(OffsetRange(0, 5, 6),), status=Status.OPEN,
        words="", command=NextCommand("", ""),
    )  # fmt: skip
    line = FirstLines(argparse.Namespace(), None, lambda: None).of(VERDICT, found)
    assert line is not None
    assert (line.where, line.text) == ("dc1.logs-0 at offset 5", "\0\0\0\0\x07\x04hi")
    assert "name their registry with --registry" in capsys.readouterr().err


@pytest.mark.usefixtures("brokers")
@pytest.mark.parametrize(
    ("times", "shown"),
    [([START - 1, START + SIZE, START + 5], 7), ([START - 1, START + SIZE, START + SIZE], None)],
)
def test_a_missing_line_of_another_bucket_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, times: list[int], shown: int | None
) -> None:
    """If a place has not reached some offsets of the topic yet, these offsets may have lines of
    several buckets. As the first missing line, `audit why` shows only a line whose event time lies
    in the bucket. It also says that the offsets are not only those of the bucket's records."""
    tp = TopicPartition("dc1.logs", 1)
    values = pa.array([b"one", b"two", b"three"], pa.binary())
    batch = replace(decode(seal_batch(encode(values, np.array(times)))), offsets=np.arange(5, 8))
    asked: list[Any] = []

    def read(_: Any, ranges: dict[TopicPartition, tuple[int, int]]) -> Iterator[Any]:
        asked.append(ranges)
        yield tp, batch

    monkeypatch.setattr(first_line, "topic_here", lambda *_: "dc1.logs")
    monkeypatch.setattr(first_line, "_bounds", lambda *_: {tp: (2, 90)})
    monkeypatch.setattr(first_line, "read_ranges", read)
    monkeypatch.setattr(first_line, "registry", lambda _: (None, False))
    found = Explanation(
        Cause.LOAD_NOT_RUN, Tier.HDFS, offsets=(OffsetRange(1, 5, 8),), status=Status.OPEN,
        words="", command=NextCommand("", ""),
    )  # fmt: skip
    line = FirstLines(argparse.Namespace(), None, lambda: None).of(VERDICT, found)
    assert asked == [{tp: (5, 8)}]
    said = None if shown is None else f"dc1.logs-1 at offset {shown}"
    assert (None if line is None else line.where) == said
    assert (
        "not reached in the topic, not only of this bucket: partition 1 offsets 5 to 8"
    ) in "\n".join(told([found]))

"""Tests `skidway audit report` on the store of a collector."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from skidway.audit.evidence.ledger import DATABASE, Ledger
from skidway.audit.evidence.pruning import OldBucket, digest_of
from skidway.audit.evidence.tallies import BucketTallies
from skidway.audit.topic import source_report
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.fieldless_note import KIND, OTHERS, FieldlessMembers, body_of
from skidway.audit.topic.messages import Delta, Seal, encode
from skidway.audit.topic.notes import Note
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.audit.topic.source_report import FilelessSource, SourceReport
from skidway.cli.commands import main
from skidway.kafka.source import Source
from support.audit_senders import AGENT, LOGS, REJECTED
from support.promises import promise

SIZE = 60_000


def _count(source: Source, bucket: int, previous: int = 0) -> Count:
    return Count(source, 7, bucket, SIZE, 5, 5, 5, previous=previous)


def _said(store: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    main(["audit", "report", "--store", str(store), *options])
    return capsys.readouterr().out


@promise("6 pruning")
def test_a_report_says_how_many_buckets_were_deleted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A collector deletes the counts of old buckets that are complete or accepted. The report on a
    topic does not show these buckets, and says how many of the topic's buckets it does not show. A
    bucket that got further records after its counts were deleted is shown."""
    ledger = Ledger(tmp_path / DATABASE)
    counts = tuple(_count(LOGS, SIZE * number) for number in range(4))
    ledger.take([encode(Delta(AGENT, 1, 1, counts=(*counts, _count(REJECTED, 0))))])
    for source, topic in ledger.evidence().topics.items():
        for key in sorted(topic.tallies)[:3]:
            found = topic.tallies[key]
            assert isinstance(found, BucketTallies)
            assert ledger.prune([OldBucket(source, *key, digest_of(found.columns))], 0) == 1
    late = _count(LOGS, 2 * SIZE, previous=1)
    ledger.take([encode(Delta(AGENT, 2, 2, counts=(late,)))])
    ledger.close()
    sentence = "The store no longer has the counts of {} older bucket"
    assert sentence.format(3) in _said(tmp_path, capsys)
    for asked, count, shown in ((LOGS, 3, 2), (REJECTED, 1, 0)):
        said = json.loads(_said(tmp_path, capsys, "--topic", asked.topic, "--json"))
        assert (said["buckets_deleted"], said["buckets_shown"]) == (count, shown)
    assert "no longer has" not in _said(tmp_path, capsys, "--since", "1970-01-01T00:03:00Z")


def test_members_without_a_field_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`audit report` and `audit why` name the members of lines that agents left out, because the
    topic's schema has no field for them. The newest note of an agent counts; another topic's
    members are not named if the command is about one topic."""
    ledger = Ledger(tmp_path / DATABASE)
    ledger.take([encode(Delta(AGENT, 1, 1, counts=(_count(LOGS, 0),)))])
    members = {f"m{number}": 9 - number for number in range(6)} | {OTHERS: 8}
    for number, topics in ((1, {"logs": {"old": 1}}), (2, {"logs": members, "b": {"x": 1}})):
        body = body_of(FieldlessMembers(0, topics))
        note = Note(KIND, AGENT.producer, "h", LOGS.cluster, AGENT.epoch, number, 1, body)
        ledger.take([encode(note)])
    ledger.close()
    words = (
        f"{LOGS.cluster}.logs: no field for m0 (in 9 lines), m1 (in 8 lines), m2 (in 7 lines), "
        "m3 (in 6 lines), m4 (in 5 lines) and more"
    )
    said = _said(tmp_path, capsys).splitlines()
    assert said[-2:] == [f"{LOGS.cluster}.b: no field for x (in 1 line)", words]
    found = json.loads(_said(tmp_path, capsys, "--topic", LOGS.topic, "--json"))["fieldless"]
    assert found == [{"topic": "logs", "cluster": LOGS.cluster, "members": members}]
    main(["audit", "why", "logs", "--store", str(tmp_path)])
    assert capsys.readouterr().out.splitlines()[-1] == words


@promise("6 source without files")
def test_a_log_that_is_missing_is_no_silence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If nothing was counted, because no file has matched a source, report, hosts and `why` name
    topic, pattern and host, and report and `why` end with status 1. A note alone changes no
    status. That all hosts report is not said as if all were well."""
    now = time.time_ns() // 1_000_000
    report = SourceReport(fileless=(FilelessSource("logs", ("/log/auth.log",), now - 9_000),))
    note = Note(source_report.KIND, "7", "web1", "dc1", 1, 1, now, source_report.body_of(report))
    sealed = (SealedTopic(LOGS, 9_000 - now, 0),)
    ledger = Ledger(tmp_path / DATABASE)
    ledger.take([encode(Seal(AGENT, 1, now, sealed)), encode(note)])
    ledger.close()
    words = "dc1.logs is unknown: source /log/auth.log on web1 has matched no file since"
    for verb, status in (("report", 1), ("why", 1), ("hosts", 0)):
        assert main(["audit", verb, "--store", str(tmp_path)]) == status
        said = capsys.readouterr().out
        assert words in said, verb
    assert "All 1 expected hosts report, but not all logs are read on web1.\n" in said
    main(["audit", "hosts", "--store", str(tmp_path), "--json"])
    document = json.loads(capsys.readouterr().out)
    assert document["lacking_logs"] == ["web1"]
    assert document["sources"][0].startswith(words)
    until = ("--since", "10m", "--until", "5m")
    assert main(["audit", "complete", "--store", str(tmp_path), "--topic", "logs", *until]) == 1
    assert "source /log/auth.log on web1 has matched no file" in capsys.readouterr().out

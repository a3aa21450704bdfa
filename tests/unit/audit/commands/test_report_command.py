"""Tests `skidway audit report` on the store of a collector."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skidway.audit.evidence.ledger import DATABASE, Ledger
from skidway.audit.evidence.pruning import OldBucket, digest_of
from skidway.audit.evidence.tallies import BucketTallies
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import Delta, encode
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

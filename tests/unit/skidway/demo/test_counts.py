"""Tests what the demo counts, and when it calls everything complete."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from skidway.agent.files.operating_system import OperatingSystem
from skidway.agent.files.patterns import patterns_of
from skidway.audit.counter.state import CounterState
from skidway.demo import counts, display
from skidway.demo.counts import AGENT, COUNTED, ROWS, WRITTEN, Outcome, Tiers, cut_off
from skidway.demo.programs import Programs
from skidway.demo.site import DEFAULT_PORTS, Site
from skidway.demo.writer import JSON

FILE = {
    "file": 1, "path": "/w/1.log", "begin": 0, "bytes": 100, "acknowledged": 90, "rejected": 10,
    "filtered": 0, "lost": 0, "uncertain": 0, "pending": 0,
}  # fmt: skip
AT_CUT = FILE | {"acknowledged": 20, "pending": 70}
BUCKET = {
    "topic": "a", "bucket": 20_000, "bucket_ms": 10_000, "verdict": "complete", "time": "then",
    "reasons": [], "places": [{"tier": "hdfs", "count": 7, "repeats": 2}],
}  # fmt: skip
NEWER = BUCKET | {"bucket": 30_000, "verdict": "open", "places": [{"tier": "agent", "count": 3}]}


def outcome(**changed: Any) -> Outcome:
    """Returns the outcome of a demo that was complete, but with the given values changed. `buckets`
    has the rows of the audit's report."""
    found: dict[str, Any] = {
        "cut": [AT_CUT],
        "ledger": [FILE],
        "until_ms": 30_000,
        "report": {"buckets": changed.pop("buckets", [BUCKET])},
        "recount": {"topics": [{"topic": "dc1.a", "rows": 7}]},
        "recount_agrees": True,
        "written": {"a": Counter(lines=7, bytes=100)},
    }
    return Outcome(**(found | changed))


def test_all_has_to_agree() -> None:
    """A demo is complete if the audit's counts, the recount and the number of the writer's lines
    agree."""
    assert outcome().is_complete
    assert outcome(written={}).is_complete


@pytest.mark.parametrize(
    "changed",
    [
        {"buckets": [BUCKET, BUCKET | {"topic": "b", "verdict": "incomplete"}]},
        {"buckets": [BUCKET | {"verdict": "open"}]},
        {"buckets": [BUCKET | {"bucket": 10_000, "verdict": "lost"}, BUCKET]},
        {"buckets": []},
        {"buckets": [NEWER | {"verdict": "complete"}]},
        {"recount_agrees": False},
        {"ledger": [FILE | {"acknowledged": 89}]},
        {"cut": [AT_CUT, FILE | {"file": 2, "pending": 1}], "ledger": [FILE, FILE | {"file": 2}]},
        {"written": {"a": Counter(lines=8)}},
        {"written": {"a": Counter(lines=6)}},
        {"written": {"a": Counter(lines=5, torn=1)}},
        {"written": {"a": Counter(lines=7), "b": Counter(lines=1)}},
    ],
)
def test_one_disagreement_spoils_the_verdict(changed: dict[str, Any]) -> None:
    """A demo is incomplete in each of these cases: a bucket up to the cut-off is not complete, the
    audit's report has no bucket up to the cut-off, the recount does not agree, a row is missing or
    surplus, the agent says nothing of a byte, or a topic has no rows."""
    assert not outcome(**changed).is_complete


def test_what_comes_after_the_cut_off_spoils_nothing() -> None:
    """Programs go on writing after the cut-off. The newer bytes, and the buckets after the cut-off,
    do not change the verdict. The demo's table does not count records of these buckets."""
    found = outcome(buckets=[BUCKET, NEWER], ledger=[FILE | {"acknowledged": 120}])
    assert found.is_complete
    assert display.topic_rows(found) == display.topic_rows(outcome())
    assert display.audit_sentence(found) == (
        "All 1 buckets of 1 topics up to the cut-off are complete."
    )
    assert display.bytes_sentence(found) == (
        "100 bytes in 1 files at the cut-off and 30 newer ones; 120 acknowledged, 10 rejected;"
        " every byte is accounted for."
    )


def test_a_file_that_is_waited_for_is_named() -> None:
    """The demo waits until the agent has found every file and says what happened to every byte up
    to the cut-off, and names the file for which it waits. Lost bytes are for the audit to judge. An
    id that the agent has forgotten is done."""
    assert not display.waited_for(outcome())
    assert outcome(ledger=[FILE | {"acknowledged": 89, "lost": 1}]).is_complete
    assert outcome(ledger=[]).is_complete
    found = outcome(ledger=[FILE | {"acknowledged": 89}])
    assert display.waited_for(found) == ": 1 bytes of /w/1.log"
    assert display.bytes_sentence(found).endswith("; NOT accounted for: 1 bytes of /w/1.log.")
    assert display.waited_for(outcome(unseen=["/w/2.log"])) == ": /w/2.log"


def test_no_load_makes_a_lost_bucket_complete() -> None:
    """The demo waits for the verdict until all buckets are complete and the rows agree, or one
    bucket is lost."""
    lost = BUCKET | {"verdict": "lost"}
    assert outcome().is_decided
    assert outcome(buckets=[lost], recount_agrees=False).is_decided
    assert not outcome(recount_agrees=False).is_decided
    assert not outcome(buckets=[BUCKET, BUCKET | {"verdict": "incomplete"}]).is_decided


def test_rejects_are_those_of_the_agent_and_of_the_loader() -> None:
    """The table's column REJECTS counts the lines that the agent rejected, beside their own topic,
    and the rejects of the loader."""
    sent = BUCKET | {"places": [{"tier": "hdfs", "count": 7, "rejects": 2}]}
    places = [{"tier": tier, "count": 3} for tier in ("agent", "broker", "hdfs")]
    rejected = BUCKET | {"topic": "a.rejected", "places": places}
    rows = display.topic_rows(outcome(buckets=[sent, rejected, BUCKET | {"topic": "b"}, NEWER]))
    assert [(row["topic"], row["rejects"]) for row in rows] == [
        ("a", "5"), ("a.rejected", "0"), ("b", "0"),
    ]  # fmt: skip


def test_an_incomplete_bucket_is_named() -> None:
    """The demo's sentence about the audit names the first buckets up to the cut-off that are not
    complete, each with a reason."""
    short = BUCKET | {"topic": "b", "verdict": "incomplete", "reasons": ["hdfs lacks 1", "more"]}
    assert display.audit_sentence(outcome(buckets=[BUCKET, short, NEWER])) == (
        "1 of 2 buckets of 2 topics up to the cut-off are complete;"
        " b then is incomplete: hdfs lacks 1."
    )


def test_lines_are_compared_by_topic() -> None:
    """The demo's sentence about lines names each topic in which the number of rows differs from the
    number of lines, and the number of missing or surplus rows. A torn line may be a row or a
    reject."""
    for tally in (Counter(lines=7), Counter(lines=6, torn=1), Counter(lines=7, torn=1)):
        said = display.lines_sentence(outcome(written={"a": tally}))
        assert "as many rows as lines were written" in said
    said = display.lines_sentence(outcome(written={"a": Counter(lines=9)}))
    assert said.endswith("NOT as many as the lines: a -2.")


def test_a_file_that_the_agent_has_not_found_is_unseen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the cut-off, the agent has to know each file that a pattern matches, up to its present
    size. An empty file has nothing to know, and a link is the file to which it leads."""
    log, link = tmp_path / "b.log", tmp_path / "a.log"
    log.write_bytes(b"x\n")
    link.symlink_to(log)
    (tmp_path / "c.log").touch()
    pattern = str(tmp_path / "*.log")
    found = OperatingSystem().scan(patterns_of([str(log)])).found[0]
    row = FILE | {"device": found.key.device, "inode": found.key.inode, "born_ns": found.born_ns}
    ledger: list[dict[str, Any]] = []
    monkeypatch.setattr(counts, "ledger", lambda _: ledger)
    site = Site(tmp_path, {}, "")
    assert set(cut_off(site, [pattern])[1]) == {str(link), str(log)}
    ledger = [row | {"acknowledged": 0, "rejected": 0, "pending": 1}]
    assert cut_off(site, [pattern])[1]
    ledger = [row | {"acknowledged": 1, "rejected": 0, "pending": 1}]
    assert cut_off(site, [pattern]) == (ledger, [])


def test_tiers_are_counted_in_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each tier has a number of lines. The agent's bytes are converted with the mean length of the
    written lines, and the counter's offsets are read from a database that its own code created. A
    broker that was killed is not asked."""
    site = Site(tmp_path, DEFAULT_PORTS, "")
    path = site.written / JSON / f"{JSON}.log"
    path.parent.mkdir(parents=True)
    path.write_text(10 * f"{json.dumps({})}\n")
    mine = FILE | {"topic": JSON, "acknowledged": 12, "rejected": 3}
    monkeypatch.setattr(counts, "ledger", lambda _: [mine, FILE | {"topic": "other"}])
    monkeypatch.setattr(counts, "record_count", lambda _, topics: len(topics))
    database = site.data("count-dc1") / "counter.db"
    database.parent.mkdir(parents=True)
    CounterState(database).close()
    tiers = Tiers(Programs(site, print))
    tiers.away.add(counts.BROKER)
    found = tiers.measure()
    assert (found[WRITTEN], found[AGENT], found[COUNTED], found[ROWS]) == (10, 5, 0, 0)
    assert (found[counts.BROKER], found[counts.MIRROR]) == (0, len(counts.MIRRORED))

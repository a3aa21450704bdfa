"""The history of verdicts: what is noted, stored, shown and answered. The tests use no socket."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skidway.audit.collector import history_store
from skidway.audit.collector.history import Kept
from skidway.audit.collector.history_store import HISTORY, HistoryStore
from skidway.audit.collector.judge import Judge
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.verdict import BucketVerdict, Status
from skidway.audit.reports import history_report
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import Delta, Range, Seal, Sender, Tier, encode
from skidway.audit.topic.seal_columns import SealedTopic
from support.audit_senders import AGENT, BROKER, LOGS
from support.clock import ManualClock
from support.dashboard import ask

SIZE = 60_000
POLICY = Policy(tiers=(Tier.AGENT, Tier.BROKER), lateness_ms=0)


class Site:
    """A ledger, its judge and its history. Time goes on by a minute with every judgement."""

    def __init__(self, folder: Path) -> None:
        self.path, self.ledger, self.clock = folder / HISTORY, Ledger(), ManualClock()
        self.bucket = self.clock.time_ms() // SIZE * SIZE - 10 * SIZE
        self.numbers, self.last = {AGENT: 0, BROKER: 0}, {AGENT: 0, BROKER: 0}
        self.start()

    def start(self) -> None:
        self.history = HistoryStore(self.path, now_ms=self.clock.time_ms())
        self.judge = Judge(self.ledger, lambda: POLICY, self.clock, self.history.note)

    def count(self, sender: Sender, count: int) -> None:
        self.numbers[sender] += 1
        number, previous = self.numbers[sender], self.last[sender]
        self.last[sender] = number
        counted = Count(LOGS, 7, self.bucket, SIZE, count, count, count, previous=previous)
        ranges = (Range(LOGS, 0, 5 * number - 5, 5 * number),) if sender is BROKER else ()
        self.ledger.take([encode(Delta(sender, number, 5, ranges, (counted,)))])

    def seal(self) -> None:
        self.numbers[AGENT] += 1
        number, until = self.numbers[AGENT], self.clock.time_ms()
        topics = (SealedTopic(LOGS, until, number - 1),)
        self.ledger.take([encode(Seal(AGENT, number, until, topics))])

    def step(self) -> None:
        for _ in range(2):  # nothing is noted before every block was judged once
            self.clock.advance(30)
            self.judge.step()

    def late_line(self) -> None:
        self.count(AGENT, 5)
        self.count(BROKER, 5)
        self.seal()
        self.step()
        self.count(AGENT, 12)
        self.step()
        self.count(BROKER, 12)
        self.seal()
        self.step()

    def ask(self, path: str) -> tuple[int, str]:
        now_ms = self.clock.time_ms()
        status, _, body = ask(self.ledger, path, POLICY, now_ms=now_ms, history=self.history)
        return status, body

    def changes(self) -> list[dict[str, Any]]:
        status, body = self.ask(f"/history.json?topic=dc1.logs&bucket={self.bucket}")
        assert status == 200, body
        found = json.loads(body)["buckets"]
        return found[0]["changes"] if found else []


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_late_line_reopens_a_bucket_and_the_history_says_whose(site: Site) -> None:
    """The history of a bucket with late lines says when it was complete, who reopened it with how
    many records, and when it was complete again."""
    site.late_line()
    first, second, third = site.changes()
    assert [x["revision"] for x in (first, second, third)] == [1, 2, 3]
    assert (first["word"], third["word"]) == ("complete", "complete")
    assert second["word"] != "complete"
    assert second["cause"] == "12 more records of web1 at agent"
    assert first["time_ms"] < second["time_ms"] < third["time_ms"]


def test_a_restart_notes_no_change_and_then_names_the_tier(site: Site) -> None:
    """A restart of the collector is no change of a verdict. After a restart, a cause names the tier
    and its records."""
    site.count(AGENT, 5)
    site.count(BROKER, 5)
    site.seal()
    site.step()
    since = site.history.since_ms
    site.start()
    site.judge.step()
    assert len(site.changes()) == 1
    assert site.history.since_ms == since
    site.start()
    site.count(AGENT, 1)
    site.step()
    assert site.changes()[1]["cause"] == "1 more record at agent"


def test_nothing_is_noted_before_everything_was_judged(site: Site) -> None:
    """While there are blocks that were never judged, the history notes nothing."""
    site.count(AGENT, 5)
    site.count(BROKER, 5)
    site.seal()
    site.judge.step()
    assert site.changes() == []
    site.judge.step()
    assert len(site.changes()) == 1


def test_a_fresh_open_bucket_costs_no_row(site: Site) -> None:
    """A bucket that was never judged as anything but open has no row."""
    site.bucket += 100 * SIZE
    site.count(AGENT, 5)
    site.step()
    assert site.changes() == []


def test_the_history_is_bounded(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bucket keeps its first and its newest rows, and rows of old buckets are deleted."""
    monkeypatch.setattr(history_store, "REVISIONS_MAX", 3)
    for number in range(8):
        status = Status.LOST if number % 2 else Status.COMPLETE
        found = BucketVerdict(LOGS, site.bucket, SIZE, status, ("x" * 999,) * 9, due=True)
        site.history.note((site.bucket, site.bucket + 1), [found], site.clock.time_ms())
    (kept,) = site.history.read((0, 1 << 60), lambda _: True, 10)
    assert [x.revision for x in kept.rows] == [1, 7, 8]
    assert kept.left_out == 5
    assert [len(x) for x in kept.rows[0].reasons] == [200] * 3
    site.history.note((0, 0), [], site.bucket + 36 * 86_400_000)
    assert site.history.read((0, 1 << 60), lambda _: True, 10) == []


def test_counts_in_memory_are_bounded() -> None:
    """The counts that were kept for the longest time go first."""
    kept = Kept(2)
    for bucket in range(3):
        kept.put((LOGS, bucket, SIZE), {("agent", "web1"): 5})
    assert [kept.get((LOGS, x, SIZE)) is None for x in range(3)] == [True, False, False]


def test_the_page_and_the_lines_tell_the_history(site: Site) -> None:
    """The page of a bucket shows its history, and says since when the history remembers."""
    site.late_line()
    _, body = site.ask(f"/buckets?topic=logs&bucket={site.bucket}")
    assert "remembers since 2023-11-14T22:13:20Z" in body
    assert "12 more records of web1 at agent" in body
    _, answer = site.ask("/history.json")
    lines = history_report.text(json.loads(answer))
    assert lines[2].startswith(
        "  2023-11-14T22:14:50Z reopened as incomplete by 12 more records of web1 at agent: web1: "
    )


@pytest.mark.parametrize(
    "query", ["topic=none", "bucket=soon", "since=x", "until=9999999999999999999"]
)
def test_bad_questions_are_refused(site: Site, query: str) -> None:
    """An unknown topic or a bad time is refused with status 400."""
    site.late_line()
    assert site.ask(f"/history.json?{query}")[0] == 400

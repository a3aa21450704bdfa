"""Tests the history of verdicts: its rows (one for each change of a bucket's verdict), its
database, how pages show it, and the collector's answers from it. The tests use no sockets."""

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
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import BucketVerdict, Status
from skidway.audit.reports import history_report
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import Delta, Range, Seal, Sender, Tier, encode
from skidway.audit.topic.seal_columns import SealedTopic
from support.audit_senders import AGENT, BROKER, LOGS
from support.clock import ManualClock
from support.dashboard import ask

SIZE = 60_000
STEP_MS = 30_000
"""The time between two judgements."""
POLICY = Policy(tiers=(Tier.AGENT, Tier.BROKER), lateness_ms=0)


class Site:
    """A ledger, its judge and its history. Each `step` makes two judgements, 30 s apart."""

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
        for _ in range(2):  # the history gets rows only after every block (hour) was judged
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
    """If late lines reopen a complete bucket, the bucket's history says when the bucket was
    complete, which host's lines reopened it, how many records these were, and when the bucket was
    complete again."""
    site.late_line()
    first, second, third = site.changes()
    assert [x["revision"] for x in (first, second, third)] == [1, 2, 3]
    assert (first["word"], third["word"]) == ("complete", "complete")
    assert second["word"] != "complete"
    assert second["cause"] == "12 more records of web1 at agent"
    assert first["time_ms"] < second["time_ms"] < third["time_ms"]


def arrived(site: Site) -> dict[Tier, tuple[int, int]]:
    judged = verdicts(site.ledger.evidence(), POLICY, site.clock.time_ms())
    [verdict] = [x for x in judged if x.bucket == site.bucket]
    found = site.history.arrivals(verdict)
    return {tier: (x.records, x.time_ms) for (tier, _), x in found.items()}


def test_a_tier_has_its_records_since_its_count_came(site: Site) -> None:
    """For each tier of a bucket, the history stores the time at which the tier's present count was
    first judged. As long as the count stays the same, the time stays the same, even after a
    restart. If a late line changes the count, the tier gets a new time."""
    site.bucket = site.clock.time_ms() // SIZE * SIZE
    site.count(AGENT, 5)
    site.step()
    at_agent = site.clock.time_ms()
    site.clock.advance(60)
    site.count(BROKER, 5)
    site.seal()
    site.step()
    at_broker = site.clock.time_ms() - STEP_MS
    assert arrived(site) == {Tier.AGENT: (5, at_agent), Tier.BROKER: (5, at_broker)}
    site.clock.advance(120)
    site.start()
    site.step()
    assert arrived(site) == {Tier.AGENT: (5, at_agent), Tier.BROKER: (5, at_broker)}
    site.count(AGENT, 12)
    site.step()
    assert arrived(site) == {
        Tier.AGENT: (17, site.clock.time_ms() - STEP_MS),
        Tier.BROKER: (5, at_broker),
    }


def test_nobody_knows_when_old_records_arrived(site: Site) -> None:
    """If a bucket ended before the collector started, the history stores no times at which the
    tiers received the bucket's records."""
    site.late_line()
    assert arrived(site) == {}


def test_times_of_tiers_are_deleted_with_the_history(site: Site) -> None:
    """The history stores the time at which each tier received the records of a bucket. If this time
    is longer ago than `history.days`, it is deleted."""
    site.bucket = site.clock.time_ms() // SIZE * SIZE
    site.count(AGENT, 5)
    site.step()
    assert arrived(site)
    site.clock.advance(40 * 86_400)
    site.history.note([], site.clock.time_ms())
    assert arrived(site) == {}


def test_a_restart_notes_no_change_and_then_names_the_tier(site: Site) -> None:
    """A restart of the collector adds no rows to the history. If a count of a bucket changes after
    a restart, the cause in the new row names the tier and says how many more records the tier has.
    The cause names no host, because the counts of single hosts are not stored."""
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
    """While there are blocks (hours of buckets) that the collector has never judged, the history
    gets no rows."""
    site.count(AGENT, 5)
    site.count(BROKER, 5)
    site.seal()
    site.judge.step()
    assert site.changes() == []
    site.judge.step()
    assert len(site.changes()) == 1


def test_a_fresh_open_bucket_costs_no_row(site: Site) -> None:
    """A bucket whose only verdict so far is `open` has no row in the history."""
    site.bucket += 100 * SIZE
    site.count(AGENT, 5)
    site.step()
    assert site.changes() == []


def test_the_history_is_bounded(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The history keeps a limited number of rows of each bucket: the first row and the newest ones.
    The history keeps no row of a bucket that is older than `history.days`."""
    monkeypatch.setattr(history_store, "REVISIONS_MAX", 3)
    for number in range(8):
        status = Status.LOST if number % 2 else Status.COMPLETE
        found = BucketVerdict(LOGS, site.bucket, SIZE, status, ("x" * 999,) * 9, due=True)
        site.history.note([found], site.clock.time_ms())
    (kept,) = site.history.read((0, 1 << 60), lambda _: True, 10)
    assert [x.revision for x in kept.rows] == [1, 7, 8]
    assert kept.left_out == 5
    assert [len(x) for x in kept.rows[0].reasons] == [200] * 3
    site.history.note([], site.bucket + 36 * 86_400_000)
    assert site.history.read((0, 1 << 60), lambda _: True, 10) == []


def test_the_json_of_a_bucket_says_how_long_after_its_end_a_tier_had_all(site: Site) -> None:
    """The JSON of a bucket gives for each place the time, in ms, from the bucket's end until the
    place had all records. The time is negative if the place had them before the bucket's end. It is
    null if the place lacks records, or if the history does not know the time. The JSON of the
    history says since when each place has its present number of records."""

    def latencies() -> dict[str, int | None]:
        _, body = site.ask(f"/buckets.json?topic=dc1.logs&bucket={site.bucket}")
        return {x["tier"]: x["latency_ms"] for x in json.loads(body)["buckets"][0]["places"]}

    site.late_line()  # the history gets a row of this topic
    site.last = {AGENT: 0, BROKER: 0}
    site.bucket = site.clock.time_ms() // SIZE * SIZE + SIZE
    end = site.bucket + SIZE
    site.count(AGENT, 5)
    site.step()
    agent_ms = site.clock.time_ms() - STEP_MS - end
    assert latencies() == {"agent": agent_ms, "broker": None}
    site.clock.advance(240)
    site.count(BROKER, 5)
    site.seal()
    site.step()
    broker_ms = site.clock.time_ms() - STEP_MS - end
    assert agent_ms < 0 < broker_ms
    assert latencies() == {"agent": agent_ms, "broker": broker_ms}
    [noted] = json.loads(site.ask(f"/history.json?topic=dc1.logs&bucket={site.bucket}")[1])[
        "buckets"
    ]
    assert {
        x["tier"]: (x["place"], x["records"], x["time_ms"] - end) for x in noted["arrivals"]
    } == {
        "agent": ("", 5, agent_ms),
        "broker": ("dc1", 5, broker_ms),
    }
    site.count(AGENT, 12)
    site.step()
    assert latencies() == {"agent": site.clock.time_ms() - STEP_MS - end, "broker": None}


def test_counts_in_memory_are_bounded() -> None:
    """To find out which counts have changed, the history keeps counts of buckets in memory. If
    there are too many counts, the history drops those that it stored first."""
    kept = Kept(2)
    for bucket in range(3):
        kept.put((LOGS, bucket, SIZE), {("agent", "web1"): 5})
    assert [kept.get((LOGS, x, SIZE)) is None for x in range(3)] == [True, False, False]


def test_the_page_and_the_lines_tell_the_history(site: Site) -> None:
    """The page of a bucket shows the bucket's history, and says when the history began. The history
    is also shown as lines of text."""
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


def test_a_bucket_is_named_by_any_time_in_it(site: Site) -> None:
    """A question for the history of a bucket may name any time in the bucket, not only its start.
    The answer has no bucket that ends before this time or begins after it."""
    site.late_line()
    found = []
    for at in (-1, 0, SIZE // 2, SIZE - 1, SIZE):
        _, body = site.ask(f"/history.json?topic=dc1.logs&bucket={site.bucket + at}")
        found.append(len(json.loads(body)["buckets"]))
    assert found == [0, 1, 1, 1, 0]


def test_completions_are_the_first_ones_and_the_newest_buckets(site: Site) -> None:
    """The history lists the newest buckets. For each bucket it gives the time at which the bucket
    was first complete, even if a late line has reopened the bucket since. A bucket that was never
    complete has no such time."""
    first = site.bucket
    site.late_line()
    [completion] = site.history.completions(0, 10)
    complete_ms = next(x["time_ms"] for x in site.changes() if x["complete"])
    assert completion[1:] == (first, SIZE, complete_ms)
    site.bucket += SIZE
    site.count(AGENT, 3)
    site.clock.advance(600)
    site.step()
    found = site.history.completions(0, 10)
    assert [(x.bucket, x.complete_ms) for x in found] == [
        (first + SIZE, None),
        (first, complete_ms),
    ]
    assert [x.bucket for x in site.history.completions(0, 1)] == [first + SIZE]
    assert site.history.completions(first + 2 * SIZE, 10) == []


def test_histories_are_found_by_their_reasons(site: Site) -> None:
    """The search finds a text, in upper or lower case, in the reasons and causes of buckets. It
    leaves out buckets that began before a given time."""
    site.late_line()
    for text in ("12 MORE", "is short by"):
        assert [x.bucket for x in site.history.search(text, 0, 10)] == [site.bucket]
    assert site.history.search("%", 0, 10) == [], "the text is no pattern"
    assert site.history.search("12 more", site.bucket + 1, 10) == []
    assert site.history.search("12 more", 0, 0) == []


@pytest.mark.parametrize("count", [2**62, -(2**62) - 1])
def test_a_sum_that_is_too_great_for_the_store_is_noted(site: Site, count: int) -> None:
    """The counts of several hosts in one bucket may add up to a number that is too large for
    SQLite. The history then notes the greatest (or least) number that can be stored, so that such
    counts do not end the collector at each start."""
    site.bucket = site.clock.time_ms() // SIZE * SIZE
    for agent in (7, 8):
        sender = Sender(Tier.AGENT, "dc1", str(agent), f"h{agent}", 1)
        counted = Count(LOGS, agent, site.bucket, SIZE, count, 1, 1)
        site.ledger.take([encode(Delta(sender, 1, 5, (), (counted,)))])
    for _ in range(2):
        site.step()
        site.start()
    [verdict] = verdicts(site.ledger.evidence(), POLICY, site.clock.time_ms())
    arrivals = site.history.arrivals(verdict)
    assert verdict.count(Tier.AGENT) == 2 * count
    assert {x.records for x in arrivals.values()} == {2**63 - 1 if count > 0 else -(2**63)}

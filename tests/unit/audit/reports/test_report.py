"""Tests the reports, which show verdicts as text and as JSON."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skidway.audit.counts.counts import Sums
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.standing import standing
from skidway.audit.judgement.verdict import AgentVerdict, BucketVerdict, Finding, Place, Status
from skidway.audit.reports import report
from skidway.audit.topic.messages import Tier
from skidway.kafka.source import Source
from support.audit_senders import LOGS

TIERS = [Tier.AGENT, Tier.BROKER, Tier.MIRROR]


def _verdict(
    status: Status, *, due: bool = True, bucket: int = 0, repeats: int = 0
) -> BucketVerdict:
    sums = {
        Place(Tier.AGENT, ""): Sums(5, 50, 1),
        Place(Tier.BROKER, "dc1"): Sums(4, 40, 1, repeats=repeats),
        Place(Tier.MIRROR, ""): None,
    }
    reasons = () if status is Status.COMPLETE else ("one", "two", "three", "four")
    agent = AgentVerdict(7, "web1", status, reasons, sums)
    return BucketVerdict(LOGS, bucket, 60_000, status, reasons, due, (agent,))


GOOD, OPEN = _verdict(Status.COMPLETE), _verdict(Status.OPEN, due=False)
SHORT, LATE = _verdict(Status.INCOMPLETE), _verdict(Status.OPEN)


@pytest.mark.parametrize(
    ("verdicts", "status", "strict", "sentence"),
    [
        ([], 1, 1, "Nothing was counted of what was asked for: there is no bucket to judge."),
        ([GOOD], 0, 0, "The bucket of 1 topic is complete."),
        ([GOOD, GOOD], 0, 0, "All 2 buckets of 1 topic are complete."),
        (
            [GOOD, OPEN], 0, 1,
            "1 of 2 buckets of 1 topic are complete; 1 is too young to say.",
        ),
        (
            [GOOD, SHORT, LATE], 1, 1,
            "1 of 3 buckets of 1 topic are complete;"
            " 2 should be and are not (1 incomplete, 1 open).",
        ),
    ],
)  # fmt: skip
def test_the_sentence_and_the_exit_status(
    verdicts: list[BucketVerdict], status: int, strict: int, sentence: str
) -> None:
    """Some buckets may not be due yet (too recent to be judged), while all others are complete. The
    report then ends with status 1 if the caller requires that all buckets are complete, and with
    status 0 if the caller does not. A report without any bucket always ends with status 1."""
    found = standing(verdicts)
    assert report.sentence(found) == sentence
    assert report.exit_status(found, everything=False) == status
    assert report.exit_status(found, everything=True) == strict


REJECTS = Source("dc1", "cid", "logs.rejected", "rid")


def _complete(source: Source, counted: Sums, *warnings: str) -> BucketVerdict:
    agent = AgentVerdict(7, "web1", Status.COMPLETE, (), {Place(Tier.HDFS, "/data"): counted})
    warned = tuple(Finding(Status.COMPLETE, each, Cause.REJECTED) for each in warnings)
    return BucketVerdict(source, 0, 60_000, Status.COMPLETE, (), True, (agent,), warnings=warned)


def test_what_was_rejected_or_repeated_stands_in_the_sentence() -> None:
    """A bucket with rejected or repeated records is complete if every record arrived. The report's
    sentence says how many records were rejected or repeated."""
    found = standing(
        [
            _complete(LOGS, Sums(55, 500, 1, rejects=55, repeats=1), "too many rejects"),
            _complete(REJECTS, Sums(3, 30, 2)),
        ]
    )
    assert report.sentence(found) == (
        "All 2 buckets of 2 topics are complete; agents rejected 3 lines; the loader rejected 55"
        " records; 1 repeat was left out; 1 bucket with more rejects than allowed."
    )
    assert report.exit_status(found, everything=False) == 1
    [row, _] = report.table([x for topic in found.topics for x in topic.newest.values()], TIERS)
    assert (row["verdict"], row["why"]) == ("complete", "too many rejects")


def test_the_table_shows_every_tier_and_tells_missing_from_zero() -> None:
    """The table of a report has a column for every tier. A tier that never reported has an empty
    cell and not a zero."""
    [row] = report.table([SHORT], TIERS)
    assert (row["agent"], row["broker"], row["mirror"]) == (5, 4, None)
    assert row["why"] == "one; two; three; and 1 more"
    assert set(row) == set(report.columns(TIERS))


def test_alike_buckets_that_follow_one_another_share_a_row() -> None:
    """Consecutive buckets with the same verdict share a row of the table, so that the table of a
    log with a thousand buckets stays short."""
    verdicts = [
        *(_verdict(Status.COMPLETE, bucket=number * 60_000) for number in range(1000)),
        _verdict(Status.INCOMPLETE, bucket=60_000_000),
        _verdict(Status.COMPLETE, bucket=60_060_000),
    ]
    many, short, last = report.table(verdicts, TIERS)
    assert many["buckets"] == "1970-01-01T00:00:00Z .. 1970-01-01T16:39:00Z (1,000)"
    assert (many["agent"], many["broker"], many["mirror"]) == (5000, 4000, None)
    assert (short["verdict"], short["buckets"]) == ("incomplete", "1970-01-01T16:40:00Z")
    assert last["buckets"] == "1970-01-01T16:41:00Z"
    assert len(report.table(verdicts, TIERS, each=True)) == 1002


def test_the_document_has_everything() -> None:
    """The JSON document of a report has all reasons and sums, both of each bucket and of each
    single agent."""
    document = report.document(standing([SHORT]), [_verdict(Status.INCOMPLETE, repeats=2)])
    [bucket] = document["buckets"]
    assert bucket["reasons"] == ["one", "two", "three", "four"]
    assert document["by_verdict"]["incomplete"] == 1
    [agent] = bucket["agents"]
    broker = next(x for x in agent["places"] if x["tier"] == "broker")
    assert (broker["count"], broker["repeats"], broker["reported"]) == (4, 2, True)
    mirror = next(x for x in agent["places"] if x["tier"] == "mirror")
    assert mirror == {"tier": "mirror", "place": "", "retired": False, "reported": False}


def test_times_that_no_calendar_holds_are_shown_as_they_are() -> None:
    """If a time is too large or too small for a date of the calendar, the report shows it as a
    number of milliseconds. Producers that are not Skidway's agents may send any number as a time.
    """
    assert report.time_text(10**17) == f"{10**17} ms"
    assert report.time_text(-1) == "1969-12-31T23:59:59Z"


def test_topics_of_one_name_are_told_by_their_ids() -> None:
    """If several topics have the same name, the report shows their ids. A topic with a unique name
    is shown without its id."""
    old, new = (replace(SHORT, source=replace(LOGS, topic_id=x * 32)) for x in "ab")
    none = replace(SHORT, source=replace(LOGS, topic_id=""))
    rows = report.table([old, new, none], TIERS)
    assert [row["topic"] for row in rows] == [
        "dc1.logs (id aaaaaaaa)", "dc1.logs (id bbbbbbbb)", "dc1.logs (id none)"
    ]  # fmt: skip
    assert report.table([old], TIERS)[0]["topic"] == "dc1.logs"
    ids = [each["topic_id"] for each in report.document(standing([]), [old, new])["buckets"]]
    assert ids == ["a" * 32, "b" * 32]

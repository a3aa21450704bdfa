"""Tests the standing: the audit's summary of the verdicts on all buckets, old and new ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from skidway.audit.collector.judge import Judge
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.standing import NEWEST_BUCKETS, Standing, judged
from skidway.audit.judgement.verdict import Status
from skidway.audit.reports import report
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import (
    Certainty,
    Delta,
    Gap,
    Loss,
    Range,
    Seal,
    Sender,
    Tier,
    encode,
)
from skidway.audit.topic.notes import Note
from skidway.audit.topic.recount_result import RecountResult
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.audit.topic.transactions import KIND, Transactions, body_of
from skidway.kafka.source import Source
from support.audit_senders import AGENT, BROKER, LOGS, OTHER, REJECTED
from support.clock import ManualClock
from support.fold import Fold
from support.promises import promise

SIZE = 60_000
NOW = 10**9
LOADER = Sender(Tier.HDFS, "dc1", "/data/dc1.logs", "l1", 1)
POLICY = Policy(tiers=(Tier.AGENT, Tier.BROKER), lateness_ms=0)


def _count(source: Source, index: int, count: int, rejects: int = 0) -> Count:
    return Count(source, 7, index * SIZE, SIZE, count, 10 * count, 9, rejects)


def _judged(
    agent: list[Count],
    broker: list[Count],
    hdfs: list[Count] | None = None,
    policy: Policy = POLICY,
) -> Standing:
    sources = {count.source for count in agent}
    said = [
        Delta(AGENT, 1, 5, counts=tuple(agent)),
        Delta(BROKER, 1, 5, tuple(Range(x, 0, 0, 5) for x in sources), tuple(broker)),
        Seal(AGENT, 2, NOW, tuple(SealedTopic(x, NOW, 1) for x in {LOGS, OTHER, REJECTED})),
    ]
    if hdfs is not None:
        ranges = tuple(Range(x, 0, 0, 5) for x in sources)
        said.append(Delta(LOADER, 1, 5, ranges, tuple(hdfs)))
    return judged(Fold(said).evidence(), policy, NOW)


def test_what_is_old_and_incomplete_is_not_forgotten() -> None:
    """An old bucket that is incomplete is counted as overdue (it should be complete by now) in the
    standing, however many newer buckets are complete."""
    counts = [_count(LOGS, index, 5) for index in range(100)]
    found = _judged(counts, [_count(LOGS, 0, 4), *counts[1:]])
    assert (found.by_status[Status.COMPLETE], found.overdue) == (99, {Status.INCOMPLETE: 1})
    [topic] = [x for x in found.topics if x.source == LOGS]
    assert (topic.oldest_overdue, topic.complete_until) == (0, None)
    assert len(found.starts) == len(topic.newest) == NEWEST_BUCKETS


def test_no_topic_vanishes() -> None:
    """The standing lists a topic even if all its buckets are older than the buckets that reports
    show one by one. It lists a topic of rejects only if lines were rejected."""
    newer = [_count(LOGS, index, 5) for index in range(50, 90)]
    old = [_count(OTHER, 0, 5)]
    found = _judged(newer + old, newer)
    by_topic = {topic.source.topic: topic for topic in found.topics}
    assert by_topic["other"].overdue == {Status.INCOMPLETE: 1}
    assert by_topic["other"].newest == {}
    assert {"logs", "other"} == set(by_topic), "and no line for rejects that nobody had"
    assert {x.source.topic for x in _judged(newer, newer).topics} == {"logs", "other"}


def test_complete_until_is_the_end_of_what_is_complete_from_the_oldest_on() -> None:
    """A topic is complete up to its first bucket that is not complete, even if later buckets are
    complete."""
    counts = [_count(LOGS, index, 5) for index in range(5)]
    found = _judged(counts, [*counts[:3], _count(LOGS, 3, 4), counts[4]])
    [topic] = [x for x in found.topics if x.source == LOGS]
    assert topic.complete_until == 3 * SIZE


LOADED = Policy(tiers=(Tier.AGENT, Tier.BROKER, Tier.HDFS), lateness_ms=0)


def test_records_that_are_all_rejects_are_complete_with_a_warning() -> None:
    """A bucket is complete even if all its records were rejected, because no record was lost. It
    has a warning, because more records were rejected than the settings allow."""
    sent = [_count(LOGS, 0, 55)]
    found = _judged(sent, sent, [_count(LOGS, 0, 55, rejects=55)], LOADED)
    [topic] = [x for x in found.topics if x.source == LOGS]
    assert (found.warned, topic.rejects) == (1, 55)
    assert topic.newest[0].status is Status.COMPLETE
    assert topic.newest[0].words == (
        "55 of 55 records were rejected by hdfs /data/dc1.logs (1% is allowed)",
    )


def test_the_share_of_rejects_that_needs_no_warning_is_a_setting() -> None:
    """A setting says which share of a bucket's records may be rejected without a warning. The
    default is one percent."""
    sent = [_count(LOGS, 0, 100)]
    assert _judged(sent, sent, [_count(LOGS, 0, 100, rejects=1)], LOADED).warned == 0
    assert _judged(sent, sent, [_count(LOGS, 0, 100, rejects=2)], LOADED).warned == 1
    patient = Policy(tiers=LOADED.tiers, lateness_ms=0, rejects_share=1)
    assert _judged(sent, sent, [_count(LOGS, 0, 100, rejects=100)], patient).warned == 0


def test_lines_that_agents_reject_are_held_against_those_that_they_deliver() -> None:
    """Lines that agents reject go to a separate topic. The share of the rejected lines is computed
    from all lines of the agents, both rejected and delivered."""
    few = [_count(LOGS, 0, 990), _count(REJECTED, 0, 10)]
    assert _judged(few, few).warned == 0
    many = [_count(LOGS, 0, 45), _count(REJECTED, 0, 55)]
    found = _judged(many, many)
    [topic] = [x for x in found.topics if x.source == REJECTED]
    assert found.warned == 1
    assert topic.newest[0].words == (
        "55 of 100 records were rejected by the agents (1% is allowed)",
    )


def _recounted(
    output: str, faults: int = 0, differences: int = 0, *, time_ms: int = 5
) -> RecountResult:
    reasons = ("a.parquet is gone",) * min(faults + differences, 1)
    return RecountResult(time_ms, "l1", output, LOGS, None, 3, 4, 50, faults, differences, reasons)


@pytest.mark.parametrize(("faults", "differences"), [(2, 0), (0, 2)])
@pytest.mark.parametrize("said", [Ledger, Fold])
def test_the_newest_recount_of_each_output_counts(
    said: Callable[[], Ledger | Fold], faults: int, differences: int
) -> None:
    """If a recount of an output found faults, or counts that differ from the rows, `report` ends
    with status 1 until a later recount of this output finds none. An older result, which somebody
    sends again, changes nothing."""
    found = said()

    def tell(*results: RecountResult) -> Standing:
        if isinstance(found, Ledger):
            found.take(map(encode, results))
        else:
            for result in results:
                found.apply(result)
        return judged(found.evidence(), POLICY, NOW)

    counts = (_count(LOGS, 0, 5),)
    ranges = (Range(LOGS, 0, 0, 5),)
    said_before = [
        Delta(AGENT, 1, 5, counts=counts),
        Delta(BROKER, 1, 5, ranges, counts),
        Seal(AGENT, 2, NOW, (SealedTopic(LOGS, NOW, 1),)),
    ]
    if isinstance(found, Ledger):
        found.take(map(encode, said_before))
    else:
        for message in said_before:
            found.apply(message)
    assert report.exit_status(tell(_recounted("/a")), everything=True) == 0
    differing = tell(_recounted("/b", faults, differences))
    assert [(x.output, x.is_good) for x in differing.recounts] == [("/a", True), ("/b", False)]
    assert report.exit_status(differing, everything=True) == 1
    assert report.sentence(differing) == (
        "The bucket of 1 topic is complete; by the newest recount the rows of dc1.logs are not what"
        " was counted."
    )
    [topic] = report.document(differing, [])["topics"]
    assert [x["verdict"] for x in topic["recounts"]] == ["agrees", "differs"]
    assert report.exit_status(tell(_recounted("/b", time_ms=4)), everything=True) == 1
    assert report.exit_status(tell(_recounted("/b", time_ms=6)), everything=True) == 0


def test_offsets_that_no_counter_could_read_stand_in_every_summary() -> None:
    """Every summary says how many offsets of a topic no counter could read, even if the topic has
    no counts. If records without an origin are lost, nothing else shows the loss. If two counters
    report the same offsets, these offsets are counted once."""
    holes = [Gap(OTHER, 0, 0, 90, "expired"), Gap(OTHER, 1, 5, 15, "expired")]
    mirror = Sender(Tier.MIRROR, "offline", "mirror", "c2", 1)
    said = [
        Delta(BROKER, 1, 5, gaps=tuple(holes)),
        Delta(mirror, 1, 5, gaps=(Gap(OTHER, 0, 50, 100, "expired"),)),
    ]
    found = judged(Fold(said).evidence(), POLICY, NOW)
    assert "counters could not read 110 offsets of dc1.other" in report.sentence(found)
    [topic] = report.document(found, [])["topics"]
    assert (topic["topic"], topic["uncounted_offsets"]) == ("other", 110)


def test_aborted_records_are_named_by_number() -> None:
    """The report says how many records of a topic were left out because their transactions were
    aborted, even if the topic has no counts."""
    body = body_of({OTHER: Transactions(3)})
    told = Note(KIND, BROKER.producer, BROKER.host, BROKER.cluster, 1, 1, 5, body)
    said = [Delta(BROKER, 1, 5, ranges=(Range(OTHER, 0, 0, 4),)), told]
    found = judged(Fold(said).evidence(), POLICY, NOW)
    assert "3 records of aborted transactions of dc1.other left out" in report.sentence(found)
    [topic] = report.document(found, [])["topics"]
    assert (topic["topic"], topic["aborted_records"]) == ("other", 3)


@promise("6 losses")
def test_a_loss_is_listed_where_no_line_arrived() -> None:
    """A loss is listed even if its bucket has no counts. Otherwise the report would call all
    buckets complete."""
    ledger = Ledger()
    loss = Loss(LOGS, 7, 3, 0, None, Certainty.LOST, "it vanished", 4 * SIZE, 5 * SIZE)
    said = [
        Delta(AGENT, 1, 5, counts=(_count(LOGS, 0, 5),)),
        Delta(BROKER, 1, 5, (Range(LOGS, 0, 0, 5),), (_count(LOGS, 0, 5),)),
        Seal(AGENT, 2, NOW, (SealedTopic(LOGS, 4 * SIZE, 1),)),
        Delta(AGENT, 3, 5 * SIZE, losses=(loss,)),
        Seal(AGENT, 4, NOW, (SealedTopic(LOGS, NOW, 3),)),
    ]
    ledger.take(map(encode, said))
    found = judged(ledger.evidence(), POLICY, NOW)
    assert found.by_status == {Status.COMPLETE: 1, Status.LOST: 1}
    [topic] = found.counted
    assert topic.oldest_overdue == 5 * SIZE
    assert topic.newest[5 * SIZE].reasons[0].endswith("is lost: it vanished")
    assert report.exit_status(found, everything=False) == 1
    assert Judge(ledger, lambda: POLICY, ManualClock()).step().by_status == found.by_status
    assert ledger.newest_buckets(5) == [5 * SIZE, 0]
    assert judged(ledger.evidence((0, SIZE)), POLICY, NOW).by_status == {Status.COMPLETE: 1}

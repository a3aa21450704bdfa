"""Tests two kinds of messages: samples (content sums of lines that an agent has chosen), and
results of comparisons of samples with rows. The tests check how these messages are decoded, and
which evidence the audit keeps from them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skidway.audit.collector.judge import Judge
from skidway.audit.evidence.ledger import Ledger, ledger_of
from skidway.audit.judgement.verdict import Status
from skidway.audit.sampling.told import Told
from skidway.audit.topic import messages, usual_messages
from skidway.audit.topic.messages import MessageRefused, encode, sample_in
from skidway.audit.topic.sample import Sample, SamplePart
from skidway.audit.topic.sample_result import ContentDifference, SampleResult
from skidway.schemas import single_object
from support.audit_senders import LOGS, OTHER, REJECTED
from support.clock import ManualClock
from support.fold import Fold
from support.one_bucket import DUE, POLICY, START, good
from support.promises import promise

DAY = 86_400_000
PARTS = (
    SamplePart(LOGS, 1, 5, 9, (0, 10), (b"00000000", b"11111111")),
    SamplePart(REJECTED, 2, 9, 9, (20,), (b"22222222",)),
)
SAMPLE = Sample(3 * DAY, 7, "web1", DAY, DAY, 1, 2, 3, "/log/a", 0, 30, b"recipe", "", PARTS)
DIFFERENCE = ContentDifference(
    START, 7, "web1", 3, "/log/a", 0, 10, "HDFS", "a.parquet row 1", 0, 5, "other content"
)
RESULT = SampleResult(DUE, "l1", "/out", LOGS, DAY, 3, 2, 1, (DIFFERENCE,))


@pytest.mark.parametrize(
    "message", [SAMPLE, replace(SAMPLE, gone="deleted", parts=()), RESULT], ids=["", "gone", "said"]
)
def test_messages_are_read_as_they_were_written(message: messages.Message) -> None:
    """Decoding an encoded message with a sample, or with the result of a comparison of samples with
    rows, gives the same message."""
    assert messages.decode(encode(message)) == message
    assert usual_messages.decode(encode(message)) == message


def test_a_sample_without_its_sums_is_refused() -> None:
    """If a sample message has fewer content sums than records, it is refused as damaged."""
    _, record = single_object.decode(encode(SAMPLE))
    record["parts"][0]["sums"] = record["parts"][0]["sums"][:-1]
    with pytest.raises(MessageRefused):
        sample_in(single_object.encode("Sample", record))
    assert sample_in(encode(RESULT)) is None


def test_samples_are_taken_once_and_by_their_day() -> None:
    """Each sample of the requested day counts once, even if its message arrives again, or is also
    in a mirror. Samples of other days are ignored. The result also says how many messages were
    damaged, and how many of the byte ranges that agents have chosen are missing, because their
    messages have not come."""
    told = Told()
    damaged = encode(SAMPLE)[:20]
    later = replace(SAMPLE, period=2 * DAY)
    values = [encode(x) for x in (SAMPLE, SAMPLE, later, RESULT)]
    told.take([*values, damaged], DAY, 2 * DAY)
    assert list(told.samples.values()) == [SAMPLE]
    assert (told.missing, told.refused) == (1, 1)
    told.take([encode(replace(SAMPLE, number=2, first=40, end=50))], DAY, 2 * DAY)
    assert told.missing == 0


@promise("6 content")
def test_the_newest_comparison_of_a_day_counts() -> None:
    """For each topic, output and day of samples, only the newest comparison of samples with rows
    counts. If the newest comparison found no difference, the differences of older comparisons no
    longer count. A comparison replaces no comparison of another topic, output or day."""
    other_day, other_output = replace(RESULT, day=2 * DAY), replace(RESULT, output="/other")
    other_topic = replace(RESULT, source=OTHER)
    healed = replace(RESULT, differing=0, differences=(), equal=3)
    said = [SAMPLE, RESULT, other_day, other_output, other_topic, healed]
    for count in range(len(said) + 1):
        ledger = ledger_of([encode(x) for x in said[:count]])
        evidence, folded = ledger.evidence(), Fold(said[:count]).evidence()
        found, other = evidence.topic(LOGS), evidence.topic(OTHER)
        assert found.samples == folded.topic(LOGS).samples
        assert other.samples == folded.topic(OTHER).samples
        assert not found.recounts + other.recounts
        results = sorted(ledger.lines.sample_results(), key=lambda x: (x.source.topic, x.name))
        assert results == found.samples + other.samples
    assert (found.samples, other.samples) == ([other_output, other_day], [other_topic])


def test_a_sample_makes_nobody_heard() -> None:
    """Neither a sample nor the result of a comparison of samples with rows shows that an agent is
    alive. A sample may arrive long after the agent made it, and a command, not an agent, sends the
    result of a comparison."""
    evidence = ledger_of([encode(SAMPLE), encode(RESULT)]).evidence()
    assert not evidence.heard


@promise("6 content")
def test_the_collector_judges_a_bucket_again_when_it_hears_of_a_difference() -> None:
    """When a comparison of samples with rows finds a difference in a complete bucket, the bucket
    becomes incomplete. When the next comparison finds no difference, the bucket is complete
    again."""
    ledger = Ledger()
    ledger.take([encode(x) for x in good()])
    judge = Judge(ledger, lambda: POLICY, ManualClock())

    def standing() -> dict[Status, int]:
        judge.step()
        (topic,) = (x for x in judge.step().topics if x.source == LOGS)
        return {status: count for status, count in topic.by_status.items() if count}

    assert standing() == {Status.COMPLETE: 1}
    ledger.take([encode(RESULT)])
    assert standing() == {Status.INCOMPLETE: 1}
    ledger.take([encode(replace(RESULT, differing=0, differences=()))])
    assert standing() == {Status.COMPLETE: 1}

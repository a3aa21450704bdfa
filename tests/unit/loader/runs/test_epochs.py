"""Each audit message that the loader sends for an output contains a number, the epoch. If an output
is removed and begins again, its new epoch is higher than every epoch that was published for it
before. An epoch is never taken from a clock."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from skidway.audit.counts.counts import Counts
from skidway.audit.counts.deltas import number_deltas
from skidway.audit.evidence.evidence import FOREVER
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import BucketVerdict, Status
from skidway.audit.topic.messages import TOPIC as AUDIT
from skidway.audit.topic.messages import Delta, Seal, SealedTopic, Sender, Tier, encode
from skidway.errors import StateRefused
from skidway.kafka import columns
from skidway.kafka.columns import Origins
from skidway.kafka.types import TopicPartition
from skidway.loader.audit_topic.feed import Feed, read_on
from support.fold import Fold
from support.loading import SOURCE, START_MS
from support.memory_kafka import MemoryClient, MemoryFetcher
from support.memory_loading import AGENT, DATA, LENGTH, PRODUCER, MemoryLoading
from support.promises import promise

HOUR_MS = 3_600_000
FROM_A_CLOCK = 1_767_225_600_000
TIERS = Policy(tiers=(Tier.AGENT, Tier.HDFS))


@pytest.fixture
def loading() -> MemoryLoading:
    return MemoryLoading()


def epochs(loading: MemoryLoading) -> list[int]:
    return [each.sender.epoch for each in loading.deltas()]


def said_by(epoch: int, number: int = 1) -> Delta:
    """Returns a message of the given epoch, as an earlier loader published it for the output."""
    return Delta(Sender(Tier.HDFS, "dc1", PRODUCER, "h", epoch), number, 0)


def agent_said(counted: int) -> list[Delta | Seal]:
    """Returns two messages of the agent: a delta that counts `counted` lines, and a seal, which
    says that the agent has counted all lines up to a time."""
    counts, full = Counts(60_000), np.ones(counted, np.int64)
    numbers = np.arange(counted, dtype=np.int64)
    origins = Origins(full * AGENT, full, numbers * LENGTH, full * LENGTH)
    counts.add(SOURCE, np.full(counted, START_MS), origins)
    sender = Sender(Tier.AGENT, "dc1", str(AGENT), "host", 1)
    (delta,) = number_deltas(sender, START_MS, 0, counts, {}).deltas
    sealed = START_MS + HOUR_MS
    return [delta, Seal(sender, 2, sealed, (SealedTopic(SOURCE, sealed, 1),))]


def judged(loading: MemoryLoading, lines: int) -> BucketVerdict:
    """Returns the audit's verdict on the only bucket (span of event time), if the agent has counted
    `lines` lines. All lines have times in the same minute, so there is only one bucket."""
    evidence = Fold([*loading.said(), *agent_said(lines)]).evidence()
    (found,) = verdicts(evidence, TIERS, START_MS + 2 * HOUR_MS)
    return found


def test_a_new_output_begins_with_epoch_1(loading: MemoryLoading) -> None:
    """An output without any message on the audit topic begins with epoch 1, and later loads keep
    the epoch."""
    for _ in range(2):
        loading.write(10)
        loading.run()
    assert epochs(loading) == [1, 1]


def test_a_load_names_its_host_as_the_settings_do(loading: MemoryLoading) -> None:
    """The counts of a load name the loader's host by the setting `host.name`."""
    loading.write(10)
    loading.run(host_name="hd1.example")
    assert [x.sender.host for x in loading.deltas()] == ["hd1.example"]


@promise("6 epoch of an output")
def test_an_output_that_was_removed_is_never_complete_with_less(loading: MemoryLoading) -> None:
    """If an output is removed and loaded again, the audit counts only the rows of the new load. In
    this test the output had 900 rows. Before the new load, 300 records expire at the broker, and
    the loader's clock is set back by an hour. So the new output has 600 rows, and the audit calls
    the bucket incomplete."""
    loading.write(900)
    loading.run()
    assert judged(loading, 900).status is Status.COMPLETE
    loading.remove_output()
    loading.cluster.log(DATA).expire(300)
    loading.clock.set_time_ms(loading.clock.time_ms() - HOUR_MS)
    loading.run(gaps_accepted=["logs/0/0-300"])
    found = judged(loading, 900)
    assert (found.status, found.count(Tier.HDFS)) == (Status.INCOMPLETE, 600)
    loading.write(450)
    loading.run(gaps_accepted=["logs/0/0-300"])
    assert judged(loading, 1350).count(Tier.HDFS) == 1050
    assert epochs(loading) == [1, 2, 2]


@promise("6 epoch of an output")
@pytest.mark.parametrize("epoch", [4, FROM_A_CLOCK])
def test_one_above_the_highest_that_was_heard(loading: MemoryLoading, epoch: int) -> None:
    """Before the first load into a new output, the loader reads the audit messages about this
    output. The output's epoch is one above the highest epoch in these messages, even if that epoch
    is a very large number, such as a time in ms. Epochs of other outputs and tiers are ignored."""
    other = replace(said_by(9).sender, producer="/other/logs")
    counter = replace(said_by(9).sender, tier=Tier.BROKER)
    loading.say(said_by(epoch), said_by(2), Delta(other, 1, 0), Delta(counter, 1, 0))
    loading.write(10)
    loading.run()
    assert epochs(loading)[-1] == epoch + 1


def test_what_is_published_while_it_is_loaded_is_heard(loading: MemoryLoading) -> None:
    """The tasks of a load may run for hours. If messages with a higher epoch are published
    meanwhile, the loader takes them into account, because it reads the audit topic to its end
    before it chooses the epoch of a new output."""
    loading.write(10)
    loading.run_beside(lambda: loading.say(said_by(6)))
    assert epochs(loading) == [6, 7]


@promise("6 epoch of an output")
def test_what_expired_from_the_audit_topic_may_have_had_higher_epochs(
    loading: MemoryLoading,
) -> None:
    """If messages have expired from the audit topic, the epoch of a new output is higher than the
    number of messages that the topic ever had. At least one message was sent in each epoch, so no
    earlier epoch can be as high."""
    for epoch in range(1, 6):
        loading.say(said_by(epoch))
    log = loading.cluster.log(TopicPartition(AUDIT, 0))
    log.expire(log.end)
    loading.announce()
    ever = log.end
    loading.write(10)
    loading.run()
    assert epochs(loading) == [ever + 1]


def test_what_cannot_be_read_may_have_had_a_higher_epoch(loading: MemoryLoading) -> None:
    """Messages that cannot be decoded, such as those of a newer version, may have had higher
    epochs. So the loader chooses, for a new output, an epoch that is one higher than the number of
    messages that the topic ever had. No earlier epoch can be as high, because at least one message
    was sent in each epoch."""
    loading.say(said_by(3))
    log = loading.cluster.log(TopicPartition(AUDIT, 0))
    newer = pa.array([bytes.fromhex("c301") + b"12345678" + b"x"], pa.binary())
    for _ in range(5):
        log.append(columns.encode(newer, np.zeros(1, np.int64)))
    ever, feed = log.end, Feed()
    client: Any = MemoryClient(loading.cluster, loading.clock)
    with patch("skidway.loader.audit_topic.feed.Fetcher", lambda _: MemoryFetcher(loading.cluster)):
        read_on(client, [AUDIT], feed, loading.clock)
    assert (feed.newest(PRODUCER), feed.next_epoch(PRODUCER)) == ((3, 1), ever + 1)


def test_what_expires_while_it_is_read_counts_as_not_heard(loading: MemoryLoading) -> None:
    """Messages may expire between two steps of the loader: it asks for the audit topic's first and
    last offsets, and then reads the messages. Such messages count as unread, like messages that had
    expired before the loader asked."""
    for epoch in range(1, 6):
        loading.say(said_by(epoch))
    log, feed = loading.cluster.log(TopicPartition(AUDIT, 0)), Feed()

    class Late(MemoryFetcher):
        def seek(self, tp: TopicPartition, offset: int) -> None:
            log.expire(log.end)
            super().seek(tp, offset)

    client: Any = MemoryClient(loading.cluster, loading.clock)
    with patch("skidway.loader.audit_topic.feed.Fetcher", lambda _: Late(loading.cluster)):
        read_on(client, [AUDIT], feed, loading.clock)
    assert feed.next_epoch(PRODUCER) == 7


@promise("6 epoch of an output")
def test_of_two_that_begin_an_output_the_manifest_decides(loading: MemoryLoading) -> None:
    """If two loaders begin the same output at once, only one of them commits the first manifest.
    The other loader continues in the epoch of this manifest."""
    loading.say(said_by(4))
    loading.write(100)
    once = [loading.run]
    outcome = loading.run_beside(lambda: once.pop()() if once else None)
    loading.write(20)
    loading.run()
    assert outcome.problems == []
    said = dict.fromkeys((each.sender.epoch, each.number) for each in loading.deltas())
    assert list(said) == [(4, 1), (5, 1), (5, 2)]


@promise("6 epoch of an output")
def test_an_output_of_a_lower_epoch_is_an_older_copy(loading: MemoryLoading) -> None:
    """If the audit topic has messages about an output with a higher epoch than the epoch in the
    output's manifest, the output is an older copy (for example from a backup). The loader refuses
    to load into this copy, because the audit would ignore the copy's counts and use those of the
    higher epoch."""
    loading.write(10)
    loading.run()
    copy = loading.store
    loading.remove_output()
    loading.run()
    loading.store = copy
    loading.write(10)
    outcome = loading.run()
    (problem,) = outcome.problems
    assert isinstance(problem, StateRefused)
    assert "message 1 of epoch 2" in str(problem)
    assert outcome.loads == []


@promise("6 epoch of an output")
def test_a_lower_epoch_behind_a_higher_one_is_never_passed_over(loading: MemoryLoading) -> None:
    """If the audit topic was deleted and created again, a new output may begin with an epoch that
    is lower than the epoch of the former output. An audit collector that has stored the higher
    epoch then calls no bucket complete, because it cannot decide which counts are right."""
    loading.write(900)
    loading.say(said_by(8))
    loading.run()
    messages = loading.said()
    loading.cluster.create(AUDIT)
    loading.remove_output()
    loading.say(*(each for each in messages if not isinstance(each, Delta)))
    loading.cluster.log(DATA).expire(300)
    loading.run(gaps_accepted=["logs/0/0-300"])
    everything = [*messages, *loading.said(), *agent_said(900)]
    ledger = Ledger()
    ledger.take(map(encode, everything))
    for evidence in (Fold(everything).evidence(), ledger.evidence(FOREVER)):
        (found,) = verdicts(evidence, TIERS, START_MS + 2 * HOUR_MS)
        assert found.status is Status.UNKNOWN
        words = f"the hdfs counter {PRODUCER} began epoch 1 after epoch 9"
        assert any(words in reason for reason in found.reasons)
    ledger.close()

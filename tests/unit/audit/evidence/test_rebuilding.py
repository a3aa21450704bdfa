"""While the ledger (the collector's store of all messages) is being rebuilt from the audit topics,
it has only a part of the messages. Until it has all of them, the audit calls no bucket complete,
even if all counts of this part agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from skidway.audit.collector.judge import Judge
from skidway.audit.evidence.collection import GONE_AFTER_S, Collection
from skidway.audit.evidence.evidence import Evidence
from skidway.audit.evidence.ledger import DATABASE, Ledger, Position
from skidway.audit.judgement import reasons
from skidway.audit.judgement.completeness import completeness
from skidway.audit.judgement.host_proofs import proofs
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import Status
from skidway.audit.reports import report
from skidway.audit.reports.completeness_question import question
from skidway.audit.topic import messages
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import TOPIC, Delta, Message, Range, Seal, Tier
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.kafka import columns
from skidway.kafka.types import TopicPartition
from support.audit_senders import AGENT, BROKER, LOGS
from support.clock import ManualClock
from support.ledgers import take
from support.memory_kafka import MemoryClient, MemoryCluster, MemoryFetcher
from support.promises import promise

OWN, MIRRORED = TopicPartition(TOPIC, 0), TopicPartition(f"dc1.{TOPIC}", 0)
SIZE, NOW = 60_000, ManualClock().time_ms()
POLICY = Policy(tiers=(Tier.AGENT, Tier.BROKER), lateness_ms=0, silence_ms=10**9)
COUNT = Count(LOGS, 7, 0, SIZE, 5, 50, 500)
SAID: Sequence[Message] = (
    Delta(AGENT, 1, NOW, counts=(COUNT,)),
    Delta(BROKER, 1, NOW, (Range(LOGS, 0, 0, 5),), (COUNT,)),
    Seal(AGENT, 2, NOW, (SealedTopic(LOGS, NOW, 1),)),
)
LATER: Message = Delta(AGENT, 3, NOW, counts=(Count(LOGS, 7, 0, SIZE, 1, 10, 1, previous=1),))


def _publish(cluster: MemoryCluster, tp: TopicPartition, said: Sequence[Message]) -> None:
    values = pa.array([messages.encode(x) for x in said], pa.binary())
    cluster.log(tp).append(columns.encode(values, np.zeros(len(said), np.int64)))


def _collection(
    cluster: MemoryCluster, ledger: Ledger, clock: ManualClock | None = None
) -> Collection:
    clock = clock or ManualClock()
    return Collection(MemoryClient(cluster, clock), MemoryFetcher(cluster), ledger, clock)


def _half(ledger: Ledger) -> None:
    """Adds all messages except the last one to the ledger. The added messages alone would make the
    bucket complete."""
    ledger.rebuild({OWN: len(SAID) + 1})
    values = [messages.encode(x) for x in SAID]
    take(ledger, values, {OWN: Position(len(SAID))}, NOW)


def _whole(ledger: Ledger) -> None:
    take(ledger, [messages.encode(LATER)], {OWN: Position(len(SAID) + 1)}, NOW)


def _statuses(evidence: Evidence) -> list[Status]:
    return [x.status for x in verdicts(evidence, POLICY, NOW)]


@promise("6 rebuilt store")
def test_a_part_of_the_evidence_makes_nothing_complete() -> None:
    """As long as the collector has not read all messages, a bucket is unknown, even if the messages
    that it has read would make the bucket complete. In this test, the last message makes the bucket
    incomplete."""
    ledger = Ledger()
    _half(ledger)
    evidence = ledger.evidence()
    assert (evidence.rebuilding, _statuses(evidence)) == (1, [Status.UNKNOWN])
    evidence.rebuilding = 0
    assert _statuses(evidence) == [Status.COMPLETE]
    _whole(ledger)
    evidence = ledger.evidence()
    assert (evidence.rebuilding, _statuses(evidence)) == (0, [Status.INCOMPLETE])


@promise("6 rebuilt store")
def test_the_judge_and_the_report_say_that_the_store_is_rebuilt() -> None:
    """While the store is being rebuilt, the judge judges no bucket. The report says that the store
    is being rebuilt, in its sentence and in its JSON document, and ends with status 1. After the
    rebuild, the judge judges all buckets again."""
    ledger, clock = Ledger(), ManualClock()
    judge = Judge(ledger, lambda: POLICY, clock)
    _half(ledger)
    found = judge.step()
    said = reasons.of_rebuilding(1)
    assert said.endswith("1 message to read")
    assert report.sentence(found) == f"Rebuilding: {said}."
    assert report.exit_status(found, everything=False) == 1
    assert report.document(found, [])["rebuilding"] == 1
    assert judge.blocks == {}
    _whole(ledger)
    found = judge.step()
    assert (found.rebuilding, found.unjudged, dict(found.overdue)) == (0, 0, {Status.INCOMPLETE: 1})


@promise("6 rebuilt store")
def test_neither_a_job_nor_the_gate_passes_while_the_store_is_rebuilt() -> None:
    """While the store is being rebuilt, `audit complete` does not call a topic complete, and `audit
    wait` has no proof of a host. Both give the rebuild as the reason. `audit wait` also gives this
    reason for a host of which the collector has not read a message yet."""
    ledger = Ledger()
    _half(ledger)
    evidence = ledger.evidence()
    [found] = completeness(evidence, POLICY, question("logs", 0, SIZE), NOW)
    assert (found.is_short, found.doubts[0]) == (True, reasons.of_rebuilding(1))
    given = proofs(evidence, POLICY, ["web1", "web2"], NOW - SIZE, NOW)
    assert [(x.is_short, x.reasons) for x in given] == [(True, (reasons.of_rebuilding(1),))] * 2


@promise("6 rebuilt store")
def test_a_new_store_is_rebuilt_up_to_the_ends_that_the_collector_saw() -> None:
    """A collector with a new store remembers the end offsets that all audit topics have when it
    starts. The rebuild ends when the collector has read up to these offsets, even if the topics
    have grown since."""
    cluster, ledger = MemoryCluster(), Ledger()
    cluster.create(OWN.topic)
    cluster.create(MIRRORED.topic)
    _publish(cluster, OWN, SAID)
    collection = _collection(cluster, ledger)
    collection.refresh()
    assert ledger.rebuilding == len(SAID)
    _publish(cluster, OWN, [LATER])
    take(ledger, [], {OWN: Position(len(SAID) - 1)})
    assert ledger.rebuilding == 1
    take(ledger, [], {OWN: Position(len(SAID))})
    assert ledger.rebuilding == 0


def _restarted(cluster: MemoryCluster, ledger: Ledger) -> None:
    _collection(cluster, ledger).refresh()


def _mirrored(cluster: MemoryCluster, ledger: Ledger) -> None:
    cluster.create(MIRRORED.topic)
    _publish(cluster, MIRRORED, SAID)
    _collection(cluster, ledger).refresh()


def _made_again(cluster: MemoryCluster, ledger: Ledger) -> None:
    cluster.create(OWN.topic)
    _publish(cluster, OWN, SAID)
    _collection(cluster, ledger).refresh()


@promise("6 rebuilt store")
@pytest.mark.parametrize(
    ("happens", "missing"), [(_restarted, 0), (_mirrored, len(SAID)), (_made_again, 1)]
)
def test_a_topic_that_is_read_from_its_beginning_is_a_rebuild(
    happens: Callable[[MemoryCluster, Ledger], None], missing: int, tmp_path: Path
) -> None:
    """If a collector is restarted with its store, it judges at once. If it must read an audit topic
    from the beginning, because the topic is new or was created again, it judges only after it has
    read this topic."""
    cluster, ledger = MemoryCluster(), Ledger(tmp_path / DATABASE)
    cluster.create(OWN.topic)
    _publish(cluster, OWN, SAID)
    _collection(cluster, ledger).turn(0)
    assert ledger.rebuilding == 0
    happens(cluster, ledger)
    assert ledger.rebuilding == missing
    ledger.close()
    ledger = Ledger(tmp_path / DATABASE)
    assert ledger.rebuilding == missing  # the program ended during the rebuild
    _collection(cluster, ledger).catch_up()
    assert ledger.rebuilding == 0


def _made_again_empty(cluster: MemoryCluster) -> None:
    cluster.create(OWN.topic)


def _made_again_smaller(cluster: MemoryCluster) -> None:
    cluster.create(OWN.topic)
    _publish(cluster, OWN, SAID[:1])


def _deleted(cluster: MemoryCluster) -> None:
    del cluster.topics[OWN.topic]


@promise("6 rebuilt store")
@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("happens", [_made_again_empty, _made_again_smaller, _deleted])
def test_a_rebuild_does_not_wait_for_messages_that_are_gone(
    happens: Callable[[MemoryCluster], None], is_restarted: bool
) -> None:
    """If an audit topic is deleted during a rebuild, and perhaps created again with fewer messages
    and partitions, the rebuild does not wait for the deleted messages. It ends when all existing
    messages are read."""
    cluster, ledger = MemoryCluster(), Ledger()
    cluster.create(MIRRORED.topic)
    cluster.create(OWN.topic, partitions=2)
    _publish(cluster, OWN, SAID)
    _publish(cluster, TopicPartition(OWN.topic, 1), [LATER])
    clock = ManualClock()
    collection = _collection(cluster, ledger, clock)
    collection.refresh()
    assert ledger.rebuilding == len(SAID) + 1
    happens(cluster)
    if is_restarted:
        collection = _collection(cluster, ledger, clock)
    collection.refresh()
    assert ledger.rebuilding
    clock.advance(GONE_AFTER_S)
    while collection.turn(0):
        pass
    assert ledger.rebuilding == 0
    assert collection.has_caught_up


@promise("6 rebuilt store")
def test_a_rebuild_waits_for_a_topic_that_comes_back() -> None:
    """Brokers that have just started may not name all topics in their metadata. If a topic
    disappears from the metadata and comes back, the collector reads it from its beginning, and
    judges nothing until it has read the whole topic."""
    cluster, ledger, clock = MemoryCluster(), Ledger(), ManualClock()
    topic = cluster.create(OWN.topic)
    _publish(cluster, OWN, SAID)
    collection = _collection(cluster, ledger, clock)
    collection.refresh()
    at = Position(1, topic.topic_id.hex)
    take(ledger, [messages.encode(SAID[0])], {OWN: at}, NOW)
    del cluster.topics[OWN.topic]
    for _ in range(2):
        collection.refresh()
        clock.advance(GONE_AFTER_S)
    assert ledger.rebuilding == len(SAID) - 1  # unchanged while the brokers name no topic
    cluster.create(MIRRORED.topic)
    collection.refresh()
    clock.advance(GONE_AFTER_S - 1)
    collection.refresh()
    assert ledger.rebuilding == len(SAID) - 1
    clock.advance(1)
    collection.refresh()
    assert ledger.rebuilding == 0
    cluster.topics[OWN.topic] = topic
    collection.refresh()
    assert ledger.rebuilding == len(SAID)
    collection.catch_up()
    assert _statuses(ledger.evidence()) == [Status.COMPLETE]

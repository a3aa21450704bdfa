"""Tests how a program publishes its outbox (its stored audit messages that are not yet on the audit
topic), and how it finds its own newest message on the audit topic."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from skidway.audit.signing.keys import KeyRefused
from skidway.audit.topic import messages, topic
from skidway.audit.topic.messages import TOPIC, Heartbeat, Sender, Tier
from skidway.audit.topic.publisher import (
    Heartbeats,
    Newest,
    Publisher,
    PublishRefused,
    check_restored,
    newest_own,
)
from skidway.errors import StateRefused, Unreachable
from skidway.kafka.errors import ErrorCode, KafkaError
from skidway.kafka.types import TopicPartition
from support.clock import ManualClock
from support.memory_kafka import MemoryClient, MemoryCluster, MemoryFetcher, MemoryProducer
from support.promises import promise
from support.undecodable import filled

PARTITION = TopicPartition(TOPIC, 0)


class ListOutbox:
    """An outbox in memory."""

    def __init__(self, payloads: Sequence[bytes] = ()) -> None:
        self.entries = dict(enumerate(payloads, start=1))

    def pending(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        return [(n, x) for n, x in sorted(self.entries.items()) if n > after][:limit]

    def published(self, up_to: int) -> None:
        self.entries = {n: x for n, x in self.entries.items() if n > up_to}


def _publisher(cluster: MemoryCluster, outbox: ListOutbox) -> Publisher:
    return Publisher(MemoryProducer(cluster), outbox, PARTITION, ManualClock())


def _values(cluster: MemoryCluster) -> list[bytes]:
    log = cluster.log(PARTITION)
    batches = [topic.TopicBatch(PARTITION, 0, bytes(batch)) for batch in log.batches]
    return [value for _, _, value, _ in topic.records_of(batches)]


def _cluster() -> MemoryCluster:
    cluster = MemoryCluster()
    cluster.create(TOPIC)
    return cluster


def test_the_outbox_is_published_in_order_and_emptied() -> None:
    """The messages of an outbox are published in order. Each stays in the outbox until a broker has
    acknowledged it. In the end, the outbox is empty."""
    cluster, outbox = _cluster(), ListOutbox([b"%d" % n for n in range(1200)])
    publisher = _publisher(cluster, outbox)
    assert not publisher.is_idle
    cluster.refusals.extend([None, KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "no")])
    with pytest.raises(PublishRefused):
        publisher.poll()
    assert list(outbox.entries) == list(range(501, 1201)), "only the first batch is acknowledged"
    assert not publisher.is_idle
    assert publisher.flush(10)
    assert _values(cluster) == [b"%d" % n for n in range(1200)]
    assert outbox.entries == {}


def test_a_heartbeat_waits_until_everything_that_it_counts_as_said_is_published() -> None:
    """A heartbeat is published only after all messages up to the number in the heartbeat. If the
    heartbeat were published before these messages, the messages would seem to be missing."""
    cluster, outbox = _cluster(), ListOutbox()
    publisher = _publisher(cluster, outbox)
    heartbeats = Heartbeats(MemoryProducer(cluster), publisher, PARTITION, ManualClock())
    outbox.entries[1] = b"delta"
    for _ in range(3):
        heartbeats.poll(lambda: b"heartbeat")
    assert _values(cluster) == []
    publisher.poll()
    for _ in range(2):
        heartbeats.poll(lambda: b"heartbeat")
    assert _values(cluster) == [b"delta", b"heartbeat"]


def test_large_messages_are_cut_into_batches_that_fit() -> None:
    """However many bytes the messages of the outbox have together, the program sends no batch that
    is larger than the default limit of a topic (`max.message.bytes`)."""
    cluster, outbox = _cluster(), ListOutbox([b"x" * 400_000] * 5)
    assert _publisher(cluster, outbox).flush(10)
    assert len(cluster.log(PARTITION).batches) == 3
    assert len(_values(cluster)) == 5


def test_an_outbox_larger_than_the_producers_room_is_published_in_parts() -> None:
    """If an outbox has more bytes than the producer may hold in memory, the program sends the
    messages in parts, in order, whenever the producer has room. Otherwise a program with many
    unpublished messages could never publish anything again."""
    cluster, outbox = _cluster(), ListOutbox([b"%d" % n + b"x" * 400_000 for n in range(9)])
    producer = MemoryProducer(cluster)
    producer.room = 2
    assert Publisher(producer, outbox, PARTITION, ManualClock()).flush(10)
    assert [value[:1] for value in _values(cluster)] == [b"%d" % n for n in range(9)]


def test_a_refusal_is_a_sentence_and_loses_nothing() -> None:
    """If the broker refuses a batch of the messages in an outbox, neither this batch nor those that
    follow are lost. The program's next attempt sends them all again, in order."""
    cluster, outbox = _cluster(), ListOutbox([b"x" * 800_000, b"y" * 800_000])
    publisher = _publisher(cluster, outbox)
    cluster.refusals.append(KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "no"))
    with pytest.raises(PublishRefused, match="_skidway_audit refuses"):
        publisher.poll()
    assert len(outbox.entries) == 2
    assert publisher.flush(10)
    assert [value[:1] for value in _values(cluster)] == [b"x", b"y"]


def test_entries_come_while_others_are_on_their_way() -> None:
    """If new messages are committed to the outbox while earlier messages are being sent, the next
    call of `poll` sends the new messages."""
    cluster, outbox = _cluster(), ListOutbox([b"a"])
    publisher = _publisher(cluster, outbox)
    publisher.poll()
    outbox.entries[7] = b"b"
    publisher.poll()
    publisher.poll()
    assert _values(cluster) == [b"a", b"b"]
    assert publisher.is_idle


def _beat(producer: str, epoch: int, number: int) -> bytes:
    return messages.encode(Heartbeat(Sender(Tier.BROKER, "c", producer, "h", epoch), number, 5))


def _newest(cluster: MemoryCluster, producer: str) -> Newest | None:
    clock = ManualClock()
    client, fetcher = MemoryClient(cluster, clock), MemoryFetcher(cluster)
    return newest_own(client, fetcher, (Tier.BROKER, producer), clock)


def test_the_newest_own_message_is_found_behind_many_others() -> None:
    """A program finds its own newest message on the audit topic even if thousands of other messages
    follow this message, because the program searches further and further back."""
    cluster = _cluster()
    payloads = [_beat("me", 1, 5), _beat("me", 2, 3), *[_beat("other", 9, 9)] * 4_000, b"junk, me"]
    assert _publisher(cluster, ListOutbox(payloads)).flush(10)
    assert _newest(cluster, "me") == Newest(2, 3, 5)
    assert _newest(cluster, "other") == Newest(9, 9, 5)
    assert _newest(cluster, "nobody") is None


def test_the_newest_own_message_is_found_among_records_that_nobody_can_decode() -> None:
    """A program that starts finds its own newest message, whatever others have written into the
    audit topic before and behind it."""
    cluster = _cluster()
    for payload in (b"junk", _beat("me", 2, 3), b"junk"):
        assert _publisher(cluster, ListOutbox([payload])).flush(10)
    batches = cluster.log(PARTITION).batches
    for index in (0, 2):
        batches[index] = filled(bytes(batches[index]))
    assert _newest(cluster, "me") == Newest(2, 3, 5)


def test_without_a_topic_there_is_no_newest_message() -> None:
    """If there is no audit topic yet, as at a site's first start, a program finds no newest message
    of its own."""
    assert _newest(MemoryCluster(), "me") is None


@promise("1 restored state")
@pytest.mark.parametrize(("epoch", "number"), [(1, 4), (0, 9)])
def test_a_state_older_than_its_messages_is_refused(epoch: int, number: int) -> None:
    """A program's stored state is refused if it is older than the messages that the program has
    sent. An older state is a restored copy. With this copy, the program would use the same message
    numbers again."""
    with pytest.raises(StateRefused, match="older copy of itself"):
        check_restored(Newest(1, 5, 0), epoch, number, "The state in /x")


@promise("6 signed")
def test_who_has_signed_does_not_go_on_without_a_key() -> None:
    """A program that has signed in its present epoch, and has no key any more, does not begin: the
    audit would never know what its unsigned messages counted. A new epoch may begin without."""
    newest = Newest(1, 5, 0, needs_key=True)
    with pytest.raises(KeyRefused, match="location is not set"):
        check_restored(newest, 1, 5, "The state in /x")
    check_restored(newest, 2, 0, "The state in /x")


@pytest.mark.parametrize(("epoch", "number"), [(1, 5), (1, 6), (2, 0)])
def test_a_state_as_new_as_its_messages_is_used(epoch: int, number: int) -> None:
    """A program uses its stored state if the state is as new as the messages that the program has
    sent. The state may also be newer than these messages, because the messages in its outbox are
    not sent yet."""
    check_restored(Newest(1, 5, 0), epoch, number, "The state in /x")
    check_restored(None, epoch, number, "The state in /x")


def test_the_topic_is_made_once() -> None:
    """The audit topic of a cluster is created by the first program that needs the topic. All later
    programs find the topic and do not create it again."""
    cluster, clock = MemoryCluster(), ManualClock()
    client = MemoryClient(cluster, clock)
    assert topic.ensure(client, clock.advance) == topic.PARTITIONS
    made = cluster.topics[TOPIC].topic_id
    topic.ensure(client, clock.advance)
    assert cluster.topics[TOPIC].topic_id == made


def test_a_topic_that_never_gets_a_leader_is_unreachable() -> None:
    """A program waits only for a limited time until the audit topic has a leader. Then it reports
    an error with one sentence."""
    cluster, clock = MemoryCluster(), ManualClock()
    cluster.create(TOPIC, 0)
    with pytest.raises(Unreachable, match="no leader"):
        topic.ensure(MemoryClient(cluster, clock), clock.advance)


def test_reading_skips_what_has_expired() -> None:
    """If a program reads a range of offsets of the audit topic, and the first messages of this
    range have expired, it gets the later messages of the range."""
    cluster, clock = _cluster(), ManualClock()
    for value in (b"a", b"b", b"c"):
        assert _publisher(cluster, ListOutbox([value])).flush(10)
    cluster.log(PARTITION).expire(1)
    client, fetcher = MemoryClient(cluster, clock), MemoryFetcher(cluster)
    found = list(topic.read(client, fetcher, {PARTITION: (0, 3)}, clock))
    assert [value for _, _, value, _ in found] == [b"b", b"c"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("_skidway_audit", True),
        ("dc1._skidway_audit", True),
        ("a.b._skidway_audit", False),
        ("x_skidway_audit", False),
        ("dc1.logs", False),
        ("._skidway_audit", False),
    ],
)
def test_audit_topics_are_known_by_name(name: str, expected: bool) -> None:
    """A cluster's own audit topic and mirrored audit topics are recognized by name."""
    assert topic.is_audit_topic(name) is expected


def test_messages_of_a_producer_share_a_partition() -> None:
    """All messages of a producer go to one partition, so that their order is kept. The partition is
    the same in all processes and all versions of the program."""
    for producer, partition in (("", 0), ("77", 3), ("broker-dc1", 2), ("é", 1)):
        assert topic.partition_of(producer, 5) == partition

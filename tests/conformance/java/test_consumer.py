"""The unmodified Java 4.4 consumer, which gets its partitions by `assign`, works with our
broker."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from support.brokers import SkidwayBroker
from support.java_clients import JavaClients, JavaFailed, values_of
from support.kafka import topic_name

pytestmark = [pytest.mark.java, pytest.mark.foreign]

START_MS = 1_700_000_000_000
BATCH = 10


def fill(
    java: JavaClients, bootstrap: str, topic: str, numbers: Sequence[int], partition: int = 0
) -> None:
    """Produces one record for each number in `numbers`, in batches of BATCH records. A record's
    value is its number in decimal, and its timestamp is that many seconds after START_MS."""
    with java.producer(bootstrap, linger_ms=60_000) as producer:
        for at in range(0, len(numbers), BATCH):
            for number in numbers[at : at + BATCH]:
                record = java.record(
                    topic, b"%d" % number, partition=partition, timestamp=START_MS + number * 1_000
                )
                producer.send(record)
            producer.flush()


@pytest.fixture
def filled(java_clients: JavaClients, bootstrap: str, topic: str) -> str:
    """A topic with 100 records in ten batches in partition 0, and 30 records in partition 1."""
    fill(java_clients, bootstrap, topic, range(100))
    fill(java_clients, bootstrap, topic, range(100, 130), partition=1)
    return topic


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_from_the_middle_of_a_batch(
    java_clients: JavaClients, bootstrap: str, filled: str, isolation: str
) -> None:
    """After a seek to an offset in the middle of a batch, the consumer gets the records from this
    offset on, and no earlier record."""
    tp = java_clients.tp(filled)
    with java_clients.consumer(bootstrap, isolation_level=isolation) as consumer:
        consumer.assign([tp])
        consumer.seek(tp, 55)
        found = java_clients.poll(consumer, 45)
        assert [each.offset for each in found] == list(range(55, 100))
        assert values_of(found) == [b"%d" % n for n in range(55, 100)]
        assert consumer.position(tp) == 100


def test_several_partitions_in_small_fetches(
    java_clients: JavaClients, bootstrap: str, filled: str
) -> None:
    """If a batch is larger than the consumer's size limits for a fetch, the consumer still gets the
    whole batch. In this way the consumer reads all partitions to their ends."""
    tps = [java_clients.tp(filled, number) for number in range(2)]
    settings = {"fetch_max_bytes": 50, "max_partition_fetch_bytes": 50, "max_poll_records": 7}
    with java_clients.consumer(bootstrap, **settings) as consumer:
        consumer.assign(tps)
        consumer.seekToBeginning(tps)
        found = java_clients.poll(consumer, 130)
    by_partition = [[r.value for r in found if r.partition == number] for number in range(2)]
    assert by_partition[0] == [b"%d" % n for n in range(100)]
    assert by_partition[1] == [b"%d" % n for n in range(100, 130)]


def test_offsets_by_time(java_clients: JavaClients, bootstrap: str, filled: str) -> None:
    """offsetsForTimes finds the first record with a timestamp at or after the given time. For a
    time after the last record, it finds no record."""
    tp = java_clients.tp(filled)
    with java_clients.consumer(bootstrap) as consumer:
        for seconds, offset in ((-1.0, 0), (0.0, 0), (41.5, 42), (42.0, 42), (99.0, 99)):
            at_ms = START_MS + int(seconds * 1_000)
            found = consumer.offsetsForTimes({tp: at_ms})[tp]
            assert found.offset() == offset
            assert found.timestamp() == START_MS + offset * 1_000
        assert consumer.offsetsForTimes({tp: START_MS + 99_001})[tp] is None


def test_ends_and_partitions(java_clients: JavaClients, bootstrap: str, filled: str) -> None:
    """The consumer can get the beginning and end offsets of partitions, the partitions of a topic,
    and the list of topics."""
    tps = [java_clients.tp(filled, number) for number in range(2)]
    with java_clients.consumer(bootstrap) as consumer:
        assert dict(consumer.beginningOffsets(tps)) == {tps[0]: 0, tps[1]: 0}
        assert dict(consumer.endOffsets(tps)) == {tps[0]: 100, tps[1]: 30}
        partitions = sorted(each.partition() for each in consumer.partitionsFor(filled))
        assert partitions == [0, 1]
        assert filled in set(consumer.listTopics())


def test_offsets_outside_the_log(java_clients: JavaClients, bootstrap: str, filled: str) -> None:
    """If the consumer's position is outside of the log, auto.offset.reset decides what happens.
    With "none" the consumer raises an error, and with "earliest" it continues at the beginning of
    the log."""
    tp = java_clients.tp(filled, 1)
    with java_clients.consumer(bootstrap, auto_offset_reset="none") as consumer:
        consumer.assign([tp])
        consumer.seek(tp, 1_000)
        with pytest.raises(JavaFailed) as caught:
            java_clients.poll(consumer, 1)
        assert caught.value.name == "OffsetOutOfRangeException"
    with java_clients.consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([tp])
        consumer.seek(tp, 1_000)
        assert values_of(java_clients.poll(consumer, 30)) == [b"%d" % n for n in range(100, 130)]


def test_a_poll_waits_for_what_comes(java_clients: JavaClients, bootstrap: str, topic: str) -> None:
    """A poll at the log end returns nothing. After records have been produced, the next poll
    returns them."""
    tp = java_clients.tp(topic)
    with java_clients.consumer(bootstrap, fetch_max_wait_ms=600_000) as consumer:
        consumer.assign([tp])
        consumer.seekToBeginning([tp])
        assert java_clients.poll_once(consumer, 300) == []
        fill(java_clients, bootstrap, topic, [7])
        assert values_of(java_clients.poll(consumer, 1)) == [b"7"]


def test_a_consumer_goes_on_after_a_restart(
    java_clients: JavaClients, skidway_broker: SkidwayBroker
) -> None:
    """If the broker is killed with kill -9 and restarted between two polls, the consumer continues
    with the next records."""
    name = topic_name("restarted")
    with java_clients.admin(skidway_broker.address) as admin:
        java_clients.create(admin, name)
    fill(java_clients, skidway_broker.address, name, range(20))
    tp = java_clients.tp(name)
    settings = {"max_poll_records": 5, "fetch_max_bytes": 50, "reconnect_backoff_ms": 20}
    with java_clients.consumer(skidway_broker.address, **settings) as consumer:
        consumer.assign([tp])
        consumer.seekToBeginning([tp])
        found = java_clients.poll(consumer, 5)
        skidway_broker.crash()
        fill(java_clients, skidway_broker.address, name, range(20, 40))
        found += java_clients.poll(consumer, 40 - len(found))
    assert values_of(found) == [b"%d" % n for n in range(40)]


def test_a_new_leader_epoch_loses_and_doubles_nothing(
    own_broker: SkidwayBroker, java_clients: JavaClients
) -> None:
    """After the broker was killed and has a new leader epoch, the consumer continues without losing
    or repeating records."""
    broker = own_broker.start()
    with java_clients.admin(broker.address) as admin:
        java_clients.create(admin, "epochs")
    with (
        java_clients.producer(broker.address, batch_size=0) as producer,
        java_clients.consumer(broker.address, metadata_max_age_ms=200) as consumer,
    ):
        tp = java_clients.tp("epochs")
        consumer.assign([tp])
        consumer.seekToBeginning([tp])
        found = []
        for crash in range(3):
            for number in range(5):
                record = java_clients.record("epochs", b"%d-%d" % (crash, number))
                java_clients.wait(producer.send(record))
            found += java_clients.poll(consumer, 5)
            broker.crash()
    assert [each.offset for each in found] == list(range(15))
    assert values_of(found) == [b"%d-%d" % (a, b) for a in range(3) for b in range(5)]

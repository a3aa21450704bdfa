"""Retention keeps the records that the consumer groups in the setting retention.hold have not yet
read. The groups' offsets are in a real ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kazoo.client import KazooClient

from skidway.kafka.client import Client, ConfigChanges, NewTopic
from support.batches import sized
from support.brokers import SkidwayBroker
from support.processes import eventually
from support.promises import promise
from support.raw_client import RawClient

PATH = "/consumers/load/offsets/logs/0"
CHECKS = "skidway_broker_retention_checks_total"
LOST = "skidway_broker_retention_hold_lost_records_total"


@pytest.fixture
def broker(own_broker: SkidwayBroker) -> SkidwayBroker:
    """A broker that checks retention ten times a second."""
    own_broker.settings |= {
        "log.retention.check.interval.ms": 100,
        "log.segment.delete.delay.ms": 0,
    }
    return own_broker.start()


@pytest.fixture
def zookeeper_client(broker: SkidwayBroker) -> Iterator[KazooClient]:
    client = KazooClient(str(broker.settings["zookeeper.connect"]))
    client.start()
    yield client
    client.stop()
    client.close()


def log_start(broker: SkidwayBroker) -> int:
    with RawClient(broker.port) as client:
        return client.fetch("logs", 1 << 40).log_start_offset


def after_checks(broker: SkidwayBroker, count: int = 3) -> int:
    """Waits until the broker has made `count` more retention checks. Returns the log start
    offset."""
    seen = broker.metric(CHECKS)
    eventually(lambda: broker.metric(CHECKS) >= seen + count)
    return log_start(broker)


@promise("4 readers")
@pytest.mark.quick
def test_segments_wait_for_their_readers(
    broker: SkidwayBroker, zookeeper_client: KazooClient
) -> None:
    """If a topic's setting retention.hold names a group, the broker deletes only those records of
    the topic that are below the group's committed offset, and no records while the group has
    committed no offset. But records that are older than retention.hold.max.ms are not held. If the
    broker deletes such records before the group has read them, the broker logs the group's name,
    and counts the records that the group has lost."""
    hold = {"retention.hold": "load", "retention.ms": "1", "segment.bytes": "1024"}
    with Client(broker.address) as client:
        assert client.create_topics([NewTopic("logs", 1, 1, hold)]) == {"logs": None}
        with RawClient(broker.port) as raw:
            for _ in range(8):
                assert raw.produce("logs", sized(800)).error_code == 0
        assert after_checks(broker) == 0
        assert broker.metric("skidway_broker_partitions_held") == 1
        noted = b'3 {"metadata":"and what else a group may note"}'
        zookeeper_client.create(PATH, noted, makepath=True)
        eventually(lambda: log_start(broker) == 3)
        assert after_checks(broker) == 3
        zookeeper_client.set(PATH, b"5")
        eventually(lambda: log_start(broker) == 5)
        assert broker.metric(LOST) == 0
        changes = ConfigChanges(set={"retention.hold.max.ms": "1"})
        assert client.alter_configs("logs", changes) is None
        eventually(lambda: log_start(broker) == 8)
    assert broker.metric(LOST) == 3
    assert '"event": "retention_hold_exceeded"' in broker.program.output()
    assert '"group": "load"' in broker.program.output()

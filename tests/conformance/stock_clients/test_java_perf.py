"""Apache Kafka's unmodified performance tools work with our broker. One tool writes records, and
the other counts them."""

from __future__ import annotations

import pytest

from support.brokers import SkidwayBroker
from support.kafka import tool, topic_name
from support.stock_clients import Driver

pytestmark = pytest.mark.java
COUNT = 50_000
TOOLS = "org.apache.kafka.tools"


def test_performance_tools_write_and_read(story_broker: SkidwayBroker, reference: Driver) -> None:
    """Every record of ProducerPerformance is acknowledged, and ConsumerPerformance reads the same
    number of records."""
    topic, servers = topic_name("perf"), f"bootstrap.servers={story_broker.address}"
    reference.ask("create", topic=topic, partitions=2)
    sizes = ["--num-records", str(COUNT), "--record-size", "200", "--throughput", "-1"]
    settings = [servers, "compression.type=lz4", "acks=all"]
    producing = ["--topic", topic, *sizes, "--producer-props", *settings]
    written = tool(f"{TOOLS}.ProducerPerformance", producing)
    assert f"{COUNT} records sent" in written
    where = ["--bootstrap-server", story_broker.address, "--topic", topic]
    limits = ["--messages", str(COUNT), "--timeout", "120000"]
    read = tool(f"{TOOLS}.ConsumerPerformance", [*where, *limits])
    names, values = (
        [each.strip() for each in line.split(",")] for line in read.strip().splitlines()[-2:]
    )
    assert values[names.index("data.consumed.in.nMsg")] == str(COUNT)

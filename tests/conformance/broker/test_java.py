"""The tools of Apache Kafka 4.4 work with our broker's log files and topic settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from skidway.broker.log.config import LogConfig
from support.batches import NOW_MS, append, batch, flush, open_in
from support.brokers import SkidwayBroker
from support.kafka import tool, topic_name

pytestmark = pytest.mark.java
TOOLS = "org.apache.kafka.tools"


def test_kafkas_tools_read_our_files(tmp_path: Path) -> None:
    """Kafka's DumpLogSegments accepts every batch in our log files as valid, and finds a batch at
    the position of every index entry."""
    directory = tmp_path / "logs-0"
    directory.mkdir()
    log = open_in(directory, LogConfig(index_interval_bytes=300))
    for number in range(60):
        count = number % 3 + 1
        times = [NOW_MS + number] * count
        values = [b"v%d" % number * 10] * count
        append(
            log,
            batch(
                *values,
                timestamps=times,
                producer_id=5,
                epoch=0,
                sequence=log.log_end_offset,
            ),
        )
    flush(log)
    log.close_cleanly()
    base = directory / "00000000000000000000"
    files = f"{base}.log,{base}.index,{base}.timeindex"
    dumped = tool("org.apache.kafka.tools.DumpLogSegments", ["--files", files])
    assert dumped.count("isvalid: true") == 60
    assert "isvalid: false" not in dumped
    assert "mismatch" not in dumped.lower()
    checked = tool(
        "org.apache.kafka.tools.DumpLogSegments",
        ["--files", f"{base}.index", "--index-sanity-check"],
    )
    assert "passed sanity check" in checked


def test_its_config_command_reads_our_settings(skidway_broker: SkidwayBroker) -> None:
    """Kafka's kafka-configs command describes a topic, including settings that have their default
    values."""
    common, topic = ["--bootstrap-server", skidway_broker.address], topic_name("java")
    tool(f"{TOOLS}.TopicCommand", [*common, "--create", "--topic", topic])
    configs = tool(
        "org.apache.kafka.tools.ConfigCommand",
        [*common, "--describe", "--all", "--entity-type", "topics", "--entity-name", topic],
    )
    assert "retention.ms=604800000" in configs

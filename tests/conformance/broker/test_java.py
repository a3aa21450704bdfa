"""Apache Kafka 4.1's own Java clients and tools against our broker, and against its files."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from broker.log.config import LogConfig
from support.batches import NOW_MS, append, batch, flush, open_in
from support.brokers import SkidwayBroker
from support.kafka import tool

pytestmark = [pytest.mark.conformance, pytest.mark.java]
TOOLS = "org.apache.kafka.tools"


def test_kafkas_tools_read_our_files(tmp_path: Path) -> None:
    """DumpLogSegments finds every batch valid and every index entry where its batch is."""
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
    dumped = tool("kafka.tools.DumpLogSegments", ["--files", files])
    assert dumped.count("isvalid: true") == 60
    assert "isvalid: false" not in dumped
    assert "mismatch" not in dumped.lower()
    checked = tool(
        "kafka.tools.DumpLogSegments", ["--files", f"{base}.index", "--index-sanity-check"]
    )
    assert "passed sanity check" in checked


def test_java_clients_create_produce_consume_and_delete(skidway_broker: SkidwayBroker) -> None:
    """Admin client, idempotent producer and assigned consumer, each with its defaults."""
    address, topic = skidway_broker.address, f"java-{uuid.uuid4().hex[:8]}"
    common = ["--bootstrap-server", address]
    create = [*common, "--create", "--topic", topic, "--partitions", "2"]
    created = tool(f"{TOOLS}.TopicCommand", create)
    assert "Created topic" in created
    described = tool(f"{TOOLS}.TopicCommand", [*common, "--describe", "--topic", topic])
    assert "PartitionCount: 2" in described
    lines = "".join(f"line {number}\n" for number in range(200))
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        tool(
            f"{TOOLS}.ConsoleProducer",
            [*common, "--topic", topic, "--compression-codec", codec], input_text=lines,
        )  # fmt: skip
    ends = tool(f"{TOOLS}.GetOffsetShell", [*common, "--topic", topic])
    triples = [line.split(":") for line in ends.split() if line.startswith(topic)]
    counts = {partition: int(end) for _, partition, end in triples}
    assert sum(counts.values()) == 1000
    read = []
    for partition, count in counts.items():
        if count:
            read += tool(
                f"{TOOLS}.consumer.ConsoleConsumer",
                [*common, "--topic", topic, "--partition", partition, "--offset", "earliest",
                 "--max-messages", str(count), "--timeout-ms", "20000"],
            ).split("\n")  # fmt: skip
    assert sorted(line for line in read if line) == sorted(lines.split("\n")[:-1] * 5)
    configs = tool(
        "kafka.admin.ConfigCommand",
        [*common, "--describe", "--all", "--entity-type", "topics", "--entity-name", topic],
    )
    assert "retention.ms=604800000" in configs
    tool(f"{TOOLS}.TopicCommand", [*common, "--delete", "--topic", topic])

"""If the source no longer has some records, the mirror has gaps. A gap is a range of missing
offsets, and the configs of the mirrored topic list all gaps. The mirror has all other records."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from skidway.kafka import gaps
from skidway.kafka.batch import read_header
from skidway.kafka.client import EARLIEST, Client, Fetcher
from skidway.kafka.gaps import Gap
from skidway.kafka.types import TopicPartition
from support.mirroring import Pair, pair
from support.processes import WITHIN_S, eventually, run_skidway

FORGETFUL = {"log_retention_check_interval_ms": 100, "log_segment_delete_delay_ms": 0}
SHORT = {"segment_bytes": "1024", "retention_bytes": "4096"}


@pytest.fixture
def clusters(tmp_path: Path, zookeeper: str) -> Iterator[Pair]:
    yield from pair(tmp_path, zookeeper, source=FORGETFUL)


def starts(clusters: Pair, topic: str, partitions: int) -> dict[int, int]:
    tps = {TopicPartition(topic, number): EARLIEST for number in range(partitions)}
    with Client(clusters.source.address) as client:
        return {tp.partition: at.offset for tp, at in client.list_offsets(tps).items()}


def until_expired(clusters: Pair, topic: str, partitions: int) -> None:
    """Waits until the source has deleted as many old segments of each partition of the topic as
    retention.bytes allows."""

    def done(number: int) -> bool:
        # the file may be deleted before its size is read
        with contextlib.suppress(FileNotFoundError):
            sizes = [path.stat().st_size for path in clusters.source.segments(topic, number)]
            return sum(sizes[1:]) < int(SHORT["retention_bytes"])
        return False

    eventually(lambda: all(map(done, range(partitions))), what="records expire")


def named(clusters: Pair, topic: str) -> list[Gap]:
    return gaps.decode(clusters.here.configs(topic)[gaps.CONFIG])


def test_records_that_expired_while_the_mirror_was_away_are_named(clusters: Pair) -> None:
    """If both partitions of a topic lose records while the mirror is down, the configs of the
    mirrored topic list both gaps. The mirror has all other records."""
    clusters.source.create("logs", 2, **SHORT)
    for number in range(2):
        clusters.source.produce("logs", 4, number)
    clusters.mirrored("logs")
    ends = clusters.here.ends("dc1.logs")
    before = [clusters.here.batches("dc1.logs", number) for number in range(2)]
    clusters.here.program.kill()
    for number in range(2):
        clusters.source.produce("logs", 100, number)
    until_expired(clusters, "logs", 2)
    begins = starts(clusters, "logs", 2)
    clusters.here.start()
    clusters.mirrored("logs")
    gone = [Gap(number, ends[number], begins[number], "expired") for number in range(2)]
    eventually(lambda: sorted(named(clusters, "dc1.logs")) == gone)  # the broker may read it later
    for number in range(2):
        ours = clusters.here.batches("dc1.logs", number)
        assert ours == [*before[number], *clusters.source.batches("logs", number)]
        assert read_header(ours[4]).base_offset == begins[number]
    status = run_skidway(
        "mirror", "status", "--url", f"http://127.0.0.1:{clusters.here.metrics_port}"
    )
    assert status.returncode == 0, "a gap is named, and nothing is stopped"
    assert f"gaps: dc1: dc1.logs-0: {ends[0]}-{begins[0]} expired" in status.stdout
    clusters.here.crash()
    clusters.source.produce("logs", 2)
    clusters.mirrored("logs")
    assert clusters.here.mirror()["stopped"] == {}
    assert clusters.here.health()["stopped_partitions"] == {}


def test_a_topic_whose_beginning_is_gone_before_it_is_mirrored(clusters: Pair) -> None:
    """If the first records of a topic have expired before the mirror starts, the first gap begins
    at offset 0. The mirror has all records after the gap. A client of the mirror reads all these
    records, whether it begins at the earliest offset or at offset 0."""
    clusters.here.program.kill()
    clusters.source.create("logs", **SHORT)
    clusters.source.produce("logs", 100)
    until_expired(clusters, "logs", 1)
    clusters.here.start()
    clusters.mirrored("logs")
    [gap] = named(clusters, "dc1.logs")
    assert gap == Gap(0, 0, starts(clusters, "logs", 1)[0], "expired")
    there = clusters.source.batches("logs")
    assert clusters.here.batches("dc1.logs") == there
    tp = TopicPartition("dc1.logs", 0)
    with Client(clusters.here.address) as client:
        for begin in (client.list_offsets({tp: EARLIEST})[tp].offset, 0):
            fetcher, found = Fetcher(client), list[bytes]()
            fetcher.seek(tp, begin)
            deadline = time.monotonic() + WITHIN_S
            while len(found) < len(there) and time.monotonic() < deadline:
                found += [bytes(raw) for each in fetcher.poll(500) for raw in each.batches]
            assert found == there


def test_a_source_that_expired_wholly_leaves_one_gap(clusters: Pair) -> None:
    """If all records of a topic have expired before the mirror starts, the mirrored topic has one
    gap, from offset 0 to the end of the source's log."""
    clusters.here.program.kill()
    clusters.source.create("logs", retention_ms="1")
    clusters.source.produce("logs", 10)
    eventually(lambda: starts(clusters, "logs", 1)[0] == 30, what="all records expire")
    clusters.here.start()
    eventually(lambda: named(clusters, "dc1.logs") if clusters.here.ends("dc1.logs") else None)
    assert named(clusters, "dc1.logs") == [Gap(0, 0, 30, "expired")]
    with Client(clusters.here.address) as client:
        assert client.topic_configs(["dc1.logs"])["dc1.logs"]["mirror.source.topic"] == "logs"

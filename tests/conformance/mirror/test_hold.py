"""If a topic's `retention.hold` names the mirror, the source does not delete a record of the topic
before the mirror has copied it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.mirroring import Pair
from support.processes import eventually
from support.promises import promise
from support.raw_client import RawClient

HOLD = {"retention.hold": "mirror-offline", "retention.ms": "1", "segment.bytes": "1024"}
QUICK = {"log_retention_check_interval_ms": 100, "log_segment_delete_delay_ms": 0}


@pytest.fixture
def clusters(tmp_path: Path, zookeeper: str) -> Iterator[Pair]:
    made = Pair(tmp_path, zookeeper, source=QUICK)
    try:
        yield made
    finally:
        made.kill()


def log_start(clusters: Pair) -> int:
    with RawClient(clusters.source.port) as client:
        return client.fetch("logs", 1 << 40).log_start_offset


@promise("4 readers")
def test_a_segment_stays_until_the_mirror_has_it(clusters: Pair) -> None:
    """While the mirror is down, the source keeps the segments that retention would delete without
    the hold. It deletes them soon after the mirror has copied them."""
    source, here = clusters.source, clusters.here
    source.start()
    source.create("logs", **HOLD)
    source.produce("logs", 20, size=600)
    eventually(lambda: source.metric("skidway_broker_partitions_held") == 1)
    seen = source.metric("skidway_broker_retention_checks_total")
    eventually(lambda: source.metric("skidway_broker_retention_checks_total") > seen + 3)
    assert log_start(clusters) == 0
    here.start()
    eventually(lambda: log_start(clusters) == 60, what="the source lets go what is mirrored")
    assert here.ends("dc1.logs") == {0: 60}
    assert clusters.gaps("logs") == []
    assert source.metric("skidway_broker_retention_hold_lost_records_total") == 0
    assert here.metric("skidway_broker_mirror_group_failures_total") == 0

"""Gaps are ranges of offsets that a mirror could not copy. A mirror topic lists its gaps, with the
reasons, in one of its configs."""

from __future__ import annotations

import pytest

from skidway.kafka import gaps
from skidway.kafka.gaps import Gap
from support.clock import ManualClock
from support.memory_kafka import MemoryClient, MemoryCluster

MIRROR = {"mirror.source.cluster": "dc1", "mirror.source.topic": "logs"}
NAMED = [Gap(0, 10, 20, "expired"), Gap(0, 20, 25, "too old"), Gap(1, 0, 99, "expired")]


@pytest.mark.parametrize(
    ("first", "end", "reason"),
    [
        (10, 20, "expired"),
        (12, 25, "expired; too old"),
        (20, 22, "too old"),
        (9, 12, None),
        (24, 26, None),
        (30, 40, None),
        (12, 12, None),
    ],
)
def test_a_reason_is_given_where_every_offset_is_named(
    first: int, end: int, reason: str | None
) -> None:
    """`reason` says why a range of offsets is missing, but only if the gaps in the topic's config
    cover the whole range. Several adjacent gaps may cover the range together."""
    assert gaps.reason(NAMED, 0, first, end) == reason


def test_only_mirrors_name_gaps() -> None:
    """Gaps are read only from the configs of mirror topics. If the config with the gaps cannot be
    parsed, the topic counts as one without gaps."""
    cluster = MemoryCluster()
    text = gaps.encode(NAMED)
    cluster.create("dc1.logs", configs={**MIRROR, gaps.CONFIG: text})
    cluster.create("own", configs={gaps.CONFIG: text})
    cluster.create("dc1.bad", configs={**MIRROR, gaps.CONFIG: "?"})
    cluster.create("dc1.whole", configs=MIRROR)
    client = MemoryClient(cluster, ManualClock())
    found = gaps.named_by_mirrors(client, list(cluster.topics))  # type: ignore[arg-type]
    assert found == {"dc1.logs": NAMED, "own": [], "dc1.bad": [], "dc1.whole": []}

"""Log compaction: Kafka deletes records of a compacted topic whose keys have newer records. Such a
topic cannot prove that nothing was lost, so counters and loaders refuse it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

COMPACTED: Final = (
    "it is compacted (cleanup.policy), so Kafka deletes records whose keys have newer records, and "
    "nobody can prove that nothing was lost"
)


def is_compacted(configs: Mapping[str, str]) -> bool:
    """Returns whether a topic with these configs is compacted."""
    return "compact" in configs.get("cleanup.policy", "").split(",")

"""Settings of a consumer, with Kafka's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from skidway.errors import UsageError
from skidway.kafka.types import TopicPartition

OffsetReset = Literal["earliest", "latest", "none"]
Listener = Callable[[Sequence[TopicPartition]], None]


class ConsumerOptions(TypedDict, total=False):
    """The keyword arguments of a `Consumer`: see `ConsumerSettings`."""

    client_id: str
    auto_offset_reset: OffsetReset
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    session_timeout_ms: int
    metadata_max_age_ms: int
    consumer_timeout_ms: int | None
    request_timeout_ms: int
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    fetch_min_bytes: int
    on_partitions_assigned: Listener | None
    on_partitions_revoked: Listener | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """The settings of a `Consumer`, in addition to addresses, group and topics. Times are in ms.

    - `auto_offset_reset`: where to begin if there is no committed offset, or if the committed
      offset is no longer in the log. The values are "earliest" (at the first record), "latest"
      (after the last record) and "none" (raise `NoOffset`). Partitions that are added to a topic
      later are always read from their beginning.
    - `enable_auto_commit`: whether finished records are committed every `auto_commit_interval_ms`,
      and whenever a partition is released.
    - `session_timeout_ms`: a member counts as dead if ZooKeeper has not heard from it for this
      long. ZooKeeper allows a timeout of 2 to 20 of its ticks.
    - `metadata_max_age_ms`: how often to look for members and partitions if no watch fires.
    - `consumer_timeout_ms`: the iteration ends after this long without a record. None means never.
    """

    client_id: str = "skidway"
    auto_offset_reset: OffsetReset = "latest"
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    session_timeout_ms: int = 10_000
    metadata_max_age_ms: int = 30_000
    consumer_timeout_ms: int | None = None
    request_timeout_ms: int = 10_000
    fetch_max_bytes: int = 8 * 1024 * 1024
    fetch_max_wait_ms: int = 500
    fetch_min_bytes: int = 1
    on_partitions_assigned: Listener | None = None
    on_partitions_revoked: Listener | None = None

    def __post_init__(self) -> None:
        """Raises UsageError if a value is out of its range."""
        if self.auto_offset_reset not in ("earliest", "latest", "none"):
            raise UsageError("auto_offset_reset must be 'earliest', 'latest' or 'none'")
        least = {
            "auto_commit_interval_ms": 1,
            "session_timeout_ms": 1_000,
            "metadata_max_age_ms": 100,
            "request_timeout_ms": 100,
            "fetch_max_bytes": 1,
            "fetch_max_wait_ms": 0,
            "fetch_min_bytes": 0,
        }
        for name, at_least in least.items():
            if getattr(self, name) < at_least:
                raise UsageError(f"{name} must be at least {at_least}")

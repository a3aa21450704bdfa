"""Stores messages in a ledger."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from skidway.audit.evidence.ledger import Ledger, Position
from skidway.kafka.types import TopicPartition


def take(
    ledger: Ledger,
    values: Iterable[bytes],
    reached: Mapping[TopicPartition, Position] = MappingProxyType({}),
    now_ms: int = 0,
) -> None:
    """Does the same as `Ledger.take_records`, for records of which it is not known where and when
    they were read. values: their values."""
    ledger.take_records(((value, None) for value in values), reached, now_ms)

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
    """Does the same as `Ledger.take_records`, but without saying where and when the records were
    read. values: the values of the records."""
    ledger.take_records(((value, None) for value in values), reached, now_ms)

"""Decides when a log is flushed. Pure.

If a request waits for the flush, the flush begins at once, so that the request waits for one fsync
and not for a timer. Otherwise the flush begins after `flush.messages` records or `flush.ms`, so
that records that no request waits for are flushed in large pieces. At most one flush of a partition
runs at a time. The next flush covers the records that are appended meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass

from skidway.broker.log.config import LogConfig


@dataclass(frozen=True, slots=True)
class Flushing:
    """The state that the decision needs; times in ms."""

    unflushed_messages: int
    running: bool
    awaited: bool
    waited_ms: float


def must_flush(state: Flushing, config: LogConfig) -> bool:
    """Whether to begin a flush now."""
    if state.running or not state.unflushed_messages:
        return False
    return (
        state.awaited
        or state.unflushed_messages >= config.flush_messages
        or state.waited_ms >= config.flush_ms
    )

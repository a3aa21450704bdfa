"""Decides when a log is flushed. Does no I/O.

If a request waits until records of the log are flushed, the flush begins at once, so that the
request waits only for the flush, and not for a timer. If no request waits, the flush begins when
`flush.messages` records are unflushed, or when records have been unflushed for `flush.ms`. So many
records are flushed together. At most one flush of a partition runs at a time. Records that are
appended during a flush are flushed by the next flush.
"""

from __future__ import annotations

from dataclasses import dataclass

from skidway.broker.log.config import LogConfig


@dataclass(frozen=True, slots=True)
class Flushing:
    """The values on which the decision to flush a log depends. Times are in ms."""

    unflushed_messages: int
    running: bool
    awaited: bool
    waited_ms: float


def must_flush(state: Flushing, config: LogConfig) -> bool:
    """Returns whether the broker must begin to flush the log now."""
    if state.running or not state.unflushed_messages:
        return False
    return (
        state.awaited
        or state.unflushed_messages >= config.flush_messages
        or state.waited_ms >= config.flush_ms
    )

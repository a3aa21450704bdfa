"""The settings of one topic that concern its logs. If the topic does not set a value, the broker's
default applies."""

from __future__ import annotations

from dataclasses import dataclass

from skidway.kafka.gaps import Gap, covers

DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS
FOREVER_MS = (1 << 63) - 1
UNLIMITED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """The settings for the logs of one topic. Sizes are in bytes, and times in ms. A retention of
    -1 means no limit. Most defaults are Kafka's."""

    segment_bytes: int = 1 << 30
    segment_ms: int = WEEK_MS
    index_interval_bytes: int = 4096
    segment_index_bytes: int = 10 << 20
    retention_ms: int = WEEK_MS
    retention_bytes: int = UNLIMITED
    held_by: tuple[str, ...] = ()
    """The groups in `retention.hold`. The broker keeps a segment that one of these groups has not
    read yet, up to the limits in the next two fields.
    """
    hold_bytes_max: int = UNLIMITED
    hold_ms_max: int = 2 * WEEK_MS
    file_delete_delay_ms: int = 60_000
    max_message_bytes: int = 1_048_588
    min_insync_replicas: int = 1
    flush_messages: int = 10_000
    flush_ms: int = 50
    timestamp_before_max_ms: int = FOREVER_MS
    timestamp_after_max_ms: int = FOREVER_MS
    append_time: bool = False
    """Whether the broker writes the time of the append into batches, instead of the records' event
    times (LogAppendTime)."""
    contiguous: bool = True
    """Whether each batch begins at the offset where the batch before it ended. False for a mirror
    topic, which keeps the offsets of its source, and so has the same gaps as the source.
    """
    gaps: tuple[Gap, ...] | None = None
    """For a log that is not contiguous: the ranges of offsets that may be missing; None if any
    offset may be missing.
    """

    def may_miss(self, partition: int, first: int, end: int) -> bool:
        """Returns whether all offsets [first, end) may be missing from the log of the partition."""
        if self.contiguous:
            return False
        return self.gaps is None or covers(self.gaps, partition, first, end)

    @property
    def bounds_timestamps(self) -> bool:
        """Whether the broker must compare the event times of records with its clock: the topic has
        a limit for the difference, and does not use LogAppendTime."""
        return not self.append_time and (
            self.timestamp_before_max_ms != FOREVER_MS or self.timestamp_after_max_ms != FOREVER_MS
        )

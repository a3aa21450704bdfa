"""One mirror partition: its follower (which decides what to copy), its log, and the reason why
copying waits or has stopped."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from skidway.broker.log.files import DamagedLog, StorageFailed
from skidway.broker.log.partition_log import PartitionLog
from skidway.broker.mirror.follower import Below, Follower, Phase
from skidway.broker.partitions.replica import Replica
from skidway.kafka.batch import HEADER_BYTES, BatchHeader, CorruptBatch, read_header
from skidway.kafka.client.backoff import Backoff
from skidway.kafka.types import TopicPartition

UNKNOWN: Final = -1
"""The value of the high watermark until the source has sent it."""


class MirrorPartition:
    """One mirror partition. Only its MirrorSource uses it.

    `attempt` counts how often the mirror has stopped fetching from an offset, for example to fetch
    from another one. An answer to a request from an earlier attempt is ignored. Methods that read
    the end of the log raise DamagedLog and StorageFailed.
    """

    __slots__ = (
        "_backoff",
        "_end",
        "_must_append",
        "_records",
        "_size_bytes",
        "attempt",
        "follower",
        "is_paused",
        "refusal",
        "replica",
        "retry_at",
        "tp",
        "tries",
        "trouble",
        "unverifiable",
        "watermark",
    )

    def __init__(self, tp: TopicPartition, replica: Replica, backoff: Backoff) -> None:
        """tp: the partition's name in the source."""
        self.tp = tp
        self.replica = replica
        self.follower = Follower(replica.log.log_end_offset, last_batch(replica.log))
        self.attempt = 0
        self.is_paused = False
        self.refusal = ""  # why the log refused an append in this turn
        self.retry_at: float | None = None
        # How often the source was asked where its log begins and ends, since this partition last
        # copied or compared a batch.
        self.tries = 0
        self.trouble = ""
        self.unverifiable: int | None = None
        self.watermark = UNKNOWN
        self._backoff = backoff
        self._end = replica.log.log_end_offset
        self._must_append = False
        self._records = 0
        self._size_bytes = 0

    @property
    def name(self) -> str:
        """The name of the partition in this cluster."""
        return str(self.replica.partition)

    @property
    def is_stopped(self) -> bool:
        """Whether the partition waits for an operator."""
        return self.follower.phase is Phase.STOPPED

    @property
    def was_taken_back(self) -> bool:
        """Whether the log has undone the last append, because it could not write the batches."""
        return self.replica.log.log_end_offset != self._end

    def append(self, batches: Iterable[tuple[memoryview, BatchHeader]], now_ms: int) -> None:
        """Appends batches to the log, which writes them to its file at the end of the turn. Raises
        StorageFailed."""
        for batch, header in batches:
            self.replica.log.append_mirrored(batch, header, now_ms)
            self.follower.appended(header)
            self._end = self.replica.log.log_end_offset
            self._records += header.count
            self._size_bytes += len(batch)

    def written(self) -> tuple[int, int]:
        """Called when the appended batches are written to the file. Returns how many records and
        bytes were appended since the last call.
        """
        done = self._records, self._size_bytes
        self._records = self._size_bytes = 0
        return done

    def look_anew(self) -> None:
        """Reads the end of the log again and passes it to the follower, because the log does not
        end at the offset that the follower expects."""
        self._records = self._size_bytes = 0
        self._end = self.replica.log.log_end_offset
        self.follower.taken_back(self._end, last_batch(self.replica.log))

    def went_on(self, *, by_append: bool) -> None:
        """Called when batches were copied (`by_append`), or when the last batch was compared
        successfully. Clears the reason for waiting that `wait` has noted. After a call of `wait`
        with `must_append`, only copied batches clear the reason, and a comparison does not.
        """
        if by_append or not self._must_append:
            self.trouble, self.tries, self._must_append = "", 0, False
            self._backoff.reset()

    def wait(self, why: str, now: float, *, must_append: bool) -> None:
        """Notes why copying waits, and sets the time of the next attempt.

        now: monotonic seconds. must_append: whether only copied batches clear the reason (see
        `went_on`).
        """
        self.trouble, self._must_append = why, must_append
        self.retry_at = now + self._backoff.next_s()


def last_batch(log: PartitionLog) -> Below | None:
    """Returns the batch that ends at the log end offset; None if there is no such batch.

    Must be called between two turns of the loop, because a batch that is appended but not written
    yet cannot be read. Raises DamagedLog and StorageFailed.
    """
    end = log.written
    if end.offset == log.log_start_offset:
        return None
    found = log.read(end.offset - 1, HEADER_BYTES, end, at_least_one=True)
    if found is None:
        return None
    path = log.segment_of(end.offset - 1).path
    try:
        data = os.pread(found.file.fileno(), HEADER_BYTES, found.position)
        below = Below.of(read_header(data))
    except OSError as error:
        raise StorageFailed("read", path, error) from error
    except CorruptBatch as error:
        raise DamagedLog(path, found.position, str(error)) from error
    if below.last_offset != end.offset - 1:
        reason = f"its last batch ends at offset {below.last_offset}, not {end.offset - 1}"
        raise DamagedLog(path, found.position, reason)
    return below

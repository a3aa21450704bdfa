"""One mirror partition: its follower (which decides what to copy), its log, and the reason why
copying waits or has stopped."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, NamedTuple

from skidway.broker.log.files import DamagedLog, StorageFailed
from skidway.broker.log.partition_log import PartitionLog
from skidway.broker.mirror.follower import Action, Append, Below, Follower, Phase
from skidway.broker.partitions.replica import Replica
from skidway.kafka.batch import HEADER_BYTES, BatchHeader, CorruptBatch, check, read_header
from skidway.kafka.client.backoff import Backoff
from skidway.kafka.types import TopicPartition

UNKNOWN: Final = -1
"""The value of the high watermark until the source has sent it."""


class MirrorPartition:
    """One mirror partition. Only the parts of its MirrorSource use it.

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

    def copy(
        self, batches: Sequence[memoryview], now_ms: int
    ) -> tuple[list[BatchHeader], Action | str | None]:
        """Appends fetched batches to the log, as far as the follower says so. The log writes them
        to its file at the end of the turn. Returns the headers of the appended batches, and what
        else is to be done: a sentence means that a batch was damaged in transfer or in the source.
        """
        headers, damage = _whole(batches)
        at, before = 0, self.follower.phase
        done: list[BatchHeader] = []
        while at < len(headers):
            action = self.follower.fetched(headers[at:])
            if action is None:
                break
            if not isinstance(action, Append):
                return done, action
            at += action.first
            here = slice(at, at + action.count)
            try:
                for batch, header in zip(batches[here], headers[here], strict=True):
                    self._append(batch, header, now_ms)
            except StorageFailed as error:
                self.refusal = str(error)
                return done, None
            done += headers[here]
            at += action.count
        is_same = before is Phase.CHECKING and self.follower.phase is Phase.FOLLOWING
        if is_same and not damage and not self._must_append:
            self._went_on()
        return done, damage or None

    def written(self) -> tuple[int, int] | str:
        """Called after the writes of a turn in which batches were appended. Returns how many
        records and bytes are in the file since the last call, or why they are not."""
        refusal, self.refusal = self.refusal, ""
        if refusal or self.replica.log.log_end_offset != self._end:
            return refusal or "the log refused a write"
        done = self._records, self._size_bytes
        self._records = self._size_bytes = 0
        if self.retry_at is None:
            self._went_on()
        return done

    def look_anew(self) -> None:
        """Reads the end of the log again and passes it to the follower, because the log does not
        end at the offset that the follower expects."""
        self._records = self._size_bytes = 0
        self._end = self.replica.log.log_end_offset
        self.follower.taken_back(self._end, last_batch(self.replica.log))

    def wait(self, why: str, now: float, *, must_append: bool) -> None:
        """Notes why copying waits, and sets the time of the next attempt.

        now: monotonic seconds. must_append: whether only copied batches clear the reason, and
        a successful comparison of the last batch does not.
        """
        self.trouble, self._must_append = why, must_append
        self.retry_at = now + self._backoff.next_s()

    def leave(self, watermark: int) -> None:
        """Called when the partition will be fetched from another position, or will not be fetched
        any more. watermark: the last high watermark that the source has sent."""
        self.attempt += 1
        self.retry_at, self.watermark = None, watermark

    def _append(self, batch: memoryview, header: BatchHeader, now_ms: int) -> None:
        self.replica.log.append_mirrored(batch, header, now_ms)
        self.follower.appended(header)
        self._end = self.replica.log.log_end_offset
        self._records += header.count
        self._size_bytes += len(batch)

    def _went_on(self) -> None:
        self.trouble, self.tries, self._must_append = "", 0, False
        self._backoff.reset()


class Attempt(NamedTuple):
    """The fetching of a partition from one offset. number: the partition's `attempt`."""

    partition: MirrorPartition
    number: int


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


def _whole(batches: Sequence[memoryview]) -> tuple[list[BatchHeader], str]:
    headers: list[BatchHeader] = []
    try:
        for batch in batches:
            header = read_header(batch)
            check(batch, 0, header)
            headers.append(header)
    except CorruptBatch as error:
        return headers, f"a batch arrived damaged: {error}"
    return headers, ""

"""The torn tail of a log: what a crash has left behind the log's last whole batch, and how it is
removed.

The bytes are copied to a `.cut` file before they are cut off, and this needs space. While the disk
is full, the log is served up to its last whole batch, and the torn tail stays in the files. It must
be removed before anything is appended.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from skidway import log
from skidway.broker.log import names
from skidway.broker.log.files import write_all_at
from skidway.broker.log.segment import Segment
from skidway.files import fsync_directory
from skidway.kafka.types import TopicPartition

_COPY_BYTES = 1 << 20
_log = log.get(__name__)


@dataclass(frozen=True, slots=True)
class TornTail:
    """The bytes of `segment` from `segment.size` up to `end`, and the segments `following`. None of
    their records was ever flushed. reason: why the first bytes are no batch."""

    partition: TopicPartition
    segment: Segment
    end: int
    following: tuple[Segment, ...]
    reason: str

    @property
    def size_bytes(self) -> int:
        """The number of bytes that are not part of the log any more."""
        return self.end - self.segment.size + sum(each.size for each in self.following)

    def remove(self) -> None:
        """Makes a durable copy of the bytes, and cuts them off. Raises OSError; the call can then
        be repeated."""
        # The following segments go first. If they stayed without the bytes in front of them, the
        # next recovery would take the log for damaged.
        for each in self.following:
            self._set_aside(each)
        remove_files(self.following)
        if self.end > self.segment.size:
            self._cut()

    def _set_aside(self, segment: Segment) -> None:
        if not segment.size or not segment.path.exists():
            return
        copy = segment.directory / names.cut_file(segment.base_offset, 0)
        segment.let_go()
        segment.path.rename(copy)
        _log.error(
            "unflushed_segment_set_aside",
            partition=str(self.partition),
            file=str(segment.path),
            bytes=segment.size,
            copy=str(copy),
        )

    def _cut(self) -> None:
        segment, position = self.segment, self.segment.size
        copy = segment.directory / names.cut_file(segment.base_offset, position)
        try:
            _copy(segment.file.descriptor, position, copy)
        except OSError:
            copy.unlink(missing_ok=True)  # a part of a copy would only take the last space
            raise
        fsync_directory(segment.directory)
        _log.warning(
            "torn_tail_cut",
            partition=str(self.partition),
            file=str(segment.path),
            position=position,
            bytes=self.end - position,
            reason=self.reason,
            copy=str(copy),
        )
        segment.file_cut(position)


def remove_files(segments: Sequence[Segment]) -> None:
    """Deletes all files of segments that have no records, or were set aside. If these files stayed,
    their first offset would not follow the end of the segments before them."""
    for segment in segments:
        for suffix in names.SEGMENT_SUFFIXES:
            segment.path_of(suffix).unlink(missing_ok=True)


def _copy(source: int, position: int, copy: Path) -> None:
    descriptor = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        at = 0
        while chunk := os.pread(source, _COPY_BYTES, position + at):
            write_all_at(descriptor, (chunk,), at)
            at += len(chunk)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""Opens the log of a partition at the start of the broker, after a clean stop or after a crash
(recovery).

After a clean stop, recovery looks only at the end of each segment. Otherwise it reads each segment
that contains the recovery point or later offsets: it checks the CRC of every batch, and computes
the indexes and the state of producers again. Recovery divides invalid bytes into three kinds:

    a torn tail   bytes at or above the recovery point that are no whole batch, if no valid batch
                  follows these bytes. A crash leaves such bytes (a part of the last write, zeros,
                  or old blocks). No consumer has ever got these bytes. Recovery copies them to a
                  `.cut` file and cuts them off.
    pages that    a batch at or above the recovery point that was written only in part: one of its
    are missing   pages contains only zeros, or the file ends within the batch. Pages reach a disk
                  in any order, so a power failure may leave valid batches after the missing pages.
                  But a flush of these batches would have included the missing pages, so none of
                  these batches was flushed (docs/adr/0015). Recovery copies and cuts off both the
                  batch that was written in part and all batches after it. The batches after it may
                  extend into the next segment, but no further.
    damage        one of these: invalid bytes below the recovery point; invalid bytes before valid
                  batches although no pages are missing; or a batch whose CRC is right, but which
                  does not belong at its position. (The CRC does not cover base offset and leader
                  epoch, so a bit may have changed in these two fields of this batch or of the
                  previous batch.) A crash cannot cause such bytes. Recovery raises DamagedLog with
                  the file and the position. The broker does not serve the partition, and changes
                  nothing.

A log that ends before its recovery point is also damaged: a file is missing or has lost its end.
Recovery does not read segments that end before the recovery point. It only checks that each of them
ends where the next segment begins. (If a segment ends exactly at the recovery point, recovery reads
it, because its indexes may not be on disk yet.) In a mirror's log, offsets may be missing within a
segment or between two segments. This is no damage if the topic's settings list these offsets as
gaps. Recovery makes an index again if it is missing, partial or too short. Recovery also makes an
index again if the index's last entry does not match its batch.

Recovery calls fsync for the valid batches before they count as flushed.

On a full disk, recovery writes neither the copy of a torn tail nor indexes. The log is then served
up to its last whole batch; the torn tail stays in its files until there is space (`torn_tail`), and
the entries of the indexes stay in memory.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from skidway.broker.log import names, scan
from skidway.broker.log.files import DISK_FULL, DamagedLog, StorageFailed
from skidway.broker.log.opening import Account, Opening
from skidway.broker.log.partition_log import PartitionLog
from skidway.broker.log.producer_state import ProducerState
from skidway.broker.log.segment import Segment
from skidway.broker.log.state_recovery import epochs_of, producers_of, read_snapshot
from skidway.broker.log.torn_tail import TornTail, remove_files
from skidway.files import fsync_directory

SET_ASIDE_MAX = 1
"""If recovery cuts a segment, at most this many segments with records may follow it. Recovery sets
them aside (renames them to `.cut` files). Between two flushes, the broker normally writes records
into at most this many new segments. So if more segments follow, recovery assumes that the invalid
bytes do not come from a crash.
"""


@dataclass(frozen=True, slots=True)
class Recovered:
    """A log that is ready for use, and what recovery had to do to open it."""

    log: PartitionLog
    cut_bytes: int
    scanned_bytes: int
    indexes_rebuilt: int


def open_log(opening: Opening) -> Recovered:
    """Opens a partition's log. Raises DamagedLog, StorageFailed."""
    try:
        return _open(opening)
    except OSError as error:
        raise StorageFailed("open the log in", opening.directory, error) from error


def _open(opening: Opening) -> Recovered:
    account = Account()
    _remove_leftovers(opening.directory)
    segments = _load_segments(opening)
    end_offset = segments[0].base_offset
    for at, segment in enumerate(segments):
        following = segments[at + 1 :]
        if at and _is_left_over(segments[at:], end_offset, opening):
            remove_files(segments[at:])
            segments = segments[:at]
            break
        _check_joint(segment, end_offset, opening)
        end_offset = _check_segment(segment, following, opening, account)
        if account.torn_tail is not None:
            segments = segments[: at + 1]
            break
    start = max(opening.log_start_offset, segments[0].base_offset)
    if end_offset < max(start, opening.recovery_point):
        last = segments[-1]
        raise DamagedLog(
            last.path,
            last.size,
            f"the log ends at offset {end_offset}; it started at {start} and was on disk up to "
            f"{opening.recovery_point}",
        )
    producers = producers_of(opening, segments, end_offset, account)
    torn_tail = account.torn_tail
    cut_bytes = 0 if torn_tail is None else torn_tail.size_bytes
    if torn_tail is not None and _is_removed(torn_tail):
        torn_tail = None
    if not opening.clean or account.scanned_bytes:
        _sync(opening, segments, account.scanned)
    recovered = PartitionLog(
        opening.partition,
        opening.directory,
        opening.config,
        segments,
        log_start_offset=start,
        log_end_offset=end_offset,
        producers=producers,
        epochs=epochs_of(opening, segments, start, end_offset, account),
        torn_tail=torn_tail,
    )
    snapshot = opening.directory / names.segment_file(end_offset, names.PRODUCERS)
    if opening.clean and not account.scanned_bytes and snapshot.exists():
        recovered.closed_at = end_offset
    return Recovered(recovered, cut_bytes, account.scanned_bytes, account.indexes_rebuilt)


def _is_removed(torn_tail: TornTail) -> bool:
    """Removes the torn tail. Returns whether the disk had space for the copy. If it had none, the
    log removes the torn tail before it appends something."""
    try:
        torn_tail.remove()
    except OSError as error:
        if error.errno not in DISK_FULL:
            raise
        return False
    return True


def _remove_leftovers(directory: Path) -> None:
    bases = set(names.segment_bases(directory))
    for entry in directory.iterdir():
        index_of = names.base_offset_of(entry.name, entry.suffix)
        orphan = entry.suffix in (names.OFFSET_INDEX, names.TIME_INDEX) and index_of not in bases
        if orphan or entry.name.endswith((names.DELETED, ".tmp")):
            entry.unlink()


def _load_segments(opening: Opening) -> list[Segment]:
    bases = names.segment_bases(opening.directory)
    if not bases:
        segment = Segment.create(opening.directory, opening.first_offset)
        fsync_directory(opening.directory)
        return [segment]
    segments = [Segment(opening.directory, base) for base in bases]
    for segment in segments:
        snapshot = read_snapshot(segment.path_of(names.PRODUCERS))
        if snapshot is not None and segment.size:
            segment.first_append_ms = snapshot.first_append_ms
    return segments


def _is_left_over(segments: Sequence[Segment], end_offset: int, opening: Opening) -> bool:
    """Returns whether the last segments of a log (`segments`) are empty files that do not belong
    there: all of them are empty, and the first of them begins at a wrong offset. An offset is wrong
    if it is before the end of the preceding segments (`end_offset`), or after this end without an
    allowed gap.

    Such segments have two possible causes. A crash after a roll may lose whole unflushed batches of
    the old segment, or a roll that failed before its end may leave an empty file behind.
    """
    if end_offset < opening.recovery_point or any(each.size for each in segments):
        return False
    base = segments[0].base_offset
    return base < end_offset or (base > end_offset and not opening.may_miss(end_offset, base))


def _check_joint(segment: Segment, end_offset: int, opening: Opening) -> None:
    """Raises DamagedLog if `segment` does not begin at `end_offset`, the end of the segment before
    it. In a mirror topic, the segment may begin later if the topic's config lists the missing
    offsets as gaps.
    """
    base = segment.base_offset
    if base < end_offset or (base > end_offset and not opening.may_miss(end_offset, base)):
        raise DamagedLog(
            segment.path, 0, f"the segment in front of it ends at offset {end_offset}, not {base}"
        )


def _check_segment(
    segment: Segment, following: Sequence[Segment], opening: Opening, account: Account
) -> int:
    if not segment.size:
        _reset_indexes(segment)
        return segment.base_offset
    behind = following[0].base_offset if following else None
    if opening.clean or (behind is not None and behind < opening.recovery_point):
        end_offset = _end_by_index(segment, opening)
        if end_offset is not None:
            return end_offset
    return _scan_segment(segment, following, opening, account)


def _end_by_index(segment: Segment, opening: Opening) -> int | None:
    """Returns the offset after the segment's last record, found with the indexes, without reading
    all batches. None if an index is wrong or ends too early, or if a batch after the last index
    entry is invalid. In this case the whole segment must be read.
    """
    if not (segment.offset_index.is_whole and segment.time_index.is_whole):
        return None
    last_offset, position = segment.offset_index.last()
    if not 0 <= position < segment.size:
        return None
    first = last_offset + 1 if position else segment.base_offset
    try:
        if position:
            header = scan.Window(segment.file.descriptor, scan.HEADER_WINDOW_BYTES).header(position)
            if header.last_offset != last_offset:
                return None
            position += header.size_bytes
        end_offset, indexed = first, segment.offset_index.last()[1]
        for at, header in scan.headers(
            segment.file.descriptor,
            position,
            segment.size,
            first_offset=first,
            holes=opening.may_miss,
            crc=False,
        ):
            if at - indexed > opening.config.index_interval_bytes:
                return None
            end_offset = header.last_offset + 1
            if header.max_timestamp > segment.max_timestamp:
                segment.max_timestamp = header.max_timestamp
                segment.max_timestamp_offset = header.last_offset
    except scan.InvalidBatch:
        return None
    segment.let_go()
    return end_offset


def _scan_segment(
    segment: Segment, following: Sequence[Segment], opening: Opening, account: Account
) -> int:
    """Reads every batch and makes the indexes again. Cuts off the bytes from the first invalid
    batch on, if a crash can have left them. Returns the offset after the segment's last record.
    Raises DamagedLog."""
    _reset_indexes(segment)
    account.indexes_rebuilt += 1
    account.scanned_bytes += segment.size
    account.scanned.append(segment)
    end_offset = segment.base_offset
    producers = account.producers[segment.base_offset] = ProducerState()
    try:
        for position, header in scan.headers(
            segment.file.descriptor,
            0,
            segment.size,
            first_offset=segment.base_offset,
            holes=opening.may_miss,
            crc=True,
        ):
            interval = opening.config.index_interval_bytes
            segment.note(header, header.base_offset, position, interval)
            account.note_epoch(header)
            if header.producer_id >= 0:
                producers.update(header, header.base_offset, opening.now_ms)
            end_offset = header.last_offset + 1
            if segment.offset_index.wants_saving and not account.is_full:
                account.is_full = not segment.save_indexes()
    except scan.InvalidBatch as error:
        reason = _why_damage(segment, following, opening, error, end_offset)
        if reason is not None:
            raise DamagedLog(segment.path, error.position, reason) from error
        account.torn_tail = TornTail(
            opening.partition, segment, segment.size, tuple(following), error.reason
        )
        segment.size = error.position
    segment.save_indexes(closing=bool(following))
    return end_offset


def _reset_indexes(segment: Segment) -> None:
    segment.offset_index.clear()
    segment.time_index.clear()
    segment.indexed_size = 0
    segment.max_timestamp, segment.max_timestamp_offset = segment.time_index.last()


def _why_damage(
    segment: Segment,
    following: Sequence[Segment],
    opening: Opening,
    error: scan.InvalidBatch,
    end_offset: int,
) -> str | None:
    """Returns why the invalid bytes that a scan has found are damage; None if a crash may have left
    them, so that they may be cut off."""
    if end_offset < opening.recovery_point:
        return f"{error.reason}, below the recovery point {opening.recovery_point}"
    descriptor, position = segment.file.descriptor, error.position
    if scan.is_whole(descriptor, position, segment.size):
        return f"{error.reason}, though its CRC-32C is right"
    later = [each for each in following if each.size]
    never_written = scan.was_never_written(descriptor, position, segment.size)
    if never_written and len(later) <= SET_ASIDE_MAX:
        return None
    found = scan.valid_batch_after(descriptor, position + 1, segment.size, end_offset)
    if found is not None:
        return f"{error.reason}, and a valid batch follows at position {found}"
    cut_short = scan.is_cut_short(descriptor, position, segment.size)
    if later and not (cut_short and len(later) <= SET_ASIDE_MAX):
        return f"{error.reason}, and {later[0].path.name} goes on behind it"
    return None


def _sync(opening: Opening, segments: Sequence[Segment], scanned: Sequence[Segment]) -> None:
    """Calls fsync for the last segment and the scanned segments. The data of these segments may
    still be in the page cache and not on the disk, if the broker was killed but the machine
    continued to run."""
    for segment in segments:
        last = segment is segments[-1]
        if last or segment in scanned:
            os.fsync(segment.file.descriptor)
            segment.save_indexes(sync=True)
        if not last:
            segment.let_go()
    fsync_directory(opening.directory)

"""Recovers the state of a log's producers and its leader epochs, from their own files and from the
batches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from skidway import log
from skidway.broker.log import leader_epochs, names, scan
from skidway.broker.log.files import DamagedLog
from skidway.broker.log.leader_epochs import EpochStart, LeaderEpochs
from skidway.broker.log.opening import Account, Opening, note_epoch
from skidway.broker.log.producer_state import (
    ProducerState,
    Snapshot,
    SnapshotDamaged,
    decode_snapshot,
)
from skidway.broker.log.segment import Segment

_log = log.get(__name__)


def producers_of(
    opening: Opening, segments: Sequence[Segment], end_offset: int, account: Account
) -> ProducerState:
    """Returns the producers at the log's end, made from the newest undamaged snapshot and from the
    batches after it.

    Batches that are read again get the present time as their append time: it is better to remember
    a producer too long than to forget it too early.
    """
    found = _newest_snapshot(opening.directory, end_offset)
    from_offset, state = found if found is not None else (0, ProducerState())
    for segment in segments:
        scanned = account.producers.get(segment.base_offset)
        if segment.base_offset < from_offset:
            pass  # the snapshot already includes this segment
        elif scanned is not None:
            state.go_on(scanned)
        elif segment.size:
            _replay_producers(segment, state, opening)
            account.scanned_bytes += segment.size
        if segment is not segments[-1]:
            segment.let_go()
    return state


def epochs_of(
    opening: Opening, segments: Sequence[Segment], start: int, end_offset: int, account: Account
) -> LeaderEpochs:
    """Returns the leader epochs from the file `leader-epoch-checkpoint` and from the scanned
    segments. If the file is missing or damaged, reads the epochs from the whole log.

    A flush writes an epoch's entry into the file before the epoch's first record counts as flushed.
    So an epoch that is not in the file has no flushed records, and begins at the recovery point or
    above it. All segments above the recovery point were scanned, so the scan has found this epoch.
    """
    known = leader_epochs.read(opening.directory)
    epochs = LeaderEpochs(known or ())
    found = account.epochs
    if known is None:
        found = []
        for segment in segments:
            _read_epochs(segment, opening, found)
    epochs.cut_tail(end_offset)
    for epoch, offset in found:
        if epoch > epochs.latest:
            epochs.begin(epoch, offset)
    epochs.cut_front(start)
    return epochs


def _read_epochs(segment: Segment, opening: Opening, found: list[EpochStart]) -> None:
    if not segment.size:
        return
    try:
        for _, header in scan.headers(
            segment.file.descriptor,
            0,
            segment.size,
            first_offset=segment.base_offset,
            holes=opening.may_miss,
            crc=False,
        ):
            note_epoch(found, header)
    except scan.InvalidBatch as error:
        raise DamagedLog(segment.path, error.position, error.reason) from error
    segment.let_go()


def _replay_producers(segment: Segment, state: ProducerState, opening: Opening) -> None:
    try:
        for _, header in scan.headers(
            segment.file.descriptor,
            0,
            segment.size,
            first_offset=segment.base_offset,
            holes=opening.may_miss,
            crc=False,
        ):
            if header.producer_id >= 0:
                state.update(header, header.base_offset, opening.now_ms)
    except scan.InvalidBatch as error:
        raise DamagedLog(segment.path, error.position, error.reason) from error


def _newest_snapshot(directory: Path, end_offset: int) -> tuple[int, ProducerState] | None:
    offsets = [names.base_offset_of(entry.name, names.PRODUCERS) for entry in directory.iterdir()]
    known = sorted((each for each in offsets if each is not None), reverse=True)
    bases = set(names.segment_bases(directory)) | {end_offset}
    found = None
    for offset in known:
        path = directory / names.segment_file(offset, names.PRODUCERS)
        if offset > end_offset or offset not in bases:
            # This snapshot is useless. Either its offset is above the log's end, because the end of
            # the log was lost in a crash. Or it was written at an earlier clean stop, and no
            # segment begins at its offset.
            path.unlink()
        elif found is None:
            snapshot = read_snapshot(path)
            if snapshot is not None:
                found = offset, snapshot.state
    return found


def read_snapshot(path: Path) -> Snapshot | None:
    try:
        return decode_snapshot(path.read_bytes())
    except FileNotFoundError:
        return None
    except SnapshotDamaged as error:
        _log.warning("producer_snapshot_ignored", file=str(path), reason=str(error))
        return None

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skidway.broker.log import names
from skidway.broker.log.config import LogConfig
from skidway.broker.log.leader_epochs import NOT_KNOWN, EpochEnd, EpochStart, LeaderEpochs, read
from skidway.kafka.batch import read_header, stamp
from support.batches import NOW_MS, append, batch, flush, open_in, put

KNOWN = [EpochStart(1, 0), EpochStart(4, 30), EpochStart(5, 70)]


@pytest.mark.parametrize(
    ("asked", "end"),
    [
        (-1, NOT_KNOWN),
        (0, EpochEnd(0, 0)),
        (1, EpochEnd(1, 30)),
        (2, EpochEnd(1, 30)),
        (4, EpochEnd(4, 70)),
        (5, EpochEnd(5, 90)),
        (7, EpochEnd(7, 100)),
        (6, EpochEnd(5, 90)),
        (8, NOT_KNOWN),
    ],
)
def test_where_an_epoch_ends(asked: int, end: EpochEnd) -> None:
    """The broker's answer about the end of a leader epoch has two values. The first is the highest
    known epoch that is not higher than the requested epoch, or the requested epoch if no such epoch
    is known. The second is the offset at which the next known epoch begins, or the log end offset
    if there is no next epoch. For a negative epoch, or one above the current epoch, both values are
    -1."""
    epochs = LeaderEpochs([*KNOWN, EpochStart(7, 90)])
    assert epochs.end_of(asked, current=7, log_end_offset=100) == end


def test_the_leaders_own_epoch_begins_at_the_end() -> None:
    """A leader may have appended nothing yet in its own epoch. A request for the end of this epoch
    then gets the log end offset. A request for the end of the previous epoch gets the same
    offset."""
    epochs = LeaderEpochs(KNOWN)
    assert epochs.end_of(9, current=9, log_end_offset=100) == EpochEnd(9, 100)
    assert epochs.end_of(5, current=9, log_end_offset=100) == EpochEnd(5, 100)
    assert LeaderEpochs().end_of(0, current=0, log_end_offset=0) == EpochEnd(0, 0)


def test_both_ends_are_cut() -> None:
    """When records are removed from the end of a log, the entries of all leader epochs without
    remaining records are removed. When records are removed from the beginning, such entries are
    removed, too, except the log's last entry. The log may start in the middle of an epoch. The
    entry of this epoch keeps the offset at which the epoch began."""
    epochs = LeaderEpochs(KNOWN)
    epochs.cut_tail(70)
    assert (epochs.latest, epochs.entries) == (4, tuple(KNOWN[:2]))
    epochs.cut_front(30)
    assert epochs.entries == (EpochStart(4, 30),)
    epochs.cut_front(1000)
    assert epochs.entries == (EpochStart(4, 30),)
    epochs.begin(6, 30)
    assert epochs.entries == (EpochStart(6, 30),)


@pytest.mark.parametrize(
    "content",
    [b"", b"1\n0\n", b"0\n2\n0 0\n", b"0\n1\nx 0\n", b"0\n2\n3 0\n2 9\n", b"0\n1\n\xff\n"],
)
def test_a_damaged_file_counts_as_none(tmp_path: Path, content: bytes) -> None:
    """A damaged epoch file (leader-epoch-checkpoint, with the start offset of each leader epoch)
    counts as missing. It does not stop the broker, because the broker can find the epochs in the
    log again."""
    assert read(tmp_path) is None
    (tmp_path / names.LEADER_EPOCHS).write_bytes(content)
    assert read(tmp_path) is None


def with_epochs(directory: Path) -> None:
    """Writes a log of several segments in which the epochs 0, 2 and 3 begin at the offsets 0, 2 and
    5. Flushes and closes the log."""
    log = open_in(directory, LogConfig(segment_bytes=200))
    for epoch, count in ((0, 2), (2, 3), (3, 1)):
        for _ in range(count):
            append(log, batch(b"x" * 50), epoch=epoch)
    flush(log)
    log.close_cleanly()


EXPECTED = (EpochStart(0, 0), EpochStart(2, 2), EpochStart(3, 5))


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("content", [None, b"nonsense", b"0\n1\n0 0\n"])
def test_epochs_are_found_again(tmp_path: Path, clean: bool, content: bytes | None) -> None:
    """After a clean or an unclean stop, the broker finds the leader epochs again if the epoch file
    is missing or damaged. After an unclean stop, it also finds epochs that an old epoch file
    lacks."""
    with_epochs(tmp_path)
    path = tmp_path / names.LEADER_EPOCHS
    assert read(tmp_path) == list(EXPECTED)
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    if clean and content == b"0\n1\n0 0\n":
        return  # after a clean stop, the epoch file is never old
    assert open_in(tmp_path, clean=clean).epochs.entries == EXPECTED


def test_the_file_is_durable_before_its_records_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flush that makes the first records of an epoch durable first writes the epoch to the
    epoch file."""
    log = open_in(tmp_path)
    append(log, batch(), epoch=4)
    assert read(tmp_path) is None
    when_synced: list[object] = []
    monkeypatch.setattr(os, "fdatasync", lambda _: when_synced.append(read(tmp_path)))
    flush(log)
    assert when_synced == [[EpochStart(4, 0)]]


def test_an_epoch_that_was_not_written_is_forgotten(tmp_path: Path) -> None:
    """If the first write of an epoch's records fails, the broker forgets the epoch together with
    these records."""
    log = open_in(tmp_path)
    append(log, batch(), epoch=1)
    put(log, batch(), epoch=2)
    assert log.epochs.latest == 2
    log.active.path.unlink()
    log.active.let_go()
    with pytest.raises(Exception, match="append to"):
        log.write()
    assert log.epochs.entries == (EpochStart(1, 0),)


def test_the_epochs_of_expired_segments_go(tmp_path: Path) -> None:
    """When the log start moves forward, the epochs that end before the new log start are
    forgotten."""
    with_epochs(tmp_path)
    log = open_in(tmp_path, clean=True)
    log.start_at(5)
    assert log.epochs.entries == EXPECTED[2:]


def test_a_mirror_keeps_its_sources_epochs(tmp_path: Path) -> None:
    """A mirror keeps the leader epochs of its source. The epochs are in the copied batches, and
    consumers of the mirror name these epochs in their requests."""
    log = open_in(tmp_path, LogConfig(contiguous=False))
    for epoch, base in ((3, 10), (3, 11), (7, 20)):
        data = batch(b"x")
        stamp(data, 0, base, epoch)
        log.append_mirrored(memoryview(data), read_header(data), NOW_MS)
        log.write()
    flush(log)
    assert log.epochs.entries == (EpochStart(3, 10), EpochStart(7, 20))
    assert log.epochs.end_of(3, current=0, log_end_offset=21) == EpochEnd(3, 20)
    again = open_in(tmp_path, LogConfig(contiguous=False))
    assert again.epochs.entries == log.epochs.entries

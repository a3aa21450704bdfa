"""The first offset of each leader epoch in a log. These offsets are derived from the leader epochs
in the headers of the batches.

A consumer knows the leader epoch of the last record that it read, and asks where this epoch ended.
From the answer the consumer learns whether the log still contains the records that it read
(KIP-101, KIP-320).

The offsets are in the file `leader-epoch-checkpoint` in a partition's directory, so that the broker
need not read the log at its start to find them. The flush that makes an epoch's first records
durable also writes this file. If the file is missing or damaged, the broker makes it from the log.
The file has Kafka's format::

    0                  version
    2                  entries
    0 0                epoch, offset of its first record
    3 1200

A mirror keeps the epochs of its source, because the epochs are in the bytes of the batches, which
the mirror copies unchanged.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from skidway import log
from skidway.broker.log import names

UNDEFINED = -1
_VERSION = "0"
_log = log.get(__name__)


class EpochStart(NamedTuple):
    """A leader epoch and the offset of its first record."""

    epoch: int
    offset: int


class EpochEnd(NamedTuple):
    """An epoch and the offset after its last record. Both are -1 if they are not known."""

    epoch: int
    offset: int


NOT_KNOWN = EpochEnd(UNDEFINED, UNDEFINED)


class LeaderEpochs:
    """One entry for each leader epoch of a log, in ascending order of epochs and offsets. Recovery
    makes the entries; after that, only the PartitionLog of this log changes them.

    latest: the epoch of the last entry, -1 if there is no entry. changed: whether the entries have
    changed since they were last written into the file `leader-epoch-checkpoint`. Entries that a
    running flush writes into the file count as written.
    """

    __slots__ = ("_entries", "changed", "latest")

    def __init__(self, entries: Iterable[EpochStart] = (), *, changed: bool = False) -> None:
        self._entries = list(entries)
        self.changed = changed
        self.latest = self._entries[-1].epoch if self._entries else UNDEFINED

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        """All entries."""
        return tuple(self._entries)

    def begin(self, epoch: int, offset: int) -> None:
        """Adds an entry for an epoch that is higher than `latest`. offset: the offset of the
        epoch's first record."""
        assert epoch > self.latest
        # If an entry's epoch begins at `offset` or later, all records of this epoch were removed
        # from the log.
        while self._entries and self._entries[-1].offset >= offset:
            self._entries.pop()
        self._entries.append(EpochStart(epoch, offset))
        self.latest, self.changed = epoch, True

    def cut_tail(self, offset: int) -> None:
        """Removes the entries of epochs that begin at `offset` or later, because the records of
        these epochs were removed."""
        while self._entries and self._entries[-1].offset >= offset:
            self._entries.pop()
            self.changed = True
        self.latest = self._entries[-1].epoch if self._entries else UNDEFINED

    def cut_front(self, log_start_offset: int) -> None:
        """Removes the entries of epochs whose records are all below the log start offset."""
        while len(self._entries) > 1 and self._entries[1].offset <= log_start_offset:
            self._entries.pop(0)
            self.changed = True

    def end_of(self, epoch: int, *, current: int, log_end_offset: int) -> EpochEnd:
        """Returns the end of `epoch`. If the log has no record of this epoch, returns the next
        lower epoch that has records in the log, and the end of that epoch. Returns NOT_KNOWN if
        `epoch` is negative, or higher than every epoch of the log and than `current`.

        `current` is the leader's present epoch. If the present epoch has no record yet, it begins
        at the log end.
        """
        entries = self._entries
        if current > self.latest:
            entries = [*entries, EpochStart(current, log_end_offset)]
        if epoch < 0 or not entries or epoch > entries[-1].epoch:
            return NOT_KNOWN
        if epoch == entries[-1].epoch:
            return EpochEnd(epoch, log_end_offset)
        behind = bisect_right(entries, epoch, key=_epoch)
        # If the given epoch is lower than the epoch of every entry, the answer contains the given
        # epoch and the offset of the first entry, as in Kafka.
        known = entries[behind - 1].epoch if behind else epoch
        return EpochEnd(known, entries[behind].offset)

    def encode(self) -> bytes:
        """Returns the content of the file `leader-epoch-checkpoint` with these entries."""
        lines = [_VERSION, str(len(self._entries))]
        lines += [f"{epoch} {offset}" for epoch, offset in self._entries]
        return ("\n".join(lines) + "\n").encode()


def read(directory: Path) -> list[EpochStart] | None:
    """Returns the entries of the file `leader-epoch-checkpoint` in a partition's directory; None if
    the file is missing or damaged."""
    path = directory / names.LEADER_EPOCHS
    try:
        lines = path.read_text("ascii").splitlines()
        return _entries(lines)
    except FileNotFoundError:
        return None
    except (IndexError, ValueError) as error:
        _log.warning("leader_epochs_ignored", file=str(path), reason=str(error))
        return None


def _entries(lines: list[str]) -> list[EpochStart]:
    version, count, rows = lines[0], int(lines[1]), lines[2:]
    if version != _VERSION or len(rows) != count:
        raise ValueError(f"version {version}, {count} entries, {len(rows)} lines")
    found = []
    for row in rows:
        epoch, offset = row.split(" ")
        found.append(EpochStart(int(epoch), int(offset)))
    if any(b.epoch <= a.epoch or b.offset <= a.offset for a, b in pairwise(found)):
        raise ValueError("its entries do not ascend")
    return found


def _epoch(entry: EpochStart) -> int:
    return entry.epoch

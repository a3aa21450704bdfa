"""Decides for one mirror partition what to do after a batch or an error from the source. (The
source is the partition in the other cluster from which the mirror copies.)

The follower does no I/O: it gets headers and offsets, and returns actions. The owner of the
mirror's log (a MirrorSource) carries out these actions. The owner also tells the follower where the
mirror's log ends, and which batch is the last batch of this log.

    CHECKING --same last batch---> FOLLOWING --interrupted--> CHECKING
        \\--different----------------------------------> STOPPED
    CHECKING or FOLLOWING --offsets missing--> NAMING --stored, or failed--> CHECKING

To *name* a gap means to store it in the config `mirror.gaps` of the mirror topic. If the source's
log begins after the end of the mirror's log, the follower looks at the source's first batch before
it names the gap. The log start offset of the source may be inside this batch. In this case the
batch begins before the log start offset, and fewer offsets are missing than the log start offset
suggests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from skidway.kafka.batch import BatchHeader

EXPIRED = "expired"
MISSING = "missing-in-source"


class Phase(Enum):
    """The state of a follower."""

    CHECKING = "checking"
    FOLLOWING = "following"
    NAMING = "naming a gap"
    STOPPED = "stopped"


class Below(NamedTuple):
    """The facts that identify the last batch in the mirror's log, so that the batch can be compared
    with the source's batch at the same offsets. The last batch ends at the mirror's log end, or at
    the beginning of a gap that is already stored.
    """

    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int

    @classmethod
    def of(cls, header: BatchHeader) -> Below:
        """Returns the facts that identify a batch, from its header."""
        return cls(header.base_offset, header.last_offset, header.leader_epoch, header.crc)


@dataclass(frozen=True, slots=True)
class Append:
    """An action: append `count` of the fetched batches unchanged, from the batch at index `first`
    on."""

    first: int
    count: int


@dataclass(frozen=True, slots=True)
class NameGap:
    """An action: store durably that the offsets [first, end) are missing, then call `gap_named`."""

    first: int
    end: int
    reason: str


@dataclass(frozen=True, slots=True)
class Stop:
    """An action: copy nothing more, and report the reason. The broker still serves the mirror's
    log."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unverifiable:
    """An action: report that the last batch of the mirror's log cannot be compared, because the
    source no longer has it. Then fetch from the offset that `Follower.position` returns.
    """

    offset: int


@dataclass(frozen=True, slots=True)
class LookAgain:
    """An action: fetch from the offset that `Follower.position` returns."""


Action = Append | NameGap | Stop | Unverifiable | LookAgain


class Follower:
    """The state of one mirror partition. Only the partition's MirrorSource uses it."""

    def __init__(self, log_end: int, below: Below | None) -> None:
        """below: the last batch of the mirror's log; None if the log has no batch."""
        self.phase = Phase.CHECKING
        self.log_end = log_end
        self.reason = ""
        self.same_to = 0
        """For a stopped partition: the offset below which source and mirror have the same records,
        as far as is known."""
        self._below = below
        self._epoch = -1 if below is None else below.leader_epoch
        # The log start offset of the source, if it is above the end of the mirror's log.
        self._source_start: int | None = None
        # Whether the records just before the gap that is being stored have expired in the source.
        self._has_expired = False

    def position(self) -> int:
        """Returns the offset from which to fetch in the source: the log start offset of the source,
        if it is above the end of the mirror's log. Otherwise, the result depends on the state: in
        the state CHECKING, it is the last offset of the last batch in the mirror's log; in all
        other states, it is the end of this log.
        """
        if self._source_start is not None:
            return self._source_start
        if self.phase is Phase.CHECKING and self._below is not None:
            return self._below.last_offset
        return self.log_end

    def interrupted(self) -> None:
        """Notes that the copying was interrupted, for example by a new connection. Before copying
        continues, the follower compares the last batch of the mirror's log with the source again.

        If the interruption came while a gap was being stored, the follower finds the gap again
        after the comparison. Even then the gap is stored only once.
        """
        if self.phase is not Phase.STOPPED:
            self.phase, self._source_start = Phase.CHECKING, None

    def taken_back(self, log_end: int, below: Below | None) -> None:
        """Called after the write of appended batches has failed. The mirror's log now ends at
        `log_end`, as before these appends. below: the last batch of this log."""
        self.interrupted()
        self.log_end, self._below = log_end, below
        self._epoch = -1 if below is None else below.leader_epoch

    def fetched(self, headers: Sequence[BatchHeader]) -> Action | None:
        """Returns what to do with fetched batches, which are complete and in the order of offsets;
        None if there is nothing to do now.
        """
        if self.phase not in (Phase.CHECKING, Phase.FOLLOWING):
            return None
        first, found = 0, headers[0]
        if self._source_start is not None:
            if self._below is not None and found.base_offset <= self.log_end:
                # No offset is missing in the mirror, but the source no longer has the mirror's last
                # batch.
                return self._unverifiable()
        elif self.phase is Phase.CHECKING and self._below is not None:
            if found.base_offset > self._below.last_offset:
                return self._unverifiable()
            if Below.of(found) != self._below:
                return self.stop(_difference(self._below, Below.of(found)))
            first = 1
        self.phase = Phase.FOLLOWING
        return self._append(headers, first)

    def out_of_range(self, log_start: int, high_watermark: int) -> Action:
        """Returns what to do after the source has refused to return batches from the offset that
        `position` gave. log_start, high_watermark: the bounds of the source's log.
        """
        self.interrupted()
        if log_start > self.log_end:
            if log_start >= high_watermark:
                return self._name_gap(log_start, EXPIRED)
            self._source_start = log_start
            return LookAgain()
        if self.log_end > high_watermark:
            return self.stop(
                f"the source ends at offset {high_watermark}, below the mirror's end "
                f"{self.log_end}: it lost or never had the records that the mirror has"
            )
        if self._below is not None and log_start > self._below.last_offset:
            return self._unverifiable()
        return LookAgain()  # the source has the offset, so its batch can be compared

    def nothing_there(self, high_watermark: int) -> NameGap | None:
        """Returns what to do if the source has no batch at the fetched offset yet; None if there is
        nothing to do. If all records of the source have expired, its log begins and ends at the
        fetched offset. Then the follower stores the gap at once, without waiting for the next
        batch.
        """
        if self._source_start is None or high_watermark > self._source_start:
            return None
        return self._name_gap(self._source_start, EXPIRED)

    def stop(self, reason: str, *, same_to: int = 0) -> Stop:
        """Notes that the partition is stopped because of a failure that will not end by itself, and
        returns the action for it."""
        self.phase, self.reason, self.same_to = Phase.STOPPED, reason, same_to
        return Stop(reason)

    def appended(self, header: BatchHeader) -> None:
        """Notes a batch that was appended to the mirror's log."""
        assert header.base_offset >= self.log_end
        self.log_end, self._below = header.last_offset + 1, Below.of(header)
        self._epoch = header.leader_epoch

    def gap_named(self, end: int) -> None:
        """Called when a gap that ends at the offset `end` is stored in the topic's config. Copying
        continues after the gap.

        If the source still has the batch before the gap, the follower compares this batch with the
        mirror's copy again, to notice at once if the source's log has diverged.
        """
        assert self.phase is Phase.NAMING
        if self._has_expired:
            self._below = None
        self.phase, self._source_start = Phase.CHECKING, None
        self.log_end = end

    def _append(self, headers: Sequence[BatchHeader], first: int) -> Action | None:
        end, epoch, count = self.log_end, self._epoch, 0
        for header in headers[first:]:
            is_next = header.base_offset == end and header.leader_epoch >= epoch
            if not is_next or _is_of_transaction(header):
                break
            end, epoch, count = header.last_offset + 1, header.leader_epoch, count + 1
        if count:
            self._source_start = None
            return Append(first, count)
        return None if first == len(headers) else self._does_not_continue(headers[first])

    def _does_not_continue(self, found: BatchHeader) -> Action:
        if _is_of_transaction(found):
            return self.stop(
                f"the batch at offset {found.base_offset} belongs to a transaction, and a mirror, "
                "which keeps all offsets, cannot leave out what is aborted: leave the topic out of "
                "`mirror.sources`, and count and load it in its own cluster"
            )
        if found.leader_epoch < self._epoch:
            return self.stop(
                f"the leader epoch goes back from {self._epoch} to {found.leader_epoch} at offset "
                f"{found.base_offset}: that is not one history",
                same_to=self.log_end,
            )
        if found.base_offset > self.log_end:
            return self._name_gap(
                found.base_offset, MISSING if self._source_start is None else EXPIRED
            )
        return self.stop(
            f"a batch of the source begins at offset {found.base_offset}, ours end at "
            f"{self.log_end}: the batches are not the same",
            same_to=found.base_offset,
        )

    def _name_gap(self, end: int, reason: str) -> NameGap:
        self.phase, self._has_expired = Phase.NAMING, reason == EXPIRED
        return NameGap(self.log_end, end, reason)

    def _unverifiable(self) -> Unverifiable:
        self._below, self._source_start = None, None
        return Unverifiable(self.log_end)


def _is_of_transaction(header: BatchHeader) -> bool:
    return header.is_transactional or header.is_control


def _difference(ours: Below, theirs: Below) -> str:
    return (
        f"diverged: the source's batch at offset {theirs.base_offset} (to {theirs.last_offset}, "
        f"epoch {theirs.leader_epoch}, CRC {theirs.crc:08x}) is not ours at {ours.base_offset} "
        f"(to {ours.last_offset}, epoch {ours.leader_epoch}, CRC {ours.crc:08x})"
    )

"""One mirror partition's decisions: what a batch or an error of the source means.

Pure: headers and offsets go in, actions come out, and whoever owns the log carries them out. The
follower knows where its log ends and which batch lies just below; it never guesses either.

    CHECKING --same batch below--> FOLLOWING --interrupted--> CHECKING
        \\--different---------------------------------> STOPPED  (until the broker starts again)
    CHECKING or FOLLOWING --offsets missing--> NAMING --written down--> CHECKING
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from skidway.kafka.batch import BatchHeader


class Phase(Enum):
    """What a follower is doing."""

    CHECKING = "checking"
    FOLLOWING = "following"
    NAMING = "naming a gap"
    STOPPED = "stopped"


class Below(NamedTuple):
    """The batch that ends just below the log end."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int

    @classmethod
    def of(cls, header: BatchHeader) -> Below:
        """The identity of a batch."""
        return cls(header.base_offset, header.last_offset, header.leader_epoch, header.crc)


@dataclass(frozen=True, slots=True)
class Append:
    """Append the batches from this index on, as they are."""

    first: int
    count: int


@dataclass(frozen=True, slots=True)
class NameGap:
    """Write down that offsets [first, end) are missing, then call `gap_named`."""

    first: int
    end: int
    reason: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Serve what is there, copy no more, and say why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unverifiable:
    """Say that the batch below is gone in the source; then seek the log end."""

    offset: int


Action = Append | NameGap | Stop | Unverifiable


class Follower:
    """Where one partition stands; owned by its source."""

    def __init__(self, log_end: int, below: Below | None) -> None:
        """below: the last batch of our log; None for an empty log."""
        self.phase = Phase.CHECKING
        self.log_end = log_end
        self.reason = ""
        self._below = below

    def position(self) -> int:
        """The offset to seek in the source: of the batch below while it has to be checked."""
        if self.phase is Phase.CHECKING and self._below is not None:
            return self.log_end - 1
        return self.log_end

    def interrupted(self, log_end: int, below: Below | None) -> None:
        """The connection was lost or a write was taken back: our end is looked at anew."""
        if self.phase in (Phase.CHECKING, Phase.FOLLOWING):
            self.phase = Phase.CHECKING
            self.log_end, self._below = log_end, below

    def fetched(self, headers: Sequence[BatchHeader]) -> Action | None:
        """What to do with whole batches, given in offset order. None: nothing (yet)."""
        if self.phase not in (Phase.CHECKING, Phase.FOLLOWING):
            return None
        first = 0
        if self.phase is Phase.CHECKING and self._below is not None:
            found = headers[0]
            if found.base_offset >= self.log_end:
                return self._unverifiable()
            if Below.of(found) != self._below:
                return self._stop(_difference(self._below, Below.of(found)))
            first = 1
        self.phase = Phase.FOLLOWING
        return self._append(headers, first)

    def out_of_range(self, log_start: int, high_watermark: int) -> Action:
        """The source has not the offset that was sought."""
        if log_start > self.log_end:
            return self._name_gap(log_start, "expired")
        if self.log_end > high_watermark:
            return self._stop(
                f"the source ends at offset {high_watermark}, below our end {self.log_end}: "
                "it lost or never had what we hold"
            )
        return self._unverifiable()

    def stop(self, reason: str) -> Stop:
        """Something that no waiting mends."""
        return self._stop(reason)

    def appended(self, header: BatchHeader) -> None:
        """A batch is in our log."""
        assert header.base_offset >= self.log_end
        self.log_end, self._below = header.last_offset + 1, Below.of(header)

    def gap_named(self, end: int) -> None:
        """The gap is written down: go on behind it, where there is nothing below to compare."""
        assert self.phase is Phase.NAMING
        self.phase, self.log_end, self._below = Phase.CHECKING, end, None

    def gap_not_named(self) -> None:
        """It could not be written down: look again."""
        assert self.phase is Phase.NAMING
        self.phase = Phase.CHECKING

    def _append(self, headers: Sequence[BatchHeader], first: int) -> Action | None:
        """As many batches as continue our log; the first that does not is decided on next."""
        end, count = self.log_end, 0
        for header in headers[first:]:
            if header.base_offset != end:
                break
            end, count = header.last_offset + 1, count + 1
        if count:
            return Append(first, count)
        if first == len(headers):
            return None
        found = headers[first].base_offset
        if found > self.log_end:
            return self._name_gap(found, "missing-in-source")
        return self._stop(
            f"a batch of the source begins at offset {found}, ours end at {self.log_end}: "
            "the batches are not the same"
        )

    def _name_gap(self, end: int, reason: str) -> NameGap:
        self.phase = Phase.NAMING
        return NameGap(self.log_end, end, reason)

    def _unverifiable(self) -> Unverifiable:
        self._below = None
        return Unverifiable(self.log_end)

    def _stop(self, reason: str) -> Stop:
        self.phase, self.reason = Phase.STOPPED, reason
        return Stop(reason)


def _difference(ours: Below, theirs: Below) -> str:
    return (
        f"diverged: the source's batch at offset {theirs.base_offset} (to {theirs.last_offset}, "
        f"epoch {theirs.leader_epoch}, CRC {theirs.crc:08x}) is not ours at {ours.base_offset} "
        f"(to {ours.last_offset}, epoch {ours.leader_epoch}, CRC {ours.crc:08x})"
    )

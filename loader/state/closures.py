"""When the loader may forget a file: its marks and its name. Pure; no I/O.

An agent announces a file's closure after every byte of the file is acknowledged or set apart. From
then on only repeats can come, for example a batch of a connection that broke. So the file's marks
are needed until the loader has read past everything that may have come late:

    CLOSED    the loader has heard the closure
    SEALED    a later seal of the same agent came, made GRACE_MS or more after the closure by the
              agent's clock; for each partition in which the file has a mark, it names an
              acknowledged offset
    FENCED    the file waits for the topic's *fence*: for each partition the offset before which
              everything lies that was in the log when the fence was made. A fence is made after
              the seals of its files were heard, and SETTLED_MS or more after their closures were
              heard, by the loader's clock. A topic has at most one fence; files whose seal is
              heard later wait for the next one
    (gone)    all partitions are loaded up to the fence: marks and name are dropped

So two clocks must be wrong by much, the agent's and the loader's, before a late repeat could lie
behind the fence.

A fence is the high watermark of each partition, or one past the highest offset that a seal of any
agent named, if that is higher. The watermark alone proves enough for a topic of the loader's own
cluster. A mirrored topic may lag behind the mirrored seals; then the seals' offsets count.

If a record of such a file comes later nevertheless, it is loaded as a row or, without a name, as a
reject; it counts, so the audit reports that there is a record too many.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple

from skidway.audit.counts.marks import FileKey

GRACE_MS: Final = 3_600_000
"""An hour. A record of a closed file comes late by less than three minutes: the kernel tries to
send the bytes of a socket without a process for 103 s, and a lagging replica holds a watermark back
for 30 s. The rest is for clocks that are set, and for slow networks. Marks of one more hour cost
little."""

SETTLED_MS: Final = 600_000
"""Ten minutes, three times as long as a record may come late."""


class Stage(IntEnum):
    """How far a closed file has come. GONE stands only in files of the table."""

    GONE = -1
    CLOSED = 0
    SEALED = 1
    FENCED = 2


class Closed(NamedTuple):
    """A closed file. time_ms: when the agent closed it, by the agent's clock. heard_ms: when the
    loader heard that, by the loader's clock."""

    time_ms: int
    heard_ms: int
    stage: Stage = Stage.CLOSED


class Fence(NamedTuple):
    """named: one past the highest offset that a seal ever named. end: the offset that loads must
    reach; None if there is no fence, or it lacks this partition."""

    named: int = 0
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Heard:
    """What a load has heard of an agent's newest seal for the topic. time_ms: when the agent made
    it. offsets: partition -> the last acknowledged offset. follows: of the closures that were heard
    in the same run, those that came before the seal in the same log."""

    time_ms: int
    offsets: Mapping[int, int]
    follows: AbstractSet[FileKey] = frozenset()


@dataclass(slots=True)
class Closures:
    """The closed files of a topic that still have marks or a name, and the topic's fence."""

    files: dict[FileKey, Closed] = field(default_factory=dict)
    fence: dict[int, Fence] = field(default_factory=dict)

    @property
    def is_fenced(self) -> bool:
        """Whether files wait for the fence."""
        return any(each.end is not None for each in self.fence.values())

    def close(self, closed: Mapping[FileKey, int], now_ms: int) -> None:
        """Notes closures that were heard just now, each with the agent's time."""
        for key, time_ms in closed.items():
            self.files.setdefault(key, Closed(time_ms, now_ms))

    def name(self, offsets: Mapping[int, int]) -> None:
        """Notes, by partition, the highest offset that a seal names."""
        for partition, offset in offsets.items():
            fence = self.fence.get(partition, Fence())
            self.fence[partition] = fence._replace(named=max(fence.named, offset + 1))

    def seal(
        self,
        seals: Mapping[int, Heard],
        fresh: Collection[FileKey],
        marks: Mapping[int, Mapping[FileKey, int]],
    ) -> None:
        """Moves on the files that a seal covers. seals: by agent. fresh: the files whose closure
        was heard in this run."""
        for key, closed in self.files.items():
            heard = seals.get(key[0])
            if closed.stage is not Stage.CLOSED or heard is None:
                continue
            if heard.time_ms < closed.time_ms + GRACE_MS:
                continue
            if key in fresh and key not in heard.follows:
                continue
            if all(partition in heard.offsets for partition in _marked(key, marks)):
                self.files[key] = closed._replace(stage=Stage.SEALED)

    def settled(self, now_ms: int) -> list[FileKey]:
        """The sealed files that wait for a new fence; none while there is a fence."""
        if self.is_fenced:
            return []
        return [
            key
            for key, closed in self.files.items()
            if closed.stage is Stage.SEALED and now_ms >= closed.heard_ms + SETTLED_MS
        ]

    def make_fence(self, files: Iterable[FileKey], watermarks: Mapping[int, int]) -> None:
        """Makes a fence for files that are settled. watermarks: of every partition that the loader
        knows, asked after that. A partition that only a seal names belongs to the fence, too."""
        for partition in {*watermarks, *self.fence}:
            named = self.fence.get(partition, Fence()).named
            self.fence[partition] = Fence(named, max(watermarks.get(partition, 0), named))
        for key in files:
            self.files[key] = self.files[key]._replace(stage=Stage.FENCED)

    def passed(self, ends: Mapping[int, int]) -> list[FileKey]:
        """Takes down the fence if all partitions are loaded up to it. Returns the files that waited
        for it; they are closures no more. ends: by partition, the offset before which everything is
        loaded."""
        ahead = [p for p, each in self.fence.items() if each.end and ends.get(p, 0) < each.end]
        if ahead or not self.is_fenced:
            return []
        self.fence = {p: Fence(each.named) for p, each in self.fence.items()}
        gone = [key for key, closed in self.files.items() if closed.stage is Stage.FENCED]
        for key in gone:
            del self.files[key]
        return gone


def _marked(key: FileKey, marks: Mapping[int, Mapping[FileKey, int]]) -> Iterable[int]:
    """The partitions in which a file has a mark."""
    return (partition for partition, each in marks.items() if key in each)

"""Decides when the loader may forget a log file, that is, drop the file's marks (how far the file
is loaded) and its name (host and path). Does no I/O.

An agent announces that a file is closed (a closure) after every byte of the file is acknowledged or
set apart (rejected, lost, uncertain or filtered). After the closure, only repeats of the file's
records can reach the topic, for example in a batch of a connection that broke. The loader needs the
file's marks to recognize these repeats, until it has read all records that may have come late. The
agent's seals show up to which offset the loader must read: each seal lists the agent's last
acknowledged offset in each partition. A closed file goes through these stages:

    CLOSED    the loader has read the closure
    SEALED    a later seal of the same agent came, made GRACE_MS or more after the closure by the
              agent's clock; this seal has an acknowledged offset for each partition in which the
              file has a mark
    FENCED    the file waits for the topic's *fence*. A fence has an offset for each partition: all
              records that were in the log when the fence was made have lower offsets. The loader
              makes a fence for SEALED files whose closures it read at least SETTLED_MS ago, by its
              own clock. A topic has at most one fence; files that are SEALED later wait for the
              next fence
    (gone)    all partitions are loaded up to the fence; the loader drops marks and name of the file

So a repeat can come after the fence only if both the agent's clock and the loader's clock are wrong
by many minutes.

In each partition, the fence is the higher of two offsets: the high watermark, and one past the
highest offset in the seals of all agents. For a topic of the loader's own cluster, the fence could
be the high watermark alone. But if a topic is mirrored, its records may arrive later than the
mirrored seals. In this case the seals have the higher offset.

If a repeat comes after the file was forgotten, the loader does not drop the repeat. If the run has
read an announcement of the file in the audit topic all the same, the repeat becomes a row.
Otherwise the loader waits for such an announcement (`announce.wait.ms`), and then makes the repeat
a reject. The loader counts the repeat, so the audit finds one record more in HDFS than in the other
tiers, and the bucket is not complete.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple

from skidway.audit.counts.marks import FileKey

GRACE_MS: Final = 3_600_000
"""A closed file becomes SEALED (see the module's docstring) only by a seal that its agent made at
least this long (an hour) after the agent closed the file. A record of a closed file comes late by
less than three minutes. After a process has died, the kernel still tries to send the bytes of its
socket for 103 s, and a lagging replica may keep the high watermark low for 30 s. The rest of the
hour allows for clocks that are adjusted and for slow networks. Keeping marks for one more hour
needs little memory.
"""

SETTLED_MS: Final = 600_000
"""The loader makes a fence (see the module's docstring) for a file only if it read the file's
closure at least this long ago. Ten minutes are more than three times the delay with which a record
may come late."""


class Stage(IntEnum):
    """The stage of a closed file (see the module's docstring). GONE occurs only in the files of the
    table `closures`, where it says that the row of an earlier load is no longer valid.
    """

    GONE = -1
    CLOSED = 0
    SEALED = 1
    FENCED = 2


class Closed(NamedTuple):
    """A closed file. time_ms: when the agent closed it, by the agent's clock. heard_ms: when the
    loader read the agent's message about this, by the loader's clock."""

    time_ms: int
    heard_ms: int
    stage: Stage = Stage.CLOSED


class Fence(NamedTuple):
    """The part of a topic's fence in one partition. (A fence says up to which offsets the topic
    must be loaded before the waiting files are forgotten.) named: one past the highest offset in
    all seals that were read so far. end: the offset that loads must reach; None if there is no
    fence, or if the fence does not include this partition."""

    named: int = 0
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Heard:
    """An agent's newest seal for the topic, as the load has read it. time_ms: when the agent made
    the seal. offsets: for each partition, the last acknowledged offset. follows: the agent's files
    whose closures come before the seal in the same partition of the audit topic. (This includes
    only closures that the feed has read.)"""

    time_ms: int
    offsets: Mapping[int, int]
    follows: AbstractSet[FileKey] = frozenset()


@dataclass(slots=True)
class Closures:
    """The closed files of a topic that are not forgotten yet, and the topic's fence (the offsets up
    to which the topic must be loaded before the waiting files are forgotten)."""

    files: dict[FileKey, Closed] = field(default_factory=dict)
    fence: dict[int, Fence] = field(default_factory=dict)

    @property
    def is_fenced(self) -> bool:
        """Returns whether the topic has a fence, that is, whether closed files wait until the topic
        is loaded up to the fence's offsets."""
        return any(each.end is not None for each in self.fence.values())

    def close(self, closed: Mapping[FileKey, int], now_ms: int) -> None:
        """Adds the files about whose closing the loader has just read. closed: when each file was
        closed, by its agent's clock."""
        for key, time_ms in closed.items():
            self.files.setdefault(key, Closed(time_ms, now_ms))

    def name(self, offsets: Mapping[int, int]) -> None:
        """Notes offsets that seals name. Keeps only the highest offset of each partition."""
        for partition, offset in offsets.items():
            fence = self.fence.get(partition, Fence())
            self.fence[partition] = fence._replace(named=max(fence.named, offset + 1))

    def seal(
        self,
        seals: Mapping[int, Heard],
        fresh: Collection[FileKey],
        marks: Mapping[int, Mapping[FileKey, int]],
    ) -> None:
        """Changes files from the stage CLOSED to the stage SEALED, if a seal of their agent meets
        the conditions in the module's docstring. seals: the newest seal of each agent. fresh: the
        closed files whose closures earlier loads of the topic had not read."""
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
        """Returns the files for which a new fence may be made: files in the stage SEALED whose
        closures were read at least SETTLED_MS ago. A topic has at most one fence at a time, so the
        list is empty if the topic has one."""
        if self.is_fenced:
            return []
        return [
            key
            for key, closed in self.files.items()
            if closed.stage is Stage.SEALED and now_ms >= closed.heard_ms + SETTLED_MS
        ]

    def make_fence(self, files: Iterable[FileKey], watermarks: Mapping[int, int]) -> None:
        """Makes the topic's fence, that is, the offsets up to which the topic must be loaded before
        `files` are forgotten. files: the files that `settled` has returned. watermarks: the high
        watermarks of all partitions that the loader knows. The caller must ask the brokers for the
        high watermarks after it has called `settled`.

        If seals contain offsets of further partitions, the fence includes these partitions too.
        """
        for partition in {*watermarks, *self.fence}:
            named = self.fence.get(partition, Fence()).named
            self.fence[partition] = Fence(named, max(watermarks.get(partition, 0), named))
        for key in files:
            self.files[key] = self.files[key]._replace(stage=Stage.FENCED)

    def passed(self, ends: Mapping[int, int]) -> list[FileKey]:
        """If all partitions are loaded up to the fence, removes the fence, and removes and returns
        the files that waited for the fence. ends: for each partition, the offset before which
        everything is loaded."""
        ahead = [p for p, each in self.fence.items() if each.end and ends.get(p, 0) < each.end]
        if ahead or not self.is_fenced:
            return []
        self.fence = {p: Fence(each.named) for p, each in self.fence.items()}
        gone = [key for key, closed in self.files.items() if closed.stage is Stage.FENCED]
        for key in gone:
            del self.files[key]
        return gone


def _marked(key: FileKey, marks: Mapping[int, Mapping[FileKey, int]]) -> Iterable[int]:
    """Returns the partitions in which a file has a mark."""
    return (partition for partition, each in marks.items() if key in each)

"""Gathers the groups' reads and writes for ZooKeeper into jobs, and runs one job at a time.

A job is a list of reads and writes, which the session's thread carries out. All reads and writes
that are requested while a job is running become part of the next job. So if a thousand groups
commit at the same time, this costs only a few transactions. If an offset is committed while an
older offset of the same group and partition still waits for a job, only the newer offset is
written. There are at least `PACE_S` seconds between the beginnings of two jobs. When ZooKeeper has
answered a job, the queue calls the job's callbacks.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol

from skidway.broker.coordination.consumers import TopicOffset
from skidway.broker.coordination.ledger import Job, Ledger, Offset, Record, Report
from skidway.broker.coordination.stored_groups import Offsets
from skidway.coordination import Coordinator
from skidway.errors import SkidwayError, Unreachable
from skidway.kafka.types import TopicPartition

PACE_S = 0.01
WAITING_BYTES_MAX: Final = 128 << 20
"""The offsets that wait for a job have at most this many bytes. This is enough for 280,000 offsets
without metadata. Further offsets are refused, and their clients try again.
"""

Told = Callable[[SkidwayError | None], None]
Loaded = Callable[[bytes | SkidwayError | None], None]
Read = Callable[[Offsets | SkidwayError], None]
Counted = Callable[[int | SkidwayError], None]
_Answer = Callable[[], None]


class Submit(Protocol):
    """The type of the method `submit` of ZooKeeperSession."""

    def __call__(
        self,
        work: Callable[[Coordinator], Report],
        done: Callable[[Report | SkidwayError], None],
    ) -> None: ...


@dataclass(slots=True)
class _Gathered:
    """The reads and writes that are gathered for the next job, each with the callback for its
    result."""

    records: dict[str, tuple[Record, list[Told]]] = field(default_factory=dict)
    commits: dict[Offset, TopicOffset] = field(default_factory=dict)
    commits_bytes: int = 0
    committing: list[Told] = field(default_factory=list)
    loads: dict[str, list[Loaded]] = field(default_factory=dict)
    reads: dict[str, list[Read]] = field(default_factory=dict)
    counts: dict[str, list[Counted]] = field(default_factory=dict)
    groups: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        asked = self.loads or self.reads or self.counts
        return bool(self.records or self.committing or asked)


@dataclass(slots=True)
class JobCounts:
    """Counts of the work that the queue has done since the broker's start."""

    carried_out: int = 0
    failed: int = 0
    transactions: int = 0
    offsets: int = 0
    commits: int = 0


class JobQueue:
    """The queue of requests, and the running job. Only the loop's thread may use it.
    `later(delay_ms, action)` and `monotonic` are functions of the loop."""

    def __init__(
        self,
        submit: Submit,
        later: Callable[[float, Callable[[], None]], None],
        monotonic: Callable[[], float],
        topic_id: Callable[[str], uuid.UUID | None],
    ) -> None:
        """The queue drops an offset if its topic has been deleted since the commit, even if a new
        topic has the name.
        """
        self.counts = JobCounts()
        self._submit = submit
        self._later = later
        self._monotonic = monotonic
        self._topic_id = topic_id
        self._ledger = Ledger()
        self._next = _Gathered()
        self._away: _Gathered | None = None
        self._due = False
        self._closed = False
        self._began = float("-inf")

    @property
    def waiting(self) -> int:
        """How many committed offsets wait for a job."""
        return len(self._next.commits)

    def load(self, group: str, done: Loaded) -> None:
        """Reads a group's record, and passes it to `done`. Passes None if the group has no
        record."""
        self._next.loads.setdefault(group, []).append(done)
        self._go(group)

    def read(self, group: str, done: Read) -> None:
        """Reads all offsets of a group, including offsets whose commit still waits in the queue,
        and passes them to `done`."""
        self._next.reads.setdefault(group, []).append(done)
        self._go(group)

    def count_native(self, group: str, done: Counted) -> None:
        """Counts the consumers that have registered in ZooKeeper for a group, and passes the number
        to `done`."""
        self._next.counts.setdefault(group, []).append(done)
        self._go(group)

    def write(self, group: str, record: Record, done: Told) -> None:
        """Stores a group's record. If an older record of the group still waits in the queue, the
        new record replaces it.

        `done` gets GroupInUse if the record has members although consumers have registered in
        ZooKeeper for the group.
        """
        _, waiting = self._next.records.get(group, (record, []))
        self._next.records[group] = (record, [*waiting, done])
        self._go(group)

    def commit(self, group: str, offsets: Mapping[TopicPartition, TopicOffset], done: Told) -> None:
        """Stores committed offsets of a group. Calls `done` when ZooKeeper has these offsets or
        newer ones.

        If a topic is deleted before its offsets are stored, these offsets are dropped, even if the
        topic is recreated.
        """
        gathered, name_bytes = self._next, sys.getsizeof(group)
        size_bytes = sum(each.size_bytes + name_bytes for each in offsets.values())
        if gathered.commits_bytes + size_bytes > WAITING_BYTES_MAX:
            done(Unreachable("too many offsets wait for ZooKeeper already; try again"))
            return
        self.counts.commits += 1
        gathered.commits_bytes += size_bytes
        for partition, offset in offsets.items():
            older = gathered.commits.get((group, partition))
            if older is not None:
                gathered.commits_bytes -= older.size_bytes + name_bytes
            gathered.commits[group, partition] = offset
        gathered.committing.append(done)
        self._go(group)

    def is_busy_with(self, group: str) -> bool:
        """Returns whether a request for this group waits, or is part of the running job."""
        return group in self._next.groups or (self._away is not None and group in self._away.groups)

    def close(self, error: SkidwayError) -> None:
        """Calls all waiting callbacks with an error, and begins no more jobs."""
        waiting = [self._next] if self._away is None else [self._next, self._away]
        self._next, self._closed = _Gathered(), True
        if self._away is not None:
            self._away = _Gathered()
        _each(answer for gathered in waiting for answer in _refusals(gathered, error))

    def _go(self, group: str) -> None:
        self._next.groups.add(group)
        self._see_to_it()

    def _see_to_it(self) -> None:
        if self._away is None and not self._due:
            self._due = True
            wait_s = max(0.0, self._began + PACE_S - self._monotonic())
            self._later(wait_s * 1000, self._begin)

    def _begin(self) -> None:
        if self._away is not None or self._closed:
            return
        self._due = False
        self._began = self._monotonic()
        gathered, self._next = self._next, _Gathered()
        self._away = gathered
        job = Job(
            records={group: record for group, (record, _) in gathered.records.items()},
            commits={
                key: each.committed
                for key, each in gathered.commits.items()
                if self._topic_id(key[1].topic) == each.topic_id
            },
            loads=tuple(gathered.loads),
            reads=tuple(gathered.reads),
            counts=tuple(gathered.counts),
        )
        self._submit(
            lambda coordinator: self._ledger.carry_out(coordinator, job),
            lambda outcome: self._done(gathered, job, outcome),
        )

    def _done(self, gathered: _Gathered, job: Job, outcome: Report | SkidwayError) -> None:
        if self._away is not gathered:
            return  # `close` was called meanwhile
        self._away = None
        if self._next:
            self._see_to_it()
        self.counts.carried_out += 1
        if isinstance(outcome, SkidwayError):
            self.counts.failed += 1
            _each(_refusals(gathered, outcome))
        else:
            self.counts.transactions += outcome.transactions
            self.counts.offsets += len(job.commits)
            _each(_reports(gathered, outcome))


def _reports(gathered: _Gathered, report: Report) -> list[_Answer]:
    return [
        *(partial(told, None) for told in gathered.committing),
        *(
            partial(told, report.records[group])
            for group, (_, writers) in gathered.records.items()
            for told in writers
        ),
        *_found(gathered.loads, report.loads),
        *_found(gathered.reads, report.reads),
        *_found(gathered.counts, report.counts),
    ]


def _found(
    asked: Mapping[str, list[Callable[[Any], None]]], found: Mapping[str, object]
) -> list[_Answer]:
    return [partial(told, found[group]) for group, each in asked.items() for told in each]


def _refusals(gathered: _Gathered, error: SkidwayError) -> list[_Answer]:
    writing = [told for _, writers in gathered.records.values() for told in writers]
    asking = [
        told
        for asked in (gathered.loads, gathered.reads, gathered.counts)
        for each in asked.values()
        for told in each
    ]
    return [partial(told, error) for told in (*gathered.committing, *writing, *asking)]


def _each(answers: Iterable[_Answer]) -> None:
    """Calls all callbacks, even if some of them raise exceptions, so that a bug in one callback
    does not keep the others from sending their answers.

    Then raises an ExceptionGroup of these exceptions, if there are any. They show bugs in Skidway,
    and the loop counts them.
    """
    mistakes = []
    for answer in answers:
        try:
            answer()
        except Exception as error:  # noqa: BLE001 - raised below, after all callbacks
            mistakes.append(error)
    if mistakes:
        raise ExceptionGroup("answers to groups", mistakes)

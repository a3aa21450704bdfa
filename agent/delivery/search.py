"""Searches the logs of partitions once, from their floors to their high watermarks. Each turn of
the agent's loop does a part of the search. A partition's floor is an offset below which the
partition has no wanted record.

    begin     sets the partitions to read: those that can have the wanted records
    turn      takes the records that have arrived, without waiting for others; ends the search as
              soon as every wanted record was found
    later     after `read.back.wait.ms`: asks for the high watermarks anew, and where the logs end;
              reads the logs up to the high watermarks, once these have reached the ends

While records are missing, the search may not end before `read.back.wait.ms` has passed, because
copies of the records may still arrive. For records that a broker refused, this time begins with the
refusal. For intents of the agent's previous process, it begins with the agent's start: bytes that
the previous process sent may still arrive. The previous process is dead, and so are its
connections, but the kernel may still deliver these bytes. The broker accepts these bytes although
their producer epoch is old: without transactions, a partition refuses the old epoch of a producer
id only after it has received a batch with the id's next epoch. The agent cannot send a batch with
the next epoch first, because that batch would be the wanted batch itself, sent again. TCP limits
how long these bytes can take: if a socket's process is dead, the kernel sends the bytes again 8
times, over at most 103 s (tcp_orphan_retries), and then stops. If a broker has received a request's
bytes, it appends them before it answers later fetches, or it crashes and the bytes are gone. When
`read.back.wait.ms` has passed, bytes that the previous process sent can no longer arrive. So if the
search asks after that time where the log of a partition ends, all records that have arrived are
below this end.

They need not be below the high watermark. Once the in-sync replicas have the records, the watermark
is above them. But while fewer replicas than `min.insync.replicas` are in sync, Apache Kafka does
not move the watermark, and a new leader's watermark is behind the old leader's at first. So the
search counts nothing as missing before the watermark has reached the end of the log, however long
this takes. If the broker does not say where the log ends, the watermark alone counts. If these
assumptions fail, a batch may arrive even later. If the agent has sent the batch's bytes again, the
late batch repeats records with the same origin, partition and time, and every reader drops the late
batch. If the batch's bytes were declared lost, the audit shows more records than the agent counted.

While the brokers of a partition are unreachable, the search waits for them, and the agent declares
no record of this partition lost or uncertain. The agent may be unable to read all records from the
floor on: records were deleted, cut off or damaged, or the agent has no right to read them. If
records could not be read, a record that was not found may have been in the log. `Logs.poll` returns
a `Hole` in place of the unreadable records. If a log has a `Hole`, the agent declares uncertain,
not lost, the bytes whose records were not found in this log.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from skidway.agent.delivery.read_back import Rows
from skidway.audit.topic.messages import Certainty
from skidway.dataclass import dataclass
from skidway.kafka.types import TopicPartition


@dataclass(frozen=True, slots=True)
class Hole:
    """Records that cannot be read in a partition. is_over: whether the records after them cannot be
    read either, so that the search of the partition ends.
    """

    tp: TopicPartition
    reason: str
    is_over: bool


class Logs(Protocol):
    """The partitions' logs, as a search reads them. No method waits for long."""

    def begin(self, floors: Mapping[TopicPartition, int]) -> None:
        """Reads only the partitions in `floors`, each from the offset that `floors` gives."""
        ...

    def poll(self) -> Sequence[Rows | Hole]:
        """Returns the records that have arrived, in the order of offsets, but not more than a fixed
        number of bytes.
        """
        ...

    def ask_anew(self) -> None:
        """Forgets the high watermarks that brokers have reported, and asks where the logs end. The
        next responses bring new high watermarks."""
        ...

    def read_up(self) -> set[TopicPartition]:
        """Returns the partitions that are read up to their high watermarks. After a call of
        `ask_anew`, only a high watermark that came after the call counts, and only if it has
        reached the end that the log had after the call."""
        ...

    def end(self) -> None:
        """Stops reading."""
        ...


class Wanted(Protocol):
    """The records that a search looks for, and those of them that it has found."""

    def add(self, rows: Rows) -> None:
        """Adds the records that were read from a partition. Each call continues after the offsets
        of the previous call for this partition.
        """
        ...

    def gap(self, tp: TopicPartition) -> None:
        """Notes that the next records of a partition cannot be read."""
        ...

    def has_all(self) -> bool:
        """Whether all records that the search looks for were found."""
        ...


W = TypeVar("W", bound=Wanted)


class Search(Generic[W]):
    """Owns the results of a search, from the first record that is read until the caller has decided
    about all wanted records.

    The same object is used for one search after another. `is_over` is false from `begin` on, until
    `turn` has found all that can be found, or until `end`.
    """

    def __init__(self, logs: Logs, nothing: W) -> None:
        self.found = self._nothing = nothing
        self.is_over = True
        self._holes: dict[TopicPartition, str] = {}
        self._has_news = False
        self._heard_at = 0.0
        self._logs = logs
        self._open: set[TopicPartition] = set()
        self._asked_anew = False

    def begin(self, wanted: W, floors: Mapping[TopicPartition, int], now: float) -> None:
        """Forgets the previous search, and begins a new one. floors: for each partition, the first
        offset to read."""
        self.found = wanted
        self.is_over = self._asked_anew = False
        self._holes = {}
        self._has_news = True
        self._heard_at = now
        self._open = set(floors)
        self._logs.begin(floors)

    def end(self) -> None:
        """Ends the search, after the caller has decided about all records that the search looked
        for."""
        self.found = self._nothing
        self.is_over = True
        self._logs.end()

    @property
    def has_news(self) -> bool:
        """Whether the last turn got records, or the search has just begun, so that the next turn of
        the agent's loop should begin at once."""
        return self._has_news and not self.is_over

    @property
    def waits_for(self) -> list[TopicPartition]:
        """The partitions that are not yet read up to their high watermarks."""
        return sorted(self._open - self._logs.read_up())

    def knows(self, reach: Collection[TopicPartition]) -> bool:
        """Whether the search has found out all that it can about these partitions. It does not
        matter whether the brokers of other partitions have answered.
        """
        open_ = self._open.intersection(reach)
        return self.is_over or (self._asked_anew and open_ <= self._logs.read_up())

    def verdict(self, reach: Iterable[TopicPartition]) -> tuple[Certainty, str]:
        """Returns whether bytes whose records were not found in these partitions are lost or
        uncertain, and why."""
        hole = next((self._holes[tp] for tp in sorted(reach) if tp in self._holes), None)
        if hole is not None:
            return Certainty.UNCERTAIN, f", and {hole}"
        return Certainty.LOST, ", and the brokers do not have it"

    def status(self, past_at: float, now: float) -> dict[str, object]:
        """Returns, for /health, what the search waits for: the partitions that are not read up to
        their high watermarks, and the seconds until `past_at`. Returns an empty dictionary if the
        search is over. past_at: the time after which batches that were sent before the search can
        no longer arrive.
        """
        if self.is_over:
            return {}
        waits_for = [str(tp) for tp in self.waits_for]
        return {"partitions": waits_for, "late_batches_for_s": max(round(past_at - now), 0)}

    def silent_s(self, now: float) -> dict[TopicPartition, float]:
        """Returns the partitions that are not read up to their high watermarks, each with the time
        (s) since the search last got records, or last had read all partitions up to their high
        watermarks. The time is the same for all partitions."""
        return {} if self.is_over else dict.fromkeys(self.waits_for, now - self._heard_at)

    def turn(self, now: float, *, is_past: bool) -> None:
        """Processes the records that have arrived. is_past: whether batches that were sent before
        the search can no longer arrive.
        """
        if self.is_over:
            return
        news = self._logs.poll()
        self._has_news = bool(news)
        for each in news:
            if isinstance(each, Rows):
                self.found.add(each)
            else:
                self._holes.setdefault(each.tp, each.reason)
                self.found.gap(each.tp)
                if each.is_over:
                    self._open.discard(each.tp)
        if news or self._open <= self._logs.read_up():
            self._heard_at = now
        if self.found.has_all() or (is_past and self._is_read_up()):
            self.is_over = True
            self._logs.end()

    def _is_read_up(self) -> bool:
        if not self._asked_anew:
            self._asked_anew = True
            self._logs.ask_anew()
            return not self._open
        return self._open <= self._logs.read_up()

"""Decides what one reader of a group does next: read who is registered, release a partition, or
claim a partition.

This module does no I/O. `next_step` returns the step to do now; the caller passes the outcomes of
steps and the events of watches to the other methods. The module `share` carries out the steps, and
follows these rules:

* A partition is read only between the call of `claimed` and the `Release` step.
* In a `Release` step, the reader stops handing out the partition's records. Then one transaction
  commits the offset and removes the owner node.
* After the call of `lost`, no record of the lost partitions is handed out. The reader neither
  commits their offsets nor releases the partitions.

The members do not all act at once on every change (no herd effect). After a change, a reader waits
a short time (with jitter) before it reads who is registered. A further change restarts the wait,
but the reader waits at most `LOOK_LATEST_S` seconds after the first change. Members write nothing
to reach agreement. If the old reader still owns a partition, only the reader that gets the
partition next watches the owner node, and claims the partition when this node is gone. A step
without an answer is repeated, after waits that grow to about 1 s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from skidway.consumer.assignment import Readers, range_assignment
from skidway.kafka.client.backoff import Backoff
from skidway.kafka.types import TopicPartition

QUIET_S = 0.1
LOOK_LATEST_S = 2.0
CLAIM_AGAIN_S = 5.0
"""If the watch of a partition's owner node is lost, the reader tries again to claim the partition
after about this many seconds.
"""


class Look(NamedTuple):
    """Step: read who is registered, and how many partitions the topics have."""


class Claim(NamedTuple):
    """Step: create the owner node of a partition, and begin to read."""

    tp: TopicPartition


class Release(NamedTuple):
    """Step: stop reading a partition. If the owner node names this reader, also commit the offset
    and remove the node.

    A partition that is not in `Membership.owned` may need this step, too. For example, the reader
    may own a partition after a claim without an answer, although the partition is now assigned to
    another reader.
    """

    tp: TopicPartition


Step = Look | Claim | Release


class Membership:
    """Decides the steps of one reader in its group."""

    def __init__(self, random: Callable[[], float], *, look_every_s: float = 300.0) -> None:
        """`random` returns numbers in 0..1. If no watch fires, the reader reads who is registered
        (`Look`) every `look_every_s` seconds."""
        self._random = random
        self._look_every_s = look_every_s
        self._reader: str | None = None
        self._look_at: float | None = None
        self._look_until = 0.0
        self._backoff = Backoff(random)
        self._again_at: dict[TopicPartition, float] = {}
        self.assigned: frozenset[TopicPartition] = frozenset()
        self.owned: set[TopicPartition] = set()
        self._leaving: set[TopicPartition] = set()
        self._uncertain: set[TopicPartition] = set()  # partitions of claims whose answer was lost

    @property
    def is_settled(self) -> bool:
        """Returns whether the reader owns exactly the partitions that its newest assignment gives
        it."""
        return self._reader is not None and self.owned == self.assigned and not self._leaving

    def registered(self, reader: str, now: float) -> None:
        """Notes that this reader is registered under the name `reader`."""
        self._reader = reader
        self.changed(now)

    def lost(self) -> frozenset[TopicPartition]:
        """Notes that the registration is gone, so the reader owns no partition any more. Returns
        the lost partitions, whose records the caller must stop handing out at once.
        """
        gone = frozenset(self.owned)
        self.owned.clear()
        self._leaving.clear()
        self._uncertain.clear()
        self._again_at.clear()
        self.assigned, self._reader, self._look_at = frozenset(), None, None
        return gone

    def changed(self, now: float) -> None:
        """Notes that a member, a broker or a partition was added or removed."""
        if self._reader is None:
            return
        if self._look_at is None or self._look_at > now + LOOK_LATEST_S:
            self._look_until = now + LOOK_LATEST_S
        self._look_at = min(now + QUIET_S * (1 + self._random()), self._look_until)

    def looked(self, readers: Readers, partitions: Mapping[str, int], now: float) -> bool:
        """Processes the result of a `Look`. Returns False if this reader is no longer
        registered."""
        if self._reader not in readers:
            return False
        everybodys = range_assignment(readers, partitions)
        self.assigned = frozenset(tp for tp, who in everybodys.items() if who == self._reader)
        self._again_at = {tp: at for tp, at in self._again_at.items() if tp in self._leaving}
        self._backoff.reset()
        self._look_at = now + self._look_every_s * (0.9 + 0.2 * self._random())
        return True

    def next_step(self, now: float) -> Step | None:
        """Returns the step to do now, or None if nothing is due. Releases come first, because other
        readers wait for the released partitions."""
        if self._reader is None:
            return None
        # `_leaving` has the partitions to release. A partition stays there until it is released,
        # even if it is assigned to this reader again in the meantime.
        self._leaving |= (self.owned | self._uncertain) - self.assigned
        for tp in sorted(self._leaving):
            if self._again_at.get(tp, now) <= now:
                return Release(tp)
        if self._look_at is not None and self._look_at <= now:
            return Look()
        for tp in sorted(self.assigned - self.owned - self._leaving):
            if self._again_at.get(tp, now) <= now:
                return Claim(tp)
        return None

    def claimed(self, tp: TopicPartition) -> None:
        """Notes that the partition's owner node names this reader."""
        self.owned.add(tp)
        self._uncertain.discard(tp)
        self._again_at.pop(tp, None)

    def held(self, tp: TopicPartition, now: float) -> None:
        """Notes that a claim failed because another reader still owns the partition. The caller has
        set a watch, which reports when the owner node is gone."""
        self._uncertain.discard(tp)
        self._again_at[tp] = now + CLAIM_AGAIN_S * (0.9 + 0.2 * self._random())

    def vacated(self, tp: TopicPartition, now: float) -> None:
        """Notes that a watch has reported that the partition's owner node has changed or is
        gone."""
        if tp in self._again_at and tp not in self.owned:
            self._again_at[tp] = now

    def released(self, tp: TopicPartition) -> None:
        """Notes that the partition's owner node no longer names this reader."""
        self.owned.discard(tp)
        self._leaving.discard(tp)
        self._uncertain.discard(tp)
        self._again_at.pop(tp, None)

    def unanswered(self, step: Step, now: float) -> None:
        """Notes that a step failed: ZooKeeper or the brokers gave no answer, or a broker answered
        with an error. The step is repeated after a wait.

        It is unknown whether the step has happened. Repeating the step does no harm, because a step
        that is done twice has the same result as a step that is done once.
        """
        again_at = now + self._backoff.next_s()
        if isinstance(step, Look):
            self._look_at = again_at
        else:
            self._again_at[step.tp] = again_at
            if isinstance(step, Claim):
                self._uncertain.add(step.tp)

    def wake_at(self) -> float:
        """Returns the time (monotonic seconds) of the next step if nothing else happens."""
        if self._reader is None:
            return float("inf")
        waiting = [self._again_at.get(tp, 0.0) for tp in self._undone()]
        return min(
            [*waiting, *([] if self._look_at is None else [self._look_at])], default=float("inf")
        )

    def _undone(self) -> set[TopicPartition]:
        return (self.owned ^ self.assigned) | self._leaving | self._uncertain

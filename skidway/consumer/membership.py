"""What one reader of a group does next: look who is there, release, claim.

Pure: `next_step` says what to do now, the other methods take its outcome and what watches report.
The driver does the reading, and keeps these rules:

* A partition is read only between `claimed` and the `Release` step.
* `Release` means: stop handing out, then commit and remove the owner node in one transaction.
* After `lost` nothing that was owned is handed out, committed or released any more.

No herd effect: a reader looks at changes once they have been quiet for a while, with jitter, and at
the latest after `LOOK_LATEST_S`; nothing is written to reach agreement; and a partition that
another reader still holds is claimed when its owner node is gone, which only the next owner
watches. What is not answered is retried after a growing wait.
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
"""If the watch of an owner node is lost, its partition is claimed again after this time."""


class Look(NamedTuple):
    """Read who is registered, and how many partitions there are."""


class Claim(NamedTuple):
    """Make the owner node of a partition, and begin to read."""

    tp: TopicPartition


class Release(NamedTuple):
    """Stop reading a partition, commit it and remove its owner node, where that is ours.

    It may be missing from `owned`: then a claim was not answered, and another reader has it now.
    """

    tp: TopicPartition


Step = Look | Claim | Release


class Membership:
    """One reader's part in the group."""

    def __init__(self, random: Callable[[], float], *, look_every_s: float = 300.0) -> None:
        """`random` gives numbers in 0..1; `look_every_s`: how often to look without any watch."""
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
        self._uncertain: set[TopicPartition] = set()  # claimed, and the answer was lost

    @property
    def is_settled(self) -> bool:
        """Whether it owns what it should, by the newest view."""
        return self._reader is not None and self.owned == self.assigned and not self._leaving

    def registered(self, reader: str, now: float) -> None:
        """We take part under this name."""
        self._reader = reader
        self.changed(now)

    def lost(self) -> frozenset[TopicPartition]:
        """Our registration is gone, and with it all we owned; returns what must stop at once."""
        gone = frozenset(self.owned)
        self.owned.clear()
        self._leaving.clear()
        self._uncertain.clear()
        self._again_at.clear()
        self.assigned, self._reader, self._look_at = frozenset(), None, None
        return gone

    def changed(self, now: float) -> None:
        """A member, a broker or a partition has come or gone."""
        if self._reader is None:
            return
        if self._look_at is None or self._look_at > now + LOOK_LATEST_S:
            self._look_until = now + LOOK_LATEST_S
        self._look_at = min(now + QUIET_S * (1 + self._random()), self._look_until)

    def looked(self, readers: Readers, partitions: Mapping[str, int], now: float) -> bool:
        """Takes what a `Look` has found. False if we are not registered any more."""
        if self._reader not in readers:
            return False
        everybodys = range_assignment(readers, partitions)
        self.assigned = frozenset(tp for tp, who in everybodys.items() if who == self._reader)
        self._again_at = {tp: at for tp, at in self._again_at.items() if tp in self._leaving}
        self._backoff.reset()
        self._look_at = now + self._look_every_s * (0.9 + 0.2 * self._random())
        return True

    def next_step(self, now: float) -> Step | None:
        """What to do now. Releases come first: somebody waits for them."""
        if self._reader is None:
            return None
        self._leaving |= (self.owned | self._uncertain) - self.assigned  # once begun, it ends
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
        """The owner node is ours."""
        self.owned.add(tp)
        self._uncertain.discard(tp)
        self._again_at.pop(tp, None)

    def held(self, tp: TopicPartition, now: float) -> None:
        """Another reader has it still; a watch tells when its node has gone."""
        self._uncertain.discard(tp)
        self._again_at[tp] = now + CLAIM_AGAIN_S * (0.9 + 0.2 * self._random())

    def vacated(self, tp: TopicPartition, now: float) -> None:
        """Its owner node has changed or gone."""
        if tp in self._again_at and tp not in self.owned:
            self._again_at[tp] = now

    def released(self, tp: TopicPartition) -> None:
        """The owner node is not ours any more."""
        self.owned.discard(tp)
        self._leaving.discard(tp)
        self._uncertain.discard(tp)
        self._again_at.pop(tp, None)

    def unanswered(self, step: Step, now: float) -> None:
        """A step was not answered, or not clearly: it is repeated after a while.

        It is unknown whether it was done; each step may be done twice.
        """
        again_at = now + self._backoff.next_s()
        if isinstance(step, Look):
            self._look_at = again_at
        else:
            self._again_at[step.tp] = again_at
            if isinstance(step, Claim):
                self._uncertain.add(step.tp)

    def wake_at(self) -> float:
        """When there is a step to do even if nothing has happened (monotonic seconds)."""
        if self._reader is None:
            return float("inf")
        waiting = [self._again_at.get(tp, 0.0) for tp in self._undone()]
        return min(
            [*waiting, *([] if self._look_at is None else [self._look_at])], default=float("inf")
        )

    def _undone(self) -> set[TopicPartition]:
        return (self.owned ^ self.assigned) | self._leaving | self._uncertain

"""Shared code for the models of the audit: senders that number their messages, small buckets, and
functions that make the audit ignore one of its rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

import numpy as np

from skidway.audit.counts import checksum
from skidway.audit.counts.counts import BucketKey, Counts, Sums
from skidway.audit.counts.deltas import number_deltas
from skidway.audit.evidence.evidence import Evidence
from skidway.audit.evidence.tallies import SenderKey, Tally, link
from skidway.audit.topic.messages import Delta, Gap, Loss, Range, Sender
from skidway.kafka.source import Source

LOGS = Source("dc1", "cluster-id", "logs", "topic-id")
BUCKET_MS = 4_000
LATENESS_MS = 2_000
SECOND = 1_000
HOUR = 3_600


@dataclass(eq=False)
class NumberedSender:
    """The durable state of one sender. The state has two parts. The first part is the number of the
    sender's last message. The second part contains, for each bucket (time window), the number of
    the last message with counts of this bucket."""

    sender: Sender
    last: int = 0
    touched: dict[BucketKey, int] = field(default_factory=dict)

    def deltas(
        self,
        time_ms: int,
        counted: Iterable[tuple[BucketKey, Sums]],
        *,
        ranges: Sequence[Range] = (),
        gaps: Sequence[Gap] = (),
        losses: Sequence[Loss] = (),
        limit_bytes: int = 900_000,
    ) -> tuple[Delta, ...]:
        """Returns the sender's next deltas (messages with counts), which together contain all these
        counts, ranges, gaps and losses."""
        counts = Counts(BUCKET_MS)
        for key, sums in counted:
            counts.put(key, sums)
        numbered = number_deltas(
            self.sender, time_ms, self.last, counts, self.touched,
            ranges=ranges, gaps=gaps, losses=losses, limit_bytes=limit_bytes,
        )  # fmt: skip
        self.last = numbered.last
        self.touched.update(numbered.touched)
        return numbered.deltas


def sums_of_line(agent: int, file: int, index: int) -> Sums:
    """Returns the sums (number of records, number of bytes, checksum) of one line. Every line has
    ten bytes. `index` is the line's number in its file, from 0.
    """
    columns = (np.array([x], np.int64) for x in (agent, file, index * 10, 10))
    return Sums(1, 10, checksum.total(checksum.record_hash(*columns)))


class World(Protocol):
    """A simulated site that takes random steps. `wrong` says why a verdict of the audit was false.
    It is None as long as no verdict was false.
    """

    wrong: str | None

    def step(self) -> None: ...


AnyWorld = TypeVar("AnyWorld", bound=World)


def run(
    world: AnyWorld, seed: int, steps: int, end: Callable[[AnyWorld], set[int]]
) -> tuple[AnyWorld, set[int]]:
    """Lets the simulated site take `steps` random steps, and then calls `end`. Returns the site,
    and what `end` has returned: the starts of the buckets (time windows) that are complete. Raises
    AssertionError after a false verdict.
    """
    for _ in range(steps):
        world.step()
        if world.wrong:
            break
    complete = set() if world.wrong else end(world)
    assert not world.wrong, f"seed {seed}: {world.wrong}"
    return world, complete


# The following functions change the evidence so that one of the audit's rules has no effect.


def blind_to_checksums(evidence: Evidence) -> None:
    """Sets all checksums in the evidence to 0, so that a bucket is complete if all tiers counted
    equal numbers of records and bytes.
    """
    for tallies in _all_tallies(evidence):
        for key, tally in tallies.items():
            tallies[key] = replace(tally, sums=replace(tally.sums, checksum=0))


def blind_to_holes(evidence: Evidence) -> None:
    """Changes the evidence as if all messages that are missing in the audit topic had contained no
    counts.
    """
    for key, numbers in evidence.senders.items():
        evidence.senders[key] = replace(numbers, missing=None, first=1)
    for tallies in _all_tallies(evidence):
        for key, tally in tallies.items():
            links = checksum.signed(link(tally.last) - link(0))
            tallies[key] = replace(tally, links=links)


def blind_to_losses(evidence: Evidence) -> None:
    """Changes the evidence as if no loss had been declared."""
    for topic in evidence.topics.values():
        topic.losses.clear()


def _all_tallies(evidence: Evidence) -> Iterator[dict[SenderKey, Tally]]:
    for topic in evidence.topics.values():
        for by_agent in topic.tallies.values():
            yield from by_agent.values()

"""Finds the buckets that no message names except messages with declared losses.

If all lines of a bucket are lost, no tier counts anything in the bucket. Then a declared loss is
the only message that names the bucket, by its `to_bucket`, a time in the bucket. A message about a
loss does not say how long the agent's buckets are, and somebody may change this length
(`audit.bucket.ms`). So a loss gets no bucket of its own in two cases, because its time already lies
in another bucket, perhaps of another length:

    counted   something was counted in that bucket, or the bucket was deleted because of its age.
              The verdict on that bucket includes the loss
    accepted  a person accepted something in that bucket. Then the loss stays in that bucket,
              because the acceptance would not apply to the loss in a new bucket

In all other cases, the loss gets the minute that contains its time, whatever the length of the
agents' buckets is: no message of anybody moves the loss of another. So every declared loss has a
bucket.

Which bucket a loss gets does not depend on the window of the evidence: a bucket that holds a loss
may begin before the window in which `to_bucket` lies.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

from skidway.audit.counts.bucket import DEFAULT_BUCKET_MS
from skidway.audit.evidence import pruning
from skidway.audit.evidence.tallies import BucketId
from skidway.audit.topic.count_columns import LONGEST_MS
from skidway.audit.topic.decisions import Acceptance
from skidway.audit.topic.messages import Loss

_COUNTED: Final = """
SELECT 1 FROM tallies WHERE source = ?1 AND bucket > ?2 - ?3 AND bucket <= ?2
    AND bucket + bucket_ms > ?2
ORDER BY bucket DESC LIMIT 1
"""

_NEXT_SIZE: Final = "SELECT min(bucket_ms) FROM pruned WHERE source = ? AND bucket_ms > ?"

LOSS_BUCKET_MS: Final = DEFAULT_BUCKET_MS

Accepted = Callable[[int, int], Iterable[BucketId]]
"""A function that gets a span of time (begin and end; the end is excluded). It returns those
buckets of the topic that begin in this span, and in which a person accepted something."""


def loss_buckets(
    connection: sqlite3.Connection,
    source: int,
    times: Collection[int],
    accepted: Accepted,
    counted: set[int],
) -> set[BucketId]:
    """Returns the buckets of a topic that no message names except messages with declared losses.
    times: the `to_bucket` of each loss. counted: times that are known to lie in a counted or
    deleted bucket; this call adds the times for which it finds such a bucket."""
    left = set(times) - counted
    sizes = list(_deleted_sizes(connection, source)) if left else []
    found: set[BucketId] = set()
    for time_ms in left:
        if _is_counted(connection, source, time_ms, sizes):
            counted.add(time_ms)
            continue
        near = accepted(time_ms - LONGEST_MS + 1, time_ms + 1)
        kept = {(start, size) for start, size in near if start <= time_ms < start + size}
        found |= kept or {(time_ms - time_ms % LOSS_BUCKET_MS, LOSS_BUCKET_MS)}
    return found


def accepted_ends(
    accepted: Iterable[Acceptance], losses: Iterable[Loss], end_ms: int
) -> list[Acceptance]:
    """Returns the acceptances of those buckets that begin at `end_ms` or later, and in which one of
    the losses ends."""
    times = sorted(x.to_bucket for x in losses if x.to_bucket is not None)

    def ends_in(start: int, size: int) -> bool:
        following = bisect_left(times, start)
        return following < len(times) and times[following] < start + size

    return [x for x in accepted if x.bucket >= end_ms and ends_in(x.bucket, x.bucket_ms)]


START_OF_LOSS: Final = (
    f"to_bucket - (to_bucket % {LOSS_BUCKET_MS} + {LOSS_BUCKET_MS}) % {LOSS_BUCKET_MS}"
)
"""The SQL expression for the start of the minute that contains a loss's `to_bucket`."""


def _is_counted(
    connection: sqlite3.Connection, source: int, time_ms: int, deleted_sizes: Iterable[int]
) -> bool:
    """Whether the time lies in a bucket in which something was counted, or in a deleted bucket.
    deleted_sizes: the lengths of the topic's deleted buckets."""
    found = connection.execute(_COUNTED, (source, time_ms, LONGEST_MS)).fetchone()
    return found is not None or any(
        pruning.is_pruned(connection, source, (time_ms - time_ms % size, size))
        for size in deleted_sizes
    )


def _deleted_sizes(connection: sqlite3.Connection, source: int) -> Iterator[int]:
    """Yields the lengths of the topic's deleted buckets. Looks up each length in the index. Reading
    the table would take long, because it has a row for every 64 buckets that were ever deleted."""
    size: int | None = 0
    while size is not None:
        (size,) = connection.execute(_NEXT_SIZE, (source, size)).fetchone()
        if size is not None:
            yield size

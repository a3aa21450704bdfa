"""Up to when a counter has counted all records of its topics, without I/O.

The leader of a partition answers each fetch with the high watermark. Suppose that the durable
counts of the partition reach this offset. Then all records are counted that were in the log when
the answer was asked for. While a counter lags, for example because a transaction is open, it does
not know yet which of its answers will hold, so it keeps some of them (`CountedUntil`).

A heartbeat says how far the counts are behind (`lags`). All times here are monotonic seconds, so
neither a clock that was set nor the times in records matter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from skidway.audit.topic.messages import Behind
from skidway.kafka.source import Source

NEVER = -math.inf
SAMPLES_MAX = 64
BEHIND_MAX = 100
EQUAL_MS = 2_000
"""Topics whose lags differ by less are told as one. Otherwise nearly every topic would have a lag
of its own, because leaders answer at different times."""


class CountedUntil:
    """One partition. time: all records that were in the log at this time are counted durably; NEVER
    if this is not known of any time."""

    def __init__(self, time: float = NEVER) -> None:
        self.time = time
        self._samples: list[tuple[float, int]] = []

    def answered(self, asked: float, high_watermark: int) -> None:
        """Notes an answer. If there are too many, each second one is forgotten, so the oldest ones
        are the farthest apart."""
        if not self._samples or self._samples[-1][0] < asked:
            self._samples.append((asked, high_watermark))
        if len(self._samples) > SAMPLES_MAX:
            del self._samples[1:-1:2]

    def counted(self, next_offset: int) -> None:
        """Notes up to which offset the durable counts reach."""
        for index in reversed(range(len(self._samples))):
            asked, high_watermark = self._samples[index]
            if high_watermark <= next_offset:
                self.time = max(self.time, asked)
                del self._samples[: index + 1]
                return


def lag_ms(time: float, now: float, now_ms: int) -> int:
    """How long before `now` a time was, in ms. At most `now_ms`, the present time since 1970."""
    return math.ceil(min(max(now - time, 0) * 1000, now_ms))


def lags(found: Mapping[Source, int], others_ms: int = 0) -> tuple[int, tuple[Behind, ...]]:
    """Returns the lag of most topics, and at most BEHIND_MAX topics with greater lags. If more
    topics have greater lags, the first lag holds for the others of them too, so it is greater than
    that of most topics. found: the lag of each topic. others_ms: the lag of all other topics."""
    ordered = sorted(found.items(), key=lambda each: -each[1])
    least = min([others_ms, *found.values()])
    behind = [Behind(*each) for each in ordered[:BEHIND_MAX] if each[1] >= least + EQUAL_MS]
    return max([others_ms, *(lag for _, lag in ordered[len(behind) :])]), tuple(behind)

"""Up to when a counter says that it has counted the records of each topic.

Each heartbeat of a counter says it of all topics: of those that it names, and of all others. What
was true of a time stays true, so the latest time of each topic counts, in whatever order the
heartbeats arrive.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple, Self

from skidway.audit.evidence.hearing import Heard
from skidway.audit.topic.messages import Heartbeat
from skidway.kafka.source import Source


class CountedUntil(NamedTuple):
    """What one counter says. others_ms: the time that holds for all topics that `behind` does not
    name. behind: an earlier time for each of some topics."""

    others_ms: int
    behind: Mapping[Source, int]

    @classmethod
    def of(cls, message: Heartbeat, where: Heard | None) -> Self:
        """Takes it from a heartbeat. If the counter's clock is ahead, the time at which the
        heartbeat was read (`where`) takes the place of the heartbeat's time."""
        said_ms = message.time_ms if where is None else min(message.time_ms, where.taken_ms)
        others_ms = _before(said_ms, message.lag_ms)
        times = {x.source: _before(said_ms, x.lag_ms) for x in message.behind}
        return cls(others_ms, {x: time for x, time in times.items() if time < others_ms})

    @classmethod
    def from_row(cls, others_ms: int, behind: str) -> Self:
        """Makes it from a row of the ledger."""
        return cls(others_ms, {Source(*names): until for *names, until in json.loads(behind)})

    def to_row(self) -> tuple[int, str]:
        """Returns the row of the ledger."""
        named = [(x.cluster, x.cluster_id, x.topic, x.topic_id, t) for x, t in self.behind.items()]
        return self.others_ms, json.dumps(sorted(named))

    def until_ms(self, source: Source) -> int:
        """Returns up to when the counter has counted a topic."""
        return self.behind.get(source, self.others_ms)

    def joined(self, other: CountedUntil) -> CountedUntil:
        """Returns the later time of each topic."""
        others_ms = max(self.others_ms, other.others_ms)
        times = {
            x: max(self.until_ms(x), other.until_ms(x))
            for x in self.behind.keys() | other.behind.keys()
        }
        return CountedUntil(others_ms, {x: time for x, time in times.items() if time < others_ms})


def _before(said_ms: int, lag_ms: int) -> int:
    """Returns the time before a lag; 0, which proves nothing, if no clock shows this time."""
    return max(said_ms - max(lag_ms, 0), 0)

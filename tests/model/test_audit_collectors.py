"""Two collectors that read the same audit topics come to the same verdicts.

One collector reads from the start, and judges after each portion of messages, which comes from one
partition. The other collector begins later with an empty store. It reads the partitions in a
different order and in different portions than the first collector. In the end, the standings (the
verdicts on all buckets) of both collectors are equal.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from skidway.audit.collector.judge import Judge
from skidway.audit.evidence.ledger import Ledger, Position
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import Status
from skidway.audit.reports import report
from skidway.audit.topic.messages import Message, encode
from skidway.kafka.types import TopicPartition
from support.clock import ManualClock
from support.ledgers import take
from support.promises import promise
from support.randomness import Seeds
from support.site_truth import POLICY
from support.site_world import Faults, World

Log = tuple[str, int]


def _portions(
    logs: dict[Log, list[Message]], chance: random.Random, most: int
) -> Iterator[tuple[Log, list[Message], int]]:
    """Divides the messages of all partitions into portions of at most `most` messages of one
    partition. For each portion, yields the partition, the messages, and the offset at the portion's
    end."""
    read = dict.fromkeys(logs, 0)
    while left := sorted(log for log, messages in logs.items() if read[log] < len(messages)):
        log = chance.choice(left)
        begin, end = read[log], min(read[log] + chance.randint(1, most), len(logs[log]))
        read[log] = end
        yield log, logs[log][begin:end], end


class _Collector:
    """A simulated collector: a store that takes messages in portions, and a judge that judges the
    buckets after each portion."""

    def __init__(self, now_ms: int) -> None:
        self.ledger = Ledger()
        self.judge = Judge(self.ledger, lambda: POLICY, ManualClock(time_ms=now_ms))

    def take(self, log: Log, messages: list[Message], end: int) -> None:
        values = [encode(x) for x in messages]
        take(self.ledger, values, {TopicPartition(*log): Position(end)})
        self.judge.step()
        self.ledger.narrow(self.judge.take_balanced())
        self.ledger.merge(self.judge.take_scattered())

    def rebuild(self, logs: dict[Log, list[Message]]) -> None:
        self.ledger.rebuild({TopicPartition(*log): len(logs[log]) for log in logs if logs[log]})


def _narrow_all(ledger: Ledger) -> None:
    """Makes the checksums of all buckets narrow (shorter). Afterwards the sums of two ledgers can
    be compared, although these ledgers narrowed their checksums at different times."""
    ledger.narrow([(source, key) for source, keys in ledger.buckets().items() for key in keys])


@promise("6 collectors")
@pytest.mark.parametrize(
    "faults",
    [
        Faults(gaps=True, kills=True, recounts=True),
        Faults(remakes=True, foreign=True),
        Faults(renews=True, foreign=True),
        Faults(misplaces="agent", swaps=True),
    ],
    ids=["gaps", "remakes", "renews", "misplaces"],
)
def test_a_collector_that_began_later_has_the_same_standing(faults: Faults, seeds: Seeds) -> None:
    """If a store is rebuilt from the audit topics, it leads to the same standing (the verdicts on
    all buckets) as a store that took the messages as they came. This is so whatever the order of
    the partitions and the size of the portions. While the store is being rebuilt, the standing says
    so and counts no bucket, and the verdict on every bucket is "unknown"."""
    for seed in seeds(range(4)):
        world = World(seed, faults)
        for _ in range(faults.steps):
            world.step()
        world.settle()
        logs, chance = dict(world.audit.logs), random.Random(seed)
        early, late = _Collector(world.now_ms), _Collector(world.now_ms)
        for portion in _portions(logs, chance, 5):
            early.take(*portion)
        late.rebuild(logs)
        for portion in _portions(logs, chance, 60):
            standing = late.judge.step()
            assert standing.rebuilding
            assert standing.by_status == {}
            partial = verdicts(late.ledger.evidence(), POLICY, world.now_ms)
            assert {each.status for each in partial} <= {Status.UNKNOWN}
            late.take(*portion)
        first, second = early.judge.step(), late.judge.step()
        assert report.document(second, []) == report.document(first, [])
        assert second.rebuilding == 0
        for collector in (early, late):
            _narrow_all(collector.ledger)
        judged = [verdicts(x.ledger.evidence(), POLICY, world.now_ms) for x in (early, late)]
        assert judged[0] == judged[1]

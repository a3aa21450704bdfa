"""Strategies of Hypothesis for audit messages. The messages have any numbers and texts that a
message can have (see audit.topic.field_bounds), including values that no program of Skidway would
write."""

from __future__ import annotations

from hypothesis import strategies as st

from skidway.audit.topic.count_columns import LONGEST_MS, Count, Filtered
from skidway.audit.topic.field_bounds import FARTHEST_MS, IDS, NUMBERS, PARTITIONS, TIMES
from skidway.audit.topic.messages import (
    Announcement,
    Bounds,
    Certainty,
    Delta,
    Gap,
    Heartbeat,
    Loss,
    Range,
    Seal,
    Sender,
    Tier,
)
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.kafka.source import Source
from support.audit_senders import LOGS, REJECTED
from support.clock import ManualClock

TIME_MS = ManualClock().time_ms()
longs = st.integers(-(2**63), 2**63 - 1) | st.sampled_from(
    [-(2**63), -(2**62), -1, 0, 1, 2, 3, 7, 8, TIME_MS, 2**62, 2**63 - 2, 2**63 - 1]
)


def _of(bounds: range) -> st.SearchStrategy[int]:
    """Any integer within these bounds, and often one that is near to them or usual."""
    usual = {bounds[0], bounds[-1], bounds[-1] - 1, 2**62 - 2, -1, 0, 1, 2, 3, 7, 8, TIME_MS}
    return st.integers(bounds[0], bounds[-1]) | st.sampled_from(
        sorted(x for x in usual if x in bounds)
    )


numbers, times, ids, partitions = map(_of, (NUMBERS, TIMES, IDS, PARTITIONS))
words = st.text(max_size=8) | st.just("long" * 40)
sources = st.builds(Source, words, words, words, words) | st.sampled_from([LOGS, REJECTED])
agents = st.sampled_from(["7", "8"]) | st.integers(1, IDS[-1]).map(str)
_others = st.sampled_from([x for x in Tier if x is not Tier.AGENT])
senders = st.one_of(
    st.builds(
        Sender, tier, words, names, words, numbers | st.just(1), st.builds(Bounds, times, times)
    )
    for tier, names in ((st.just(Tier.AGENT), agents), (_others, words | agents))
)
"""A strategy for senders. It often draws the agent ids 7 and 8 and the epoch 1, so that several
messages of an example often have the same sender."""
buckets = st.integers(-FARTHEST_MS, FARTHEST_MS) | st.sampled_from(
    [TIME_MS - TIME_MS % 60_000 - 600_000, -FARTHEST_MS, FARTHEST_MS]
)
counts = st.builds(
    Count, sources, longs, buckets, st.integers(1, LONGEST_MS) | st.just(60_000),
    longs, longs, longs, longs, longs, longs,
    st.just(()) | st.just((Filtered("rule", 1, 2),)),
)  # fmt: skip
losses = st.builds(
    Loss, sources, ids, ids, numbers, st.none() | numbers, st.sampled_from(Certainty), words,
    st.none() | times, st.none() | times,
)  # fmt: skip
sealed = st.builds(
    SealedTopic, sources, times, numbers,
    st.lists(st.tuples(partitions, numbers), max_size=2).map(tuple), st.booleans(),
)  # fmt: skip
deltas = st.builds(
    Delta, senders, numbers, times,
    st.lists(st.builds(Range, sources, partitions, numbers, numbers), max_size=2).map(tuple),
    st.lists(counts, max_size=3).map(tuple),
    st.just(()) | st.tuples(losses),
    st.just(()) | st.tuples(st.builds(Gap, sources, partitions, numbers, numbers, words)),
)  # fmt: skip
seals = st.builds(Seal, senders, numbers, times, st.lists(sealed, max_size=3).map(tuple))
heartbeats = st.builds(Heartbeat, senders, numbers, times)
announcements = st.builds(
    Announcement, times, ids, ids, words, words, longs, longs, st.binary(max_size=32), partitions,
    sources, numbers, st.none() | ids, st.none() | numbers, st.none() | numbers, st.none() | longs,
)  # fmt: skip

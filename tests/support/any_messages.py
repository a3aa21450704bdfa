"""Strategies of Hypothesis for audit messages. The messages have any numbers and texts that a
message can have, including values that no program of Skidway would write."""

from __future__ import annotations

from hypothesis import strategies as st

from skidway.audit.topic.count_columns import FARTHEST_MS, LONGEST_MS, Count, Filtered
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
ints = st.integers(-(2**31), 2**31 - 1) | st.just(0)
words = st.text(max_size=8) | st.just("long" * 40)
maybe = st.none() | longs
sources = st.builds(Source, words, words, words, words) | st.sampled_from([LOGS, REJECTED])
senders = st.builds(
    Sender, st.sampled_from(Tier), words, words | st.sampled_from(["7", "8"]), words,
    longs | st.just(1), st.builds(Bounds, longs, longs),
)  # fmt: skip
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
    Loss, sources, longs, longs, longs, maybe, st.sampled_from(Certainty), words, maybe, maybe
)
sealed = st.builds(
    SealedTopic, sources, longs, longs,
    st.lists(st.tuples(ints, longs), max_size=2).map(tuple), st.booleans(),
)  # fmt: skip
deltas = st.builds(
    Delta, senders, longs, longs,
    st.lists(st.builds(Range, sources, ints, longs, longs), max_size=2).map(tuple),
    st.lists(counts, max_size=3).map(tuple),
    st.just(()) | st.tuples(losses),
    st.just(()) | st.tuples(st.builds(Gap, sources, ints, longs, longs, words)),
)  # fmt: skip
seals = st.builds(Seal, senders, longs, longs, st.lists(sealed, max_size=3).map(tuple))
heartbeats = st.builds(Heartbeat, senders, longs, longs)
announcements = st.builds(
    Announcement, longs, longs, longs, words, words, longs, longs, st.binary(max_size=32), ints,
    sources, longs, maybe, maybe, maybe, maybe,
)  # fmt: skip

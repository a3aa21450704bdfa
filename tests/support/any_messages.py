"""Strategies of Hypothesis for audit messages with any numbers and texts that a message can have,
also those that no program of Skidway would write."""

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

longs = st.integers(-(2**63), 2**63 - 1)
ints = st.integers(-(2**31), 2**31 - 1)
words = st.text(max_size=8) | st.just("long" * 40)
maybe = st.none() | longs
sources = st.builds(Source, words, words, words, words)
senders = st.builds(
    Sender, st.sampled_from(Tier), words, words, words, longs, st.builds(Bounds, longs, longs)
)
counts = st.builds(
    Count, sources, longs, st.integers(-FARTHEST_MS, FARTHEST_MS), st.integers(1, LONGEST_MS),
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

"""Tests what the audit keeps of the times up to which counters have counted."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from skidway.audit.evidence.counted_until import CountedUntil
from skidway.audit.evidence.evidence import sender_key
from skidway.audit.evidence.hearing import Heard
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.topic.field_bounds import FARTHEST_MS
from skidway.audit.topic.messages import Behind, Heartbeat, encode
from support.audit_senders import BROKER, LOGS

TOPICS = [replace(LOGS, topic=name) for name in "abc"]
TIMES = st.one_of(st.integers(0, 50), st.sampled_from([-FARTHEST_MS, -1, FARTHEST_MS]))
BEHIND = st.lists(st.builds(Behind, st.sampled_from(TOPICS), TIMES), max_size=2)
BEATS = st.builds(Heartbeat, st.just(BROKER), st.just(1), TIMES, TIMES, BEHIND.map(tuple))


@given(st.lists(BEATS, min_size=1, max_size=6))
def test_the_latest_time_of_each_topic_counts_in_any_order(beats: list[Heartbeat]) -> None:
    """In whatever order heartbeats arrive, the ledger has for each topic the latest time that one
    of them gives. It names no more topics than one heartbeat. Times and lags that no program
    writes harm nobody."""
    said = [CountedUntil.of(x, None) for x in beats]
    for order in (beats, beats[::-1]):
        ledger = Ledger()
        for beat in order:
            ledger.take([encode(beat)])
        found = ledger.evidence().counted[sender_key(BROKER)]
        for topic in [*TOPICS, LOGS]:
            assert found.until_ms(topic) == max(x.until_ms(topic) for x in said)
        assert len(found.behind) <= max(len(x.behind) for x in said)
        ledger.close()


def test_a_counter_whose_clock_is_ahead_vouches_for_no_later_time() -> None:
    """If the clock of a counter is ahead, its heartbeat vouches for the time of its lag before the
    heartbeat was read, and not for a time by its own clock."""
    where = Heard("_skidway_audit", "id", 0, 5, None, 700, True, None)
    said = CountedUntil.of(Heartbeat(BROKER, 1, 1_000, 10, (Behind(LOGS, 30),)), where)
    assert (said.until_ms(LOGS), said.until_ms(TOPICS[0])) == (670, 690)

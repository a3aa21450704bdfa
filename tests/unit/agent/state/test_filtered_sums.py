"""The state keeps the counts of records that rules left out, until a delta (a message with counts)
contains them."""

from __future__ import annotations

from pathlib import Path

from skidway.agent.state.changes import Changes
from skidway.agent.state.database import StateDatabase, open_state
from skidway.audit.counts.counts import BucketKey, Sums
from skidway.audit.topic.count_columns import Filtered
from skidway.kafka.source import Source
from support.promises import promise

LOGS = Source("main", "c", "logs", "t")
DEBUG = Filtered("debug", 3, 30)


def put(state: StateDatabase, *sums: Sums) -> None:
    changes = Changes()
    changes.put_sums(((LOGS, state.agent, 60_000), each) for each in sums)
    state.commit(changes)


def kept(directory: Path) -> list[tuple[BucketKey, Sums]]:
    """Returns each bucket with its sums, as an agent reads them from its state when it starts."""
    state = open_state(directory)
    try:
        return state.sums()
    finally:
        state.close()


@promise("2 filtered")
def test_what_was_left_out_is_durable_until_a_delta_has_it(tmp_path: Path) -> None:
    """For each rule, the count of the records that the rule left out of a bucket is stored with the
    bucket's sums, and replaces the count that was stored before. When a delta (a message with
    counts) contains these counts and sums, the agent deletes both."""
    state = open_state(tmp_path)
    key = LOGS, state.agent, 60_000
    put(state, Sums(1, 2, 3, filtered=(DEBUG,)))
    both = (Filtered("debug", 4, 40), Filtered("health", 1, 5))
    put(state, Sums(2, 4, 6, filtered=both))
    assert kept(tmp_path) == [(key, Sums(2, 4, 6, filtered=both))]
    changes = Changes()
    changes.clear_sums()
    state.commit(changes)
    put(state, Sums(1, 1, 1))
    assert kept(tmp_path) == [(key, Sums(1, 1, 1))]
    state.close()

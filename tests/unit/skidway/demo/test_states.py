from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from skidway.agent.state.database import DATABASE, open_state
from skidway.audit.counter.state import CounterState
from skidway.demo import states
from skidway.kafka.types import TopicPartition


def test_no_state_reads_as_empty(tmp_path: Path) -> None:
    """If an agent or counter has not run yet, or has not created its tables yet, its state is read
    as empty."""
    assert states.agent(tmp_path, ["t"]) == states.AgentState()
    assert states.counter(tmp_path) == states.CounterState()
    with closing(sqlite3.connect(tmp_path / DATABASE)):
        assert states.agent(tmp_path, ["t"]) == states.AgentState()


def test_the_agents_tables_are_read_as_they_are(tmp_path: Path) -> None:
    """The demo reads the acknowledged offsets and the intents (the byte ranges that the agent
    has promised to send) from a database that the agent's own code created."""
    open_state(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / DATABASE)) as state, state:
        state.execute("INSERT INTO offsets VALUES ('t', 1, 41)")
        state.execute("INSERT INTO intents VALUES (1, 7, 0, 100, 0, 0, x'00', 0)")
        state.execute("INSERT INTO intents VALUES (2, 7, 100, 130, 0, 0, x'00', 0)")
    found = states.agent(tmp_path, ["t"])
    assert found.acknowledged_offsets == {TopicPartition("t", 1): 41}
    assert found.intents == 2
    assert found.in_flight == {7: 130}
    assert not found.has_passed(found.promised)
    assert found.has_passed({})


def test_bytes_are_those_of_the_topics_that_are_asked_for(tmp_path: Path) -> None:
    """The sum of acknowledged bytes includes only the requested topics, not all topics of the
    agent."""
    open_state(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / DATABASE)) as state, state:
        columns = [row[1] for row in state.execute("PRAGMA table_info(files)")]
        for number, (topic, done) in enumerate((("t", 7), ("other", 500)), 1):
            values = {"file": number, "topic": topic, "acknowledged": done, "predecessor": None}
            values |= {"predecessor_position": None, "length": None}
            texts = ("topic_id", "host", "path", "state")
            blobs = ("fingerprint", "location", "meant", "marks")
            row = [
                values.get(name, "" if name in texts else b"" if name in blobs else 0)
                for name in columns
            ]  # fmt: skip
            state.execute(f"INSERT INTO files VALUES ({','.join('?' * len(row))})", row)
    assert states.agent(tmp_path, ["t"]).acknowledged == 7
    assert states.agent(tmp_path, ["t", "other"]).acknowledged == 507


def test_all_topics_are_sealed_as_far_as_the_last_of_them(tmp_path: Path) -> None:
    """An agent seals each topic up to a time. For the given topics, `sealed_until` returns the
    earliest of these times. It returns 0 if the agent has never sealed one of the topics or has no
    state yet."""
    assert states.sealed_until(tmp_path, ["t"]) == 0
    open_state(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / DATABASE)) as state, state:
        rows = [("t", "id", 7), ("u", "id", 5), ("v", "id", None), ("other", "id", 1)]
        state.executemany("INSERT INTO topics VALUES (?, ?, ?)", rows)
    assert states.sealed_until(tmp_path, ["t", "u"]) == 5
    assert states.sealed_until(tmp_path, ["t", "u", "v"]) == 0
    assert states.sealed_until(tmp_path, ["t", "new"]) == 0


def test_the_counters_tables_are_read_as_they_are(tmp_path: Path) -> None:
    """The demo reads a counter's epoch and offsets from a database that the counter's own code
    created."""
    CounterState(tmp_path / "counter.db").close()
    with closing(sqlite3.connect(tmp_path / "counter.db")) as state, state:
        state.execute("INSERT INTO sources VALUES (1, 'dc1', 'id', 't', 'id')")
        state.execute("INSERT INTO partitions VALUES (1, 0, 12, NULL, NULL, NULL)")
    assert states.counter(tmp_path) == states.CounterState(1, {TopicPartition("t", 0): 12})

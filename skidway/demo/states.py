"""The states that agent and counter have stored durably, read from their SQLite files.

The files can be read even while the program is dead. After a kill -9 the files show which work the
kill interrupted, because a restarted program continues with what is in the files. This module
writes nothing. If a program has not stored a state yet, the state is empty.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from skidway.kafka.types import TopicPartition

WAIT_S = 5.0

_POSITIONS = "SELECT file, position FROM files"
_FATES = (
    "SELECT coalesce(sum(acknowledged), 0), coalesce(sum(rejected + filtered), 0),"
    " coalesce(sum(lost), 0), coalesce(sum(uncertain), 0) FROM files"
    " WHERE topic IN (SELECT value FROM json_each(?))"
)
_INTENTS = 'SELECT file, max("end") FROM intents GROUP BY file'
_SEALED = "SELECT topic, sealed_until FROM topics"
_COUNTED = (
    "SELECT topic, partition, next_offset FROM partitions"
    " JOIN sources ON sources.id = partitions.source"
)


@dataclass(frozen=True, slots=True)
class AgentState:
    """What the agent did with the bytes of some topics, and which bytes the agent is about to send.
    Before the agent sends bytes, it stores an intent that notes these bytes.

    `acknowledged`, `set_apart` (rejected or filtered), `lost` and `uncertain` are numbers of bytes.
    `intents` is the number of intents. `positions` maps each file id to the agent's checkpoint in
    the file: the agent need not read the bytes before this position again. `promised` maps each
    file id to the byte at which the file's last intent ends. `acknowledged_offsets` has the last
    acknowledged offset of each partition.
    """

    acknowledged: int = 0
    set_apart: int = 0
    lost: int = 0
    uncertain: int = 0
    intents: int = 0
    positions: Mapping[int, int] = field(default_factory=dict)
    promised: Mapping[int, int] = field(default_factory=dict)
    acknowledged_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)

    @property
    def in_flight(self) -> dict[int, int]:
        """For each file id, the number of bytes between the agent's checkpoint and the end of the
        last intent. The agent has sent these bytes, or is about to send them."""
        found = {file: end - self.positions.get(file, 0) for file, end in self.promised.items()}
        return {file: size for file, size in found.items() if size > 0}

    def has_passed(self, promised: Mapping[int, int]) -> bool:
        """Returns whether the agent's checkpoint has reached or passed, in each file, the byte
        position in `promised`."""
        return all(self.positions.get(file, 0) >= end for file, end in promised.items())


@dataclass(frozen=True, slots=True)
class CounterState:
    """The state after a counter's last transaction. A new epoch means that the counter began again
    with an empty state."""

    epoch: int = 0
    next_offsets: Mapping[TopicPartition, int] = field(default_factory=dict)


def agent(directory: Path, topics: Sequence[str]) -> AgentState:
    """Returns the agent's state, read from its state.dir. The numbers of bytes in this state count
    only the bytes of `topics`."""
    with _opened(directory / "agent.db") as state:
        if state is None:
            return AgentState()
        acknowledged, set_apart, lost, uncertain = state.execute(
            _FATES, (json.dumps(topics),)
        ).fetchone()
        return AgentState(
            acknowledged,
            set_apart,
            lost,
            uncertain,
            state.execute("SELECT count(*) FROM intents").fetchone()[0],
            dict(state.execute(_POSITIONS)),
            dict(state.execute(_INTENTS)),
            {
                TopicPartition(topic, partition): last
                for topic, partition, last in state.execute("SELECT * FROM offsets")
            },
        )


def sealed_until(directory: Path, topics: Sequence[str]) -> int:
    """Returns the time (ms) up to which the agent has sealed all these topics; 0 if it has not
    sealed all of them yet."""
    with _opened(directory / "agent.db") as state:
        found = {} if state is None else dict(state.execute(_SEALED))
        return min((found.get(topic) or 0 for topic in topics), default=0)


def counter(directory: Path) -> CounterState:
    """Returns a counter's state, read from its state.dir."""
    with _opened(directory / "counter.db") as state:
        if state is None:
            return CounterState()
        return CounterState(
            state.execute("SELECT epoch FROM meta").fetchone()[0],
            {
                TopicPartition(topic, partition): offset
                for topic, partition, offset in state.execute(_COUNTED)
            },
        )


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection | None]:
    """Opens a database for consistent reading. Yields None while the database has no tables yet."""
    if not path.exists():
        yield None
        return
    with closing(
        sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=WAIT_S)
    ) as state:
        state.isolation_level = None
        state.execute("BEGIN")
        made = state.execute("SELECT count(*) FROM sqlite_master WHERE name = 'meta'").fetchone()
        yield state if made[0] else None

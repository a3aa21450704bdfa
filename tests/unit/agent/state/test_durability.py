"""The agent opens its SQLite database with settings by which committed transactions survive a power
failure."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from skidway.agent.state import database
from skidway.agent.state.changes import Changes
from skidway.agent.state.database import open_state
from support.promises import promise

FULL = 2


@promise("2 intent")
def test_a_transaction_is_on_the_disk_when_it_is_committed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every connection to the database uses synchronous=FULL, including the connection that creates
    the file. An intent is a stored promise to send certain bytes. With a weaker setting, a power
    failure could remove an intent whose bytes were already sent."""
    asked: list[int] = []

    class Watched(sqlite3.Connection):
        def close(self) -> None:
            asked.append(self.execute("PRAGMA synchronous").fetchone()[0])
            super().close()

    connect = sqlite3.connect

    def watched(*args: Any, **named: Any) -> sqlite3.Connection:
        return connect(*args, factory=Watched, **named)

    monkeypatch.setattr(database.sqlite3, "connect", watched)
    for _ in range(2):
        state = open_state(tmp_path)
        changes = Changes()
        changes.put_meta("number", 1)
        state.commit(changes)
        assert state._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        state.close()
    assert asked == [FULL] * 3

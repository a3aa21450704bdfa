"""One attempt at a load: what becomes of it when another loader was faster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from audit.output import StoreFailed
from loader import layout
from loader.feed import Feed
from loader.settings import LoaderSettings
from loader.topic_load import LostRace, Parts, Topic, TopicLoad
from support.clock import ManualClock
from support.loading import SOURCE, WHOLE
from support.memory_store import MemoryStore

OTHER = "b" * 32


class Swept(MemoryStore):
    """Another loader commits, and deletes our staging directory, while we commit."""

    def __init__(self, winner: str) -> None:
        super().__init__()
        self._winner = winner

    def sync(self, paths: Sequence[str]) -> None:
        if self._winner:
            won = replace(WHOLE, number=1, topic="logs", uuid=self._winner)
            self.put(won.path, won.to_json())
        raise StoreFailed(f"cannot sync {paths[0]}: No such file or directory")


def attempt(store: MemoryStore) -> TopicLoad:
    settings = LoaderSettings(
        bootstrap_servers="x:1", schema_registry_url="http://x", topics=["logs"], output="/out"
    )
    nothing: Any = None
    parts = Parts(settings, nothing, nothing, store, nothing, ManualClock(), Feed(), "c", [])
    return TopicLoad(parts, Topic("logs", "", SOURCE, ()), None)


def test_a_commit_that_fails_because_another_won_is_a_lost_race() -> None:
    """The winner's next start deletes the loser's staging directory under its hands: that is no
    fault of the output."""
    load = attempt(Swept(winner=OTHER))
    mine = replace(WHOLE, number=1, topic="logs", files=(), uuid="c" * 32)
    with pytest.raises(LostRace):
        load.commit(mine)


def test_a_commit_that_fails_otherwise_says_why_and_deletes_nothing() -> None:
    """Whether it is committed is not known then: the staged files stay for the next start."""
    store = Swept(winner="")
    mine = replace(WHOLE, number=1, topic="logs", files=(), uuid="c" * 32)
    store.put(f"{layout.staging('logs', 1, mine.uuid)}/rows", b"rows")
    with pytest.raises(StoreFailed, match="cannot sync"):
        attempt(store).commit(mine)
    assert list(store.files(layout.stagings("logs")))

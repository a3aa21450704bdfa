from __future__ import annotations

import uuid

import pytest

from broker.coordination.consumers import Committed, TopicOffset
from broker.groups import cache
from broker.groups.cache import OffsetCache
from skidway.kafka.types import TopicPartition

LOGS, MORE = TopicPartition("logs", 0), TopicPartition("more", 1)


def test_only_what_was_read_whole_is_known() -> None:
    """A commit alone does not make the group's other offsets known."""
    known = OffsetCache({"logs": uuid.UUID(int=1)}.get)
    known.update("g", {LOGS: TopicOffset(uuid.UUID(int=1), Committed(1))})
    assert known.get("g") is None
    known.put("g", {LOGS: Committed(1)})
    known.update("g", {LOGS: TopicOffset(uuid.UUID(int=1), Committed(2))})
    assert known.get("g") == {LOGS: Committed(2)}
    known.drop("g")
    assert known.get("g") is None
    assert len(known) == 0


def test_a_topic_made_again_begins_without_offsets() -> None:
    """Its id is another one."""
    topics = {"logs": uuid.UUID(int=1), "more": uuid.UUID(int=2)}
    known = OffsetCache(topics.get)
    known.put("g", {LOGS: Committed(1), MORE: Committed(5)})
    topics["logs"] = uuid.UUID(int=3)
    assert known.get("g") == {MORE: Committed(5)}
    del topics["more"]
    assert known.get("g") == {}


def test_the_least_asked_for_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """OFFSETS_MAX bounds all groups together."""
    monkeypatch.setattr(cache, "OFFSETS_MAX", 2)
    known = OffsetCache({"logs": uuid.UUID(int=1)}.get)
    for group in "abc":
        known.put(group, {LOGS: Committed(1)})
        known.get("a")
    assert [group for group in "abc" if known.get(group) is not None] == ["a", "c"]

from __future__ import annotations

import uuid

import pytest

from skidway.broker.coordination.consumers import Committed, TopicOffset
from skidway.broker.groups import cache
from skidway.broker.groups.cache import OffsetCache
from skidway.kafka.types import TopicPartition

LOGS, MORE = TopicPartition("logs", 0), TopicPartition("more", 1)


def test_only_what_was_read_whole_is_known() -> None:
    """The broker's cache returns the committed offsets of a group only after all offsets of the
    group were read from ZooKeeper. If it has only the offsets of one commit, it returns nothing."""
    known = OffsetCache({"logs": uuid.UUID(int=1)}.get)
    known.update("g", {LOGS: TopicOffset(uuid.UUID(int=1), Committed(1))})
    assert known.get("g") is None
    known.put("g", {LOGS: Committed(1)})
    known.update("g", {LOGS: TopicOffset(uuid.UUID(int=1), Committed(2))})
    assert known.get("g") == {LOGS: Committed(2)}
    known.drop("g")
    assert known.get("g") is None
    assert known.size_bytes == 0


def test_a_topic_made_again_begins_without_offsets() -> None:
    """If a topic was deleted, or deleted and created again, the broker's cache of committed offsets
    drops the topic's offsets."""
    topics = {"logs": uuid.UUID(int=1), "more": uuid.UUID(int=2)}
    known = OffsetCache(topics.get)
    known.put("g", {LOGS: Committed(1), MORE: Committed(5)})
    topics["logs"] = uuid.UUID(int=3)
    assert known.get("g") == {MORE: Committed(5)}
    del topics["more"]
    assert known.get("g") == {}


def test_the_least_asked_for_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the broker's cache of committed offsets is full, it drops the groups whose offsets were
    least recently requested. The cache is full when all groups together reach the limit in
    bytes."""
    monkeypatch.setattr(cache, "BYTES_MAX", 1000)
    known = OffsetCache({"logs": uuid.UUID(int=1)}.get)
    for group in "abc":
        known.put(group, {LOGS: Committed(1)})
        known.get("a")
    assert [group for group in "abc" if known.get(group) is not None] == ["a", "c"]


def test_words_of_clients_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The metadata of commits counts towards the limit of the broker's cache of committed offsets,
    because it needs memory. This also holds if a partition's first commit has no metadata and a
    later commit has some. When an offset is replaced, the size of the old offset and its metadata
    is subtracted."""
    monkeypatch.setattr(cache, "BYTES_MAX", 10_000)
    topic_id = uuid.UUID(int=1)
    known = OffsetCache({"logs": topic_id}.get)
    known.put("a", {LOGS: Committed(1)})
    size = known.size_bytes
    known.put("b", {LOGS: Committed(1)})
    for _ in range(50):
        known.update("b", {LOGS: TopicOffset(topic_id, Committed(1, metadata="x" * 4096))})
    assert known.get("a") is not None
    known.update("b", {LOGS: TopicOffset(topic_id, Committed(1))})
    assert known.size_bytes == 2 * size
    known.update("b", {LOGS: TopicOffset(topic_id, Committed(1, metadata="x" * 9700))})
    assert known.size_bytes <= 10_000
    assert known.get("b") is None

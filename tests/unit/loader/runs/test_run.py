"""Tests one run over several topics."""

from __future__ import annotations

from collections.abc import Mapping
from unittest.mock import patch

from skidway.loader.audit_topic.feed import Feed
from skidway.loader.planning.plan import Bounds
from skidway.loader.planning.topic import SourceTopic
from support.loading import SOURCE
from support.memory_loading import MemoryLoading

REJECTS = SourceTopic("logs.rejected", "1" * 32, SOURCE, (Bounds(0, 0, 0),))


def test_a_topic_without_records_needs_no_old_messages() -> None:
    """Topics without records do not make a run read the whole audit topic. Most topics of rejects
    never have a record and so never have a load. For its other topics, a run reads the audit topic
    only from the position that their newest loads have stored."""
    loading = MemoryLoading()
    loading.beside = [REJECTS]
    wanted: list[Mapping[str, int]] = []
    begin = Feed.begin

    def noted(feed: Feed, positions: Mapping[str, int]) -> None:
        wanted.append(positions)
        begin(feed, positions)

    with patch.object(Feed, "begin", noted):
        for _ in range(2):
            loading.write(10)
            assert loading.run().rows == 10
    assert wanted == [{}, loading.manifest(1).audit_positions]
    assert loading.manifest(1).audit_positions


def test_without_any_records_the_audit_topic_is_not_read() -> None:
    """If no topic of a run ever had a record, the run reads nothing and loads nothing."""
    loading = MemoryLoading()
    loading.beside = [REJECTS]
    with patch.object(Feed, "begin", side_effect=AssertionError):
        assert loading.run().loads == []

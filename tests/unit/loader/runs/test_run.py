"""Tests one run over several topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from unittest.mock import patch

import pytest

from skidway.loader.audit_topic.feed import Feed
from skidway.loader.planning.plan import Bounds
from skidway.loader.planning.topic import SourceTopic
from skidway.loader.runs.outcome import Report
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


SHIPPED = SourceTopic("shipped", "2" * 32, replace(SOURCE, topic="shipped"), (Bounds(0, 0, 48),))


@pytest.mark.parametrize(
    ("topics", "is_named"),
    [([".*"], False), (["logs", "ship.*"], False), ([".*", "shipped"], True)],
)
def test_a_topic_without_a_schema_does_not_make_the_load_of_the_others_fail(
    topics: list[str], is_named: bool
) -> None:
    """If a pattern in `topics` also matches a topic of another program, whose records have no
    schema, the run loads the other topics and ends well. The topic has a status and a sentence of
    its own, and does not make the run read the audit topics from their beginning. If `topics` names
    the topic, somebody wants its rows, and its missing schema is a problem of the run."""
    loading = MemoryLoading()
    loading.beside = [SHIPPED]
    for _ in range(2):
        wanted: list[Mapping[str, int]] = []
        loading.write(10)
        with patch.object(Feed, "begin", lambda _, positions: wanted.append(positions)):  # noqa: B023
            loading.run(topics=topics)
        report = Report(loading.outcomes)
        logs, shipped = report.document()["topics"]
        assert (logs["status"], logs["rows"]) == ("good", 10)
        assert (report.exit_code, shipped["status"]) == (
            (1, "problem") if is_named else (0, "no schema")
        )
        assert "no schema is registered under shipped-value" in report.sentences()[0]
    assert bool(wanted[0]) != is_named

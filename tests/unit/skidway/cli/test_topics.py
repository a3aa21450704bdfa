from __future__ import annotations

import argparse

import pytest

from skidway.cli import topics


@pytest.mark.parametrize("as_json", [False, True])
def test_a_topic_without_known_partitions_is_described(
    capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    """If the partitions of a topic are not known yet, `skidway topics describe` shows the topic
    without a table of partitions."""
    document = {
        "topic": "logs", "topic_id": None, "configs": {}, "config_sources": {}, "partitions": [],
    }  # fmt: skip
    topics._show([document], argparse.Namespace(json=as_json, all=False))
    said = capsys.readouterr().out
    assert "logs" in said
    assert ("partitions are not known" in said) != as_json

from __future__ import annotations

import pytest

from skidway.kafka.topic_names import illegal_topic


@pytest.mark.parametrize("name", ["a", "logs.2030_x-Y", "x" * 249, "...", "-"])
def test_legal_topics(name: str) -> None:
    """A topic name that Kafka allows is legal."""
    assert illegal_topic(name) is None


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "../x", "a b", "ü", "x" * 250, "a\0b", "a\n"]
)
def test_illegal_topics(name: str) -> None:
    """A topic name is illegal, with a reason, if a path with this name could lead out of a
    directory, or if Kafka refuses the name."""
    assert illegal_topic(name)

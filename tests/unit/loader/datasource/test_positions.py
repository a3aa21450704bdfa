"""Tests the positions of a query (an offset for each partition): how they are written as JSON, and
which offsets the words `earliest` and `latest` mean."""

from __future__ import annotations

import json

import pytest

from skidway.errors import UsageError
from skidway.loader.datasource.positions import (
    EARLIEST,
    LATEST,
    TopicPositions,
    from_json,
    resolved,
    to_json,
)
from skidway.loader.planning.plan import Bounds
from skidway.loader.planning.topic import SourceTopic
from support.loading import SOURCE

ID, OTHER = "a" * 32, "b" * 32


def topic(*bounds: tuple[int, int], name: str = "logs", topic_id: str = ID) -> SourceTopic:
    each = tuple(Bounds(number, *pair) for number, pair in enumerate(bounds))
    return SourceTopic(name, topic_id, SOURCE, each)


def test_equal_positions_are_equal_texts() -> None:
    """Equal positions are written as the same JSON text, whatever order they were created in,
    because Spark compares positions as texts."""
    one = {"b": TopicPositions("", {10: 1, 2: 5}), "a": TopicPositions(ID, {0: 3})}
    two = dict(reversed(one.items()))
    texts = {json.dumps(to_json(each)) for each in (one, two, from_json(to_json(one)))}
    assert texts == {f'{{"a": {{"id": "{ID}", "0": 3}}, "b": {{"2": 5, "10": 1}}}}'}


def test_names_of_offsets_follow_the_log() -> None:
    """For each partition `earliest` means the log start and `latest` the high watermark. In JSON
    the offset -2 means earliest, and -1 means latest."""
    topics = [topic((5, 9), (0, 4))]
    assert resolved("o", EARLIEST, topics)["logs"].offsets == {0: 5, 1: 0}
    assert resolved("o", LATEST, topics)["logs"].offsets == {0: 9, 1: 4}
    given = {"logs": TopicPositions("", {0: -2, 1: -1})}
    assert resolved("o", given, topics) == {"logs": TopicPositions(ID, {0: 5, 1: 4})}


def test_given_ids_are_kept() -> None:
    """If the given positions contain a topic's id, this id stays, even if the topic now has another
    id. So the data source notices that the topic was deleted and created again."""
    given = {"logs": TopicPositions(OTHER, {0: 7})}
    found = resolved("o", given, [topic((5, 9))])
    assert found == given
    assert not found["logs"].is_of(ID)
    assert found["logs"].is_of("")


def test_positions_must_fit_the_topics() -> None:
    """Positions are refused if they name a topic that is not in the query. They are also refused if
    they lack a partition, because it would be unclear from which offset this partition should be
    read."""
    with pytest.raises(UsageError, match="o must name the topics that are read: logs, not x"):
        resolved("o", {"x": TopicPositions("", {0: 1})}, [topic((0, 1))])
    with pytest.raises(UsageError, match=r"each partition \(0 to 1\) of logs"):
        resolved("o", {"logs": TopicPositions("", {0: 1})}, [topic((0, 1), (0, 1))])

"""Tests how an agent recognizes that a topic was deleted and created again."""

from __future__ import annotations

import pytest

from skidway.agent.cluster.topics import has_fallen_back
from skidway.kafka.client import Delivery, Drained
from skidway.kafka.types import TopicPartition
from support.promises import promise

TP, OTHER = TopicPartition("logs", 0), TopicPartition("logs", 1)


@promise("2 topic made again")
@pytest.mark.parametrize(
    ("tp", "base", "fallen"),
    [(TP, 8, False), (TP, 7, True), (TP, 0, True), (TP, -1, False), (OTHER, 0, False)],
)
def test_a_batch_below_what_was_acknowledged_lies_in_another_log(
    tp: TopicPartition, base: int, fallen: bool
) -> None:
    """The agent concludes that a topic was created again if a batch is acknowledged at an offset
    that is not higher than the partition's last acknowledged offset. The agent does not wait until
    a broker reports the new topic."""
    assert has_fallen_back([Delivery(None, tp, base, None)], {TP: 7}) is fallen


def test_what_was_not_delivered_says_nothing() -> None:
    """A batch that was not delivered does not show that its topic was created again, because the
    batch has no offset."""
    assert not has_fallen_back([Delivery(None, TP, 0, Drained(TP))], {TP: 7})

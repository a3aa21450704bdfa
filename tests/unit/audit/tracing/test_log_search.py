"""Tests the search for the record of one line in batches."""

from __future__ import annotations

from skidway.audit.tracing.lines import Point
from skidway.audit.tracing.log_search import LogSearch
from skidway.kafka.batch import read_header
from support.line_world import AGENT, FILE, OTHER_AGENT, batch

LINES = [b"first line", b"second line", b"third line"]
SECOND = Point(AGENT, FILE, 13)


def taken(search: LogSearch, data: bytearray, topic: str = "logs") -> list[int]:
    """Gives a batch to the search, and returns the first bytes of the lines that it finds."""
    found = search.take(topic, 0, read_header(data), memoryview(data))
    return [each.origin.first for each in found if each.origin is not None]


def test_batches_of_other_agents_are_not_unpacked() -> None:
    """If one batch shows that a producer id belongs to another agent, `skidway audit trace` reads
    only the headers of further batches with this producer id. So the command does not notice if the
    records of these batches are damaged."""
    search = LogSearch(SECOND)
    mine, other = batch(LINES, producer_id=1), batch(LINES, agent=OTHER_AGENT, producer_id=2)
    for each, found in ((mine, [11]), (other, []), (mine, [11])):
        assert taken(search, each) == found
    other[-1] ^= 1
    assert taken(search, other) == []


def test_a_producer_id_belongs_to_one_topic_of_the_search() -> None:
    """In topics that come from two source clusters, the same producer id may belong to two agents,
    because each cluster assigns its own ids. `skidway audit trace` does not mix up the two
    agents."""
    search = LogSearch(SECOND)
    other, mine = batch(LINES, agent=OTHER_AGENT, producer_id=1), batch(LINES, producer_id=1)
    assert taken(search, other, "dc2.logs") == []
    assert taken(search, mine, "dc1.logs") == [11]


def test_batches_without_producer_id_are_always_looked_at() -> None:
    """`skidway audit trace` always searches batches without a producer id, because they may come
    from any agent."""
    search = LogSearch(SECOND)
    for agent, found in ((OTHER_AGENT, []), (AGENT, [11]), (OTHER_AGENT, []), (AGENT, [11])):
        assert taken(search, batch(LINES, agent=agent)) == found

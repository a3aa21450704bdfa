from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skidway.consumer.assignment import range_assignment
from skidway.kafka.types import TopicPartition


def shares(readers: dict[str, frozenset[str]], partitions: dict[str, int]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {name: [] for name in readers}
    for tp, name in range_assignment(readers, partitions).items():
        found[name].append(tp.partition)
    return found


def test_ranges_are_those_of_the_paper() -> None:
    """Readers (the streams of a group's consumers) get contiguous ranges of partitions in the order
    of the readers' names. If the partitions cannot be divided evenly, the first readers get one
    partition more."""
    readers = {name: frozenset({"t"}) for name in ("c", "a", "b")}
    assert shares(readers, {"t": 8}) == {"a": [0, 1, 2], "b": [3, 4, 5], "c": [6, 7]}
    assert shares(readers, {"t": 2}) == {"a": [0], "b": [1], "c": []}


def test_topics_are_shared_among_their_readers() -> None:
    """Readers (the streams of a group's consumers) get only partitions of the topics to which they
    have subscribed. A topic without readers is left out."""
    readers = {"a": frozenset({"t"}), "b": frozenset({"t", "u"})}
    assert range_assignment(readers, {"t": 2, "u": 1, "v": 3}) == {
        TopicPartition("t", 0): "a",
        TopicPartition("t", 1): "b",
        TopicPartition("u", 0): "b",
    }


@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=3), st.frozensets(st.sampled_from("tu"))),
    st.dictionaries(st.sampled_from("tu"), st.integers(0, 30)),
)
def test_every_partition_has_one_reader_and_shares_are_even(
    readers: dict[str, frozenset[str]], partitions: dict[str, int]
) -> None:
    """Each partition of a subscribed topic has exactly one reader. The readers of a topic get equal
    numbers of its partitions, or numbers that differ by one."""
    found = range_assignment(readers, partitions)
    for topic, count in partitions.items():
        names = [name for name, topics in readers.items() if topic in topics]
        owners = [found.get(TopicPartition(topic, p)) for p in range(count)]
        if not names:
            assert set(owners) <= {None}
            continue
        sizes = [owners.count(name) for name in names]
        assert sum(sizes) == count
        assert max(sizes) - min(sizes) <= 1

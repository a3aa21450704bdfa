"""With every stock client, the members of consumer groups share partitions, rebalance, and continue
at committed offsets."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.stock_clients import Driver, StockClient
from support.stock_group import EACH, PARTITIONS, Group
from support.story import each_client


@pytest.fixture
def group(reference: Driver, new_member: Callable[[], Driver]) -> Group:
    return Group(reference, new_member)


@each_client()
def test_partitions_are_shared_and_handed_over(client: StockClient, group: Group) -> None:
    """A single member has all partitions. Two members share the partitions. When one of them
    leaves, the other member gets all partitions again."""
    group.write()
    first = group.join()
    assert group.read_all(range(EACH)) == {first: set(PARTITIONS)}
    group.commit()
    second = group.join()
    group.settle()
    group.write()
    read = group.read_all(range(EACH, 2 * EACH))
    assert read[first]
    assert read[second]
    assert not read[first] & read[second]
    group.commit()
    group.leave(second)
    group.settle()
    group.write()
    assert group.read_all(range(2 * EACH, 3 * EACH)) == {first: set(PARTITIONS)}


@each_client()
def test_a_group_goes_on_where_it_committed(client: StockClient, group: Group) -> None:
    """A new member of an existing group gets only the records from the committed offsets on."""
    group.write()
    first = group.join()
    group.read_all(range(EACH))
    group.commit()
    group.leave(first)
    assert group.committed() == [EACH] * len(PARTITIONS)
    group.write()
    second = group.join()
    group.read_all(range(EACH, 2 * EACH))
    group.leave(second)


@each_client("commit")
def test_what_is_not_committed_comes_again(client: StockClient, group: Group) -> None:
    """If a member leaves without a commit, the next member gets all records again."""
    group.write()
    first = group.join()
    group.read_all(range(EACH))
    group.leave(first)
    assert group.committed() == [-1] * len(PARTITIONS)
    group.join()
    group.read_all(range(EACH))

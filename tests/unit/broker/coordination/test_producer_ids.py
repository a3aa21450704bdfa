from __future__ import annotations

from collections.abc import Callable

from skidway.broker.coordination.producer_ids import Block, ProducerIds
from skidway.broker.log.producer_id import number_of
from skidway.errors import SkidwayError, Unreachable
from support.promises import promise


class Blocks:
    """A stand-in for ZooKeeper. It keeps the broker's requests for blocks of producer ids until the
    test answers them."""

    def __init__(self) -> None:
        self.asked: list[Callable[[Block | SkidwayError], None]] = []

    def __call__(self, taken: Callable[[Block | SkidwayError], None]) -> None:
        self.asked.append(taken)


def given_numbers(ids: ProducerIds, count: int) -> list[int | SkidwayError]:
    """Asks for ids. Returns the list to which their numbers, or the errors, are added."""
    found: list[int | SkidwayError] = []

    def given(outcome: int | SkidwayError) -> None:
        is_id = isinstance(outcome, int)
        assert not is_id or ids.belongs_to(outcome, "User:ada")
        found.append(number_of(outcome) if isinstance(outcome, int) else outcome)

    for _ in range(count):
        ids.give("User:ada", given)
    return found


@promise("3 producer ids")
def test_ids_come_from_the_block_in_order_and_once() -> None:
    """The broker takes producer ids in order from one block until the block is used up, and then
    from the next block. It gives out no id twice."""
    blocks = Blocks()
    ids = ProducerIds(b"key", blocks)
    given = given_numbers(ids, 5)
    assert len(blocks.asked) == 1
    blocks.asked.pop()((10, 12))
    assert given == [10, 11, 12]
    assert len(blocks.asked) == 1, "the rest waits for the next block"
    blocks.asked.pop()((100, 102))
    assert given == [10, 11, 12, 100, 101]
    assert given_numbers(ids, 1) == [102]
    assert not blocks.asked


def test_without_a_block_everybody_is_told() -> None:
    """If the broker cannot get a block of producer ids, every waiting request gets the error. The
    next request asks for a block again."""
    blocks = Blocks()
    ids = ProducerIds(b"key", blocks)
    given = given_numbers(ids, 2)
    error = Unreachable("away")
    blocks.asked.pop()(error)
    assert given == [error, error]
    given_numbers(ids, 1)
    assert len(blocks.asked) == 1

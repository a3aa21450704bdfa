from __future__ import annotations

from collections.abc import Callable

from skidway.broker.coordination.producer_ids import Block, ProducerIds
from skidway.errors import SkidwayError, Unreachable
from support.promises import promise


class Blocks:
    """A stand-in for ZooKeeper. It keeps the broker's requests for blocks of producer ids until the
    test answers them."""

    def __init__(self) -> None:
        self.asked: list[Callable[[Block | SkidwayError], None]] = []

    def __call__(self, taken: Callable[[Block | SkidwayError], None]) -> None:
        self.asked.append(taken)


@promise("3 producer ids")
def test_ids_come_from_the_block_in_order_and_once() -> None:
    """The broker takes producer ids in order from one block until the block is used up, and then
    from the next block. It gives out no id twice."""
    blocks, given = Blocks(), []
    ids = ProducerIds(blocks)
    for _ in range(5):
        ids.give(given.append)
    assert len(blocks.asked) == 1
    blocks.asked.pop()((10, 12))
    assert given == [10, 11, 12]
    assert len(blocks.asked) == 1, "the rest waits for the next block"
    blocks.asked.pop()((100, 102))
    assert given == [10, 11, 12, 100, 101]
    ids.give(given.append)
    assert given[-1] == 102
    assert not blocks.asked


def test_without_a_block_everybody_is_told() -> None:
    """If the broker cannot get a block of producer ids, every waiting request gets the error. The
    next request asks for a block again."""
    blocks, given = Blocks(), []
    ids = ProducerIds(blocks)
    ids.give(given.append)
    ids.give(given.append)
    error = Unreachable("away")
    blocks.asked.pop()(error)
    assert given == [error, error]
    ids.give(given.append)
    assert len(blocks.asked) == 1

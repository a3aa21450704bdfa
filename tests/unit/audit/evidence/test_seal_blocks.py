"""Tests blocks. A block is the compact form in which the ledger stores up to 64 seals of an agent.
Unpacking a block gives the seals that were put into it, ordered by number."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skidway.audit.evidence.seal_blocks import BLOCK, Block, Row, unpack

LEAST, MOST = -(1 << 63), (1 << 63) - 1
anything = st.integers(LEAST, MOST)
near = st.integers(1_767_225_600_000, 1_767_225_600_000 + 100_000) | anything
rows = st.builds(Row, st.integers(0, BLOCK - 1), near, near, st.integers(0, 1))


@given(anything.map(lambda x: x // BLOCK), st.lists(rows, min_size=1, max_size=9))
def test_a_block_has_the_seals_that_were_put_into_it(block: int, put: list[Row]) -> None:
    """Unpacking a block gives its seals ordered by number, whatever their values are, and in
    whatever order they were put in. The block also gives its last seal, and the earliest and the
    latest time of its seals. If two seals have the same number, the block keeps the one that was
    put in later."""
    put = [row._replace(number=block * BLOCK + row.number) for row in put]
    found = Block.of(put[:1])
    for row in put[1:]:
        found = found.and_(row)
    expected = sorted({row.number: row for row in put}.values())
    assert list(unpack(block, found.packed)) == expected
    assert found == Block.read(block, found.packed) == Block.of(put)
    assert found.last == expected[-1]
    times = [row.sealed_until for row in expected]
    assert (found.least, found.newest) == (min(times), max(times))


def test_a_usual_seal_takes_few_bytes() -> None:
    """The ledger stores an agent's seals in blocks. If the agent sends a seal every ten seconds,
    and one delta (a message with counts) between two seals, a block needs at most five bytes for
    each of its seals, plus ten bytes."""
    start = 1_767_225_600_000
    usual = [Row(2 * x, start + 10_003 * x, 2 * x - 1, 0) for x in range(BLOCK // 2)]
    assert len(Block.of(usual).packed) <= 5 * len(usual) + 10

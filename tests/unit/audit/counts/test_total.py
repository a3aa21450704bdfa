"""Tests the function that adds up many counts at once."""

from __future__ import annotations

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from skidway.audit.counts.counts import Sums, joined_by_rule, total
from skidway.audit.topic.count_columns import Filtered

LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
RULES = st.lists(
    st.builds(Filtered, st.sampled_from(["a", "b", "c"]), LONGS, LONGS), max_size=3
).map(lambda found: reduce(joined_by_rule, ((x,) for x in found), ()))
PARTS = st.lists(st.builds(Sums, LONGS, LONGS, LONGS, LONGS, LONGS, RULES), max_size=4)


@given(PARTS)
def test_the_total_is_what_adding_one_after_the_other_gives(parts: list[Sums]) -> None:
    """The sum of many counts is the same whether they are added all at once or one after the
    other."""
    assert total(parts) == sum(parts, Sums())

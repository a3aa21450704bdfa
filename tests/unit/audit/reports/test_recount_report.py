from __future__ import annotations

import pytest

from skidway.audit.recount.manifests import Committed
from skidway.audit.recount.recount import Recounted
from skidway.audit.reports import recount_report


@pytest.mark.parametrize(
    ("rows", "topics", "words"),
    [
        (1, 1, "The 1 row of 1 topic is what every tier counted."),
        (2, 1, "The 2 rows of 1 topic are what every tier counted."),
        (0, 2, "The 0 rows of 2 topics are what every tier counted."),
    ],
)
def test_one_row_is_called_a_row(rows: int, topics: int, words: str) -> None:
    """The sentence about a recount without differences has the correct singular or plural of row,
    topic and verb."""
    found = [Recounted(Committed(f"t{at}", None)) for at in range(topics)]
    found[0].rows = rows
    assert recount_report.sentence([(each, ()) for each in found]) == words

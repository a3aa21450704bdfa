"""Tests which buckets are explained together."""

from __future__ import annotations

import pytest

from skidway.audit.evidence.tallies import BucketId
from skidway.audit.explanation.choice import acceptable_with

MINUTES = [(at, 1) for at in range(40)]


@pytest.mark.parametrize(
    ("buckets", "time", "expected"),
    [
        (MINUTES, 25, {(25, 1)}),
        ([*MINUTES, (20, 10)], 25, {(25, 1), (20, 10), (20, 1)}),
        ([*MINUTES, (20, 10)], 20, {(20, 1), (20, 10)}),
        ([*MINUTES, (20, 10), (14, 7), (21, 7)], 25, {
            (25, 1), (21, 7), (21, 1), (20, 10), (20, 1), (14, 7), (14, 1)
        }),
        ([(20, 10), (30, 10)], 25, set()),
    ],
)  # fmt: skip
def test_the_buckets_that_commands_may_also_accept(
    buckets: list[BucketId], time: int, expected: set[BucketId]
) -> None:
    """The command that accepts a bucket also accepts each bucket that contains the start of this
    bucket. Such a bucket has a command of its own, for which the same is true."""
    assert acceptable_with(time, buckets) == expected

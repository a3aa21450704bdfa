"""Tests what `skidway groups describe` says about a group's progress."""

from __future__ import annotations

import pytest

from skidway.consumer.administration import PartitionStatus


@pytest.mark.parametrize(
    ("committed", "start", "end", "lag"),
    [
        (5, 0, 9, 4),
        (5, 7, 9, 2),
        (5, 9, 9, 0),
        (9, 0, 9, 0),
        (12, 0, 9, 0),
        (0, 0, 0, 0),
        (None, 0, 9, None),
        (5, None, None, None),
    ],
)
def test_records_that_are_deleted_are_no_lag(
    committed: int | None, start: int | None, end: int | None, lag: int | None
) -> None:
    """The lag counts the records that the group can still read: none below the log start. It is
    unknown if the group has committed no offset, or if the partition is not in the cluster."""
    assert PartitionStatus("logs", 0, None, committed, start, end).lag == lag

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import cast

import pytest

from skidway.cli import groups
from skidway.consumer.administration import Groups
from skidway.errors import UsageError
from skidway.kafka.types import TopicPartition


class Positions:
    """A fake of `Groups`. When a caller asks for the offset at a time, this fake returns the time
    itself, in milliseconds."""

    def positions(
        self, _group: str, topic: str, time_ms: int, _partitions: Sequence[int]
    ) -> dict[TopicPartition, int]:
        return {TopicPartition(topic, 0): time_ms}


def time_ms(text: str) -> int:
    """Returns the time in milliseconds that the command sends to the brokers if `text` is given
    with `--to-datetime`."""
    args = argparse.Namespace(
        group="g", topic="t", partition=[], to_offset=None, to_datetime=text, to_earliest=False
    )
    return groups._offsets(cast(Groups, Positions()), args)[TopicPartition("t", 0)]


@pytest.mark.parametrize("text", ["1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.998"])
def test_a_time_before_1970_does_not_mean_an_end_of_the_log(text: str) -> None:
    """Resetting a group's offsets to a time before 1970 is refused, because for a broker the time
    -1 means the log end and -2 the log start."""
    with pytest.raises(UsageError, match=r"--to-datetime .* is before 1970"):
        time_ms(text)


def test_a_group_is_reset_to_the_exact_time() -> None:
    """A group's offsets can be reset to a time with a precision of milliseconds. A time without a
    time zone is UTC."""
    assert time_ms("1970-01-01T00:00:00") == 0
    assert time_ms("2026-01-31T13:00:00.001+01:00") == 1_769_860_800_001
    assert [time_ms(f"2026-01-31T12:00:00.{ms:03}Z") % 1000 for ms in range(1000)] == [*range(1000)]

from __future__ import annotations

import pytest

from skidway.cli.moments import parse_duration, parse_moment, parse_since, shown
from skidway.errors import UsageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", 1_000_000 - 90_000),
        ("2m", 1_000_000 - 120_000),
        ("1970-01-01T00:10:00Z", 600_000),
        ("1970-01-01T01:10:00+01:00", 600_000),
        ("1970-01-01T00:10:00", 600_000),
    ],
)
def test_since_is_a_moment_or_how_long_ago(text: str, expected: int) -> None:
    """The option --since takes a time, or a duration back from now. A time without a time zone is
    UTC."""
    assert parse_since(text, 1_000_000) == expected


@pytest.mark.parametrize(
    "text", ["", "h", "yesterday", "12", "5y", "\u00b2h", "9" * 12 + "d", "9" * 5000 + "s"]
)
def test_another_since_is_refused_with_a_sentence(text: str) -> None:
    """If the value of --since is neither a time nor a duration, the command ends with a usage
    error, and not with a traceback."""
    with pytest.raises(UsageError, match="neither a time"):
        parse_since(text, 0)


@pytest.mark.parametrize("text", ["99999d", "1969-12-31T23:59:59Z"])
def test_a_moment_before_1970_is_refused(text: str) -> None:
    """A moment before 1970 is refused, because in a request to a broker negative times have special
    meanings."""
    with pytest.raises(UsageError, match="is before 1970"):
        parse_since(text, 1_000_000)


def test_a_moment_before_1970_is_negative_where_lines_may_have_such_times() -> None:
    """Commands that ask about buckets of the audit accept a moment before 1970, because a line may
    have such a time."""
    assert parse_moment("1969-12-31T23:59:00Z", 0, "BUCKET") == -60_000
    assert parse_moment("2m", 60_000) == -60_000


def test_a_moment_is_shown_in_utc() -> None:
    """A moment is shown in UTC with milliseconds. If it lies after the year 9999, it is shown as a
    plain number of milliseconds."""
    assert shown(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
    assert shown(1 << 62) == str(1 << 62)


def test_durations() -> None:
    """A duration is a number with a unit. Any other text gives a usage error that names the
    option."""
    assert [parse_duration(text, "--every") for text in ("30s", "5m", "2h")] == [30, 300, 7200]
    for text in ("", "60", "2026-01-31", "-5s", "9" * 5000 + "s"):
        with pytest.raises(UsageError, match="--every"):
            parse_duration(text, "--every")

"""Parses the times and durations that people write in options. A duration is a whole number with
the unit s, m, h or d, for example 30s or 2h. A time is a date, usually with a time of day
(2026-01-31T10:00:00Z), or a duration: 24h means the time 24 hours ago."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from skidway.errors import UsageError

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def parse_since(text: str, now_ms: int, option: str = "--since") -> int:
    """Returns a time as `parse_moment` does, but refuses times before 1970. Such times are negative
    numbers, and a broker understands -1 as the log end and -2 as the log start."""
    time_ms = parse_moment(text, now_ms, option)
    if time_ms < 0:
        raise UsageError(f"{option} {text!r} is before 1970.")
    return time_ms


def parse_moment(text: str, now_ms: int, option: str = "--since") -> int:
    """Returns the time that `text` gives, in ms since 1970; the number is negative for times before
    1970. A date without a time zone is in UTC. If `text` is no time, raises UsageError, which names
    the option."""
    try:
        ago = _span(text)
        if ago is not None:
            return now_ms - ago // timedelta(milliseconds=1)
        moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        raise UsageError(
            f"{option} {text!r} is neither a time like 2026-01-31T10:00:00Z nor one like 90m or"
            " 24h."
        ) from error
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def parse_duration(text: str, option: str) -> float:
    """Returns the seconds of a duration such as 30s, 5m, 2h or 1d. If `text` is no duration, raises
    UsageError, which names the option."""
    try:
        span = _span(text)
    except (ValueError, OverflowError):
        span = None
    if span is None:
        raise UsageError(f"{option} {text!r} is not a duration like 30s, 5m or 2h.")
    return span.total_seconds()


def shown(time_ms: int) -> str:
    """Returns a time as RFC 3339 text with milliseconds, in UTC. If the time is outside the years 1
    to 9999, returns the number `time_ms` as text."""
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)
    except OverflowError:
        return str(time_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _span(text: str) -> timedelta | None:
    """Returns the duration that a text like `90m` means, or None if the text has another form.
    Raises OverflowError if the duration is too long for `timedelta`, and ValueError if the number
    has more digits than `int` converts."""
    number, unit = text[:-1], text[-1:]
    if not number.isdigit() or unit not in _UNITS:
        return None
    return timedelta(**{_UNITS[unit]: int(number)})

import re
from datetime import UTC, datetime, timedelta, timezone

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skidway.agent.parsing.timestamps import TimeFormat
from skidway.errors import ConfigurationRefused

NOW_MS = int(datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp() * 1000)


def parse(text: str | None, format: str, zone: str = "UTC", now_ms: int = NOW_MS) -> str | None:
    moments, good = TimeFormat(format, zone).parse(pa.array([text], pa.string()), now_ms)
    if not good[0]:
        return None
    moment = datetime.fromtimestamp(int(moments[0]) / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00")


@pytest.mark.parametrize(
    ("text", "format", "expected"),
    [
        ("081109 203615", "%y%m%d %H%M%S", "2008-11-09T20:36:15.000"),
        ("2015-07-29 17:41:44,747", "%Y-%m-%d %H:%M:%S,%f", "2015-07-29T17:41:44.747"),
        ("Sun Dec 04 04:47:44 2005", "%a %b %d %H:%M:%S %Y", "2005-12-04T04:47:44.000"),
        ("10/Oct/2000:13:55:36 -0700", "%d/%b/%Y:%H:%M:%S %z", "2000-10-10T20:55:36.000"),
        ("Sunday, SEPTEMBER 4 01:47 pm 05", "%A, %B %d %I:%M %p %y", "2005-09-04T13:47:00.000"),
        ("2026-11-21 20:15:01 PM", "%Y-%m-%d %H:%M:%S %p", "2026-11-21T20:15:01.000"),
        ("12 am 2000 366", "%I %p %Y %j", "2000-12-31T00:00:00.000"),
        ("2015-07-29T17:41:44Z", "rfc3339", "2015-07-29T17:41:44.000"),
        ("2015-07-29t17:41:44.123456789+02:30", "rfc3339", "2015-07-29T15:11:44.123"),
        ("1700000000.5", "epoch", "2023-11-14T22:13:20.500"),
        ("1700000000123", "epoch_ms", "2023-11-14T22:13:20.123"),
        ("1700000000123999", "epoch_us", "2023-11-14T22:13:20.123"),
        ("1700000000123999999", "epoch_ns", "2023-11-14T22:13:20.123"),
        ("-1000999999", "epoch_ns", "1969-12-31T23:59:59.000"),
        ("20261124-080000", "%Y%m%d-%H%M%S", "2026-11-24T08:00:00.000"),
        ("2026-11-24 08:00:00 utc", "%Y-%m-%d %H:%M:%S UTC", "2026-11-24T08:00:00.000"),
        ("100% 1.2.2000", "100%% %d.%m.%Y", "2000-02-01T00:00:00.000"),
    ],
)
def test_formats_of_real_logs(text: str, format: str, expected: str) -> None:
    """The directives of a time format, including %f and %z, have the same meaning as in Python's
    strptime."""
    assert parse(text, format) == expected


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("2015-02-29", "%Y-%m-%d"),
        ("2015-13-01", "%Y-%m-%d"),
        ("2015-01-01 ", "%Y-%m-%d"),
        ("2015-01-0", "%Y-%m-%d"),
        ("", "%Y-%m-%d"),
        (None, "%Y-%m-%d"),
        ("2015-01-01T00:00:00+9900", "rfc3339"),
        ("x" * 500, "%Y-%m-%d"),
        ("2026-11-21 08:15:01 PM", "%Y-%m-%d %H:%M:%S %p"),
        ("2026-11-21 12:15:01 AM", "%Y-%m-%d %H:%M:%S %p"),
        ("2026-325 10501", "%Y-%j %H%M%S"),
        ("17e3", "epoch"),
        ("1700000000123.5", "epoch_us"),
        ("9999999999999999999", "epoch_ns"),
        ("17000000001239999999", "epoch_ns"),
    ],
)
def test_what_is_no_time_is_none(text: str | None, format: str) -> None:
    """A text that does not fit the format gives no time. The agent does not guess one."""
    assert parse(text, format) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Nov 20 23:59:59", "2026-11-20T23:59:59.000"),
        ("Nov 22 00:00:00", "2025-11-22T00:00:00.000"),
        ("Feb 29 00:00:00", "2024-02-29T00:00:00.000"),
        ("Jan  1 00:00:00", "2026-01-01T00:00:00.000"),
    ],
)
def test_a_missing_year_is_the_latest_possible(text: str, expected: str) -> None:
    """A time without a year gets the latest year with which the time is at most one day after the
    line was read."""
    assert parse(text, "%b %d %H:%M:%S") == expected


def test_a_missing_year_around_new_year() -> None:
    """If a host's zone is ahead of UTC, its lines may have times in January while it is still
    December in UTC. Such a time without a year gets the coming year."""
    now_ms = int(datetime(2026, 12, 31, 23, 30, tzinfo=UTC).timestamp() * 1000)
    assert parse("Jan 1 01:20:00", "%b %d %H:%M:%S", "Etc/GMT-2", now_ms) == (
        "2026-12-31T23:20:00.000"
    )


def test_local_times_of_a_zone() -> None:
    """If a format has no %z, its times are times of the configured zone. When summer time ends,
    some times come twice, and the first of the two moments counts. When summer time begins, some
    times do not exist, and such a time counts as if summer time had not begun yet."""
    for text, expected in (
        ("2024-07-01 12:00", "2024-07-01T10:00:00.000"),
        ("2024-01-01 12:00", "2024-01-01T11:00:00.000"),
        ("2024-10-27 02:30", "2024-10-27T00:30:00.000"),  # 02:30 comes twice; this is the first
        ("2024-03-31 01:59", "2024-03-31T00:59:00.000"),
        ("2024-03-31 02:30", "2024-03-31T01:30:00.000"),  # 02:30 does not exist
        ("2024-03-31 03:00", "2024-03-31T01:00:00.000"),
    ):
        assert parse(text, "%Y-%m-%d %H:%M", "Europe/Berlin") == expected


@pytest.mark.parametrize("format", ["%Y", "%H:%M", "%Q %d %m", "%I %d %m", "%d.%m.%Y é", "%d %m %"])
def test_formats_that_name_no_moment_are_refused(format: str) -> None:
    """A format is a configuration error if it does not determine the day, if it has %I without %p,
    an unknown or incomplete directive, or a character that is not ASCII."""
    with pytest.raises(ConfigurationRefused):
        TimeFormat(format)


def test_an_unknown_zone_is_refused() -> None:
    """A time zone that this machine does not know is refused with an error that names the zone."""
    with pytest.raises(ConfigurationRefused, match="Mars"):
        TimeFormat("%d %m %Y", "Mars/Olympus")


def test_numbers_side_by_side_need_their_leading_zeros() -> None:
    """If a format has numbers without separators between them, a text without the leading zeros
    gives no time. Python's strptime would guess a time. In this test it would guess the 10th of
    January."""
    texts = pa.array(
        ["000110 000000", "00110 000000", "001110 0000", "000110 00501", "000110 5959"]
    )
    found, good = TimeFormat(SIDE_BY_SIDE).parse(texts, NOW_MS)
    assert good.tolist() == [True, False, False, False, False]
    assert found[0] == reference(texts[0].as_py(), SIDE_BY_SIDE)


SIDE_BY_SIDE = "%y%m%d %H%M%S"
FORMATS = (
    "%Y-%m-%d %H:%M:%S,%f",
    SIDE_BY_SIDE,
    "%a %b %d %H:%M:%S %Y",
    "%d/%b/%Y:%H:%M:%S %z",
    "%A %B %d %I:%M:%S %p %Y",
    "%Y %j %H",
    "%m/%d/%Y%H:%M:%S.%f",
)
FIRST, LAST = datetime(1970, 1, 1), datetime(2037, 12, 31)  # noqa: DTZ001
moments = st.datetimes(FIRST, LAST)
zones = st.sampled_from([0, 60, -420, 330]).map(lambda m: timezone(timedelta(minutes=m)))
damage = st.tuples(st.integers(0, 40), st.sampled_from(["", " ", "0", "9", "a", ":", "-"]))


@given(
    st.sampled_from(FORMATS), st.lists(st.tuples(moments, zones, damage | st.none()), min_size=1)
)
def test_a_column_is_read_as_strptime_reads_each(format: str, cases: list) -> None:
    """If a column of texts is parsed at once, each text gives the same time as with
    datetime.strptime, and no time if strptime fails. Leap seconds, and numbers side by side without
    their leading zeros, are not compared. What the agent reads, and Python does not, is written for
    Python as Python wants it."""
    texts = []
    for moment, zone, fault in cases:
        text = moment.replace(tzinfo=zone).strftime(format)
        if fault is not None:
            text = text[: fault[0]] + fault[1] + text[fault[0] + 1 :]
        texts.append(text)
    found, good = TimeFormat(format).parse(pa.array(texts), NOW_MS)
    for text, moment_ms, fine in zip(texts, found.tolist(), good.tolist(), strict=True):
        expected = reference(as_python_writes_it(text), format)
        if expected == "leap" or (format == SIDE_BY_SIDE and not fine and lacks_a_digit(text)):
            continue
        assert (moment_ms if fine else None) == expected, text


def as_python_writes_it(text: str) -> str:
    text = re.sub(r"([.,]\d{6})\d{1,3}$", r"\1", text)  # more than six digits of a fraction
    text = re.sub(r"(?<=[^\s]) (?=\d:)", "0", text) if reads_padded(text) else text
    return re.sub(r"(?<=\d)(?=[ap]m)", " ", text, flags=re.IGNORECASE)


def reads_padded(text: str) -> bool:
    return re.search(r"/\d{4}: \d:", text) is not None


def lacks_a_digit(text: str) -> bool:
    return any(len(digits) < 6 for digits in re.findall(r"\d+", text))


def reference(text: str, format: str) -> int | str | None:
    try:
        moment = datetime.strptime(text, format)  # noqa: DTZ007
    except ValueError as error:
        return "leap" if "second must be" in str(error) else None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def test_numbers_of_different_lengths_are_read_together() -> None:
    """The numbers in a column of texts are all read at once, whatever their lengths and signs
    are."""
    texts = pa.array(["-1", "5", "-9223372036854775807", "", "1700000000123999999"])
    found, good = TimeFormat("epoch_ns").parse(texts, NOW_MS)
    assert good.tolist() == [True, True, True, False, True]
    assert found[[0, 1, 2, 4]].tolist() == [0, 0, -9223372036854, 1700000000123]


DIGITS = st.text("0123456789", max_size=12)
DAYS = st.sampled_from(["2026-11-21", "2026-1-2", "2026-02-30", "05 Sept 2026", "5 Jun. 2026"])
HOURS = st.sampled_from(["08:15:01", " 8:15:01", "8:15:1", "24:00:00", "12:15"])
MARKS = st.sampled_from(["", ".", ",", "..", "\u202f", " "])
HALVES = st.sampled_from(["", " AM", "pm", " p.m.", "\u00a0AM", " XM"])
TAILS = st.sampled_from(
    ["", "Z", "z", " Z", "+03", "+0300", "-03:30", "+3", " UTC", " GMT+3", " CET", " CEST", " MSK",
     "7", " ", "\0", " LONGWORDS", "x" * 90]
)  # fmt: skip
PIECES = st.tuples(
    DAYS, st.sampled_from([" ", "T", "t", "  "]), HOURS, MARKS, DIGITS, HALVES, TAILS
)


@given(
    st.sampled_from(
        ["rfc3339", "%Y-%m-%d %H:%M:%S.%f %z", "%Y-%m-%d %I:%M:%S %p %z", "%d %b %Y %H:%M:%S%z",
         "%Y-%m-%dT%H:%M:%S,%f", "%d %b %Y %I:%M:%S.%f%p", "epoch"]
    ),
    st.lists(PIECES.map("".join) | DIGITS | st.builds("{}.{}".format, DIGITS, DIGITS), min_size=2),
)  # fmt: skip
def test_a_time_does_not_depend_on_the_times_beside_it(format: str, texts: list[str]) -> None:
    """Each text of a column gives the same time as it gives alone, whatever the other texts are:
    wider ones, some with a fraction or a zone, some that are no times."""
    form = TimeFormat(format, "Europe/Berlin")
    found, good = form.parse(pa.array(texts), NOW_MS)
    letters = form.foreign_letters(pa.array(texts), NOW_MS)
    for text, moment, fine, word in zip(texts, found.tolist(), good.tolist(), letters, strict=True):
        alone, is_fine = form.parse(pa.array([text]), NOW_MS)
        assert (fine, word) == (is_fine[0], *form.foreign_letters(pa.array([text]), NOW_MS)), text
        assert not fine or moment == alone[0], text


def test_the_letters_of_a_zone_do_not_choose_the_year() -> None:
    """If a time without a year has letters, the year is the latest possible one, as without them.
    Letters that the zone does not use on that day are not read as those of an earlier year."""
    assert parse("Mar 29 12:00:00 CEST", "%b %d %H:%M:%S %z", "Europe/Berlin") == (
        "2026-03-29T10:00:00.000"
    )
    assert parse("Mar 29 12:00:00 CET", "%b %d %H:%M:%S %z", "Europe/Berlin") is None


def test_letters_at_the_ends_of_the_calendar() -> None:
    """Letters beside the first and the last time that a format can name are read, or are not."""
    for zone in ("Europe/Berlin", "America/New_York"):
        for text in ("0001-01-01 00:00 CET", "9999-12-31 23:59 EST"):
            assert parse(text, "%Y-%m-%d %H:%M %z", zone) is None

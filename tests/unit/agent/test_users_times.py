"""Times of real users' logs, from public bug reports of other agents. Each was once read as another
moment, or not at all."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from skidway.agent.commands.proposals import letter_notes
from skidway.agent.formats import catalog
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.settings import SourceSettings, TimestampSettings
from skidway.agent.validation.preview import Preview, preview
from unit.agent.test_guess import tried

NOW_MS = 1_796_083_200_000  # 2026-12-01


def made(
    format_: str, lines: list[str], timezone: str = "UTC", pattern: str = "(?P<time>.*) x"
) -> Preview:
    source = SourceSettings(
        topic="logs",
        paths=["/a"],
        parser=ParserSettings(type="regex", pattern=pattern),
        timestamp=TimestampSettings(fields=["time"], format=format_, timezone=timezone),
    )
    return preview(source, text(lines), "/a", now_ms=NOW_MS)


def text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def times(found: Preview) -> list[str | None]:
    """Returns the time of each line; None if it is rejected because of its time."""
    at = {each.first: None for each in found.rejects if each.reason in ("timestamp", "zone")}
    rows = {each.first: shown(each.time) for each in found.rows}
    return [moment for _, moment in sorted((rows | at).items())]


def shown(moment: datetime | None) -> str:
    assert moment is not None
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00")


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("2026-11-21t08:15:01z", "2026-11-21T08:15:01.000"),
        ("2026-11-21T08:15:01+03", "2026-11-21T05:15:01.000"),
        ("2026-11-21T08:15:01 +0300", None),
        ("2026-11-21T08:15:01.1234567890Z", "2026-11-21T08:15:01.123"),
        ("2026-11-21T24:00:00Z", None),
        ("2026-11-21T08:15:01,5Z", "2026-11-21T08:15:01.500"),
        ("2026-11-21T08:15Z", None),
        ("2026-11-21T08:15:60Z", "2026-11-21T08:16:00.000"),
        ("2026-11-21T08:15:01-00:00", "2026-11-21T08:15:01.000"),
        ("2026-11-21T08:15:01+0300", "2026-11-21T05:15:01.000"),
        ("2026-11-21T08:15:01Z", "2026-11-21T08:15:01.000"),
        ("20261121T081501Z", None),
        ("2026-325T08:15:01Z", None),
        ("2026-11-21T08:15:01.Z", None),
        ("2026-11-21 08:15:01 UTC", None),
        ("2026-11-21_08:15:01Z", None),
        ("2026-11-21T08:15:01Z[Europe/Berlin]", None),
        ("2026-11-21T09:15:01+01:00[Europe/Berlin]", None),
        ("2026-11-21T08:15:01 Z", None),
        ("2026-11-21T08:15:01+24:00", None),
        ("2026-11-21T08:15:01+03:60", None),
        ("2026-1-1T8:15:01Z", "2026-01-01T08:15:01.000"),
        ("+002026-11-21T08:15:01Z", None),
        ("2026-11-21T08:15:01\u221203:00", None),
        ("2026-11-21  8:15:02", "2026-11-21T08:15:02.000"),
        ("2026-11-21 12:15:02", "2026-11-21T12:15:02.000"),
    ],
)
def test_forms_of_rfc3339(time: str, expected: str | None) -> None:
    """`rfc3339` reads what RFC 3339 allows, also small letters and any number of digits, offsets
    without colon or minutes, and MariaDB's padded hours. It reads nothing else."""
    assert times(made("rfc3339", [f"{time} x"])) == [expected]


def test_the_character_that_no_time_has_is_named() -> None:
    """If a time is not read because of a character that looks like another one, the reject names
    it."""
    (reject,) = made("rfc3339", ["2026-11-21T08:15:01\u221203:00 x"]).rejects
    assert "U+2212" in reject.detail


@pytest.mark.parametrize(
    ("lines", "timezone", "expected"),
    [
        (
            ["2026-10-25 02:30:00.000 CEST x", "2026-10-25 02:30:00.000 CET x",
             "2026-07-01 12:00:00.000 UTC x"],
            "Europe/Berlin",
            ["2026-10-25T00:30:00.000", "2026-10-25T01:30:00.000", "2026-07-01T12:00:00.000"],
        ),
        (
            ["2026-11-21 08:15:01.123 CET x", "2026-11-21 10:15:01.123 +03 x",
             "2026-11-21 04:15:01.123 -03 x", "2026-11-21 10:15:01.123 MSK x"],
            "UTC",
            [None, "2026-11-21T07:15:01.123", "2026-11-21T07:15:01.123", None],
        ),
        (
            ["2026-11-21 08:15:01.123 CEST x", "2026-03-29 02:30:00.000 CET x",
             "2026-11-21 08:15:01.123 GMT+03:00 x", "2026-11-21 08:15:01.123 z x"],
            "Europe/Berlin",
            [None, None, "2026-11-21T05:15:01.123", "2026-11-21T08:15:01.123"],
        ),
    ],
)  # fmt: skip
def test_the_zone_in_a_time_counts(
    lines: list[str], timezone: str, expected: list[str | None]
) -> None:
    """An offset in a time counts. Letters of a zone count only if clocks of the source's zone show
    them at that moment; they tell apart the two moments of an hour that comes twice."""
    found = made("%Y-%m-%d %H:%M:%S.%f %z", lines, timezone)
    assert times(found) == expected
    assert {each.reason for each in found.rejects} <= {"zone"}


@pytest.mark.parametrize(
    ("format_", "lines", "expected"),
    [
        (
            "%d %b %Y %H:%M:%S,%f",
            [f"05 {month} 2026 08:15:01,123 x" for month in ("Sept", "Sep", "June", "May", "July",
             "Sep.", "Augu")],
            [*(f"2026-{month:02}-05T08:15:01.123" for month in (9, 9, 6, 5, 7, 9)), None],
        ),
        (
            "%d.%m.%Y %H:%M:%S.%f",
            ["21.11.2026 08:15:01.1234567 x", "21.11.2026 08:15:01.123456789 x",
             "21.11.2026 08:15:01.5 x", "21.11.2026 08:15:01 x"],
            ["2026-11-21T08:15:01.123", "2026-11-21T08:15:01.123", "2026-11-21T08:15:01.500", None],
        ),
        (
            "%m/%d/%Y, %I:%M:%S %p",
            ["11/21/2026, 8:15:01\u202fAM x", "11/21/2026, 8:15:01 AM x",
             "11/21/2026,\u00a08:15:01 p.m. x", "11/21/2026, 8:15:01PM x",
             "11/21/2026, 8:15:01 XM x"],
            ["2026-11-21T08:15:01.000", "2026-11-21T08:15:01.000", "2026-11-21T20:15:01.000",
             "2026-11-21T20:15:01.000", None],
        ),
        (
            "%m/%d/%Y,\u00a0%I:%M:%S\u202f%p",
            ["11/21/2026, 8:15:01\u202fAM x", "11/21/2026, 8:15:01 AM x"],
            ["2026-11-21T08:15:01.000", "2026-11-21T08:15:01.000"],
        ),
    ],
)  # fmt: skip
def test_other_spellings(format_: str, lines: list[str], expected: list[str | None]) -> None:
    """Months with four letters or a dot, up to nine digits of a fraction, and other blanks before
    AM are read."""
    assert times(made(format_, lines)) == expected


def test_padded_hours_of_mariadb() -> None:
    """MariaDB writes a blank in place of the first digit of an hour."""
    lines = text(["2026-11-21  8:15:02 0 [Note] a", "2026-11-21 12:15:02 0 [Note] b"])
    source = catalog.of_source(SourceSettings(topic="l", paths=["/a"], format="mysql_error"))
    found = preview(source, lines, "/a", now_ms=NOW_MS)
    assert times(found) == ["2026-11-21T08:15:02.000", "2026-11-21T12:15:02.000"]


AT = "2026-11-21T08:15:01"


@pytest.mark.parametrize(
    ("line", "time", "message"),
    [
        ("Nov 21, 2026 8:15:01 PM com.shop.Cart checkout", "2026-11-21T20:15:01",
         "com.shop.Cart checkout"),
        ("11/21/2026 8:15:01 PM INFO up", "2026-11-21T20:15:01", "up"),
        ("2026/11/21 8:15:01 PM INFO up", "2026-11-21T20:15:01", "up"),
        ("21.11.2026, 08:15:01 up", AT, "up"),
        ("11/21/2026, 8:15:01\u202fAM up", AT, "up"),
        ("2026-11-21 11:15:01.123 MSK INFO started", f"{AT}.123", "started"),
        ("2026-11-21 11:15:01.123 +03 INFO up", f"{AT}.123", "up"),
        ("2026-11-21 03:15:01.123 EST [main] up", f"{AT}.123", "[main] up"),
        ("2026-11-21 11:15:01.123 Europe/Moscow up", None, None),
        ("2026-11-21 11:15:01 GMT+03:00 up", AT, "up"),
        ("Nov 21, 2026 11:15:01 GMT+3 up", AT, "up"),
        ("2026-11-21 11:15:01 (+0300) up", None, None),
        ("[2026-11-21 11:15:01] [+0300] up", None, None),
        ("Thu Mar 14 08:15:01 CET 2019 backup", "2019-03-14T07:15:01", "backup"),
        ("Thu 14 Mar 08:15:01 CET 2019 backup", "2019-03-14T07:15:01", "backup"),
        ("2026-11-21T11:15:01+03 INFO up", AT, "up"),
        ("2026-11-21T11:15:01 +0300 INFO up", AT, "up"),
        ("21.11.2026 08:15:01.1234567 INFO x", f"{AT}.123", "x"),
        ("2026/11/21 08:15:01.123456789 x", f"{AT}.123", "x"),
        ("20261121T111501.1234567+0300 x", f"{AT}.123", "x"),
        ("21.11.2026 11:15:01.1234567 +0300 x", f"{AT}.123", "x"),
        ("[2026-11-21T08:15:01,123][INFO ][o.e.n.Node] started", f"{AT}.123",
         "[o.e.n.Node] started"),
        ("[2026-11-21T03:15:01.123-0500][info][gc] Pause", f"{AT}.123", "[gc] Pause"),
        ("[2026-11-21T05:15:01-03:00][INFO] up", AT, "up"),
        ("2026-11-21T05:15:01-03:00[main] up", AT, "[main] up"),
        ("[2026-11-21T11:15:01,123+03:00][INFO] up", f"{AT}.123", "up"),
        ("2026-11-21 05:15:01-03 INFO up", AT, "up"),
        ("2026-11-21 08:15:01,123[main] up", f"{AT}.123", "[main] up"),
        ("05/04/2026 08:15:01 up", None, None),
        ("21/11/26 08:15:01 up", None, None),
        ("[11/28/26 8:15:01:123 CET] 0000000a Server up", "2026-11-28T07:15:01.123",
         "0000000a Server up"),
        ("Sat Nov 21 2026 09:15:01 GMT+0100 (Central European Standard Time) up", AT, "up"),
        ("2026-11-21 11:15:01.123456789 +0300 MSK m=+0.0001 up", f"{AT}.123", "m=+0.0001 up"),
    ],
)  # fmt: skip
def test_guess_reads_a_time_whole_or_not_at_all(
    line: str, time: str | None, message: str | None, tmp_path: Path
) -> None:
    """`guess` proposes a format that reads the whole time: half of the day, fraction, zone and
    year. If none does, it proposes no time."""
    found, results = tried(tmp_path, f"{line}\n" * 3)
    if time is None:
        assert "timestamp" not in found.block
        assert {each["time"] for each in results} == {None}
        return
    assert {each["time"].removesuffix("+00:00")[: len(time)] for each in results} == {time}
    assert {each["row"]["message"] for each in results} == {message}


def test_months_with_four_letters_begin_records(tmp_path: Path) -> None:
    """A line of September is no part of the last record of August."""
    lines = [f"30 Aug 2026 08:15:0{n} x\n  more\n" for n in range(3)]
    found, results = tried(tmp_path, "".join([*lines, "06 Sept 2026 08:15:01 y\n"]))
    assert found.block["multiline"]["type"] == "start"
    assert [each["time"][:10] for each in results] == [*["2026-08-30"] * 3, "2026-09-06"]


def test_the_zone_that_would_read_the_letters_is_named(tmp_path: Path) -> None:
    """If clocks of several zones show the letters in a time, `guess` proposes no time, and names
    the zones. If they show the same time, it proposes one of them and says so."""
    found, _ = tried(tmp_path, "2026-01-21 08:15:01 CST up\n" * 3)
    assert any("America/Chicago or" in note and "Asia/Shanghai" in note for note in found.notes)
    found, _ = tried(tmp_path, "2026-01-21 08:15:01 CET up\n" * 3)
    assert found.block["timestamp"]["timezone"] == "Europe/Berlin"
    assert any("Europe/Berlin" in note for note in found.notes)
    assert not any("name no zone" in note for note in found.notes)


def test_the_zones_of_rejected_records_are_named() -> None:
    """If a format with a name rejects records because of the letters of their zone, `guess` names
    the zones that would read them."""
    lines = [f"2026-11-21 08:15:01.123 {zone} x" for zone in ("UTC", "CET", "MSK", "CST")]
    (note,) = letter_notes(made("%Y-%m-%d %H:%M:%S.%f %z", lines))
    assert note.startswith("3 records")
    assert "Europe/Berlin or Europe/Moscow would" in note
    assert letter_notes(made("%Y-%m-%d %H:%M:%S.%f %z", lines[:1])) == ()


@pytest.mark.parametrize(
    ("lines", "timestamp"),
    [
        (["id,at,n", *["7,2026-11-21 08:15:01,200"] * 4], {"fields": ["at"], "format": "rfc3339"}),
        (["2026-11-21 08:15:01,200,up"] * 4, None),
        (["a;2026-11-21;8:15:01 PM;x"] * 4,
         {"fields": ["column_2", "column_3"], "format": "%Y-%m-%d %I:%M:%S %p"}),
        (["a;2026-11-21 08:15:01;+0300;x"] * 4,
         {"fields": ["column_2", "column_3"], "format": "%Y-%m-%d %H:%M:%S %z"}),
        (['{"time": "11/21/2026, 8:15:01\u202fPM", "n": 1}'] * 4,
         {"fields": ["time"], "format": "%m/%d/%Y, %I:%M:%S %p"}),
        (['{"time": "2026-11-21 08:15:01 BRT", "n": 1}'] * 4, None),
        (['time="2026-11-21 08:15:01.1234567 +03" level=info n=1'] * 4,
         {"fields": ["time"], "format": "%Y-%m-%d %H:%M:%S.%f %z"}),
        (['2026-11-21 08:15:01 +0300 INFO shop: {"n": 1}'] * 4,
         {"fields": ["time"], "format": "%Y-%m-%d %H:%M:%S %z"}),
        (['2026-11-21T08:15:01 PM shop: {"n": 1}'] * 4, None),
    ],
)  # fmt: skip
def test_times_in_columns_and_members(
    lines: list[str], timestamp: dict[str, Any] | None, tmp_path: Path
) -> None:
    """Times in columns of values, members of JSON, key=value pairs, and before JSON objects are
    read whole, or are not proposed."""
    found, _ = tried(tmp_path, "".join(f"{line}\n" for line in lines))
    assert found.block.get("timestamp") == timestamp


def test_days_and_months_that_may_be_exchanged_are_named(tmp_path: Path) -> None:
    """If another order of day and month reads the times, too, `guess` says so."""
    found, _ = tried(tmp_path, "03/04/2026 08:15:01 a\n04/04/2026 08:15:01 b\n")
    assert found.block["timestamp"]["format"] == "%d/%m/%Y %H:%M:%S"
    assert any("%m/%d/%Y" in note for note in found.notes)

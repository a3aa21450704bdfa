"""`skidway agent guess` recognizes the format of times, and which members of JSON lines should not
become columns. Each proposal is tried on the same file."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from skidway.agent.commands.guessing import guess
from skidway.agent.commands.proposals import ZONE
from skidway.agent.settings import MultilineSettings
from skidway.agent.unknown_logs import zone_letters
from skidway.agent.validation.preview import preview
from unit.agent.test_guess import rejects, rows, tried

AT = "2026-11-20T08:00:00+00:00"
SECONDS = 1795161600


@pytest.mark.parametrize(
    ("time", "format_", "names_zone"),
    [
        ("20261120-080000", "%Y%m%d-%H%M%S", False),
        ("20261120T080000", "%Y%m%dT%H%M%S", False),
        ("20261120T080000Z", "%Y%m%dT%H%M%S%z", True),
        ("20261120080000.123456", "%Y%m%d%H%M%S.%f", False),
        ("2026-11-20 08:00:00 UTC", "%Y-%m-%d %H:%M:%S %z", True),
        ("2026-11-20 08:00:00.123 GMT", "%Y-%m-%d %H:%M:%S.%f %z", True),
        ("2026/11/20 08:00:00Z", "%Y/%m/%d %H:%M:%S%z", True),
        ("20.11.2026 08:00:00 +0000", "%d.%m.%Y %H:%M:%S %z", True),
        ("2026-11-20T08:00:00Z", "rfc3339", True),
        ("2026-11-20 08:00:00", "rfc3339", False),
        ("Fri Nov 20 08:00:00 UTC 2026", "%a %b %d %H:%M:%S %z %Y", True),
        (str(SECONDS), "epoch", True),
        (f"{SECONDS}.25", "epoch", True),
        (f"{SECONDS}000", "epoch_ms", True),
        (f"{SECONDS}000000", "epoch_us", True),
        (f"{SECONDS}000000000", "epoch_ns", True),
    ],
)
@pytest.mark.parametrize("form", ["text", "json", "logfmt"])
def test_times_are_recognized_however_they_are_written(
    form: str, time: str, format_: str, names_zone: bool, tmp_path: Path
) -> None:
    """Compact times, names of zones after a time, and numbers of seconds, milliseconds,
    microseconds or nanoseconds are recognized in text, JSON and key=value lines. If times name no
    zone, `guess` says so."""
    quoted = json.dumps(time)
    lines = {
        "text": f"{time} something & happened",
        "json": f'{{"level": "info", "time": {quoted}, "n": 1}}',
        "logfmt": f"time={quoted} level=info n=1",
    }
    found, results = tried(tmp_path, f"{lines[form]}\n" * 3)
    assert found.block["timestamp"] == {"fields": ["time"], "format": format_}
    assert not rejects(results)
    assert {each["time"][:19] for each in results} == {AT[:19]}
    assert (ZONE in found.notes) == (not names_zone)


@pytest.mark.parametrize(
    ("time", "format_"),
    [("Nov 20 08:00:00", "%b %d %H:%M:%S"), ("Nov  9 08:00:00,5", "%b %d %H:%M:%S,%f"),
     ("11-20 08:00:00.123", "%m-%d %H:%M:%S.%f")],
)  # fmt: skip
def test_times_without_a_year_are_recognized(time: str, format_: str, tmp_path: Path) -> None:
    """Times without a year are recognized, and no line is rejected. Each time gets the latest year
    in which it is at most a day after the present time."""
    latest = datetime.now(UTC) + timedelta(days=1)
    found, results = tried(tmp_path, f"[{time}] something & happened\n" * 3)
    assert found.block["timestamp"]["format"] == format_
    assert len(rows(results)) == 3
    (moment,) = {datetime.fromisoformat(each["time"]) for each in results}
    assert (moment.month, moment.hour) == (11, 8)
    assert moment <= datetime.now(UTC) + timedelta(days=1)
    assert moment.replace(year=moment.year + 1) > latest


@pytest.mark.parametrize(
    ("line", "fields", "format_"),
    [
        ({"@meta": {"ts": "2026-11-20T08:00:00Z"}, "n": 1}, "@meta.ts", "rfc3339"),
        ({"a": {"b": {"time": SECONDS * 1000}}}, "a.b.time", "epoch_ms"),
        ({"instant": {"epochSecond": SECONDS, "nano": 5}}, "instant.epochSecond", "epoch"),
        ({"ts": str(SECONDS * 10**9), "a": {"time": 5}}, "ts", "epoch_ns"),
        ({"time": SECONDS + 0.5}, "time", "epoch"),
    ],
)
def test_times_of_json_are_found_inside_objects(
    line: dict[str, object], fields: str, format_: str, tmp_path: Path
) -> None:
    """If a line has a time only inside an object, `guess` finds the time, and the proposed schema
    and settings read the time there. Quoted numbers can be times, too."""
    found, results = tried(tmp_path, f"{json.dumps(line)}\n" * 3)
    assert found.block["timestamp"] == {"fields": [fields], "format": format_}
    assert [each["time"][:19] for each in results] == [AT[:19]] * 3


def test_members_with_numbers_in_their_names_are_no_columns(tmp_path: Path) -> None:
    """Members such as `user_123`, which few lines have, go to `_extra` instead of columns, and
    `guess` says so. Members that most lines have are columns, even with numbers in their names."""
    lines = [
        json.dumps({"ts": SECONDS, f"user_{n}": n, "p50": 1, "p95": 2, "p99": 3, f"s{n}_x": n})
        for n in range(20)
    ]
    found, results = tried(tmp_path, "\n".join(lines) + "\n")
    names = {each["name"] for each in json.loads(found.schema or "")["fields"]}
    assert names == {"ts", "p50", "p95", "p99", "_extra"}
    assert [dict(row["_extra"]) for row in rows(results)] == [
        {f"user_{n}": str(n), f"s{n}_x": str(n)} for n in range(20)
    ]
    assert any("Members such as user_0" in note for note in found.notes)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_json_and_text_behind_a_time(share: float, tmp_path: Path) -> None:
    """If some lines of a log have a JSON object after a time and a level, and the other lines have
    text there, the objects' members go to `_extra`, and the text becomes a field."""
    lines = [
        f"2026-11-20T08:00:00Z INFO {json.dumps({'user': n}) if n < share * 50 else 'up {ready}'}"
        for n in range(50)
    ]
    found, results = tried(tmp_path, "\n".join(lines) + "\n")
    assert found.block["parser"]["json_field"] == "json"
    assert not rejects(results)
    made = rows(results)
    assert [each["text"] for each in made].count("up {ready}") == 50 - share * 50
    assert sum("user" in dict(each["_extra"]) for each in made) == share * 50
    assert {each["level"] for each in made} == {"INFO"}


RESTS = (
    " +0100", " +01:00", "+01", " UTC", " UTC:", " CET", " Z", "Z", " PM", " p.m.", " (MSK)",
    "] -0500", " | NZDT", " EST\nnext",
)  # fmt: skip


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("[2026/11/28 10:00:06", "] [77] [INFO] Booting worker"),
        ("2026/11/28 10:00:06", " INFO up"),
        ("2026/11/28 10:00:06", " [77] up"),
        ("[INFO] 2026/11/28 10:00:06", " main up"),
        ("2026/11/28 10:00:06", ' [77] {"n": 1}'),
    ],
)
def test_a_later_line_with_more_of_a_time_is_rejected(begin: str, end: str, tmp_path: Path) -> None:
    """If a later line has a zone or a half of the day behind its time, which no other line has, the
    proposal rejects this line: it never reads a part of the time."""
    log = tmp_path / "shop.log"
    log.write_text(f"{begin}{end}\n" * 3)
    found = guess(log, 1_000)
    assert found.block["timestamp"]["format"] == "%Y/%m/%d %H:%M:%S"
    assert [len(preview(found.source, f"{begin}{end}\n".encode(), "").rows)] == [1]
    source = replace(found.source, multiline=MultilineSettings(type="start", pattern=r"^[\[\d]"))
    for rest in RESTS:
        made = preview(source, f"{begin}{rest}{end}\n".encode(), "")
        assert (len(made.rows), len(made.rejects)) == (0, 1), rest


def test_the_letters_that_clocks_show_are_few() -> None:
    """The regular expression for the letters that clocks show has all of them, and none of the
    words with which messages begin."""
    letters = re.compile(zone_letters.SHOWN)
    assert all(map(letters.fullmatch, zone_letters.USED.split()))
    words = "GET PUT POST HOST TEST LIST ALERT START EVENT ROOT BOOT LAST INFO AT NOT EXIT"
    assert not any(map(letters.fullmatch, words.split()))


@pytest.mark.parametrize(
    ("odd", "count"),
    [
        ("[2026-11-28 09:16:01 +0100] [77] [INFO] Booting", 40),
        ("2026-11-28 09:16:01 PM main x", 40),
        ("[2026-11-28 09:16:01 +0100] [77] [INFO] Booting", 9),
    ],
)
def test_a_few_odd_times_do_not_hide_the_others(odd: str, count: int, tmp_path: Path) -> None:
    """If nearly all lines have times in one form, `guess` proposes it and shows a line with another
    time; this line has no time of its own. If more lines are odd, `guess` shows two times."""
    lines = [f"2026-11-28 09:15:{n:02},123 [9] billing: job {n}" for n in range(count)]
    found, results = tried(tmp_path, "".join(f"{line}\n" for line in [*lines, odd]))
    notes = " ".join(found.notes)
    if count < 20:
        assert "timestamp" not in found.block
        assert "several forms" in notes
        assert odd[1:20] in notes
        return
    assert f"No format reads the time of: {odd}" in notes
    assert [row["timestamp_replaced"] for row in rows(results)] == [*[False] * count, True]
    times = [each["time"] for each in results[:-1]]
    assert times == [f"2026-11-28T09:15:{n:02}.123000+00:00" for n in range(count)]


def test_a_line_of_another_zone_does_not_hide_the_zone_of_the_others(tmp_path: Path) -> None:
    """If clocks of one zone show the letters of nearly all times, `guess` proposes this zone, and
    names the zone of a line with other letters."""
    lines = ["2026-11-28 03:15:00.001 EST [1] LOG:  starting"]
    lines += [f"2026-11-28 09:15:{n:02}.123 CET [1] shop@orders LOG:  x" for n in range(40)]
    found, results = tried(tmp_path, "".join(f"{line}\n" for line in lines))
    assert found.block["format"] == "postgresql"
    assert found.block["timezone"] == "Europe/Berlin"
    assert len(rejects(results)) == 1
    assert "America/New_York" in " ".join(found.notes)


@pytest.mark.parametrize("begin", ["", "[INFO] "])
@pytest.mark.parametrize(
    ("odd", "time", "format_"),
    [
        ("2026-11-28 09:15:00,123", "28/Nov/2026:09:15:{:02}", "%d/%b/%Y:%H:%M:%S"),
        ("Nov 28 09:15:00", "2026-11-28T09:15:{:02}.5Z", "rfc3339"),
        ("2026/11/28 09:15:00", "2026/11/28 09:15:{:02}.123", "%Y/%m/%d %H:%M:%S.%f"),
        ("28.11.2026 09:15:00", "2026/11/28 09:15:{:02}", "%Y/%m/%d %H:%M:%S"),
        ("28 Nov 2026 09:15:00", "2026.11.28 09:15:{:02} +0000", "%Y.%m.%d %H:%M:%S %z"),
    ],
)
def test_the_first_line_does_not_decide_alone(
    begin: str, odd: str, time: str, format_: str, tmp_path: Path
) -> None:
    """If the first line has a time of another form than the lines behind it, `guess` proposes the
    form of the others. The first line is then rejected, or has no time of its own."""
    lines = [
        f"{begin}{odd} a.b start",
        *(f"{begin}{time.format(n)} a.b job {n}" for n in range(30)),
    ]
    found, results = tried(tmp_path, "".join(f"{line}\n" for line in lines))
    assert found.block["timestamp"]["format"] == format_
    times = [each["time"][:19] for each in rows_with_times(results)]
    assert times == [f"2026-11-28T09:15:{n:02}" for n in range(30)]


def rows_with_times(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in results if each.get("time")]

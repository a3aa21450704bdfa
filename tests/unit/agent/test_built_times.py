"""Builds logs whose times are known, lets `guess` propose settings, and tries these settings on the
same log: each record has the true time, or the proposal has no time."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from itertools import accumulate
from pathlib import Path
from zoneinfo import ZoneInfo

from skidway.agent.commands.guessing import guess
from skidway.agent.validation.preview import PreviewedRow
from support.randomness import Seeds

DATES = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y", "%m/%d/%Y",
    "%m/%d/%y", "%d-%m-%Y", "%d/%b/%Y", "%d-%b-%Y", "%d %b %Y", "%b %d, %Y", "%b %d %Y",
    "%Y %b %d", "%Y-%b-%d", "%a %b %d", "%b %d", "%d %b", "%a, %d %b %Y", "%A, %B %d, %Y",
    "%d %B %Y", "%B %d, %Y", "%Y%m%d", "%m-%d", "%d. %b %Y", "%y/%m/%d", "%a %d %b %Y",
)  # fmt: skip
MINUTES = {
    "Z": 0, "z": 0, " Z": 0, "+0300": 180, "+03:00": 180, "+03": 180, " +0300": 180,
    " +03:00": 180, " +03": 180, "-0330": -210, " -05": -300, " UTC": 0, " GMT": 0,
    " GMT+3": 180, " GMT+03:00": 180, " UTC-5": -300, " (+0300)": 180, "] [+0300": 180,
    " BRT": -180, "\u221203:00": -180, " Europe/Moscow": 180, "[Europe/Moscow]": 180,
    " +0300 (MSK)": 180, "+03:00[Europe/Moscow]": 180, " +0300 MSK": 180,
}  # fmt: skip
LETTERS = {
    " CET": "Europe/Berlin", " MSK": "Europe/Moscow", " EST": "America/New_York",
    " JST": "Asia/Tokyo", " CST": "America/Chicago", " IST": "Asia/Kolkata",
}  # fmt: skip
"""Zones by their letters in winter. Lines have the letters that the zone uses at their moment."""

ZONES = (*[""] * 25, *MINUTES, *LETTERS)
HALVES = {
    " p.m.": (" a.m.", " p.m."),
    " p. m.": (" a. m.", " p. m."),
    " \uc624\ud6c4": (" \uc624\uc804", " \uc624\ud6c4"),
    " \u03bc.\u03bc.": (" \u03c0.\u03bc.", " \u03bc.\u03bc."),
    **{half: (f"{half}AM", f"{half}PM") for half in (" ", "", "\u202f", "\u00a0")},
}
BEHIND = (
    " up", " INFO up", "] up", ": up", "", " [main] up", "[main] up", " - up", "|up", ", up",
    "\tup", " 200 up", ' {"a": 1}', ";up;7", " web7 shop[7]: up", " a=1 b=2 c=3", ",200,up",
)  # fmt: skip


@dataclass(frozen=True)
class Line:
    """A line of a log. before, time, behind: its three parts. moment: the true time."""

    before: str
    time: str
    behind: str
    moment: datetime

    @property
    def text(self) -> str:
        return f"{self.before}{self.time}{self.behind}"


@dataclass(frozen=True)
class Parts:
    """The parts of which the times of a log consist."""

    date: str
    between: str
    half: str | None
    zone: str
    digits: int
    mark: str
    has_seconds: bool
    is_padded: bool
    is_clock_first: bool
    has_last_year: bool

    def text(self, moment: datetime, fraction: str) -> str:
        """Returns a time as it is written in the log."""
        hour = moment.strftime("%H" if self.half is None else "%I")
        clock = (hour if self.is_padded else f"{int(hour)}") + moment.strftime(":%M")
        clock += moment.strftime(":%S") if self.has_seconds else ""
        clock += f"{self.mark}{fraction}" if fraction else ""
        clock += "" if self.half is None else HALVES[self.half][moment.hour >= 12]
        clock += moment.strftime(" %Z") if self.zone in LETTERS else self.zone
        day = moment.strftime(self.date)
        if self.is_clock_first:
            return f"{clock} {day}"
        return f"{day}{self.between}{clock}{moment.strftime(' %Y') if self.has_last_year else ''}"


def built(chance: random.Random) -> list[Line]:
    """Returns lines whose times have one form."""
    date, digits = chance.choice(DATES), chance.choice((0, 0, 0, *range(1, 10)))
    is_yearless = "%Y" not in date and "%y" not in date
    parts = Parts(
        date, chance.choice((" ", " ", " ", "T", ", ", ":", "_", "  ")),
        chance.choice((*[None] * 20, *HALVES, " ", " ")), chance.choice(ZONES), digits,
        chance.choice(".,"), digits > 0 or chance.random() < 0.9, chance.random() < 0.5,
        chance.random() < 0.15, is_yearless and chance.random() < 0.4,
    )  # fmt: skip
    before, behind = chance.choice(("", "", "[", "[INFO] ", "web7 ")), chance.choice(BEHIND)
    if before == "[" and "]" not in behind + parts.zone:
        behind = f"]{behind}"
    here = zone_of(parts.zone)
    first = datetime(2024, chance.randint(1, 12), chance.randint(1, 28), tzinfo=here)
    if is_yearless and (parts.is_clock_first or not parts.has_last_year):
        first = (datetime.now(UTC) - timedelta(days=chance.randint(2, 300))).astimezone(here)
    found = []
    for _ in range(3):
        nanos = f"{chance.randint(0, 999_999_999):09}"[:digits]
        moment = first.replace(
            hour=chance.randint(0, 23), minute=chance.randint(0, 59),
            second=chance.randint(0, 59) if parts.has_seconds else 0,
            microsecond=int(f"{nanos:0<6}"[:6]),
        )  # fmt: skip
        time = four_letters(parts.text(moment, nanos), chance)
        found.append(Line(before, time, behind, moment))
    return found


def zone_of(zone: str) -> tzinfo:
    if zone in LETTERS:
        return ZoneInfo(LETTERS[zone])
    return timezone(timedelta(minutes=MINUTES.get(zone, 0)))


def four_letters(text: str, chance: random.Random) -> str:
    """Writes some months as some programs do: Sept, June, July, Nov."""
    if chance.random() < 0.3:
        for short, long in (("Sep", "Sept"), ("Jun", "June"), ("Jul", "July"), ("Nov", "Nov.")):
            if f"{short} " in text:
                return text.replace(f"{short} ", f"{long} ")
    return text


def truth(line: Line) -> datetime:
    """Returns the true time, which has milliseconds."""
    return line.moment.replace(microsecond=line.moment.microsecond // 1000 * 1000)


def faults(line: Line, row: PreviewedRow) -> list[str]:
    """Returns what is wrong with the row of a line."""
    found = []
    if row.time not in (None, truth(line)):
        found.append(f"time {row.time}")
    if row.time is not None:
        texts = ((name, text) for name, value in row.row.items() for text in texts_of(value))
        found += [f"{name} {text!r}" for name, text in texts if is_cut(line, name, text)]
    return found


def texts_of(value: object) -> list[str]:
    """Returns a text, or the texts of a map."""
    pairs = value if isinstance(value, list) else [(value,)]
    return [text for pair in pairs for text in pair if isinstance(text, str)]


def is_cut(line: Line, name: str, text: str) -> bool:
    """Whether a text of a row has only a piece of the time, or of the time and what is behind it.
    The columns of a time (day, time of day) are no pieces if the row has the true time."""
    if text in line.before or text in line.behind or line.time in text:
        return False
    return text.strip("[]") not in line.time or name in ("before", "message", "prefix")


def test_a_time_is_read_whole_or_not_at_all(seeds: Seeds, tmp_path: Path) -> None:
    """Whatever the parts are of which the times of a log consist, a proposal of `guess` gives each
    record its true time, or has no time. A piece of a time is never a part of the message, and a
    line with a time is never joined to the record before it."""
    wrong, read = [], 0
    for seed in seeds(range(320)):
        lines = built(random.Random(seed))
        log = tmp_path / "shop.log"
        log.write_text("".join(f"{line.text}\n" for line in lines))
        found = guess(log, 100)
        places = accumulate((len(line.text.encode()) + 1 for line in lines), initial=0)
        by_place = dict(zip(places, lines, strict=False))
        rows = [(by_place[row.first], row) for row in found.preview.rows]
        read += any(row.time is not None for _, row in rows)
        for line, row in rows:
            is_joined = row.length > len(line.text.encode()) + 1
            wrong += [(seed, line.text, fault, found.block) for fault in faults(line, row)]
            wrong += [(seed, line.text, "joined", found.block)] if is_joined else []
    assert wrong == []
    assert read > 0


FRAMES = (
    '{{"n": {n}, "time": {json}, "m": "x"}}', "{n};{time};x;y", "{n},{time},x,y", "{time},x,y,z",
    '{n},"{time}",x,y', "{time},{n},7,z", "{time}\tx\ty", 'time="{time}" level=info msg=x',
    "level=info time={time} msg=x a=b", '{time} INFO shop: {{"a": {n}}}', '[{time}] {{"a": {n}}}',
    "{semicolons};x;y;z", "{commas},x,y,z", "10.0.0.{n} - {time} GET /", "GET / 200 {time}",
    'level=info [{time}] "GET /" 200',
)  # fmt: skip


def test_times_in_columns_and_members_are_read_whole(seeds: Seeds, tmp_path: Path) -> None:
    """A proposal for members of JSON, columns, key=value pairs and other lines gives each record
    its true time, or has no time, also if the parts of a time are in several columns."""
    wrong, read = [], 0
    for seed in seeds(range(160)):
        lines, frame = built(random.Random(seed)), FRAMES[seed % len(FRAMES)]
        texts = [
            frame.format(
                n=n, time=line.time, json=json.dumps(line.time),
                semicolons=line.time.replace(" ", ";"), commas=line.time.replace(" ", ","),
            )
            for n, line in enumerate(lines)
        ]  # fmt: skip
        log = tmp_path / "shop.log"
        log.write_text("".join(f"{text}\n" for text in texts))
        found = guess(log, 100)
        places = accumulate((len(text.encode()) + 1 for text in texts), initial=0)
        true = {place: truth(line) for place, line in zip(places, lines, strict=False)}
        rows = found.preview.rows
        read += any(row.time is not None for row in rows)
        wrong += [
            (seed, frame, found.block) for row in rows if row.time not in (None, true[row.first])
        ]
    assert wrong == []
    assert read > 0


def test_a_line_with_a_time_in_another_form_is_never_joined(seeds: Seeds, tmp_path: Path) -> None:
    """If a log has records of several lines, and lines that begin with a time in another form, a
    proposal of `guess` never joins such a line to the record before it."""
    wrong = []
    for seed in seeds(range(80)):
        chance = random.Random(seed)
        one, other = ([replace(line, before="") for line in built(chance)] for _ in range(2))
        texts = [line.text for line in one] * 3 + [line.text for line in other]
        lines = [text for each in texts for text in (each, "and one more line of it")]
        log = tmp_path / "shop.log"
        log.write_text("".join(f"{line}\n" for line in lines))
        found = guess(log, 100)
        for record in (*found.preview.rows, *found.preview.rejects):
            text = log.read_bytes()[record.first : record.first + record.length].decode()
            if any(text.count(line.text) and not text.startswith(line.text) for line in other):
                wrong.append((seed, text, found.block))
    assert wrong == []

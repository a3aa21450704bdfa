"""Parses event times as strptime does, but a whole column in one call, in NumPy.

Formats consist of Python's strptime directives: %Y %y %m %d %j %H %I %M %S %f %p %z %a %A %b %B and
%%. Python's rules apply: white space matches one or more blanks, numbers may lack their leading
zero, and upper and lower case mean the same. Names are English. A leap second (:60) is read as the
second after :59. One rule differs from Python: each directive reads as many digits as its number
may have (%d reads two digits if two digits follow). So adjacent numbers (%y%m%d) need their leading
zeros; Python would also accept such numbers without the zeros, and guess where each number ends. A
format can also be a name: `rfc3339` (fraction and zone may be missing), `epoch` (seconds, with or
without a fraction), `epoch_ms`, `epoch_us` or `epoch_ns`.

If a format has no year, the parser chooses the latest year in which the time is at most a day after
`now_ms`, the moment at which the line was read. So a line that is parsed again with the same
`now_ms` gives the same time. Without %z, times are local times of the configured zone. If a local
time happens twice because clocks were changed, the parser chooses the first of the two moments.

The column becomes a matrix of characters with one row per value. The parser reads each directive in
all rows together. As long as the next directive begins at the same position in all rows, the parser
stores this position as one number. If the positions differ, the parser stores one number per row.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable
from dataclasses import field
from datetime import UTC, datetime, timedelta, tzinfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

WIDTH_MAX = 80
"""The most characters that a time may have. A longer value is not a time."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """A format that counts units of time since 1970. a_second: how many units a second has. digits:
    the most digits that a number may have.
    """

    a_second: int
    digits: int


EPOCHS = {
    "epoch": Epoch(1, 15),
    "epoch_ms": Epoch(1_000, 15),
    "epoch_us": Epoch(1_000_000, 18),
    "epoch_ns": Epoch(1_000_000_000, 19),
}
"""By name: the formats of times that are written as numbers."""

DAY_MS = 86_400_000
YEAR_GUESS_AHEAD_MS = DAY_MS
# How many years are tried for a time without a year: next year, this year and the 8 years before
# this year, because 29 February may be missing for 8 years.
_GUESSES = 10
_SLOT_MS = 900_000  # clocks are changed at whole quarters of an hour

_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


class TimeFormat:
    """A compiled format of event times. Raises ConfigurationRefused if a time in the format does
    not determine a moment, if the format has an unknown directive, or if this machine does not know
    the time zone.
    """

    def __init__(self, format: str, timezone: str = "UTC") -> None:
        self._zone = _zone(timezone)
        self._steps = _compile(format)
        self._has_zone = "%z" in format
        self._has_year = "%Y" in format or "%y" in format or format == "rfc3339"
        self._epoch = EPOCHS.get(format)

    def parse(self, values: pa.StringArray, now_ms: int) -> tuple[Int64s, Bools]:
        """Returns the milliseconds since 1970 UTC, and which rows have a time. Nulls have no time.
        In rows without a time, the milliseconds are undefined.
        """
        if not len(values):
            return np.empty(0, np.int64), np.empty(0, np.bool_)
        matrix, width = _matrix(values)
        scan = _Scan(matrix, width)
        if values.null_count:
            scan.good &= np.asarray(values.is_valid())
        if self._epoch is not None:
            return _epoch(scan, self._epoch)
        for step in self._steps:
            step(scan)
        scan.good &= scan.place() == width
        return self._moment(scan, now_ms), scan.good

    def _moment(self, scan: _Scan, now_ms: int) -> Int64s:
        in_day = _time_of_day(scan)
        if self._has_year:
            days, exists = _days(scan, scan.get("year"))
            scan.good &= exists
            return self._to_utc(days * DAY_MS + in_day, scan)
        moment = np.zeros(scan.rows, np.int64)
        open_ = scan.good.copy()
        latest = datetime.fromtimestamp(now_ms / 1000, UTC).year + 1
        for year in range(latest, latest - _GUESSES, -1):
            days, exists = _days(scan, np.full(scan.rows, year, np.int64))
            guess = self._to_utc(days * DAY_MS + in_day, scan)
            taken = open_ & exists & (guess <= now_ms + YEAR_GUESS_AHEAD_MS)
            moment[taken] = guess[taken]
            open_ &= ~taken
            if not open_.any():
                break
        scan.good &= ~open_
        return moment

    def _to_utc(self, local_ms: Int64s, scan: _Scan) -> Int64s:
        if self._has_zone:
            return local_ms - scan.get("zone_ms")
        zoned = local_ms if self._zone is UTC else local_ms - _zone_offsets(self._zone, local_ms)
        if "zone_given" in scan.found:  # in rfc3339, one row may have a zone while another has none
            return np.where(scan.get("zone_given") > 0, local_ms - scan.get("zone_ms"), zoned)
        return zoned


@dataclass(slots=True)
class _Scan:
    """The position (`at`) at which the parser reads next, and the values that it has found in each
    row so far. `at` is one position if it is the same in all rows, and otherwise has a position for
    each row."""

    matrix: npt.NDArray[np.uint8]  # its shape: rows x (greatest width + a margin of zeros)
    width: Int64s  # characters of each row
    good: Bools = field(init=False)
    at: int | Int64s = 0
    found: dict[str, Int64s] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.good = self.width > 0

    @property
    def rows(self) -> int:
        return len(self.width)

    def char(self, ahead: int = 0) -> npt.NDArray[np.uint8]:
        if isinstance(self.at, int):
            return self.matrix[:, min(self.at + ahead, self.matrix.shape[1] - 1)]
        chars: npt.NDArray[np.uint8] = self.matrix[np.arange(self.rows), self.at + ahead]
        return chars

    def place(self) -> int | Int64s:
        return self.at

    def move(self, used: int | Int64s) -> None:
        """Moves the position in each row by `used` characters. As long as all rows move by the same
        number of characters, `at` (the position) stays one number for all rows.
        """
        if not isinstance(used, int) and isinstance(self.at, int):
            first = int(used[0])
            if (used == first).all():
                used = first
        ahead = self.at + used
        last = self.matrix.shape[1] - _MARGIN
        self.at = min(ahead, last) if isinstance(ahead, int) else np.minimum(ahead, last)

    def get(self, name: str) -> Int64s:
        if name not in self.found:
            return np.zeros(self.rows, np.int64)
        return self.found[name]


_Step = Callable[[_Scan], None]
_MARGIN = 24  # more characters than any directive reads


# --- compiling a format -----------------------------------------------------------------------


def _compile(format: str) -> list[_Step]:
    if format in EPOCHS:
        return []
    if format == "rfc3339":
        date = _compile("%Y-%m-%d")
        return [
            *date,
            _separator,
            *_compile_directives("%H:%M:%S"),
            _optional_fraction,
            _optional_zone,
        ]
    steps = _compile_directives(format)
    names = {format[i + 1] for i in range(len(format) - 1) if format[i] == "%"}
    if not ({"m", "d"} <= names or {"b", "d"} <= names or {"B", "d"} <= names or "j" in names):
        raise ConfigurationRefused(
            f"timestamp.format {format!r} names no day: it needs %d with %m, %b or %B, or %j"
        )
    if "I" in names and "p" not in names:
        raise ConfigurationRefused(f"timestamp.format {format!r} has %I without %p")
    return steps


def _compile_directives(format: str) -> list[_Step]:
    steps: list[_Step] = []
    at = 0
    while at < len(format):
        char = format[at]
        if char == "%":
            name = format[at + 1 : at + 2]
            if name not in _DIRECTIVES:
                known = " ".join(f"%{each}" for each in _DIRECTIVES)
                hint = _NAMED_ZONE if name == "Z" else ""
                raise ConfigurationRefused(
                    f"timestamp.format {format!r} has %{name}; known are {known}{hint}"
                )
            steps.append(_DIRECTIVES[name])
            at += 2
        elif char.isspace():
            steps.append(_blanks)
            at += len(format[at:]) - len(format[at:].lstrip())
        elif char.isascii():
            steps.append(_literal(ord(char)))
            at += 1
        else:
            raise ConfigurationRefused(f"timestamp.format {format!r} has {char!r}, not ASCII")
    return steps


def _zone(name: str) -> tzinfo:
    if name.upper() in ("UTC", "Z", "GMT"):
        return UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigurationRefused(
            f"timestamp.timezone {name!r} is not a zone that this machine knows, such as "
            "Europe/Berlin or UTC"
        ) from error


# --- directives -------------------------------------------------------------------------------


def _number(name: str, digits: int, least: int, most: int, *, exact: bool = False) -> _Step:
    """Returns a step that reads a number of one to `digits` digits. The step stops before a digit
    that would make the number exceed `most`; the next directive reads that digit. exact: whether
    the number must have `digits` digits.
    """

    def step(scan: _Scan) -> None:
        value = np.zeros(scan.rows, np.int64)
        used = np.zeros(scan.rows, np.int64)
        going = np.ones(scan.rows, np.bool_)
        for index in range(digits):
            digit = scan.char(index).astype(np.int64) - 48
            longer = value * 10 + digit
            # `longer` becomes negative if it is too large for 64 bits, so it must be at least 0.
            going = going & (digit >= 0) & (digit <= 9) & (longer >= 0) & (longer <= most)
            value = np.where(going, longer, value)
            used += going
        scan.good &= (value >= least) & (used == digits if exact else used > 0)
        scan.found[name] = value
        scan.move(used)

    return step


def _day(scan: _Scan) -> None:
    """Reads a day of the month: two digits, one digit, or a blank and one digit."""
    blank = scan.char() == 32
    if not blank.any():
        _TWO_DIGIT_DAY(scan)
        return
    padded = scan.char(1).astype(np.int64) - 48
    scan.move(blank.astype(np.int64))
    before, good = scan.at, scan.good
    _TWO_DIGIT_DAY(scan)
    scan.found["day"] = np.where(blank, padded, scan.found["day"])
    scan.good = np.where(blank, good & (padded >= 1) & (padded <= 9), scan.good)
    scan.at = np.where(blank, before + 1, scan.at)


def _short_year(scan: _Scan) -> None:
    _number("year", 2, 0, 99, exact=True)(scan)
    year = scan.found["year"]
    scan.found["year"] = np.where(year < 69, 2000 + year, 1900 + year)


def _fraction(scan: _Scan, digits: int = 6) -> None:
    micros = np.zeros(scan.rows, np.int64)
    used = np.zeros(scan.rows, np.int64)
    going = np.ones(scan.rows, np.bool_)
    for index in range(digits):
        digit = scan.char(index).astype(np.int64) - 48
        going = going & (digit >= 0) & (digit <= 9)
        if index < 6:
            micros = micros * 10 + np.where(going, digit, 0)
        used += going
    scan.good &= used > 0
    scan.found["micros"] = micros
    scan.move(used)


def _name(name: str, words: tuple[str, ...], *, whole: bool) -> _Step:
    """Returns a step that reads the name of a month or weekday. The first three letters decide
    which name it is. With `whole`, the other letters must match that name, too.
    """
    codes = np.array([_code(word) for word in words])
    order = np.argsort(codes)
    rests = np.array([len(word) - 3 for word in words])
    letters = np.zeros((len(words), 8), np.uint8)
    for index, word in enumerate(words):
        letters[index, : len(word) - 3] = np.frombuffer(word[3:].encode(), np.uint8)

    def step(scan: _Scan) -> None:
        code = sum((scan.char(i).astype(np.int64) | 32) << (16 - 8 * i) for i in range(3))
        slot = np.minimum(np.searchsorted(codes[order], code), len(words) - 1)
        which = order[slot]
        scan.good &= codes[which] == code
        scan.found[name] = which.astype(np.int64) + 1
        scan.move(3)
        if whole:
            for i in range(int(rests.max())):
                wanted = i < rests[which]
                scan.good &= ~wanted | ((scan.char(i) | 32) == letters[which, i])
            scan.move(rests[which].astype(np.int64))

    return step


def _code(word: str) -> int:
    return int.from_bytes(word[:3].encode(), "big")


def _half_day(scan: _Scan) -> None:
    first, second = scan.char(0) | 32, scan.char(1) | 32
    scan.good &= ((first == ord("a")) | (first == ord("p"))) & (second == ord("m"))
    scan.found["afternoon"] = (first == ord("p")).astype(np.int64)
    scan.move(2)


def _utc_offset(scan: _Scan) -> None:
    """Reads an offset from UTC: Z, +HHMM, +HH:MM or +HH:MM:SS, or the same with a minus sign."""
    sign = scan.char(0)
    zulu = sign == ord("Z")
    signed = (sign == ord("+")) | (sign == ord("-"))
    hours, hours_good = _two_digits(scan, 1)
    colon = (scan.char(3) == ord(":")).astype(np.int64)
    minutes, minutes_good = _two_digits(scan, 3 + colon)
    scan.good &= zulu | (signed & hours_good & (hours < 24) & minutes_good & (minutes < 60))
    used = np.where(zulu, 1, 5 + colon)
    with_seconds = signed & (colon > 0) & (_char_at(scan, used) == ord(":"))
    seconds, seconds_good = _two_digits(scan, used + 1)
    scan.good &= ~with_seconds | (seconds_good & (seconds < 60))
    total = (hours * 60 + minutes) * 60 + np.where(with_seconds, seconds, 0)
    total = np.where(sign == ord("-"), -total, total)
    scan.found["zone_ms"] = np.where(zulu, 0, total * 1000)
    scan.move(used + np.where(with_seconds, 3, 0))


def _two_digits(scan: _Scan, ahead: int | Int64s) -> tuple[Int64s, Bools]:
    high = _char_at(scan, ahead).astype(np.int64) - 48
    low = _char_at(scan, ahead + 1).astype(np.int64) - 48
    return high * 10 + low, (high >= 0) & (high <= 9) & (low >= 0) & (low <= 9)


def _char_at(scan: _Scan, ahead: int | Int64s) -> npt.NDArray[np.uint8]:
    if isinstance(ahead, int):
        return scan.char(ahead)
    chars: npt.NDArray[np.uint8] = scan.matrix[np.arange(scan.rows), scan.at + ahead]
    return chars


def _blanks(scan: _Scan) -> None:
    blank = _is_blank(scan.char())
    scan.good &= blank
    while blank.any():
        scan.move(blank.astype(np.int64))
        blank = blank & _is_blank(scan.char())


def _is_blank(chars: npt.NDArray[np.uint8]) -> Bools:
    blank: Bools = (chars == 32) | ((chars >= 9) & (chars <= 13))
    return blank


def _literal(code: int) -> _Step:
    folded = code | 32 if chr(code).isalpha() else code

    def step(scan: _Scan) -> None:
        char = scan.char()
        scan.good &= ((char | 32) if folded != code or chr(code).isalpha() else char) == folded
        scan.move(1)

    return step


def _separator(scan: _Scan) -> None:
    char = scan.char()
    scan.good &= ((char | 32) == ord("t")) | (char == 32)
    scan.move(1)


def _optional_fraction(scan: _Scan) -> None:
    char = scan.char()
    there = (char == ord(".")) | (char == ord(","))
    if not there.any():
        return
    scan.move(there.astype(np.int64))
    good = scan.good.copy()
    _fraction(scan, 9)
    scan.good = np.where(there, scan.good, good)
    scan.found["micros"] = np.where(there, scan.found["micros"], 0)


def _optional_zone(scan: _Scan) -> None:
    there = scan.place() < scan.width
    before, good = scan.at, scan.good.copy()
    _utc_offset(scan)
    scan.good = np.where(there, scan.good, good)
    scan.at = np.where(there, scan.at, before)
    scan.found["zone_given"] = there.astype(np.int64)


_NAMED_ZONE = (
    "; it reads no zone's name, so leave the name out of timestamp.fields, and set "
    "timestamp.timezone"
)
_TWO_DIGIT_DAY = _number("day", 2, 1, 31)
_DIRECTIVES: dict[str, _Step] = {
    "Y": _number("year", 4, 1, 9999, exact=True),
    "y": _short_year,
    "m": _number("month", 2, 1, 12),
    "d": _day,
    "j": _number("day_of_year", 3, 1, 366),
    "H": _number("hour", 2, 0, 23),
    "I": _number("hour12", 2, 1, 12),
    "M": _number("minute", 2, 0, 59),
    "S": _number("second", 2, 0, 60),
    "f": _fraction,
    "p": _half_day,
    "z": _utc_offset,
    "a": _name("weekday", _WEEKDAYS, whole=False),
    "A": _name("weekday", _WEEKDAYS, whole=True),
    "b": _name("month", _MONTHS, whole=False),
    "B": _name("month", _MONTHS, whole=True),
    "%": _literal(ord("%")),
}


# --- from fields to moments -------------------------------------------------------------------


def _time_of_day(scan: _Scan) -> Int64s:
    hour = scan.get("hour")
    if "hour12" in scan.found:
        hour = scan.found["hour12"] % 12 + 12 * scan.get("afternoon")
    seconds = (hour * 60 + scan.get("minute")) * 60 + scan.get("second")
    return seconds * 1000 + scan.get("micros") // 1000


def _days(scan: _Scan, year: Int64s) -> tuple[Int64s, Bools]:
    """Returns, for each row, the days from 1970-01-01 to its date, and whether that date exists."""
    if "day_of_year" in scan.found:
        days = _days_of(year, 1, 1) + scan.found["day_of_year"] - 1
        return days, days < _days_of(year + 1, 1, 1)
    month, day = scan.get("month"), scan.get("day")
    days = _days_of(year, month, day)
    following = _days_of(year + (month == 12), month % 12 + 1, 1)
    return days, days < following


def _days_of(year: Int64s, month: int | Int64s, day: int | Int64s) -> Int64s:
    """Returns days since 1970-01-01 in the proleptic Gregorian calendar. The formula counts years
    that begin in March, so that a leap day is the last day of its year.
    """
    shifted = np.asarray(month) <= 2
    y = year - shifted
    era = y // 400
    in_era = y - era * 400
    in_year = (153 * (np.asarray(month) + np.where(shifted, 9, -3)) + 2) // 5 + day - 1
    in_era_days = in_era * 365 + in_era // 4 - in_era // 100 + in_year
    days: Int64s = era * 146_097 + in_era_days - 719_468
    return days


def _zone_offsets(zone: tzinfo, local_ms: Int64s) -> Int64s:
    """Returns, for each local time (ms), by how many ms the zone's clocks are ahead of UTC then."""
    slots, where = np.unique(local_ms // _SLOT_MS, return_inverse=True)
    offsets = np.array([_zone_offset(zone, int(slot)) for slot in slots], np.int64)
    return offsets[where] if len(slots) else np.zeros(0, np.int64)


def _zone_offset(zone: tzinfo, slot: int) -> int:
    try:
        local = datetime(1970, 1, 1, tzinfo=zone) + timedelta(milliseconds=slot * _SLOT_MS)
    except OverflowError:  # only in rows whose text is not a date
        return 0
    offset = local.utcoffset()
    return 0 if offset is None else offset // timedelta(milliseconds=1)


def _epoch(scan: _Scan, epoch: Epoch) -> tuple[Int64s, Bools]:
    negative = scan.char() == ord("-")
    scan.move(negative.astype(np.int64))
    _number("whole", epoch.digits, 0, min(10**epoch.digits, 1 << 63) - 1)(scan)
    if epoch.a_second == 1:
        _optional_fraction(scan)
    scan.good &= scan.place() == scan.width
    a_ms = epoch.a_second // 1_000
    whole_ms = scan.get("whole") // a_ms if a_ms else scan.get("whole") * 1_000
    magnitude = whole_ms + scan.get("micros") // 1000
    return np.where(negative, -magnitude, magnitude), scan.good


def _matrix(values: pa.StringArray) -> tuple[npt.NDArray[np.uint8], Int64s]:
    """Returns a row of characters for each value, padded with zeros, and how many characters each
    value has.
    """
    _, offsets_buffer, data_buffer = values.buffers()
    count = len(values)
    bounds = np.frombuffer(offsets_buffer, np.int32)[values.offset : values.offset + count + 1]
    data = (
        np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.zeros(0, np.uint8)
    )
    width = np.diff(bounds).astype(np.int64)
    columns = min(int(width.max(initial=0)), WIDTH_MAX)
    matrix = np.zeros((count, columns + _MARGIN), np.uint8)
    if count and columns and int(width.min()) == columns:
        # All values have the same width, so their bytes already are a matrix.
        block = data[bounds[0] : bounds[-1]]
        matrix[:, :columns] = block.reshape(count, -1)[:, :columns]
    elif columns:
        inside = np.arange(columns) < np.minimum(width, columns)[:, None]
        at = bounds[:-1, None].astype(np.int64) + np.arange(columns)
        matrix[:, :columns][inside] = data[at[inside]]
    # A value that is too long is not a time. Such a value gets a width that no format can reach.
    return matrix, np.where(width > WIDTH_MAX, WIDTH_MAX + _MARGIN + 1, width)

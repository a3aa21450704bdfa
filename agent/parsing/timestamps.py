"""Parses event times as strptime does, but a whole column in one call, in NumPy.

Formats consist of Python's strptime directives: %Y %y %m %d %j %H %I %M %S %f %p %z %a %A %b %B and
%%. Python's rules apply: white space matches one or more blanks, numbers may lack their leading
zero, and upper and lower case mean the same. Names are English. A leap second (:60) is read as the
second after :59. Some rules differ from Python's:

- Each directive reads as many digits as its number may have (%d reads two digits if two digits
  follow). Adjacent numbers (%y%m%d) need their leading zeros; Python would also accept such
  numbers without the zeros, and guess where each number ends.
- %p beside %H must fit it (20:15 PM, but not 08:15 PM); Python ignores such a %p.
- %d, %H and %I also read a blank and one digit. %f reads up to nine digits, and the time has three
  of them. %b also reads `June`, `July` and `Sept`, and a dot behind the month. %p also reads
  `a.m.`, and needs no blank before it. %z reads what the module `times.zones` says.
- Every kind of blank that Unicode has matches a blank.

A format can also be a name: `rfc3339` (fraction and zone may be missing; a blank may be in the
place of T), `epoch` (seconds, with or without a fraction), `epoch_ms`, `epoch_us` or `epoch_ns`.

If a format has no year, the parser chooses the latest year in which the time is at most a day after
`now_ms`, the moment at which the line was read. So a line that is parsed again with the same
`now_ms` gives the same time. Without %z, times are local times of the configured zone. If a local
time happens twice because clocks were changed, the parser chooses the first of the two moments.
"""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from skidway.agent.parsing.times import calendar, zones
from skidway.agent.parsing.times.directives import number, optional_fraction
from skidway.agent.parsing.times.formats import EPOCHS as EPOCHS
from skidway.agent.parsing.times.formats import Epoch, steps_of
from skidway.agent.parsing.times.scan import Bools, Int64s, Scan, scan_of

DAY_MS = 86_400_000
YEAR_GUESS_AHEAD_MS = DAY_MS
# How many years are tried for a time without a year: next year, this year and the 8 years before
# this year, because 29 February may be missing for 8 years.
_GUESSES = 10


class TimeFormat:
    """A compiled format of event times. Raises ConfigurationRefused if a time in the format does
    not determine a moment, if the format has an unknown directive, or if this machine does not know
    the time zone.
    """

    def __init__(self, format: str, timezone: str = "UTC") -> None:
        self.timezone = timezone
        self._zone = zones.zone_of(timezone)
        self._steps = steps_of(format)
        self._has_zone = "%z" in format
        self._has_year = "%Y" in format or "%y" in format or format == "rfc3339"
        self._epoch = EPOCHS.get(format)

    def parse(self, values: pa.StringArray, now_ms: int) -> tuple[Int64s, Bools]:
        """Returns the milliseconds since 1970 UTC, and which rows have a time. Nulls have no time.
        In rows without a time, the milliseconds are undefined.
        """
        moments, good, _ = self._read(values, now_ms)
        return moments, good

    def foreign_letters(self, values: pa.StringArray, now_ms: int) -> list[str]:
        """Returns, for each row, the letters of its zone if the row would have a time, but its
        letters (such as CET) are not those of the configured zone at that moment; otherwise an
        empty text."""
        _, _, foreign = self._read(values, now_ms)
        return [zones.letters_of(code) for code in foreign.tolist()]

    def _read(self, values: pa.StringArray, now_ms: int) -> tuple[Int64s, Bools, Int64s]:
        """Returns the moments, which rows have one, and the letters of zones that do not count (0
        in other rows)."""
        none = np.zeros(len(values), np.int64)
        if not len(values):
            return none, np.empty(0, np.bool_), none
        scan = scan_of(values)
        if self._epoch is not None:
            return *_epoch(scan, self._epoch), none
        for step in self._steps:
            step(scan)
        scan.good &= scan.is_at_end
        moments = self._moment(scan, now_ms)
        if "letters" not in scan.found:
            return moments, scan.good, none
        foreign = scan.good & (scan.get("foreign") > 0)
        return moments, scan.good & ~foreign, np.where(foreign, scan.found["letters"], 0)

    def _moment(self, scan: Scan, now_ms: int) -> Int64s:
        in_day = calendar.ms_of_day(scan)
        if self._has_year:
            days, exists = calendar.days(scan, scan.get("year"))
            scan.good &= exists
            return self._to_utc(days * DAY_MS + in_day, scan)
        local = np.zeros(scan.rows, np.int64)
        open_ = scan.good.copy()
        latest = datetime.fromtimestamp(now_ms / 1000, UTC).year + 1
        for year in range(latest, latest - _GUESSES, -1):
            days, exists = calendar.days(scan, year)
            tried = days * DAY_MS + in_day
            guess = self._to_utc(tried, scan)
            taken = open_ & exists & (guess <= now_ms + YEAR_GUESS_AHEAD_MS)
            if taken.all():
                return guess
            local[taken] = tried[taken]
            open_ &= ~taken
            if not open_.any():
                break
        scan.good &= ~open_
        return self._to_utc(local, scan)

    def _to_utc(self, local_ms: Int64s, scan: Scan) -> Int64s:
        if self._has_zone:
            return self._of_zones(local_ms - scan.get("zone_ms"), scan)
        zoned = local_ms if self._zone is UTC else local_ms - zones.offsets(self._zone, local_ms)
        if "zone_given" in scan.found:  # in rfc3339, one row may have a zone while another has none
            return np.where(scan.get("zone_given") > 0, local_ms - scan.get("zone_ms"), zoned)
        return zoned

    def _of_zones(self, moments: Int64s, scan: Scan) -> Int64s:
        """Returns the moments of rows with offsets, with those of rows with letters beside
        them."""
        letters = scan.get("letters")
        rows = np.flatnonzero(letters)
        if not len(rows):
            return moments
        offsets, fits = zones.offsets_of_letters(self._zone, moments[rows], letters[rows])
        moments[rows] -= offsets
        foreign = np.zeros(scan.rows, np.int64)
        foreign[rows] = ~fits
        scan.found["foreign"] = foreign
        return moments


def _epoch(scan: Scan, epoch: Epoch) -> tuple[Int64s, Bools]:
    negative = scan.char() == ord("-")
    scan.move(negative.astype(np.int64))
    number("whole", epoch.digits, 0, min(10**epoch.digits, 1 << 63) - 1)(scan)
    if epoch.a_second == 1:
        optional_fraction(scan)
    scan.good &= scan.is_at_end
    a_ms = epoch.a_second // 1_000
    whole_ms = scan.get("whole") // a_ms if a_ms else scan.get("whole") * 1_000
    magnitude = whole_ms + scan.get("millis")
    return np.where(negative, -magnitude, magnitude), scan.good

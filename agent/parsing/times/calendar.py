"""Days since 1970 of the dates that the steps have found."""

from __future__ import annotations

import numpy as np

from skidway.agent.parsing.times.scan import Bools, Int64s, Scan, one_if_equal


def days(scan: Scan, year: int | Int64s) -> tuple[Int64s, Bools]:
    """Returns, for each row, the days from 1970-01-01 to its date, and whether that date exists. If
    all rows have one date, as the lines of a file often have, returns one number and one answer."""
    year = one_if_equal(year)
    if "day_of_year" in scan.found:
        found = _days_of(year, 1, 1) + scan.found["day_of_year"] - 1
        return found, found < _days_of(year + 1, 1, 1)
    month, day = one_if_equal(scan.get("month")), one_if_equal(scan.get("day"))
    found = _days_of(year, month, day)
    following = _days_of(year + (month == 12), month % 12 + 1, 1)
    return found, found < following


def ms_of_day(scan: Scan) -> Int64s:
    """Returns, for each row, the milliseconds since the beginning of its day. An hour from 0 to 23
    that is not in the half of the day beside it is no time."""
    hour = scan.get("hour")
    if "hour" in scan.found and "afternoon" in scan.found:
        scan.good &= (hour >= 12) == (scan.found["afternoon"] > 0)
    if "hour12" in scan.found:
        hour = scan.found["hour12"] % 12 + 12 * scan.get("afternoon")
    seconds = (hour * 60 + scan.get("minute")) * 60 + scan.get("second")
    return seconds * 1000 + scan.get("millis")


def _days_of(year: int | Int64s, month: int | Int64s, day: int | Int64s) -> Int64s:
    """Returns days since 1970-01-01 in the proleptic Gregorian calendar. The formula counts years
    that begin in March, so that a leap day is the last day of its year.
    """
    shifted = np.asarray(month) <= 2
    y = np.asarray(year) - shifted
    era = y // 400
    in_era = y - era * 400
    in_year = (153 * (np.asarray(month) + np.where(shifted, 9, -3)) + 2) // 5 + day - 1
    in_era_days = in_era * 365 + in_era // 4 - in_era // 100 + in_year
    found: Int64s = era * 146_097 + in_era_days - 719_468
    return found

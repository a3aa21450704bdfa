"""The steps that read numbers, names, fractions of a second, halves of the day and blanks."""

from __future__ import annotations

from typing import Final

import numpy as np

from skidway.agent.parsing.times.scan import Bools, Bytes, Int64s, Scan, Step, one_if_equal

MONTHS: Final = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_FOURTH: Final = {"june": "e", "july": "y", "september": "t"}
"""Months that some programs write with four letters (June, July, Sept): the fourth letter."""

FRACTION_DIGITS_MAX: Final = 9
_KEPT_DIGITS: Final = 3


def number(name: str, digits: int, least: int, most: int, *, exact: bool = False) -> Step:
    """Returns a step that reads a number of one to `digits` digits. The step stops before a digit
    that would make the number exceed `most`; the next directive reads that digit. exact: whether
    the number must have `digits` digits.
    """

    def step(scan: Scan) -> None:
        if _read_at_once(scan, name, digits, least, most, exact=exact):
            return
        value = np.zeros(scan.rows, np.int64)
        used = np.zeros(scan.rows, np.int64)
        going = np.ones(scan.rows, np.bool_)
        for index in range(digits):
            digit = scan.digit(index)
            longer = value * 10 + digit
            # `longer` becomes negative if it is too large for 64 bits, so it must be at least 0.
            going = going & (digit <= 9) & (longer >= 0) & (longer <= most)
            value = np.where(going, longer, value)
            used += going
        scan.good &= (value >= least) & (used == digits if exact else used > 0)
        scan.found[name] = value
        scan.move(used)

    return step


_SAFE_DIGITS: Final = 18
"""64 bits have room for every number of so many digits."""


def _read_at_once(
    scan: Scan, name: str, digits: int, least: int, most: int, *, exact: bool
) -> bool:
    """Reads the numbers if all rows have equally many digits. Returns whether they have."""
    value = np.zeros(scan.rows, np.int64)
    used = 0
    while used < digits:
        is_digit = (digit := scan.digit(used)) <= 9
        if not is_digit.all():
            break
        value = value * 10 + digit
        used += 1
    if used < digits and (exact or not used or is_digit.any()):
        return False
    if used > _SAFE_DIGITS or int(value.max()) > most:
        return False
    scan.good &= value >= least
    scan.found[name] = value
    scan.move(used)
    return True


def padded(name: str, least: int, most: int, *, exact: bool = False) -> Step:
    """Returns a step that reads two digits, one digit (unless `exact`), or a blank and one
    digit."""
    two_digits = number(name, 2, least, most, exact=exact)

    def step(scan: Scan) -> None:
        blank = scan.char() == 32
        if not blank.any():
            two_digits(scan)
            return
        one = scan.digit(1).astype(np.int64)
        scan.move(blank.astype(np.int64))
        before = scan.at
        two_digits(scan)
        scan.found[name] = np.where(blank, one, scan.found[name])
        scan.good &= ~blank | ((one >= least) & (one <= 9))
        scan.at = np.where(blank, before + 1, scan.at)

    return step


def short_year(scan: Scan) -> None:
    """Reads the last two digits of a year from 1969 to 2068."""
    number("year", 2, 0, 99, exact=True)(scan)
    year = scan.found["year"]
    scan.found["year"] = np.where(year < 69, 2000 + year, 1900 + year)


def fraction(scan: Scan) -> None:
    """Reads the digits of a second's fraction, and keeps three of them."""
    going = scan.digit() <= 9
    scan.good &= going
    _fraction(scan, going, FRACTION_DIGITS_MAX)


def optional_fraction(scan: Scan) -> None:
    """Reads a dot or a comma and any number of digits, if they are there."""
    char = scan.char()
    there = (char == ord(".")) | (char == ord(","))
    if not there.any():
        return
    scan.move(there.astype(np.int64))
    going = there & (scan.digit() <= 9)
    scan.good &= ~there | going
    _fraction(scan, going, len(scan.matrix))


def _fraction(scan: Scan, going: Bools, digits_max: int) -> None:
    """Reads at most `digits_max` digits in the rows that `going` marks."""
    millis = np.zeros(scan.rows, np.int64)
    for index in range(digits_max):
        digit = scan.digit()
        going = going & (digit <= 9)
        if going.all():
            millis = millis * 10 + digit if index < _KEPT_DIGITS else millis
            scan.move(1)
            continue
        if index < _KEPT_DIGITS:
            millis = millis * 10 + np.where(going, digit, 0)
        elif not going.any():
            break
        scan.move(going.astype(np.int64))
    scan.found["millis"] = millis


def name(what: str, words: tuple[str, ...], *, whole: bool) -> Step:
    """Returns a step that reads the name of a month or weekday. The first three letters decide
    which name it is. With `whole`, the other letters must match that name, too.
    """
    codes = np.array([_code(word) for word in words])
    order = np.argsort(codes)
    rests = np.array([len(word) - 3 for word in words])
    letters = np.zeros((len(words), 8), np.uint8)
    for index, word in enumerate(words):
        letters[index, : len(word) - 3] = np.frombuffer(word[3:].encode(), np.uint8)

    def step(scan: Scan) -> None:
        code: int | Int64s = sum(
            (scan.char(i).astype(np.int64) | 32) << (16 - 8 * i) for i in range(3)
        )
        code = one_if_equal(code)  # the lines of a file often have one month
        slot = np.minimum(np.searchsorted(codes[order], code), len(words) - 1)
        scan.good &= codes[order[slot]] == code
        which = np.broadcast_to(order[slot], scan.rows)
        scan.found[what] = np.broadcast_to(order[slot] + 1, scan.rows)
        scan.move(3)
        if whole:
            for i in range(int(rests.max())):
                wanted = i < rests[which]
                scan.good &= ~wanted | ((scan.char(i) | 32) == letters[which, i])
            scan.move(rests[which].astype(np.int64))

    return step


def _code(word: str) -> int:
    return int.from_bytes(word[:3].encode(), "big")


def short_month(*, dot: bool) -> Step:
    """Returns a step that reads a month's short name: three letters, `June`, `July` or `Sept`. dot:
    whether a dot may follow."""

    three_letters = name("month", MONTHS, whole=False)
    fourths = np.array([0, *(ord(_FOURTH.get(month, "\0")) for month in MONTHS)], np.uint8)

    def step(scan: Scan) -> None:
        three_letters(scan)
        fourth = scan.char()
        longer = is_letter(fourth) & ((fourth | 32) == fourths[one_if_equal(scan.found["month"])])
        if longer.any():
            scan.move(longer.astype(np.int64))
        if dot and (dots := scan.char() == ord(".")).any():
            scan.move(dots.astype(np.int64))

    return step


def half_day(scan: Scan) -> None:
    """Reads AM, pm, a.m. or P.M., and the blanks before it, which may be missing."""
    _skip_blanks(scan, is_blank(scan.char()))
    first = scan.char() | 32
    dot = scan.char(1) == ord(".")
    places = dot.astype(np.int64) if dot.any() else 0
    second = scan.char(places + 1) | 32
    scan.good &= ((first == ord("a")) | (first == ord("p"))) & (second == ord("m"))
    scan.found["afternoon"] = (first == ord("p")).astype(np.int64)
    if dot.any():
        places = places + (dot & (scan.char(places + 2) == ord(".")))
    scan.move(places + 2)


def blanks(scan: Scan) -> None:
    """Reads one or more blanks."""
    blank = is_blank(scan.char())
    scan.good &= blank
    _skip_blanks(scan, blank)


def _skip_blanks(scan: Scan, blank: Bools) -> None:
    while blank.any():
        scan.move(blank.astype(np.int64))
        blank = blank & is_blank(scan.char())


def is_blank(chars: Bytes) -> Bools:
    """Which characters are white space."""
    blank: Bools = (chars == 32) | ((chars >= 9) & (chars <= 13))
    return blank


def is_letter(chars: Bytes) -> Bools:
    """Which characters are letters."""
    letter: Bools = ((chars & 0xDF) - np.uint8(65)) < 26
    return letter


def literal(code: int) -> Step:
    """Returns a step that reads a character of the format. Upper and lower case mean the same."""
    is_cased = chr(code).isalpha()
    folded = code | 32 if is_cased else code

    def step(scan: Scan) -> None:
        char = scan.char()
        scan.good &= ((char | 32) if is_cased else char) == folded
        scan.move(1)

    return step


def separator(scan: Scan) -> None:
    """Reads what is between day and hour in RFC 3339: T, t or a blank."""
    char = scan.char()
    scan.good &= ((char | 32) == ord("t")) | (char == 32)
    scan.move(1)

"""The step of %z, and the time zones that a machine knows.

%z reads Z, UTC, GMT, an offset (+0300, +03:00, +03), an offset behind UTC or GMT (GMT+3), and the
letters of a zone (CET). Letters alone name no moment: CST is used in America and in Asia. So they
count only if the configured zone itself uses these letters at that moment. They then also tell
apart the two moments of a local time that comes twice.
"""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

import numpy as np

from skidway.agent.parsing.times.directives import is_letter
from skidway.agent.parsing.times.scan import Bools, Int64s, Scan, one_if_equal
from skidway.errors import ConfigurationRefused

LETTERS_MAX: Final = 6
_SLOT_MS: Final = 900_000  # clocks are changed at whole quarters of an hour
_MS: Final = timedelta(milliseconds=1)


def zone_of(name: str) -> tzinfo:
    """Returns the zone of this name. Raises ConfigurationRefused if this machine has none."""
    if name.upper() in ("UTC", "Z", "GMT"):
        return UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigurationRefused(
            f"timestamp.timezone {name!r} is not a zone that this machine knows, such as "
            "Europe/Berlin or UTC"
        ) from error


# --- reading a zone -----------------------------------------------------------------------------


def named_zone(scan: Scan) -> None:
    """Reads an offset, or the letters of a zone, with an offset behind them if they are UTC or
    GMT."""
    signed = _is_sign(scan)
    if signed.all():
        _offset(scan, signed)
        return
    code = _letters(scan, ~signed)
    is_utc = (code == _UTC) | (code == _GMT)
    is_behind = is_utc & _is_sign(scan) & (scan.digit(1) <= 9)
    scan.good &= signed | (code > 0)
    _offset(scan, signed | is_behind, is_short=is_behind)
    is_known = is_utc | (code == ord("Z"))
    scan.found["letters"] = np.where(is_known, 0, code)


def optional_offset(scan: Scan) -> None:
    """Reads Z or an offset, if the text is not at its end. Marks which rows have one."""
    there = ~scan.is_at_end
    zulu = there & ((scan.char() | 32) == ord("z"))
    signed = there & _is_sign(scan)
    scan.good &= ~there | zulu | signed
    scan.move(zulu.astype(np.int64))
    if signed.any():
        _offset(scan, signed)
    scan.found["zone_given"] = there.astype(np.int64)


def letters_of(code: int) -> str:
    """Returns the letters of a zone that the steps have found under `letters`."""
    return code.to_bytes(8, "big").lstrip(b"\0").decode()


def _is_sign(scan: Scan) -> Bools:
    char = scan.char()
    sign: Bools = (char == ord("+")) | (char == ord("-"))
    return sign


def _letters(scan: Scan, going: Bools) -> Int64s:
    """Reads a word of letters in the rows that `going` marks. Returns its letters in upper case, as
    a number of one byte for each; 0 if the word is empty or too long."""
    code = np.zeros(scan.rows, np.int64)
    used = np.zeros(scan.rows, np.int64)
    for index in range(LETTERS_MAX + 1):
        char = scan.char(index)
        going = going & is_letter(char)
        if not going.any():
            break
        code = np.where(going, (code << 8) | (char & 0xDF), code)
        used += going
    scan.move(used)
    return np.where(used > LETTERS_MAX, 0, code)


_UTC: Final = int.from_bytes(b"UTC", "big")
_GMT: Final = int.from_bytes(b"GMT", "big")


def _offset(scan: Scan, there: Bools, *, is_short: Bools | None = None) -> None:
    """Reads an offset in the rows that `there` marks: a sign, hours, and perhaps minutes and
    seconds. is_short: in which rows one digit of the hours is enough."""
    is_minus = scan.char() == ord("-")
    tens, units = scan.digit(1), scan.digit(2)
    is_two = units <= 9
    hours = np.where(is_two, tens.astype(np.int64) * 10 + units, tens)
    whole = is_two if is_short is None else is_two | is_short
    scan.good &= ~there | ((tens <= 9) & whole & (hours < 24))
    scan.move(one_if_equal(np.where(there, 2 + is_two, 0)))
    colon = there & (scan.char() == ord(":"))
    minutes, used = _sixty(scan, there, colon)
    scan.move(used)
    seconds, used = _sixty(scan, colon & (scan.char() == ord(":")), colon)
    scan.move(used)
    total = (hours * 60 + minutes) * 60 + seconds
    scan.found["zone_ms"] = np.where(there, np.where(is_minus, -total, total) * 1000, 0)


def _sixty(scan: Scan, there: Bools, colon: Bools) -> tuple[Int64s, Int64s]:
    """Reads two digits, behind a colon in the rows that `colon` marks. Returns their number, and
    how many characters it has; both are 0 in rows without two digits."""
    ahead = one_if_equal(colon.astype(np.int64))
    tens, units = scan.digit(ahead), scan.digit(ahead + 1)
    there = there & (tens <= 9) & (units <= 9)
    scan.good &= ~there | (tens < 6)
    number = np.where(there, tens.astype(np.int64) * 10 + units, 0)
    return number, np.where(there, 2 + colon, 0)


# --- what a zone's clocks show ------------------------------------------------------------------


def offsets(zone: tzinfo, local_ms: Int64s) -> Int64s:
    """Returns, for each local time (ms), by how many ms the zone's clocks are ahead of UTC then. If
    the local time comes twice, the first of the two moments counts."""
    slots, where = np.unique(local_ms // _SLOT_MS, return_inverse=True)
    found = np.array([_offset_of(zone, int(slot)) for slot in slots], np.int64)
    return found[where] if len(slots) else np.zeros(0, np.int64)


def offsets_of_letters(zone: tzinfo, local_ms: Int64s, codes: Int64s) -> tuple[Int64s, Bools]:
    """Returns, for each local time (ms) with the letters of a zone, by how many ms the zone's
    clocks are ahead of UTC then, and whether the zone uses these letters then."""
    words, word_of = np.unique(codes, return_inverse=True)
    slots, slot_of = np.unique(local_ms // _SLOT_MS, return_inverse=True)
    pairs, where = np.unique(word_of * len(slots) + slot_of, return_inverse=True)
    found = []
    for pair in pairs.tolist():
        word, slot = divmod(pair, len(slots))
        found.append(_offset_of_letters(zone, int(slots[slot]), letters_of(int(words[word]))))
    ahead_ms = np.array([each or 0 for each in found], np.int64)[where]
    return ahead_ms, np.array([each is not None for each in found])[where]


def _offset_of(zone: tzinfo, slot: int) -> int:
    try:
        offset = _local(slot).replace(tzinfo=zone).utcoffset()
    except OverflowError:  # only in rows whose text is not a date
        return 0
    return 0 if offset is None else offset // _MS


def _offset_of_letters(zone: tzinfo, slot: int, letters: str) -> int | None:
    try:
        local = _local(slot)
        for fold in (0, 1):
            moment = local.replace(tzinfo=zone, fold=fold)
            offset, name = moment.utcoffset(), moment.tzname()
            # A local time that does not exist, because clocks were moved forward, is another one
            # when it comes back from UTC.
            exists = moment.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == local
            if offset is not None and exists and name is not None and name.upper() == letters:
                return offset // _MS
    except OverflowError:  # only in rows whose text is not a date
        return None
    return None


def _local(slot: int) -> datetime:
    return datetime(1970, 1, 1) + timedelta(milliseconds=slot * _SLOT_MS)  # noqa: DTZ001

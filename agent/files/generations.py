"""Names that rotation gives: from `app.log.1` back to `app.log`.

    app.log.1   app.log-2   app.log.old              a number, or a word
    app.log-20261120   app.log.2026-11-20_13-04      a date
    app.1.log   app-20261120.log                     the same before the ending
    app.log.1.gz                                     compressed: nobody here can read it

Only such names are generations of a log; `mail.err` is none of `mail`.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_NUMBER: Final = r"\d{1,5}"
_DATE: Final = r"\d{4}[-_.]?\d\d(?:[-_.T:+]?\d+)*"
_WORD: Final = r"old|prev|previous|last|rotated"

_BEHIND: Final = re.compile(rf"(?P<base>.+?)[-_.](?:{_NUMBER}|{_DATE}|{_WORD})")
_BEFORE_ENDING: Final = re.compile(
    rf"(?P<stem>.+?)(?:\.{_NUMBER}|[-_.]{_DATE})(?P<ending>\.[A-Za-z]\w*)"
)
_COMPRESSED: Final = re.compile(r"(?P<name>.+)\.(?:gz|bz2|xz|zst|lz4|lzma|Z|zip)")


class Generation(NamedTuple):
    """What a name may be a generation of, and its name before it was compressed, if it was."""

    bases: tuple[str, ...]
    plain: str | None


def generation(name: str) -> Generation | None:
    """What a file's name (without directories) says; None for names that no rotation gives."""
    compressed = _COMPRESSED.fullmatch(name)
    plain = name if compressed is None else compressed["name"]
    bases = []
    if behind := _BEHIND.fullmatch(plain):
        bases.append(behind["base"])
    if before := _BEFORE_ENDING.fullmatch(plain):
        bases.append(before["stem"] + before["ending"])
    if not bases:
        return None
    return Generation(tuple(bases), None if compressed is None else plain)

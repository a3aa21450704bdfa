"""Recognises the names that rotation gives to generations (a log's rotated files), and finds the
log's name: `app.log` for `app.log.1`.

    app.log.1  app.log-2  app.log.old  app.log~       a number, a word or a sign after the name
    app.log-20261120  app.log.20-11-2026  app.log20261120   a date
    app.1.log  app-20261120.log  app1.log             a number or date before the file extension
    app-11-20-2026-1.log  app (2).log                 several such parts
    app.log.1.gz  app.log-20261120.zst                compressed

These rules cover the names that logrotate gives with any `dateformat`, `extension` or
`addextension`. The rules also cover the names of log4j2, logback, log4net, NLog, Serilog,
java.util.logging, Python, nginx, rotatelogs, cronolog, kubelet, Docker, savelog and newsyslog, and
the names of copies that people and Windows make. A file without such a name is no generation:
`mail.err` is no generation of `mail`. If a file has such a name, the times at which it was made and
changed decide whether it is a generation (rotations).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

_WORD: Final = (
    r"old|prev|previous|last|rotated|archived?|bak|backup|bck|bk|save|saved|sav|orig|copy|full"
    r"|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
    r"|am|pm|utc|gmt|z"
)
_PART: Final = rf"(?:[-_.+:,@#~ ()]|\d|t(?=\d)|w(?=\d)|h(?=\d)|(?<![a-z])(?:{_WORD})(?![a-z]))"
_PARTS: Final = re.compile(rf"{_PART}+\Z", re.IGNORECASE)
_SAYS: Final = re.compile(rf"\d|~|(?:{_WORD})", re.IGNORECASE)
_ENDING: Final = re.compile(r"\.[A-Za-z]\w*\Z")
_COMPRESSED: Final = re.compile(r"(?P<name>.+)\.(?:gz|bz2|xz|zst|lz4|lzma|Z|zip)", re.DOTALL)
_BREAKS: Final = frozenset("-_.+:,@#~ (")

_CACHED: Final = 1 << 12
"""The results for this many names are cached, because each new listing of a directory contains the
same names again."""


class Generation(NamedTuple):
    """What a file's name shows about rotation.

    bases: the names of the logs of which the file may be a generation. plain: the file's name
    before compression; None if the file is not compressed.
    """

    bases: tuple[str, ...]
    plain: str | None


@lru_cache(_CACHED)
def generation(name: str) -> Generation | None:
    """Interprets a file's name (without directories). Returns None if no rotation gives such a
    name.
    """
    compressed = _COMPRESSED.fullmatch(name)
    plain = name if compressed is None else compressed["name"]
    bases = dict.fromkeys(_bases(plain))
    if compressed is not None:
        bases[plain] = None  # `app.log.gz` is made from `app.log`
    if not bases:
        return None
    return Generation(tuple(bases), None if compressed is None else plain)


def copied_from(path: str) -> Iterator[str]:
    """Yields the paths of the logs of which the file at `path` may be a copy. The name of a copy
    begins with the name of its log.

    `app.log.1` may be a copy of `app.log`. `app-1.log` is no copy of `app.log`: if a pattern
    matches both names, `app-1.log` is the log of another worker.
    """
    above, name = os.path.split(path)
    said = generation(name)
    for base in () if said is None else said.bases:
        if name.startswith(base):
            yield os.path.join(above, base)


def _bases(plain: str) -> list[str]:
    """Returns the names that are left when the parts that rotation adds (numbers, dates) are
    removed. First come the names without parts at the end (`app.log` for `app.log.1`), and then the
    names without parts before the file extension (`app.log` for `app-20260131.log`).
    """
    found = list(_stems(plain))
    ending = _ENDING.search(plain)
    if ending is not None:
        found += [stem + ending[0] for stem in _stems(plain[: ending.start()])]
    return found


def _stems(name: str) -> Iterator[str]:
    """Yields each beginning of `name` that is followed only by parts that rotation adds (numbers,
    dates)."""
    run = _PARTS.search(name)
    for at in range(max(run.start(), 1), len(name)) if run is not None else ():
        before, behind = name[at - 1], name[at]
        is_in_number = before.isdigit() and behind.isdigit()
        is_in_word = before.isalpha() and behind.isalpha()
        if is_in_number or is_in_word or before in _BREAKS:
            continue
        if _PARTS.match(name, at) and _SAYS.search(name, at):
            yield name[:at]

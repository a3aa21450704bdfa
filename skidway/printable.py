"""Texts that are safe on a terminal. Names of files, lines and messages of others may contain
control characters, which a terminal executes. They get an escape in place of each control character
but the end of a line, and of each sign that nobody sees and no language needs. The escapes are
JSON's, so that a JSON document keeps its meaning."""

from __future__ import annotations

import re

# C0, DEL and C1; marks, overrides and isolates of directions; separators; halves of pairs, by which
# Python stands for bytes that are not UTF-8
_CONTROLS = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
# Signs that nobody sees; but joiners and selectors of variants, which languages and emoji need, are
# let through.
_UNSEEN = (
    r"\xad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0"
    r"\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_IN_TEXT = re.compile(rf"[\t{_CONTROLS}{_UNSEEN}]")
_IN_DATA = re.compile(rf"[{_CONTROLS}{_UNSEEN}]")


def printable(text: str) -> str:
    """Returns the text with an escape for each control character but the end of a line."""
    return _IN_TEXT.sub(_escape, text)


def printable_data(data: bytes) -> str:
    """Does the same for data, but keeps tabs."""
    return _IN_DATA.sub(_escape, data.decode(errors="surrogateescape"))


def printable_exposition(text: str) -> str:
    """Does the same for metrics in Prometheus' text format, whose label values double a
    backslash."""
    return _IN_TEXT.sub(lambda found: _escape(found).replace("\\", "\\\\"), text)


def _escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))

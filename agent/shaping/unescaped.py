r"""Takes the escapes out of a line that no parser could read.

The text of a field has no escapes, but a rejected line has them. Masks do not interpret escapes: in
`\n4111...`, the letter n comes before a card number, and `a\u0040b.de` does not look like an email
address. So `rejected_text` also masks copies of the line without escapes.

The escapes are those of JSON, of logfmt and of Python's repr (which details contain), and the
doubled quotes of CSV. Escapes may themselves be escaped, as those of a JSON line in a log of Docker
are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

_ESCAPE = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U(000[0-9a-fA-F]{5}|0010[0-9a-fA-F]{4})|([\s\S]))"
)
_MEANINGS: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_LETTERS_KEPT = re.compile(r"[A-Za-z0-9]")

Step = Callable[[str], str]


def without_backslashes(text: str) -> str:
    """Returns the text, with each escape replaced by the character that it means. Unknown escapes
    stay."""
    made = _ESCAPE.sub(_meaning, text)
    return made.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def without_doubled_quotes(text: str) -> str:
    """Returns the text, with one quotation mark in place of two, because a quoted field of CSV
    contains each of its quotation marks twice."""
    return text.replace('""', '"')


class Escaping(NamedTuple):
    """How a format of lines escapes characters. sign: a regular expression (RE2) of what every text
    with escapes has. step: takes the escapes out of a text."""

    sign: str
    step: Step


BACKSLASHES: Final = Escaping(r"\\", without_backslashes)
DOUBLED_QUOTES: Final = Escaping('""', without_doubled_quotes)


def _meaning(found: re.Match[str]) -> str:
    *codes, letter = found.groups()
    for code in codes:
        if code is not None:
            return chr(int(code, 16))
    if letter in _MEANINGS:
        return _MEANINGS[letter]
    return found[0] if _LETTERS_KEPT.match(letter) else letter

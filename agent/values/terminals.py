r"""Takes codes for terminals, such as those for colours, out of texts.

    ESC [ 3 1 ; 1 m        CSI: colours, the cursor (ECMA-48)
    ESC ] 8 ; ; uri ST     OSC, DCS, ...: a string that BEL, or ST (ESC \), ends
    ESC ( B   ESC M        sets of characters, single functions

ESC and `[` may also be the one character U+009B, and so on. In escaped text, as in JSON, ESC is
written as `\u001b`.

A text may be chosen by somebody whom nobody trusts, and a code must not swallow what the program
wrote behind it. So a code has no blank and no quotation mark in it: a terminal would also take
`ESC [ "` for the beginning of a code, but here only `ESC [` is taken out. For the same reason a
code never contains `apart`, the signs between two fields. A code without its end loses what
is there of it; of a string without its end, only its beginning is taken out. But if `apart` has
signs, only whole codes are taken out: what is behind a beginning may be the next field.
"""

from __future__ import annotations

import re
import string
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from skidway.agent.values.escapes import PLAIN, Escapes

Booleans = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

COLOUR: Final = r"(?:\x1b\[[0-9;]*m)?"
"""A regular expression: the code with which a colour begins or ends, if there is one."""

_LETTERS: Final = string.ascii_letters
_URI: Final = _LETTERS + string.digits + "_.~:/?#@!$&'()*+,;=%-"
_ESC_BYTE: Final = 0x1B
_SIGNS: Final = (0x90, 0x98, *range(0x9B, 0xA0))
"""The last bytes of the characters that stand for ESC and another sign, in UTF-8."""


def plain(
    texts: pa.StringArray, escapes: Escapes = PLAIN, apart: str = ""
) -> tuple[pa.StringArray, Booleans | None]:
    """Returns UTF-8 texts without codes, and which texts had codes; None if no text had any."""
    data, found = _bytes_of(texts), texts
    if _may_have_codes(data):
        found = pc.replace_substring_regex(found, _pattern(PLAIN, apart), "")
    if escapes.found and (data == ord("\\")).any() and re.search(escapes.found, data.data):
        # A backslash that is itself escaped begins no code.
        pattern = rf"((?:^|[^\\])(?:\\\\)*)(?:{_pattern(escapes, apart)})+"
        found = pc.replace_substring_regex(found, pattern, r"\1")
    if found is texts:
        return texts, None
    changed: Booleans = np.asarray(pc.fill_null(pc.not_equal(found, texts), False), np.bool_)
    return (found, changed) if changed.any() else (texts, None)


def plain_text(text: str) -> str:
    """Returns the text without codes."""
    return _compiled().sub("", text)


def _bytes_of(texts: pa.StringArray) -> Bytes:
    buffer = texts.buffers()[2]
    if not len(texts) or buffer is None:
        return np.zeros(0, np.uint8)
    bounds = np.frombuffer(texts.buffers()[1], np.int32)
    begin, end = bounds[texts.offset], bounds[texts.offset + len(texts)]
    return np.frombuffer(buffer, np.uint8)[begin:end]


def _may_have_codes(data: Bytes) -> bool:
    if (data == _ESC_BYTE).any():
        return True
    if data.max(initial=0) < 0x80:
        return False
    before = np.flatnonzero(data[:-1] == 0xC2)
    return bool(np.isin(data[before + 1], _SIGNS).any())


@cache
def _compiled() -> re.Pattern[str]:
    return re.compile(_pattern(PLAIN, ""))


@cache
def _pattern(escapes: Escapes, apart: str) -> str:
    """Returns the regular expression of a code, for RE2 and for Python."""

    def one_of(signs: str) -> str:
        kept = "".join(re.escape(sign) for sign in signs if sign not in apart)
        return f"[{kept}]" if kept else r"[^\x00-\x{10FFFF}]"  # RE2 for: no character

    esc, end, osc, slash = escapes.esc, escapes.st, escapes.osc, escapes.slash
    whole = "" if apart else "?"
    between = one_of(";:")
    numbers = rf"{one_of('?>')}?(?:\d+(?:{between}\d*)*|(?:{between}\d+)+)?"
    final = rf"{one_of(_LETTERS + '@~')}(?:{esc}{one_of('>')})?(?:{escapes.shift})?"
    opening = rf"{esc}{one_of(']PX^_')}"
    return "|".join(
        (
            rf"(?:{esc}{escapes.bracket}|{escapes.csi}){numbers}(?:{final}){whole}",
            rf"(?:{opening}|{osc})(?:{one_of(_URI)}|\\/)*(?:{escapes.bel}|{esc}{slash}|{end})",
            *(() if apart else (opening, rf"{osc}|{end}")),
            rf"{esc}(?:{one_of('()*+')}[0-9AB]|{one_of('78cDEHMNOZ')}){whole}",
        )
    )

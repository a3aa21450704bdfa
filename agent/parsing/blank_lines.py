"""Leaves out blank lines between the lines of a format that has no blank lines: JSON, csv, logfmt.

A line is blank if it has only spaces, tabs and the like. A blank line is left out, and counted as
filtered by the rule BLANK, because the agent must account for every line. In a text format, a blank
line is a line like any other.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skidway.agent.parsing.framing import Booleans
from skidway.agent.parsing.left_out import BLANK
from skidway.agent.parsing.lines import sizes
from skidway.agent.parsing.parser import Parsed, Parser, Reject, in_places

_BLANKS: Final = " \t\r\n\v\f"


class BlankLinesParser:
    """Lets another parser parse the lines that are not blank."""

    def __init__(self, inner: Parser, apart: str = "") -> None:
        """apart: the character between two values, which is part of no blank line; empty if there
        is none."""
        self._inner = inner
        signs = "".join(re.escape(sign) for sign in _BLANKS if sign != apart)
        self._blank = rf"\A[{signs}]*\z"

    def parse(self, lines: pa.BinaryArray, now_ms: int) -> Parsed:
        """Parses the lines, and makes a reject with the reason BLANK of each blank line."""
        blank = np.flatnonzero(self._is_blank(lines))
        if not len(blank):
            return self._inner.parse(lines, now_ms)
        others = np.delete(np.arange(len(lines)), blank)
        parsed = in_places(self._inner.parse(lines.take(pa.array(others)), now_ms), others)
        rejects = [Reject(row, BLANK, "the line is blank") for row in blank.tolist()]
        return replace(parsed, rejects=parsed.rejects + rejects)

    def _is_blank(self, lines: pa.BinaryArray) -> Booleans:
        found: Booleans = sizes(lines) == 0
        if found.all():
            return found
        data = np.frombuffer(lines.buffers()[2], np.uint8)
        begin = np.frombuffer(lines.buffers()[1], np.int32)[lines.offset :][: len(lines)]
        first = data[np.minimum(begin, len(data) - 1)]
        may_be = np.flatnonzero(~found & (first <= ord(" ")))
        if len(may_be):
            texts = lines.take(pa.array(may_be)).view(pa.string())
            found[may_be] = np.asarray(pc.match_substring_regex(texts, self._blank), np.bool_)
        return found

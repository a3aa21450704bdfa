"""Takes codes for terminals, such as those for colours, out of lines before they are parsed."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from skidway.agent.parsing.parser import Parsed, Parser
from skidway.agent.values.escapes import Escapes
from skidway.agent.values.terminals import plain


class ColouredLinesParser:
    """Lets another parser parse the lines without their codes, and counts the lines that had any.
    escapes: how the lines may escape the codes. apart: the signs between two values of a line.
    """

    def __init__(self, inner: Parser, escapes: Escapes, apart: str = "") -> None:
        self._inner, self._escapes, self._apart = inner, escapes, apart

    def parse(self, lines: pa.BinaryArray, now_ms: int) -> Parsed:
        """Parses the lines without their codes."""
        texts, changed = plain(lines.view(pa.string()), self._escapes, self._apart)
        if changed is None:
            return self._inner.parse(lines, now_ms)
        parsed = self._inner.parse(texts.view(pa.binary()), now_ms)
        return replace(parsed, coloured=int(changed.sum()))

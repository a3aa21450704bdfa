"""Parsers for lines in encodings other than UTF-8, and for lines with bytes that are invalid in
their encoding.

ReplacingParser replaces invalid bytes by U+FFFD, and marks the record. DecodingParser rejects lines
with invalid bytes.

The mark is a boolean field of the schema, and no record header, because only fields reach HDFS. The
mark is true if bytes of the line were replaced. A U+FFFD that the line itself contains does not
make the mark true.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
from pyarrow import types

from skidway.agent.parsing import lines as line_columns
from skidway.agent.parsing.lines import UTF_8
from skidway.agent.parsing.parser import ENCODING, Parsed, Parser, Reject, in_places
from skidway.errors import ConfigurationRefused

MARK: Final = "encoding_replaced"
"""The name of a field in each record. The field says whether bytes of the record's line were
replaced.
"""


class ReplacingParser:
    """Turns lines of an encoding into UTF-8, repairs the lines that are not in this encoding, and
    lets another parser parse all lines. That parser's schema does not have the field MARK, which
    says whether bytes were replaced.
    """

    def __init__(self, inner: Parser, encoding: str = UTF_8) -> None:
        self._inner, self._encoding = inner, encoding

    def parse(self, lines: pa.BinaryArray, now_ms: int) -> Parsed:
        """Parses the repaired lines with the wrapped parser, and adds the field MARK, which says
        whether bytes of a line were replaced."""
        repaired, rows = line_columns.repaired(lines, self._encoding)
        parsed = self._inner.parse(repaired, now_ms)
        marks = np.zeros(len(lines), np.bool_)
        marks[rows] = True
        batch = parsed.batch.append_column(MARK, pa.array(marks[parsed.rows]))
        return replace(parsed, batch=batch)


class DecodingParser:
    """Turns lines of an encoding into UTF-8, and lets another parser parse them. Rejects the lines
    that are not in this encoding.
    """

    def __init__(self, inner: Parser, encoding: str) -> None:
        self._inner, self._encoding = inner, encoding

    def parse(self, lines: pa.BinaryArray, now_ms: int) -> Parsed:
        """Parses the decoded lines with the wrapped parser."""
        decoded, bad = line_columns.repaired(lines, self._encoding)
        if not len(bad):
            return self._inner.parse(decoded, now_ms)
        rows = np.delete(np.arange(len(lines)), bad)
        parsed = in_places(self._inner.parse(decoded.take(pa.array(rows)), now_ms), rows)
        detail = f"the line is not {self._encoding}"
        rejects = [Reject(row, ENCODING, detail) for row in bad.tolist()]
        return replace(parsed, rejects=parsed.rejects + rejects)


def without_mark(schema: pa.Schema) -> pa.Schema:
    """Returns the schema without the field MARK, that is, with the fields that the wrapped parser
    fills. Raises ConfigurationRefused if the schema has no boolean field MARK.
    """
    at = schema.get_field_index(MARK)
    if at < 0 or not types.is_boolean(schema.field(at).type):
        raise ConfigurationRefused(
            f"on_error: replace marks each record in the schema's field {MARK!r}, and the schema "
            f"has no boolean field of that name; add it, with the default false"
        )
    return schema.remove(at)


def check_groups(groups: Sequence[str]) -> None:
    """Raises ConfigurationRefused if a group has the name of the field MARK."""
    if MARK in groups:
        raise ConfigurationRefused(
            f"parser.pattern has a group {MARK!r}, which on_error: replace fills itself; "
            "rename the group"
        )

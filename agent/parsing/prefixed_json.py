r"""Parses lines that have a JSON object after a prefix, or in one of their fields.

    2026-11-23T08:15:01Z INFO {"user": "ann", "ms": 7}

A regular expression finds the object: the setting `parser.json_field` names the group with the
object's text. The other groups are fields, and so are the members of the object. If a group and a
member have the same name, the field takes the group, because the prefix comes from the logging
program itself. The member is then treated like a member that has no field. If the group with the
object's text is empty, the line is parsed as if the object had no members; so the object may be in
an optional part of the pattern.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from skidway.agent.parsing.json_lines import JsonParser
from skidway.agent.parsing.parser import Parsed, in_places
from skidway.agent.parsing.regex import RegexParser, groups_of
from skidway.errors import ConfigurationRefused

_NO_MEMBERS = "{}"


class PrefixedJsonParser:
    """Puts the fields of a prefix and the members of an object together.

    prefix: the parser that fills the fields of the groups, and a string field with the object's
    text. members: the parser that fills the other fields of the schema. prefix_has_time: whether
    the event time is in the prefix.
    """

    def __init__(
        self, prefix: RegexParser, members: JsonParser, group: str, *, prefix_has_time: bool
    ) -> None:
        self._prefix, self._members, self._group = prefix, members, group
        self._prefix_has_time = prefix_has_time

    def parse(self, lines: pa.BinaryArray, now_ms: int) -> Parsed:
        """Makes rows of the lines whose prefix and whose object fit the schema."""
        outer = self._prefix.parse(lines, now_ms)
        texts = outer.batch.column(self._group)
        texts = pc.if_else(pc.equal(texts, ""), _NO_MEMBERS, texts).cast(pa.binary())
        inner = self._members.parse(texts, now_ms)
        taken = outer.batch.take(pa.array(inner.rows))
        columns = {name: taken.column(name) for name in taken.schema.names if name != self._group}
        columns |= {name: inner.batch.column(name) for name in inner.batch.schema.names}
        batch = pa.RecordBatch.from_pydict(columns)
        event_ms = outer.event_ms[inner.rows] if self._prefix_has_time else inner.event_ms
        placed = in_places(inner, outer.rows)
        rejects = outer.rejects + placed.rejects
        return Parsed(placed.rows, batch, event_ms, rejects, fieldless=inner.fieldless)


def prefix_groups(pattern: str, json_field: str) -> list[str]:
    """Returns the names of a pattern's groups, except `json_field`, the group of the JSON object.
    Raises ConfigurationRefused if the pattern has no such group, or if `groups_of` refuses the
    pattern.
    """
    groups = groups_of(pattern)
    if json_field not in groups:
        raise ConfigurationRefused(
            f"parser.json_field: {json_field!r} is no group of parser.pattern; it has "
            f"{', '.join(groups)}"
        )
    return [name for name in groups if name != json_field]

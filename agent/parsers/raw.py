"""The parser `raw`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skidway.agent.parsers.kind import Fields, ParserKind
from skidway.agent.recipe import Recipe

if TYPE_CHECKING:
    import pyarrow as pa

    from skidway.agent.parsers.settings import ParserSettings
    from skidway.agent.parsing.parser import Parser


class Raw(ParserKind):
    """The line is one field."""

    name = "raw"
    help = "the line is one field"
    has_fields = False
    uses_pyarrow = False

    def fields(self, parser: ParserSettings, times: Sequence[str]) -> Fields:
        from skidway.agent.parsing.derived import LINE_FIELD

        return Fields([LINE_FIELD])

    def parser(self, recipe: Recipe, schema: pa.Schema) -> Parser:
        from skidway.agent.parsers.building import defaults
        from skidway.agent.parsing.raw import RawParser

        return RawParser(schema, frozenset(defaults(recipe)))


RAW = Raw()

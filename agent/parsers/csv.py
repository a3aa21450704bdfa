"""The parser `csv`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from skidway.agent.parsers.kind import Fields, ParserKind
from skidway.agent.parsing.left_out import BLANK, CSV_HEADER
from skidway.agent.recipe import Recipe
from skidway.agent.shaping.unescaped import DOUBLED_QUOTES
from skidway.errors import ConfigurationRefused

if TYPE_CHECKING:
    import pyarrow as pa

    from skidway.agent.parsers.settings import ParserSettings
    from skidway.agent.parsing.parser import Parser
    from skidway.schemas.inference.formats import LineFormat


class Csv(ParserKind):
    """Values with a delimiter between them."""

    name = "csv"
    help = "values with a delimiter between them"
    settings = frozenset({"types", "columns", "delimiter", "header"})
    is_separated = True
    leaves_out = (CSV_HEADER, BLANK)
    escaping = DOUBLED_QUOTES

    def check(self, parser: ParserSettings) -> None:
        if not parser.columns:
            raise ConfigurationRefused("parser.columns is missing: a csv parser needs the names")
        character = parser.delimiter_character
        is_sign = character.isascii() and (character.isprintable() or character == "\t")
        if len(character) != 1 or not is_sign or character.isalnum():
            raise ConfigurationRefused(
                f"parser.delimiter: {parser.delimiter!r} is not one character such as , or ; or |, "
                "nor tab"
            )
        if character == '"':
            raise ConfigurationRefused(f"parser.delimiter cannot be {character!r}")

    def fields(self, parser: ParserSettings, times: Sequence[str]) -> Fields:
        return Fields(self.fixed_fields(parser))

    def fixed_fields(self, parser: ParserSettings) -> list[str]:
        return parser.columns

    def parser(self, recipe: Recipe, schema: pa.Schema) -> Parser:
        from skidway.agent.parsers.building import defaults, text_times
        from skidway.agent.parsing.csv_lines import CsvParser
        from skidway.agent.parsing.replacing import check_groups
        from skidway.agent.parsing.text_fields import TextFields

        if recipe.on_error == "replace":
            check_groups(recipe.columns)
        fields = TextFields(
            schema,
            recipe.columns,
            frozenset(defaults(recipe)),
            text_times(recipe, is_padded=True),
            source="column of parser.columns",
        )
        return CsvParser(recipe.columns, recipe.delimiter, fields, recipe.header)

    def separators(self, recipe: Recipe) -> str:
        return recipe.delimiter

    def proposals(self, lines: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
        from skidway.agent.unknown_logs.separated import proposed

        block = proposed(lines)
        return [] if block is None else [("values with a delimiter (csv)", block)]

    def line_format(self) -> LineFormat:
        from skidway.schemas.inference import formats

        return formats.CSV


CSV = Csv()

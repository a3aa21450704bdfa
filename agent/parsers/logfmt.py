"""The parser `logfmt`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from skidway.agent.parsers.kind import Fields, ParserKind
from skidway.agent.parsing.left_out import BLANK
from skidway.agent.recipe import Recipe
from skidway.agent.shaping.unescaped import BACKSLASHES
from skidway.agent.values.escapes import Escapes

if TYPE_CHECKING:
    import pyarrow as pa

    from skidway.agent.parsers.settings import ParserSettings
    from skidway.agent.parsing.parser import Parser
    from skidway.schemas.inference.formats import LineFormat


class Logfmt(ParserKind):
    """Pairs key=value; keys are fields."""

    name = "logfmt"
    help = "key=value"
    settings = frozenset({"types", "columns"})
    fills_by_name = True
    leaves_out = (BLANK,)
    escapes = Escapes(
        esc=r"\\(?:u001[bB]|x1[bB])",
        bel=r"\\(?:u0007|x07|a)",
        csi=r"\\u009[bB]",
        osc=r"\\u009[08d-fD-F]",
        st=r"\\u009[cC]",
        shift=r"\\(?:u000[eEfF]|x0[eEfF])",
        found=rb"\\(?:u00[019]|x1)",
    )
    escaping = BACKSLASHES

    def fields(self, parser: ParserSettings, times: Sequence[str]) -> Fields:
        names = list(dict.fromkeys([*parser.columns, *times]))
        return Fields(names, names, True)

    def parser(self, recipe: Recipe, schema: pa.Schema) -> Parser:
        from skidway.agent.parsers.building import defaults, text_times
        from skidway.agent.parsing.aliases import aliases_of
        from skidway.agent.parsing.logfmt import LogfmtParser
        from skidway.agent.shaping.grammar import parse
        from skidway.agent.shaping.shaped_schemas import removed_names

        return LogfmtParser(
            schema,
            defaults(recipe),
            text_times(recipe),
            aliases=aliases_of(json.loads(recipe.schema.text)),
            removed=removed_names(parse(recipe.shape)),
        )

    def proposals(self, lines: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
        from skidway.agent.unknown_logs.pairs import proposed

        block = proposed(lines)
        return [] if block is None else [("logfmt (key=value)", block)]

    def line_format(self) -> LineFormat:
        from skidway.schemas.inference import formats

        return formats.LOGFMT


LOGFMT = Logfmt()

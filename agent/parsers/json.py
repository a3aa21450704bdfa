"""The parser `json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from skidway.agent.parsers.kind import Fields, ParserKind
from skidway.agent.parsing.left_out import BLANK
from skidway.agent.recipe import Recipe
from skidway.agent.shaping.unescaped import BACKSLASHES
from skidway.agent.values.escapes import Escapes

if TYPE_CHECKING:
    import pyarrow as pa

    from skidway.agent.parsers.settings import ParserSettings
    from skidway.agent.parsing.json_lines import JsonParser
    from skidway.schemas.inference.formats import LineFormat


class Json(ParserKind):
    """An object; its members are fields."""

    name = "json"
    help = "an object"
    needs_schema = True
    fills_by_name = True
    leaves_out = (BLANK,)
    uses_python = True
    escapes = Escapes(
        esc=r"\\u001[bB]",
        bel=r"\\u0007",
        csi=r"\\u009[bB]",
        osc=r"\\u009[08d-fD-F]",
        st=r"\\u009[cC]",
        shift=r"\\u000[eEfF]",
        bracket=r"(?:\[|\\u005[bB])",
        found=rb"\\u00[019]",
    )
    escaping = BACKSLASHES

    def fields(self, parser: ParserSettings, times: Sequence[str]) -> Fields:
        return Fields([])  # a source names its schema

    def parser(self, recipe: Recipe, schema: pa.Schema) -> JsonParser:
        from skidway.agent.parsers.building import defaults, time_format
        from skidway.agent.parsing.aliases import aliases_of
        from skidway.agent.parsing.json_lines import JsonParser
        from skidway.agent.shaping.grammar import parse
        from skidway.agent.shaping.shaped_schemas import removed_names

        return JsonParser(
            schema,
            defaults(recipe),
            recipe.time_fields,
            time_format(recipe),
            keeps_unreadable=recipe.time_on_error == "read_time",
            aliases=aliases_of(json.loads(recipe.schema.text)),
            removed=removed_names(parse(recipe.shape)),
        )

    def line_format(self) -> LineFormat:
        from skidway.schemas.inference import formats

        return formats.JSON


JSON = Json()

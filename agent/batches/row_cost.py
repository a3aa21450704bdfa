"""What each record costs beside the text of its line: constant fields, defaults, and the columns of
its schema. A team chooses all of these, and a line may be one byte long, so the cost decides how
many lines are read and pressed together."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from skidway.agent.parsing.framing import READ_LINES
from skidway.agent.recipe import Recipe, of_source
from skidway.errors import ConfigurationRefused
from skidway.schemas.codec import Codec

COST_MAX: Final = 16_384
TOGETHER_COST: Final = 16 << 20
"""The records of one call of the press cost at most about this many bytes beside their lines."""


def lines_max(recipe: Recipe) -> int:
    """Returns how many lines may be read and pressed together. Raises ConfigurationRefused if each
    record costs too much."""
    cost = sum(len(name) + len(text.encode()) for name, text in recipe.fields)
    for schema in {recipe.schema.text, recipe.parsed_schema} - {""}:
        cost += _schema_cost(schema)
    if cost > COST_MAX:
        reason = f"constant fields and defaults add more than {COST_MAX:,} bytes to each record"
        raise of_source(recipe, ConfigurationRefused(reason))
    most = min(READ_LINES, TOGETHER_COST // max(cost, 1))
    if recipe.multiline is not None and 2 * recipe.multiline.lines_max > most:
        reason = (
            f"multiline.max.lines must be at most {most // 2}, because constant fields, defaults"
            " and columns of the schema are in each record"
        )
        raise of_source(recipe, ConfigurationRefused(reason))
    return most


@lru_cache(64)
def _schema_cost(text: str) -> int:
    return Codec(text).row_bytes(COST_MAX)

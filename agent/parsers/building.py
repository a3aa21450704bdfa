"""What the parsers of several types take from a recipe."""

from __future__ import annotations

import json
from typing import Any

from skidway.agent.parsing.text_fields import TextTimes
from skidway.agent.parsing.timestamps import TimeFormat
from skidway.agent.recipe import Recipe
from skidway.errors import ConfigurationRefused


def defaults(recipe: Recipe) -> dict[str, Any]:
    """Returns the defaults of the schema's fields. Raises ConfigurationRefused if the schema is no
    record."""
    document = json.loads(recipe.schema.text)
    if type(document) is not dict or "fields" not in document:
        raise ConfigurationRefused("the schema is no record; its fields are what a parser fills")
    return {each["name"]: each["default"] for each in document["fields"] if "default" in each}


def time_format(recipe: Recipe) -> TimeFormat | None:
    """Returns the format of event times; None if records have none."""
    if recipe.time_format is None:
        return None
    return TimeFormat(recipe.time_format, recipe.timezone)


def text_times(recipe: Recipe, *, is_padded: bool = False) -> TextTimes:
    """Returns where the texts of a line have its event time."""
    is_kept = recipe.time_on_error == "read_time"
    return TextTimes(recipe.time_fields, time_format(recipe), is_kept, is_padded=is_padded)

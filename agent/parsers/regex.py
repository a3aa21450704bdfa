"""The parser `regex`, and JSON objects after a prefix that a regular expression matches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from skidway.agent.parsers.json import JSON
from skidway.agent.parsers.kind import Fields, ParserKind
from skidway.agent.recipe import Recipe
from skidway.errors import ConfigurationRefused

if TYPE_CHECKING:
    import pyarrow as pa

    from skidway.agent.parsers.settings import ParserSettings
    from skidway.agent.parsing.parser import Parser
    from skidway.agent.parsing.regex import RegexParser


class Pattern(ParserKind):
    """A parser whose setting `pattern` is, or stands for, a regular expression."""

    settings = frozenset({"pattern", "types", "json_field"})

    def check(self, parser: ParserSettings) -> None:
        if parser.pattern is None:
            raise ConfigurationRefused(f"parser.pattern is missing: a {self.name} parser needs one")

    def fields(self, parser: ParserSettings, times: Sequence[str]) -> Fields:
        return Fields(self.fixed_fields(parser))

    def fixed_fields(self, parser: ParserSettings) -> list[str]:
        from skidway.agent.parsing.regex import groups_of

        return groups_of(parser.pattern or "")

    def separators(self, recipe: Recipe) -> str:
        from skidway.agent.parsing import separators

        return separators.separators(recipe.pattern or "")

    def parser(self, recipe: Recipe, schema: pa.Schema) -> Parser:
        _check_groups(recipe)
        return _groups(recipe, schema, recipe.pattern or "")


class Regex(Pattern):
    """Named groups of a regular expression are fields."""

    name = "regex"
    help = "named groups"

    def proposals(self, lines: Sequence[str]) -> list[tuple[str, dict[str, Any]]]:
        from skidway.agent.unknown_logs.prefixed_json import proposed

        return proposed(lines)


class PrefixedJson(Pattern):
    """What a parser with a pattern is if it has the setting `json_field`."""

    name = "regex"
    help = "groups, one of which is a JSON object"
    fills_by_name = True
    leaves_out = JSON.leaves_out
    uses_python = True
    escapes = JSON.escapes

    def fields(self, parser: ParserSettings, times: Sequence[str]) -> Fields:
        groups = self.fixed_fields(parser)
        members = [name for name in parser.types if name not in groups]
        return Fields([*groups, *members], members, True, {*times} <= {*groups})

    def fixed_fields(self, parser: ParserSettings) -> list[str]:
        from skidway.agent.parsing.prefixed_json import prefix_groups

        return prefix_groups(parser.pattern or "", parser.json_field or "")

    def parser(self, recipe: Recipe, schema: pa.Schema) -> Parser:
        """Returns a parser that consists of two, one for the prefix and one for the object; each of
        them fills its own fields."""
        from skidway.agent.parsing.prefixed_json import PrefixedJsonParser

        _check_groups(recipe)
        group = recipe.json_field or ""
        has_time, prefix, members = _divided(recipe, schema, group)
        timeless = replace(recipe, time_fields=(), time_format=None, time_on_error="reject")
        return PrefixedJsonParser(
            _groups(recipe if has_time else timeless, prefix, recipe.pattern or ""),
            JSON.parser(timeless if has_time else recipe, members),
            group,
            prefix_has_time=has_time,
        )


REGEX = Regex()
PREFIXED_JSON = PrefixedJson()


def _check_groups(recipe: Recipe) -> None:
    from skidway.agent.parsing.regex import groups_of
    from skidway.agent.parsing.replacing import check_groups

    if recipe.on_error == "replace":
        check_groups(groups_of(recipe.pattern or ""))


def _groups(recipe: Recipe, schema: pa.Schema, pattern: str) -> RegexParser:
    from skidway.agent.parsers.building import defaults, time_format
    from skidway.agent.parsing.regex import RegexParser

    return RegexParser(
        pattern,
        schema,
        frozenset(defaults(recipe)),
        recipe.time_fields,
        time_format(recipe),
        is_multiline=recipe.multiline is not None,
        keeps_unreadable=recipe.time_on_error == "read_time",
    )


def _divided(recipe: Recipe, schema: pa.Schema, group: str) -> tuple[bool, pa.Schema, pa.Schema]:
    """Returns whether the prefix has the event time, the fields of the prefix, with one for the
    object's text, and those of the object."""
    import pyarrow as pa

    from skidway.agent.parsing.parser import TIME_MARK
    from skidway.agent.parsing.prefixed_json import prefix_groups
    from skidway.agent.parsing.text_fields import time_field

    groups = prefix_groups(recipe.pattern or "", group)
    times = [name in groups for name in recipe.time_fields]
    if any(times) and not all(times):
        raise ConfigurationRefused(
            "timestamp.fields: take all of them from groups of parser.pattern, or all of them from "
            "members of the JSON object"
        )
    names = set(groups)
    if any(times):
        of_time = time_field(schema, groups)
        names |= {TIME_MARK} | ({of_time.name} if of_time is not None else set())
    prefix = pa.schema([*(field for field in schema if field.name in names), (group, pa.string())])
    members = pa.schema([field for field in schema if field.name not in names])
    return any(times), prefix, members

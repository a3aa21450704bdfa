"""Builds a recipe's framer, which divides bytes into records, and the recipe's parser, which turns
records into columns.

Some functions import the module of a parser or framer only when they are called, so that an agent
loads only those modules that its sources need.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa

from skidway.agent.batches.recipe import STRIP, Recipe, of_source
from skidway.agent.batches.row_cost import lines_max
from skidway.agent.parsing import replayed
from skidway.agent.parsing.added_fields import AddedFields
from skidway.agent.parsing.aliases import aliases_of
from skidway.agent.parsing.blank_lines import BlankLinesParser
from skidway.agent.parsing.coloured_lines import ColouredLinesParser
from skidway.agent.parsing.containers import ContainerParser, without_fields
from skidway.agent.parsing.framing import Framer, LineFramer
from skidway.agent.parsing.json_lines import JsonParser
from skidway.agent.parsing.lines import UTF_8
from skidway.agent.parsing.parser import TIME_MARK, Parser
from skidway.agent.parsing.prefixed_json import PrefixedJsonParser, prefix_groups
from skidway.agent.parsing.raw import RawParser
from skidway.agent.parsing.regex import RegexParser, groups_of
from skidway.agent.parsing.replacing import (
    DecodingParser,
    ReplacingParser,
    check_groups,
    without_mark,
)
from skidway.agent.parsing.text_fields import TextFields, TextTimes, time_field
from skidway.agent.parsing.timestamps import TimeFormat
from skidway.agent.shaping.grammar import parse
from skidway.agent.shaping.shaped_schemas import removed_names
from skidway.agent.values.terminals import Escapes
from skidway.errors import ConfigurationRefused
from skidway.schemas.codec import Codec


def framer_of(recipe: Recipe) -> Framer:
    """Returns the recipe's framer, which divides bytes into records. Raises
    ConfigurationRefused."""
    most = lines_max(recipe)
    if recipe.is_replay:
        return LineFramer(UTF_8, most)  # each line of a replay's file contains a whole record
    if recipe.multiline is None and recipe.container is None:
        return LineFramer(recipe.encoding, most)
    has_colours = recipe.colours == STRIP
    if recipe.container is not None:
        from skidway.agent.parsing.streams import StreamsFramer

        return StreamsFramer(
            recipe.multiline, recipe.line_bytes, recipe.container, most, has_colours=has_colours
        )
    assert recipe.multiline is not None
    from skidway.agent.parsing.multiline import JoiningFramer

    return JoiningFramer(
        recipe.multiline, recipe.line_bytes, recipe.encoding, most, has_colours=has_colours
    )


def build_parser(recipe: Recipe, codec: Codec) -> Parser:
    """Returns the recipe's parser, which fills all fields of the schema except those that the
    result of `added_fields` adds. Raises ConfigurationRefused if the parser does not fit the
    schema.
    """
    try:
        schema = _schema_of_parser(recipe, codec)
        if not recipe.is_replay:
            return _unwrapping(recipe, schema)
        inner = _unwrapping(recipe, replayed.without_fields(schema))
        added = added_fields(recipe, codec)
        return replayed.ReplayParser(inner, schema, added, recipe.encoding)
    except ConfigurationRefused as error:
        raise of_source(recipe, error) from error


def _schema_of_parser(recipe: Recipe, codec: Codec) -> pa.Schema:
    schema, added = codec.arrow_schema, added_fields(recipe, codec).names
    for name in added:
        schema = schema.remove(schema.get_field_index(name))
    if added and not len(schema):
        raise ConfigurationRefused("path.pattern, fields and labels leave no field to the parser")
    groups = recipe.columns if recipe.pattern is None else groups_of(recipe.pattern)
    both = sorted(set(groups) & set(added))
    if both:
        raise ConfigurationRefused(
            f"the parser and one of path.pattern, fields and labels both fill the field {both[0]!r}"
        )
    return schema


def added_fields(recipe: Recipe, codec: Codec) -> AddedFields:
    """Returns the object that adds the fields whose values come from `path.pattern`, `fields` and
    `labels`, and not from a record's bytes. Raises ConfigurationRefused.
    """
    try:
        return AddedFields(recipe.path_patterns, recipe.fields, codec.arrow_schema, recipe.labels)
    except ConfigurationRefused as error:
        raise of_source(recipe, error) from error


def _unwrapping(recipe: Recipe, schema: pa.Schema) -> Parser:
    if recipe.container is None:
        return _decoding(recipe, schema)
    # A container runtime may divide a line inside a character. So ContainerParser joins the parts
    # of a line before it decodes the line.
    return ContainerParser(recipe.container, _decoding(recipe, without_fields(schema)), schema)


def _decoding(recipe: Recipe, schema: pa.Schema) -> Parser:
    if recipe.on_error == "replace":
        return ReplacingParser(_cleaning(recipe, without_mark(schema)), recipe.encoding)
    parser = _cleaning(recipe, schema)
    return parser if recipe.encoding == UTF_8 else DecodingParser(parser, recipe.encoding)


def _cleaning(recipe: Recipe, schema: pa.Schema) -> Parser:
    parser = _BUILDERS[recipe.parser](recipe, schema)
    apart = recipe.delimiter if recipe.parser == "csv" else ""
    if recipe.leaves_out_blank_lines:
        parser = BlankLinesParser(parser, apart)
    if recipe.colours == STRIP:
        parser = ColouredLinesParser(parser, _escapes(recipe), apart)
    return parser


def _escapes(recipe: Recipe) -> Escapes:
    if recipe.parser == "json" or recipe.json_field is not None:
        return "json"
    return "logfmt" if recipe.parser == "logfmt" else ""


def _time_format(recipe: Recipe) -> TimeFormat | None:
    if recipe.time_format is None:
        return None
    return TimeFormat(recipe.time_format, recipe.timezone)


def _defaults(recipe: Recipe) -> dict[str, Any]:
    document = json.loads(recipe.schema.text)
    if type(document) is not dict or "fields" not in document:
        raise ConfigurationRefused("the schema is no record; its fields are what a parser fills")
    return {each["name"]: each["default"] for each in document["fields"] if "default" in each}


def _raw(recipe: Recipe, schema: pa.Schema) -> Parser:
    return RawParser(schema, frozenset(_defaults(recipe)))


def _regex(recipe: Recipe, schema: pa.Schema) -> Parser:
    assert recipe.pattern is not None
    if recipe.on_error == "replace":
        check_groups(groups_of(recipe.pattern))
    if recipe.json_field is not None:
        return _prefixed_json(recipe, schema, recipe.pattern, recipe.json_field)
    return _groups(recipe, schema, recipe.pattern)


def _prefixed_json(recipe: Recipe, schema: pa.Schema, pattern: str, group: str) -> Parser:
    """Returns the parser for JSON objects after a prefix. This parser consists of two parsers, one
    for the prefix and one for the object; each of them fills its own fields.
    """
    groups = prefix_groups(pattern, group)
    times = [name in groups for name in recipe.time_fields]
    if any(times) and not all(times):
        raise ConfigurationRefused(
            "timestamp.fields: take all of them from groups of parser.pattern, or all of them from "
            "members of the JSON object"
        )
    names = {name for name in groups if name != group}
    if any(times):
        of_time = time_field(schema, groups)
        names |= {TIME_MARK} | ({of_time.name} if of_time is not None else set())
    inner = pa.schema([field for field in schema if field.name not in names])
    outer = pa.schema([*(field for field in schema if field.name in names), (group, pa.string())])
    timeless = replace(recipe, time_fields=(), time_format=None, time_on_error="reject")
    prefix = _groups(recipe if any(times) else timeless, outer, pattern)
    members = _json(timeless if any(times) else recipe, inner)
    return PrefixedJsonParser(prefix, members, group, prefix_has_time=any(times))


def _groups(recipe: Recipe, schema: pa.Schema, pattern: str) -> RegexParser:
    return RegexParser(
        pattern,
        schema,
        frozenset(_defaults(recipe)),
        recipe.time_fields,
        _time_format(recipe),
        is_multiline=recipe.multiline is not None,
        keeps_unreadable=recipe.time_on_error == "read_time",
    )


def _json(recipe: Recipe, schema: pa.Schema) -> JsonParser:
    return JsonParser(
        schema,
        _defaults(recipe),
        recipe.time_fields,
        _time_format(recipe),
        keeps_unreadable=recipe.time_on_error == "read_time",
        aliases=aliases_of(json.loads(recipe.schema.text)),
        removed=removed_names(parse(recipe.shape)),
    )


def _csv(recipe: Recipe, schema: pa.Schema) -> Parser:
    from skidway.agent.parsing.csv_lines import CsvParser

    if recipe.on_error == "replace":
        check_groups(recipe.columns)
    times = TextTimes(
        recipe.time_fields, _time_format(recipe), recipe.time_on_error == "read_time",
        is_padded=True,
    )  # fmt: skip
    fields = TextFields(
        schema,
        recipe.columns,
        frozenset(_defaults(recipe)),
        times,
        source="column of parser.columns",
    )
    return CsvParser(recipe.columns, recipe.delimiter, fields, recipe.header)


def _logfmt(recipe: Recipe, schema: pa.Schema) -> Parser:
    from skidway.agent.parsing.logfmt import LogfmtParser

    times = TextTimes(recipe.time_fields, _time_format(recipe), recipe.time_on_error == "read_time")
    return LogfmtParser(
        schema,
        _defaults(recipe),
        times,
        aliases=aliases_of(json.loads(recipe.schema.text)),
        removed=removed_names(parse(recipe.shape)),
    )


_BUILDERS: dict[str, Callable[[Recipe, pa.Schema], Parser]] = {
    "raw": _raw,
    "regex": _regex,
    "json": _json,
    "csv": _csv,
    "logfmt": _logfmt,
}

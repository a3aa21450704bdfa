"""Builds a recipe's framer, which divides bytes into records, and the recipe's parser, which turns
records into columns.

Some functions import the module of a parser or framer only when they are called, so that an agent
loads only those modules that its sources need.
"""

from __future__ import annotations

import pyarrow as pa

from skidway.agent.batches.row_cost import lines_max
from skidway.agent.parsers import kind_of
from skidway.agent.parsing import replayed
from skidway.agent.parsing.added_fields import AddedFields
from skidway.agent.parsing.blank_lines import BlankLinesParser
from skidway.agent.parsing.coloured_lines import ColouredLinesParser
from skidway.agent.parsing.containers import ContainerParser, without_fields
from skidway.agent.parsing.framing import Framer, LineFramer
from skidway.agent.parsing.left_out import BLANK
from skidway.agent.parsing.lines import UTF_8
from skidway.agent.parsing.parser import Parser
from skidway.agent.parsing.regex import groups_of
from skidway.agent.parsing.replacing import DecodingParser, ReplacingParser, without_mark
from skidway.agent.recipe import STRIP, Recipe, of_source
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
    kind = kind_of(recipe.parser, recipe.json_field)
    parser = kind.parser(recipe, schema)
    apart = recipe.delimiter if kind.is_separated else ""
    if BLANK in kind.leaves_out:
        parser = BlankLinesParser(parser, apart)
    if recipe.colours == STRIP:
        parser = ColouredLinesParser(parser, kind.escapes, kind.separators(recipe))
    return parser

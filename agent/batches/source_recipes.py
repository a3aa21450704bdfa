"""Makes a source's recipe from its settings, and a schema for a source that names no schema."""

from __future__ import annotations

from dataclasses import replace

from skidway.agent.batches.program_versions import at_present
from skidway.agent.parsers import kind_of
from skidway.agent.parsing import derived
from skidway.agent.parsing.added_fields import path_groups
from skidway.agent.parsing.byte_order import UTF_16, UTF_16BE, UTF_16LE
from skidway.agent.recipe import KEEP, STRIP, Recipe, Schema, TopicSnapshot
from skidway.agent.settings import ReplaySource, SourceSettings
from skidway.agent.shaping.checking import check
from skidway.agent.shaping.grammar import parse
from skidway.agent.shaping.shaped_schemas import (
    changes_fields,
    shaped,
    unshaped,
    without_unused,
)
from skidway.schemas.codec import Codec


def recipe_of(
    source: SourceSettings,
    data: TopicSnapshot,
    rejected: TopicSnapshot,
    schema: Schema,
    rejected_schema: Schema,
    batch_bytes: int,
) -> Recipe:
    """Returns the recipe for bytes that are read from now on. With `encoding: utf-16`, this recipe
    is only for little-endian files; `big_endian` returns the recipe for big-endian files.
    """
    time, multiline = source.timestamp, source.multiline
    parsed_schema = _parsed_schema(source, schema.text)
    recipe = Recipe(
        program="",
        data=data,
        rejected=rejected,
        schema=schema,
        rejected_schema=rejected_schema,
        parser=source.parser.type,
        pattern=source.parser.pattern,
        time_fields=() if time is None else tuple(time.fields),
        time_format=None if time is None else time.format,
        timezone="UTC" if time is None else time.timezone,
        key=source.key,
        partitioning=source.partitioning or ("file" if source.key is None else "key"),
        line_bytes=source.max_line_bytes,
        batch_bytes=batch_bytes,
        encoding=UTF_16LE if source.encoding == UTF_16 else source.encoding,
        on_error=source.on_error,
        multiline=None if multiline is None else multiline.rule,
        container=source.container,
        path_patterns=source.path_patterns,
        fields=tuple(sorted(source.fields.items())),
        time_on_error="reject" if time is None else time.on_error,
        is_replay=isinstance(source, ReplaySource),
        columns=tuple(source.parser.columns) if source.parser.kind.is_separated else (),
        delimiter=source.parser.delimiter_character,
        header=source.parser.header,
        json_field=source.parser.json_field,
        shape=(source.shape or "") if parse(source.shape or "") else "",
        parsed_schema=parsed_schema,
        hash_key_location="" if source.hash_key_location is None else str(source.hash_key_location),
        labels=tuple(sorted(source.label_fields.items())),
        colours=source.colours or _usual_colours(source),
    )
    return at_present(recipe)


def _usual_colours(source: SourceSettings) -> str:
    """Whether codes for terminals are taken out of lines if the source does not say it. They stay
    in texts to which nothing else is done."""
    return STRIP if source.parser.kind.has_fields or parse(source.shape or "") else KEEP


def big_endian(source: SourceSettings, recipe: Recipe) -> Recipe | None:
    """Returns the recipe for those files of a source that begin with a big-endian byte order mark;
    None if the source's encoding is not `utf-16`.
    """
    return replace(recipe, encoding=UTF_16BE) if source.encoding == UTF_16 else None


def derived_schema(source: SourceSettings) -> str:
    """Returns the schema of a source that names no schema. Raises ConfigurationRefused if a pattern
    of the source, the pattern's groups, or the rules of `shape` cannot be used.
    """
    text, rules = _derived_before_rules(source), parse(source.shape or "")
    if not changes_fields(rules):
        return text
    check(source.shape or "", rules, Codec(text).arrow_schema)
    return shaped(text, rules)


def _parsed_schema(source: SourceSettings, text: str) -> str:
    """Returns the schema of the records before the rules are applied; empty if the rules do not
    change the fields. text: the schema of the records after the rules.
    """
    rules = parse(source.shape or "")
    if not changes_fields(rules):
        return ""
    if source.schema is None:
        return _derived_before_rules(source)
    before = unshaped(text, rules)
    kind = kind_of(source.parser.type, source.parser.json_field)
    if kind.fills_by_name:
        needed = {*path_groups(source.path_patterns), *source.fields, *source.label_fields}
        needed.update(kind.fixed_fields(source.parser))
        return without_unused(before, rules, text, needed)
    return before


def _derived_before_rules(source: SourceSettings) -> str:
    parser, time = source.parser, source.timestamp
    times = [] if time is None else time.fields
    fields = kind_of(parser.type, parser.json_field).fields(parser, times)
    return derived.schema(
        source.topic,
        fields.names,
        with_time=time is not None and fields.may_have_time,
        with_mark=source.on_error == "replace",
        with_time_mark=time is not None and time.on_error == "read_time",
        is_container=source.container is not None,
        added=[*path_groups(source.path_patterns), *source.fields, *source.label_fields],
        with_origin=source.replay,
        types=parser.types,
        optional=fields.optional,
        with_extra=fields.has_extra,
    )

"""A file's bytes and its recipe together decide which records the file becomes.

A recipe consists of settings, schemas, topics and versions of code. An intent names its recipe by
fingerprint; the state keeps the recipe as long as an intent needs it. So if the agent promised a
byte range yesterday, it sends the range again with yesterday's settings and yesterday's size limit,
to the partitions that the topic had yesterday.
"""

from __future__ import annotations

import hashlib
import json
import platform
import zoneinfo
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from skidway.agent.parsing import derived, replayed
from skidway.agent.parsing.added_fields import AddedFields, path_groups
from skidway.agent.parsing.byte_order import UTF_16, UTF_16BE, UTF_16LE
from skidway.agent.parsing.containers import DOCKER, ContainerParser, without_fields
from skidway.agent.parsing.csv_lines import CsvParser
from skidway.agent.parsing.framing import FRAMING_VERSION, Framer, LineFramer
from skidway.agent.parsing.json_lines import JsonParser, aliases_of
from skidway.agent.parsing.lines import UTF_8
from skidway.agent.parsing.logfmt import LogfmtParser
from skidway.agent.parsing.multiline import JoiningFramer, Rule
from skidway.agent.parsing.parser import EXTRA, TIME_MARK, Parser
from skidway.agent.parsing.prefixed_json import PrefixedJsonParser
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
from skidway.agent.settings import ParserSettings, ReplaySource, SourceSettings
from skidway.agent.shaping.checking import check
from skidway.agent.shaping.grammar import parse
from skidway.agent.shaping.pseudonyms import HashKey, read_key
from skidway.agent.shaping.rules import SHAPE_VERSION, Mask
from skidway.agent.shaping.rules import Rule as ShapeRule
from skidway.agent.shaping.shaped_schemas import (
    changes_fields,
    shaped,
    unshaped,
    without_unused,
)
from skidway.agent.values.intents import crc_of
from skidway.errors import ConfigurationRefused
from skidway.schemas.codec import Codec

PRESS_VERSION: Final = 1
"""Increase this version when a change to Skidway's own code changes the record (topic, partition,
key, time or value) that a line becomes under the same recipe.
tests/unit/agent/batches/test_recipe.py checks this with known lines and their records.
"""

_UTC: Final = ("UTC", "Z", "GMT")
_BY_NAME: Final = ("json", "logfmt")
"""The types of parsers that fill fields by the names that a line has."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A registered schema and its id."""

    id: int
    text: str


@dataclass(frozen=True, slots=True)
class TopicSnapshot:
    """A topic as it was when the intent was made. limit_bytes: its max.message.bytes."""

    name: str
    partitions: int
    limit_bytes: int


@dataclass(frozen=True, slots=True)
class Recipe:
    """Together with a file's bytes, a recipe decides which records the agent makes from them.

    shape: the text of the rules that shape records. parsed_schema: the schema of the records before
    these rules, if they change the fields; empty if it is the same as after the rules.
    """

    program: str
    data: TopicSnapshot
    rejected: TopicSnapshot
    schema: Schema
    rejected_schema: Schema
    parser: str
    pattern: str | None
    time_fields: tuple[str, ...]
    time_format: str | None
    timezone: str
    key: str | None
    partitioning: str
    line_bytes: int
    batch_bytes: int
    encoding: str = "utf-8"
    on_error: str = "reject"
    multiline: Rule | None = None
    container: str | None = None
    path_patterns: tuple[str, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()
    time_on_error: str = "reject"
    takes_extra: bool = False
    takes_aliases: bool = False
    is_replay: bool = False
    columns: tuple[str, ...] = ()
    delimiter: str = ","
    header: str | None = None
    json_field: str | None = None
    shape: str = ""
    parsed_schema: str = ""
    hash_key_location: str = ""

    @property
    def fills_by_name(self) -> bool:
        """Whether the parser fills fields by the names in the records."""
        return self.parser in _BY_NAME or self.json_field is not None

    def to_json(self) -> str:
        """Returns canonical JSON, so that equal recipes give equal text.

        The JSON omits each field that has its default value. Only fields that newer programs added
        have a default. So a recipe that an older program stored keeps its text and fingerprint.
        """
        content = asdict(self)
        for each in fields(self):
            if content[each.name] == each.default:
                del content[each.name]
        return json.dumps(content, sort_keys=True, separators=(",", ":"))

    @property
    def fingerprint(self) -> bytes:
        """SHA-256 of the canonical text."""
        return hashlib.sha256(self.to_json().encode()).digest()

    @property
    def topics(self) -> tuple[str, str]:
        """The topics to which lines of a file with this recipe can go."""
        return self.data.name, self.rejected.name


def from_json(text: str) -> Recipe:
    """The inverse of `Recipe.to_json`."""
    content: dict[str, Any] = json.loads(text)
    for name in ("data", "rejected"):
        content[name] = TopicSnapshot(**content[name])
    for name in ("schema", "rejected_schema"):
        content[name] = Schema(**content[name])
    content["time_fields"] = tuple(content["time_fields"])
    content["columns"] = tuple(content.get("columns", ()))
    if "multiline" in content:
        content["multiline"] = Rule(**content["multiline"])
    if "path_patterns" in content:
        content["path_patterns"] = tuple(content["path_patterns"])
    if "fields" in content:
        content["fields"] = tuple((name, text) for name, text in content["fields"])
    return Recipe(**content)


def program_version() -> str:
    """The version of Skidway's own code that makes records of lines (framing and pressing)."""
    return f"framing-{FRAMING_VERSION} press-{PRESS_VERSION}"


def program_of(recipe: Recipe) -> str:
    """The versions of all code that decides which record a line becomes. If an intent's recipe has
    other versions, the agent cannot make the intent's records again. Instead, it asks the brokers
    which of these records arrived.

    The following versions are left out, because they never change a record. The compression library
    and `compression.type` change only the bytes of a batch. NumPy computes only integers here
    (positions, times, hashes). The Avro libraries have only one encoding for each value. The blocks
    of arrays and maps are an exception, but schemas/codec/writing.py makes these blocks.
    google-crc32c computes one fixed polynomial. Skidway's own version is not needed, because
    framing and pressing have version numbers of their own.
    """
    names = [program_version()]
    rules = _rules_of(recipe)
    has_masks = any(isinstance(rule, Mask) for rule in rules)
    has_json = recipe.parser == "json" or recipe.json_field is not None or recipe.is_replay
    if has_json or recipe.container == DOCKER or recipe.encoding != UTF_8 or has_masks:
        # Python's tables say which characters the bytes of other encodings are. Its JSON decoder
        # decides which lines are JSON, and how long a number may be; patch releases have changed
        # this length. If a line is not JSON, its rejected record contains the decoder's error text.
        # Masks use Python's regular expressions and its tables of letters.
        names.append(f"python-{platform.python_version()}")
    has_patterns = recipe.multiline or recipe.container or recipe.path_patterns or rules
    if recipe.parser != "raw" or has_patterns:
        # pyarrow contains RE2 (regular expressions). It also converts text to numbers, booleans
        # and times.
        names.append(f"pyarrow-{_version('pyarrow')}")
    if recipe.time_format is not None and recipe.timezone.upper() not in _UTC:
        # The rules of time zones change without a new version of Python, because they are part of
        # the machine's installation.
        names.append(f"zone-{_zone_rules(recipe.timezone)}")
    if rules:
        names.append(f"shape-{SHAPE_VERSION}")
    if recipe.hash_key_location:
        # Another key makes other records, as another version of a library does.
        names.append(f"key-{_key_fingerprint(recipe.hash_key_location)}")
    return " ".join(names)


def at_present(recipe: Recipe) -> Recipe:
    """Returns the recipe with the versions of the program that runs now."""
    return replace(recipe, program=program_of(recipe))


def with_refusal(recipe: Recipe) -> Recipe:
    """Returns the recipe with a mark. If an intent has a marked recipe, the agent does not simply
    send it again after a crash, but first asks the brokers which records arrived (see
    `has_refusal`).
    """
    return replace(recipe, program=f"{recipe.program}{_REFUSED}")


def has_refusal(recipe: Recipe) -> bool:
    """Whether a broker refused a record of the recipe's intents, and may have accepted records that
    come after the refused record.
    """
    return recipe.program.endswith(_REFUSED)


_REFUSED = " refused"
_version = cache(version)


def _rules_of(recipe: Recipe) -> tuple[ShapeRule, ...]:
    """The recipe's rules; none if this program refuses their text. Then the names of versions lack
    that of the rules, so promises of the recipe are read back."""
    try:
        return parse(recipe.shape)
    except ConfigurationRefused:
        return ()


def key_of(recipe: Recipe) -> HashKey | None:
    """The key of the recipe's rules `hash`; None if it has no such rules. A process reads each file
    once, so that it never makes records with two keys. Raises ConfigurationRefused.
    """
    return _key(recipe.hash_key_location) if recipe.hash_key_location else None


@cache
def _key(path: str) -> HashKey:
    return read_key(Path(path))


def _key_fingerprint(path: str) -> str:
    try:
        return _key(path).fingerprint
    except ConfigurationRefused:
        return "unreadable"  # a press of this recipe cannot be made, and says why


@cache
def _zone_rules(name: str) -> str:
    """A text that identifies a time zone's rules. If the rules change, the text changes. A process
    makes the text only once, because Python loads a zone only once.
    """
    for folder in zoneinfo.TZPATH:
        try:
            return f"{crc_of((Path(folder) / name).read_bytes()):08x}"
        except OSError:
            continue
    return f"tzdata-{_version('tzdata')}"


def recipe_of(
    source: SourceSettings,
    data: TopicSnapshot,
    rejected: TopicSnapshot,
    schema: Schema,
    rejected_schema: Schema,
    batch_bytes: int,
) -> Recipe:
    """The recipe for bytes that are read from now on. With `encoding: utf-16`, it is the recipe for
    little-endian files.
    """
    time, multiline = source.timestamp, source.multiline
    has_names = _fills_by_name(source.parser)
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
        takes_extra=has_names and f'"{EXTRA}"' in schema.text,
        takes_aliases=has_names and '"aliases"' in schema.text,
        columns=tuple(source.parser.columns) if source.parser.type == "csv" else (),
        delimiter=source.parser.delimiter_character,
        header=source.parser.header,
        json_field=source.parser.json_field,
        shape=(source.shape or "") if parse(source.shape or "") else "",
        parsed_schema=_parsed_schema(source, schema.text),
        hash_key_location="" if source.hash_key_location is None else str(source.hash_key_location),
    )
    return at_present(recipe)


def big_endian(source: SourceSettings, recipe: Recipe) -> Recipe | None:
    """The recipe for those files of a source that begin with a big-endian byte order mark; None if
    the source does not ask for the mark.
    """
    return replace(recipe, encoding=UTF_16BE) if source.encoding == UTF_16 else None


def derived_schema(source: SourceSettings) -> str:
    """The schema of a source that names no schema. Raises ConfigurationRefused if a pattern of the
    source or its groups are refused.
    """
    text, rules = _derived_before_rules(source), parse(source.shape or "")
    if not changes_fields(rules):
        return text
    check(source.shape or "", rules, Codec(text).arrow_schema)
    return shaped(text, rules)


def _parsed_schema(source: SourceSettings, text: str) -> str:
    """The schema of the records before the rules, if it differs from `text`, the one after them."""
    rules = parse(source.shape or "")
    if not changes_fields(rules):
        return ""
    if source.schema is None:
        return _derived_before_rules(source)
    before = unshaped(text, rules)
    return without_unused(before, rules, text) if _fills_by_name(source.parser) else before


def _fills_by_name(parser: ParserSettings) -> bool:
    """Whether the parser fills fields by the names in the records, so that a record may have
    further ones."""
    return parser.type in _BY_NAME or parser.json_field is not None


def _derived_before_rules(source: SourceSettings) -> str:
    parser = source.parser  # not json, because the settings require a schema for json
    times = [] if source.timestamp is None else source.timestamp.fields
    optional: list[str] = []
    with_time = source.timestamp is not None
    if parser.type == "logfmt":
        groups = optional = list(dict.fromkeys([*parser.columns, *times]))
    elif parser.json_field is not None:
        groups = prefix_groups(parser.pattern or "", parser.json_field)
        optional = [name for name in parser.types if name not in groups]
        with_time = with_time and set(times) <= set(groups)
        groups = [*groups, *optional]
    else:
        pattern = parser.pattern
        groups = parser.columns or [derived.LINE_FIELD] if pattern is None else groups_of(pattern)
    return derived.schema(
        source.topic,
        groups,
        with_time=with_time,
        with_mark=source.on_error == "replace",
        with_time_mark=source.timestamp is not None and source.timestamp.on_error == "read_time",
        is_container=source.container is not None,
        added=[*path_groups(source.path_patterns), *source.fields],
        with_origin=source.replay,
        types=parser.types,
        optional=optional,
        with_extra=parser.type == "logfmt" or parser.json_field is not None,
    )


def framer_of(recipe: Recipe) -> Framer:
    """The recipe's framer. Raises ConfigurationRefused."""
    if recipe.is_replay:
        return LineFramer()  # one line of a replay has a whole record
    if recipe.multiline is None and recipe.container is None:
        return LineFramer(recipe.encoding)
    return JoiningFramer(recipe.multiline, recipe.line_bytes, recipe.container, recipe.encoding)


def build_parser(recipe: Recipe, codec: Codec) -> Parser:
    """The recipe's parser, which fills the fields of the schema except those of `added_fields`.
    Raises ConfigurationRefused if it does not fit the schema.
    """
    try:
        schema = _schema_of_parser(recipe, codec)
        if not recipe.is_replay:
            return _unwrapping(recipe, schema)
        inner = _unwrapping(recipe, replayed.without_fields(schema))
        return replayed.ReplayParser(inner, schema, added_fields(recipe, codec))
    except ConfigurationRefused as error:
        raise of_source(recipe, error) from error


def _schema_of_parser(recipe: Recipe, codec: Codec) -> pa.Schema:
    schema, added = codec.arrow_schema, added_fields(recipe, codec).names
    for name in added:
        schema = schema.remove(schema.get_field_index(name))
    if added and not len(schema):
        raise ConfigurationRefused("path.pattern and fields leave no field to the parser")
    groups = recipe.columns if recipe.pattern is None else groups_of(recipe.pattern)
    both = sorted(set(groups) & set(added))
    if both:
        raise ConfigurationRefused(
            f"the parser and path.pattern or fields both fill the field {both[0]!r}"
        )
    return schema


def added_fields(recipe: Recipe, codec: Codec) -> AddedFields:
    """What adds the fields that do not come from a record's bytes. Raises ConfigurationRefused."""
    try:
        return AddedFields(recipe.path_patterns, recipe.fields, codec.arrow_schema)
    except ConfigurationRefused as error:
        raise of_source(recipe, error) from error


def of_source(recipe: Recipe, error: ConfigurationRefused) -> ConfigurationRefused:
    """The error with the name of the source's topic before it."""
    which = f"source of topic {recipe.data.name}: "
    return ConfigurationRefused(which + str(error).removeprefix(which))


def _unwrapping(recipe: Recipe, schema: pa.Schema) -> Parser:
    if recipe.container is None:
        return _decoding(recipe, schema)
    # The texts are decoded after their parts are joined, because a runtime may divide characters.
    return ContainerParser(recipe.container, _decoding(recipe, without_fields(schema)), schema)


def _decoding(recipe: Recipe, schema: pa.Schema) -> Parser:
    build = _BUILDERS[recipe.parser]
    if recipe.on_error == "replace":
        return ReplacingParser(build(recipe, without_mark(schema)), recipe.encoding)
    parser = build(recipe, schema)
    return parser if recipe.encoding == UTF_8 else DecodingParser(parser, recipe.encoding)


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
    """The parsers of the prefix and of the object, each with the fields that it fills."""
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


def prefix_groups(pattern: str, json_field: str) -> list[str]:
    """The groups of a pattern without that of the JSON object. Raises ConfigurationRefused if the
    pattern has no such group.
    """
    groups = groups_of(pattern)
    if json_field not in groups:
        raise ConfigurationRefused(
            f"parser.json_field: {json_field!r} is no group of parser.pattern; it has "
            f"{', '.join(groups)}"
        )
    return [name for name in groups if name != json_field]


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
        takes_extra=recipe.takes_extra,
        aliases=aliases_of(json.loads(recipe.schema.text)) if recipe.takes_aliases else None,
    )


def _csv(recipe: Recipe, schema: pa.Schema) -> Parser:
    if recipe.on_error == "replace":
        check_groups(recipe.columns)
    times = TextTimes(recipe.time_fields, _time_format(recipe), recipe.time_on_error == "read_time")
    fields = TextFields(
        schema,
        recipe.columns,
        frozenset(_defaults(recipe)),
        times,
        source="column of parser.columns",
    )
    return CsvParser(recipe.columns, recipe.delimiter, fields, recipe.header)


def _logfmt(recipe: Recipe, schema: pa.Schema) -> Parser:
    times = TextTimes(recipe.time_fields, _time_format(recipe), recipe.time_on_error == "read_time")
    return LogfmtParser(
        schema,
        _defaults(recipe),
        times,
        takes_extra=recipe.takes_extra,
        aliases=aliases_of(json.loads(recipe.schema.text)) if recipe.takes_aliases else None,
    )


_BUILDERS: dict[str, Callable[[Recipe, pa.Schema], Parser]] = {
    "raw": _raw,
    "regex": _regex,
    "json": _json,
    "csv": _csv,
    "logfmt": _logfmt,
}

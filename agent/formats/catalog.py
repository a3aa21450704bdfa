"""Reads the formats of well-known logs, and puts a format in place of its name in a source."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from functools import cache
from typing import Any, Final, Literal

import yaml

from skidway.agent.layouts.layout import Layout
from skidway.agent.parsers.regex import REGEX
from skidway.agent.parsers.settings import ParserSettings
from skidway.agent.parsing.joins import beginning
from skidway.agent.settings import (
    AgentSettings,
    MultilineSettings,
    SourceSettings,
    TimestampSettings,
)
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused
from skidway.settings.document import yaml_text


@dataclass(frozen=True, slots=True)
class Format:
    """How the records of a log are parsed.

    what: a text that says which programs write such logs. type: of the parser. pattern: the regular
    expression of a record; None if the parser has columns instead. types: by field, the type of
    each field that is no string. time: the groups or columns that contain the event time, and the
    format of this time. on_error: what becomes of a record whose time cannot be read, as in the
    setting `timestamp`. start: the pattern of a record's first line, or None if each line is a
    record. sign: a field that many records have, without which `guess` does not take a log to be in
    this format; None if the lines that fit are sign enough. sample: records as the program writes
    them.
    """

    name: str
    what: str
    sample: str
    type: str = REGEX.name
    pattern: str | None = None
    columns: list[str] = field(default_factory=list)
    types: Mapping[str, str] = field(default_factory=dict)
    time: tuple[list[str], str] | None = None
    on_error: Literal["reject", "read_time"] = "reject"
    start: str | None = None
    sign: str | None = None

    def document(self) -> dict[str, Any]:
        """Returns the format as a JSON document. The time and the pattern of the first line have
        the form of a source's settings `timestamp` and `multiline`.
        """
        entry: dict[str, Any] = {"what": self.what}
        if self.pattern is not None:
            entry["pattern"] = self.pattern
        else:
            entry["parser"] = {"type": self.parser.type, "columns": self.parser.columns}
        if self.types:
            entry["types"] = dict(self.types)
        if self.time is not None:
            entry["timestamp"] = {"fields": self.time[0], "format": self.time[1]}
            if self.on_error != "reject":
                entry["timestamp"]["on_error"] = self.on_error
        if self.start is not None:
            entry["multiline"] = {"type": "start", "pattern": self.start}
        return {"format": self.name, **entry, "sample": self.sample}

    def text(self) -> str:
        """Returns this log format as YAML text, to show to people."""
        return yaml_text(self.document(), width=1000)

    @property
    def fields(self) -> list[str]:
        """The names of the fields that the parser finds in a record."""
        times = [] if self.time is None else self.time[0]
        return self.parser.kind.fields(self.parser, times).names

    @property
    def parser(self) -> ParserSettings:
        """The setting `parser` of a source that has this format."""
        return ParserSettings(
            type=self.type, pattern=self.pattern, columns=self.columns, types=dict(self.types)
        )

    @property
    def multiline(self) -> MultilineSettings | None:
        """The setting `multiline`, which says how lines are joined to records; None if each line is
        a record."""
        return joining(None, self.start)

    def timestamp(self, timezone: str) -> TimestampSettings | None:
        """Returns the setting `timestamp`; None if the format has no time. timezone: the zone of
        times that name no zone.
        """
        if self.time is None:
            return None
        fields, form = self.time
        return TimestampSettings(
            fields=fields, format=form, timezone=timezone, on_error=self.on_error
        )


def joining(own: MultilineSettings | None, start: str | None) -> MultilineSettings | None:
    """Returns the setting `multiline` of a source whose parser knows how records begin. own: the
    setting of the source itself; if it has no pattern, the parser knows better. start: the pattern
    of the first lines of records; None if the parser does not know it.
    """
    if start is None or (own is not None and own.pattern is not None):
        return own
    if own is None:
        return MultilineSettings(type="start", pattern=beginning(start))
    return replace(own, type="start", pattern=beginning(start))


@cache
def formats() -> dict[str, Format]:
    """Returns all formats by name, in the order of the catalog."""
    # imported only here, because the import takes 10 ms, and few sources name a format
    from importlib.resources import files

    text = files(__package__ or "").joinpath("catalog.yml").read_text()
    document: dict[str, dict[str, Any]] = yaml.safe_load(text)
    words: dict[str, str] = document.pop("words")
    return {name: _read(name, entry, words) for name, entry in document.items()}


def applied(settings: AgentSettings) -> AgentSettings:
    """Returns the settings after `of_source` has changed each source. Raises ConfigurationRefused
    as `of_source` does.
    """
    return replace(settings, sources=[of_source(each) for each in settings.sources])


def of_source(source: SourceSettings) -> SourceSettings:
    """Returns the source, with its format or conversion pattern replaced by the settings `parser`,
    `timestamp` and `multiline` for which the format or pattern stands. If the source itself sets
    `timestamp` or `multiline`, these settings stay. Raises ConfigurationRefused if the catalog does
    not have the format, or if lines written with the pattern cannot be parsed.
    """
    try:
        layout = source.parser.kind.layout(source.parser)
    except ConfigurationRefused as error:
        raise ConfigurationRefused(f"source of topic {source.topic}: {error}") from error
    if layout is not None:
        return _of_layout(source, layout)
    if source.format is None:
        return source
    found = formats().get(source.format)
    if found is None:
        raise ConfigurationRefused(
            f"source of topic {source.topic}: format: there is no {source.format!r}; "
            "`skidway agent formats` lists all"
        )
    return replace(
        source,
        parser=found.parser,
        timestamp=source.timestamp or found.timestamp(source.timezone or "UTC"),
        multiline=joining(source.multiline, found.start),
    )


def _of_layout(source: SourceSettings, layout: Layout) -> SourceSettings:
    """Returns the source with a regular expression in place of its conversion pattern."""
    types = layout.types | source.parser.types
    parser = replace(source.parser, type=REGEX.name, pattern=layout.pattern, types=types)
    timestamp = source.timestamp
    if timestamp is None and layout.time is not None:
        groups, form = layout.time
        zone = source.timezone or layout.zone or "UTC"
        timestamp = TimestampSettings(fields=list(groups), format=form, timezone=zone)
    return replace(
        source,
        parser=parser,
        timestamp=timestamp,
        timezone=None,
        multiline=joining(source.multiline, layout.start),
    )


def _read(name: str, entry: dict[str, Any], words: Mapping[str, str]) -> Format:
    time = entry.pop("time", None)
    if "pattern" in entry:
        entry["pattern"] = _spelled_out(entry["pattern"], words)
    return Format(name=name, time=None if time is None else (time[0], time[1]), **entry)


def _spelled_out(pattern: str, words: Mapping[str, str]) -> str:
    return _WORD.sub(lambda word: _spelled_out(words[word[1]], words), pattern)


_WORD: Final = re.compile(r"%\{([A-Z0-9_]+)\}")

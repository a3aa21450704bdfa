"""The types of parsers, by the names that `parser.type` has. Everything about a type is in its
module; what a type is says the module kind. The modules of this package import Arrow, and the
parsers themselves, only when a source uses them.

    kind      what a type of parser is
    settings  the settings of a parser
    building  what the parsers of several types take from a recipe
    raw, regex, json, logfmt, csv, log4j, python
              the types; regex also has JSON objects after a prefix
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from skidway.agent.parsers.csv import CSV
from skidway.agent.parsers.json import JSON
from skidway.agent.parsers.kind import ParserKind
from skidway.agent.parsers.log4j import LOG4J
from skidway.agent.parsers.logfmt import LOGFMT
from skidway.agent.parsers.python import PYTHON_LOGGING
from skidway.agent.parsers.raw import RAW
from skidway.agent.parsers.regex import PREFIXED_JSON, REGEX
from skidway.agent.shaping.unescaped import Escaping

if TYPE_CHECKING:
    from skidway.schemas.inference.formats import LineFormat

__all__ = ["BY_NAME", "ParserKind", "escapings", "kind_of", "line_formats", "register"]

_by_name: dict[str, ParserKind] = {}
BY_NAME: Final[Mapping[str, ParserKind]] = MappingProxyType(_by_name)


def register(kind: ParserKind) -> None:
    """Adds a type of parser to those that sources may have, and that `guess` and the inference of
    schemas know."""
    _by_name[kind.name] = kind


def kind_of(name: str, json_field: str | None) -> ParserKind:
    """Returns the type of a recipe's parser. name, json_field: of the recipe, or of a source whose
    layout has been replaced by a regular expression."""
    return BY_NAME[name] if json_field is None else PREFIXED_JSON


def escapings() -> set[Escaping]:
    """Returns how lines of the formats escape characters. A line of one format may be in a line of
    another one."""
    return {kind.escaping for kind in BY_NAME.values() if kind.escaping is not None}


def line_formats() -> list[LineFormat]:
    """Returns the formats that the inference of schemas knows (an entry point of this project)."""
    return [found for kind in BY_NAME.values() if (found := kind.line_format()) is not None]


for _each in (RAW, REGEX, JSON, LOGFMT, CSV, LOG4J, PYTHON_LOGGING):
    register(_each)

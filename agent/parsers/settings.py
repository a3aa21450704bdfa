"""The settings of a parser."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import fields
from typing import Final

from skidway.agent.parsers import BY_NAME, ParserKind
from skidway.agent.parsers.raw import RAW
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused
from skidway.settings import setting

GROUP_TYPES: Final = ("int", "long", "float", "double", "boolean", "string")
NAMES_MAX: Final = 1_000
"""The settings of a source name at most this many fields, and as many patterns of paths."""
PATTERN_CHARACTERS_MAX: Final = 8_192


@dataclass(frozen=True, slots=True, kw_only=True)
class ParserSettings:
    """The settings that say how a line becomes fields."""

    type: str = setting(
        "type",
        RAW.name,
        choices=tuple(BY_NAME),
        help="; ".join(f"{each.name}: {each.help}" for each in BY_NAME.values()) + ".",
    )
    pattern: str | None = setting(
        "pattern",
        None,
        help="For regex: RE2 for the whole record, with named groups. For log4j: the conversion "
        "pattern of log4j or Logback. For python: the format of Python's logging.",
        at_most=PATTERN_CHARACTERS_MAX,
    )
    date_format: str | None = setting(
        "date_format",
        None,
        help="For python: datefmt, the format of %(asctime)s; Python's default if not set.",
        at_most=PATTERN_CHARACTERS_MAX,
    )
    types: dict[str, str] = setting(
        "types",
        {},
        help="If schema is not set: the groups or columns that are int, long, float, double or "
        "boolean; an empty value becomes null. All other fields are strings. With json_field: "
        "also the members that become fields; the map _extra takes the other members.",
        at_most=NAMES_MAX,
    )
    columns: list[str] = setting(
        "columns",
        [],
        help="For csv: the names of a line's values, in order. For logfmt, if schema is not set: "
        "the keys that become fields; the map _extra takes the other keys.",
        at_most=NAMES_MAX,
    )
    delimiter: str = setting(
        "delimiter", ",", help="For csv: the one character between two values, or tab."
    )
    header: str | None = setting(
        "header",
        None,
        help="For csv: the text of header lines, which are left out and counted as filtered; if "
        "not set, a header is a line that consists of the names in columns.",
    )
    json_field: str | None = setting(
        "json_field",
        None,
        help="For regex, log4j and python: the group whose text is a JSON object; the object's "
        "members are fields.",
    )

    @property
    def delimiter_character(self) -> str:
        """The character between two values of a csv parser."""
        return "\t" if self.delimiter in ("tab", "\\t") else self.delimiter

    @property
    def kind(self) -> ParserKind:
        """The type of the parser."""
        return BY_NAME[self.type]

    def check(self) -> None:
        """Refuses the parser if settings that its type needs are missing, if it has settings of
        other types, or if a setting is not valid."""
        self._check_owners()
        self._check_columns()
        self.kind.check(self)
        for name, kind in self.types.items():
            if kind not in GROUP_TYPES:
                raise ConfigurationRefused(
                    f"parser.types: {name}: {kind!r} is none of {', '.join(GROUP_TYPES)}"
                )

    def _check_owners(self) -> None:
        for each in fields(self):
            is_set = getattr(self, each.name) != getattr(_DEFAULTS, each.name)
            if is_set and each.name != "type" and each.name not in self.kind.settings:
                owners = [x.name for x in BY_NAME.values() if each.name in x.settings]
                raise ConfigurationRefused(
                    f"parser.{each.name} does not belong to a parser of type {self.type}; it "
                    f"belongs to a parser of type {' or '.join(owners)}"
                )

    def _check_columns(self) -> None:
        for name in self.columns:
            check_field_name("parser.columns", name)
        twice = next((name for name, n in Counter(self.columns).items() if n > 1), None)
        if twice is not None:
            raise ConfigurationRefused(f"parser.columns has {twice!r} twice")


def check_field_name(key: str, name: str) -> None:
    """Raises ConfigurationRefused if no field can have this name. key: the setting that has it."""
    if not _NAME.fullmatch(name):
        raise ConfigurationRefused(
            f"{key}: {name!r} is no name of a field; it takes a-z A-Z 0-9 _, and no digit at the "
            "beginning"
        )


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DEFAULTS = ParserSettings()

"""What the compilers of conversion patterns have in common: pieces of a regular expression, groups,
and refusals with a mark under the place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NoReturn

from skidway.errors import ConfigurationRefused


@dataclass(frozen=True, slots=True)
class Layout:
    """A compiled pattern. pattern: RE2 for a record. types: groups that are no strings. time: the
    groups of the event time and their format; None if the pattern has none. zone: that of the
    times, if the pattern names one.
    """

    pattern: str
    types: dict[str, str]
    time: tuple[tuple[str, ...], str] | None = None
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a regular expression. at: its place in the pattern. name: of the directive. kind:
    `text` ends where the next literal begins; `literal`, `fixed`, `trace` and `newline` do not
    need one; `optional` may be missing; `mark` stands for nothing that is read.
    """

    at: int
    name: str
    regex: str
    kind: str


@dataclass(slots=True)
class Groups:
    """The groups of a pattern so far. text: the pattern."""

    text: str
    names: list[str] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)

    def named(self, name: str, regex: str, kind: str = "string") -> str:
        """A group. If a name is there already, the new one gets a number."""
        name = re.sub(r"\W", "_", name, flags=re.ASCII)
        name = f"_{name}" if name[:1].isdigit() else name
        number, group = 1, name
        while group in self.names:
            number += 1
            group = f"{name}_{number}"
        self.names.append(group)
        if kind != "string":
            self.types[group] = kind
        return f"(?P<{group}>{regex})"

    def refuse(self, at: int, why: str) -> NoReturn:
        """Raises ConfigurationRefused, with a mark under a place of the pattern."""
        self.refuse_setting("pattern", why, self.text, at)

    def refuse_setting(self, setting: str, why: str, text: str, at: int) -> NoReturn:
        """Raises ConfigurationRefused, with a mark under a place of a setting's text."""
        raise ConfigurationRefused(f"parser.{setting}: {why}\n    {text}\n    {' ' * at}^")


def check_order(groups: Groups, pieces: Sequence[Piece]) -> None:
    """Raises ConfigurationRefused if a text is followed by something else than a literal."""
    read = [piece for piece in pieces if piece.kind not in ("mark", "trace", "newline")]
    for piece, following in pairwise(read):
        if piece.kind == "text" and following.kind not in ("literal", "optional"):
            groups.refuse(
                following.at,
                f"there must be some text between {piece.name} and {following.name}, so that the "
                f"end of {piece.name} can be found",
            )

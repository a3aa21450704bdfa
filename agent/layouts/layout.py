"""What the compilers of log4j's patterns and of Python's formats have in common: the pieces and
groups of a regular expression, and errors that point at the refused part of the pattern.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final, NoReturn

from skidway.errors import ConfigurationRefused

TEXT: Final = ".*?"
WORD: Final = r"\S*?"

_SOME_WORD: Final = r"\S+?"
_BLANKS: Final = " *"
_FEW_BLANKS: Final = " *?"
_BEGINS_LATER: Final = "(?:[^ ].*?)??"
_GROUPS_MAX: Final = 100
_REPEATS_MAX: Final = 1000
"""The largest count that RE2 accepts in a repetition, such as `{0,1000}`."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A compiled pattern. pattern: a regular expression (RE2) for a record. types: the types of the
    groups that are no strings. time: the groups that contain the event time, and its format; None
    if the pattern has no event time. zone: the time zone that the pattern names; None if it names
    none. start: a pattern of the first lines of records; None if other lines may look like these.
    """

    pattern: str
    types: dict[str, str]
    time: tuple[tuple[str, ...], str] | None = None
    zone: str | None = None
    start: str | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the regular expression into which a conversion pattern is compiled. at: the index,
    in the conversion pattern, of the directive or literal text from which the piece was made. name:
    the directive's name. kind: a piece of kind `text` ends where the next literal text begins, so
    only a `literal` or `optional` piece may follow it; pieces of the kinds `literal`, `fixed`,
    `trace` and `newline` need no literal text after them. The text of an `optional` piece may be
    missing in a record. A piece of kind `mark` matches the escape codes of a color, or blanks, and
    becomes no group.
    """

    at: int
    name: str
    regex: str
    kind: str


@dataclass(slots=True)
class Groups:
    """Owns the groups of the regular expression into which a conversion pattern is being compiled.
    text: the conversion pattern."""

    text: str
    names: list[str] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)

    def named(self, name: str, regex: str, kind: str = "string") -> str:
        """Adds a group, and returns its regular expression. If another group already has this name,
        appends a number to the new group's name.
        """
        name = re.sub(r"\W", "_", name, flags=re.ASCII)
        name = f"_{name}" if name[:1].isdigit() else name
        if len(self.names) == _GROUPS_MAX:
            self.refuse(0, f"the pattern has more than {_GROUPS_MAX} directives")
        number, group = 1, name
        while group in self.names:
            number += 1
            group = f"{name}_{number}"
        self.names.append(group)
        if kind != "string":
            self.types[group] = kind
        return f"(?P<{group}>{regex})"

    def refuse(self, at: int, why: str) -> NoReturn:
        """Raises ConfigurationRefused. The error points at the character `at` of the pattern."""
        self.refuse_setting("pattern", why, self.text, at)

    def refuse_setting(self, setting: str, why: str, text: str, at: int) -> NoReturn:
        """Raises ConfigurationRefused. The error points at the character `at` of the setting's
        text."""
        raise ConfigurationRefused(f"parser.{setting}: {why}\n    {text}\n    {' ' * at}^")


def check_order(groups: Groups, pieces: Sequence[Piece]) -> None:
    """Raises ConfigurationRefused if a piece (a part of the regular expression) of kind `text` is
    followed by a piece that is neither literal text nor optional. Then the end of the text could
    not be found.
    """
    read = [piece for piece in pieces if piece.kind not in ("mark", "trace", "newline")]
    for piece, following in pairwise(read):
        if piece.kind == "text" and following.kind not in ("literal", "optional"):
            groups.refuse(
                following.at,
                f"there must be some text between {piece.name} and {following.name}, so that the "
                f"end of {piece.name} can be found",
            )


def padded(piece: Piece, width: int, *, is_left: bool) -> list[Piece]:
    """Returns two pieces of the regular expression: the given one, and one for the blanks that are
    added if the directive's text is shorter than its least width. is_left: whether the text comes
    first, and the blanks after it.
    """
    if is_left:
        return [piece, Piece(piece.at, "", _BLANKS, "mark")]
    blanks = _BLANKS
    if piece.regex.endswith(f"{TEXT})") and width <= _REPEATS_MAX:
        # At most `width` blanks are padding. If the text is empty, a blank that follows in the
        # pattern must not be taken for padding.
        blanks = f" {{0,{width}}}"
    return [Piece(piece.at, "", blanks, "mark"), piece]


def settled(pieces: Sequence[Piece]) -> list[Piece]:
    """Returns the pieces, changed so that the blanks that pad a text never become a part of the
    next text.

    Without this change, the pattern `%-5p %X{id} %c - %m` could read `INFO  Cart - a - b` in two
    ways: with the id `Cart -`, or with an empty id. So after such blanks, a text that may be empty
    does not begin with a blank, and a word between two blanks is not empty.
    """
    found: list[Piece] = []
    is_behind = False
    for index, piece in enumerate(pieces):
        if piece.regex == _BLANKS and _text_follows(pieces[index + 1 :]):
            piece, is_behind = replace(piece, regex=_FEW_BLANKS), True
        elif is_behind and TEXT in piece.regex and piece.kind == "text":
            piece = replace(piece, regex=piece.regex.replace(TEXT, _BEGINS_LATER))
        elif is_behind and WORD in piece.regex:
            if _is_between_blanks(pieces[index + 1 :]):
                piece = replace(piece, regex=piece.regex.replace(WORD, _SOME_WORD))
            is_behind = False
        elif piece.kind not in ("mark", "optional") and not piece.regex.endswith("??"):
            is_behind = is_behind and piece.name == " "
        found.append(piece)
    return found


def start_of(
    pieces: Sequence[Piece], messages: Collection[str], dates: Collection[str]
) -> str | None:
    """Returns a pattern of the first lines of records: their beginning up to the date or, without a
    date, up to the message. A beginning of words and blanks only could also be that of a line of a
    stack trace; then returns None. messages, dates: the names of such directives.
    """
    found: list[Piece] = []
    for piece in pieces:
        if piece.name in messages or piece.kind in ("newline", "trace", "optional"):
            break
        found.append(piece)
        if piece.name in dates:
            break
    is_sure = any(
        piece.name in dates or (piece.kind == "literal" and piece.name.strip()) for piece in found
    )
    return "^" + "".join(piece.regex for piece in found) if is_sure else None


def _text_follows(pieces: Sequence[Piece]) -> bool:
    """Leaves out the pieces (parts of the regular expression) that stand for blanks. Returns
    whether the first of the other pieces is a text that may be empty, and whether at least one more
    piece follows this text.
    """
    read = [piece for piece in pieces if piece.kind != "mark" and piece.name != " "]
    return len(read) > 1 and read[0].kind == "text" and TEXT in read[0].regex


def _is_between_blanks(pieces: Sequence[Piece]) -> bool:
    """Whether a directive follows, with nothing but blanks before it. pieces: the pieces of the
    regular expression that follow."""
    read = [piece for piece in pieces if piece.kind != "mark" and piece.name != " "]
    return bool(read) and read[0].kind != "literal"

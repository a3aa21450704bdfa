"""Cuts a line of `shape` into words, and says where in the text something is wrong."""

from __future__ import annotations

import re
from typing import Final

from skidway.agent.shaping.rules import Place
from skidway.dataclass import dataclass
from skidway.errors import ConfigurationRefused

NAME, QUOTED_NAME, TEXT, NUMBER, SIGN, LABEL, END = (
    "name", "quoted", "text", "number", "sign", "label", "end",
)  # fmt: skip

_LINE_CHARACTERS_MAX: Final = 100
_WORD = re.compile(
    r"""(?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | `(?P<quoted>[A-Za-z_][A-Za-z0-9_]*)`
      | "(?P<text>(?:[^"\\]|\\.)*)"
      | (?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
      | (?P<sign><=|>=|!=|[=<>(),/*])""",
    re.VERBOSE,
)
_LABEL = re.compile(r"(?P<label>[\w.-]+)")
_HALF = re.compile("[\ud800-\udfff]")
_ESCAPED = re.compile(r'\\(["\\])')


class ShapeRefused(ConfigurationRefused):
    """Raised for rules that cannot be used. The message says in which line and column the error
    is."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a line. kind: NAME, QUOTED_NAME (a field's name in backticks), TEXT, NUMBER, SIGN,
    LABEL (a rule's name, after `as`) or END. text: the word as it is written, but without
    backticks; for a word of kind TEXT its value, without quotes and escapes.
    """

    kind: str
    text: str
    place: Place


def refusal(lines: list[str], place: Place, reason: str) -> ShapeRefused:
    """Returns the error for a place in the text: a sentence, the line, and a caret below the
    place."""
    line = lines[place.line - 1].replace("\t", " ")
    begin = max(place.column - 1 - _LINE_CHARACTERS_MAX // 2, 0)
    shown = line[begin : begin + _LINE_CHARACTERS_MAX]
    caret = " " * (place.column - 1 - begin) + "^"
    where = f"shape, line {place.line}, column {place.column}"
    return ShapeRefused(f"{where}: {reason}\n    {shown}\n    {caret}")


def words_of(lines: list[str], number: int) -> list[Word]:
    """Returns the words of a line without its comment, and then the word END. number: the line's
    number, from 1. Raises ShapeRefused if a part of the line is no word.
    """
    line = lines[number - 1]
    if not line.isascii() and (half := _HALF.search(line)):
        said = f"line {number}, column {half.start() + 1}: half of a surrogate pair"
        raise ShapeRefused(f"shape, {said} is no character")
    words: list[Word] = []
    at = 0
    while True:
        at += len(line[at:]) - len(line[at:].lstrip())
        place = Place(number, at + 1)
        if at == len(line) or line[at] == "#":
            return [*words, Word(END, "", place)]
        is_label = bool(words) and (words[-1].kind, words[-1].text) == (NAME, "as")
        found = (_LABEL.match(line, at) if is_label else None) or _WORD.match(line, at)
        if found is None:
            raise refusal(lines, place, _reason(line[at]))
        kind = str(found.lastgroup)
        text = found[kind]
        words.append(Word(kind, _ESCAPED.sub(r"\1", text) if kind == TEXT else text, place))
        at = found.end()


def _reason(character: str) -> str:
    if character == '"':
        return 'this text has no end: write " after it'
    if character == "'":
        return 'a text must be in double quotes, such as "DEBUG"'
    if character == "`":
        return "a field's name between backticks has letters, digits and _, such as `in`"
    return f"{character!r} has no meaning here"

r"""Compiles conversion patterns of log4j 1 and 2 and of Logback to the settings of a regex parser.

    %d{yyyy-MM-dd HH:mm:ss,SSS} [%t] %-5p %c{1} - %m%n
    (?P<time>\d{4}-...) \[(?P<thread>.*?)\] (?P<level>\w+?) * (?P<logger>\S*?) - (?P<message>.*)

Each directive becomes a group; the module `directives` has the groups' names. Colors and
parentheses only enclose other directives, and become no groups. If a directive may write any text,
the text ends where the pattern's next literal text begins. So two such directives need literal text
between them. The message takes the rest of the record, so a stack trace is a part of the message. A
pattern is refused if nobody can find, in the lines that it writes, where the text of each directive
begins and ends. The error message points at the refused part of the pattern.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from skidway.agent.layouts import java_dates
from skidway.agent.layouts.directives import (
    BRACKETED,
    CHOSEN,
    COLORS,
    DATES,
    DIGITS,
    DIRECTIVES,
    KNOWN,
    MAPS,
    NEWLINES,
    OPTIONAL,
    TRACES,
    UNBRACKETED,
    VARIABLES,
)
from skidway.agent.layouts.java_dates import DateRefused, escaped
from skidway.agent.layouts.layout import (
    TEXT,
    Groups,
    Layout,
    Piece,
    check_order,
    padded,
    settled,
    start_of,
)
from skidway.agent.values.terminals import COLOUR

_DEPTH_MAX: Final = 50
_MESSAGES: Final = ("m", "msg", "message")
_DIRECTIVE: Final = re.compile(r"%(?P<left>-?)0?(?P<width>\d{0,4})(?:\.-?\d+)?(?P<name>[A-Za-z]*)")
_LOGBACK_ZONE: Final = re.compile(r"""^"?(.*?)"?,\s*([A-Z][A-Za-z_]+(?:[/+-][\w/+:-]*)?)$""")
_BALANCED: Final = r"[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*"
_OF_GROUPS: Final = {
    "level": "(?i:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)",
    "logger": r"\S*[.A-Z]\S*?",
    "class": r"\S*[.A-Z]\S*?",
}
_SHOWN: Final = {
    name: _OF_GROUPS[group] for name, (group, _, _) in DIRECTIVES.items() if group in _OF_GROUPS
}
_FRACTION: Final = re.compile("S+[XxZzO]*")


def compiled(pattern: str) -> Layout:
    """Compiles a conversion pattern. Raises ConfigurationRefused."""
    text = _expanded(pattern)
    compiler = _Compiler(text, Groups(text))
    pieces = compiler.pieces()
    check_order(compiler.groups, pieces)
    pieces = settled(_without_tail(pieces))
    for index, piece in enumerate(pieces):
        if piece.kind == "trace":
            compiler.groups.refuse(
                piece.at, f"%{piece.name} can only be after the message, at the end"
            )
        if piece.kind == "text" and piece.name in _MESSAGES:
            is_last = all(each.kind == "mark" for each in pieces[index + 1 :])
            if is_last:
                again = _told_again(pieces[:index])
                regex = piece.regex.replace(TEXT, f"(?!.*{again}).*" if again else ".*")
                pieces[index] = Piece(piece.at, piece.name, regex, piece.kind)
        elif piece.kind != "literal" and piece.name in CHOSEN and _is_bracketed(pieces, index):
            pieces[index] = replace(piece, regex=piece.regex.replace(TEXT, _BALANCED))
    if not compiler.groups.names:
        compiler.groups.refuse(0, "the pattern has no directive such as %m")
    regex = "".join(piece.regex for piece in pieces)
    start = start_of(pieces, _MESSAGES, DATES)
    return Layout(regex, compiler.groups.types, compiler.time, compiler.zone, start)


def _is_bracketed(pieces: Sequence[Piece], index: int) -> bool:
    before = (pieces[at] for at in range(index - 1, -1, -1))
    behind = (pieces[at] for at in range(index + 1, len(pieces)))
    names = [next((x.name for x in each if x.kind != "mark"), "") for each in (before, behind)]
    return names == ["[", "]"]


def _told_again(pieces: Sequence[Piece]) -> str:
    """Returns a pattern of what stands between a text that users of the program may choose (such as
    a member of the MDC) and the message. If a message has it once more, the chosen text may end
    there, so nobody can say which level or logger is the record's. Returns an empty text if no
    level stands behind such a text (or, if it is in brackets, no logger). pieces: those before the
    message.
    """
    last = max((at for at, piece in enumerate(pieces) if piece.name in _SHOWN), default=0)
    chosen = [at for at, piece in enumerate(pieces[:last]) if piece.name in CHOSEN]
    behind = pieces[chosen[-1] + 1 :] if chosen else ()
    levels = [piece for piece in behind if _SHOWN.get(piece.name) == _OF_GROUPS["level"]]
    if not chosen or not (levels or _is_bracketed(pieces, chosen[-1])):
        return ""  # a message may have all of it by chance
    found = [_SHOWN.get(piece.name) or piece.regex for piece in behind]
    return re.sub(r"\(\?P<\w+>", "(?:", "".join(found))


def _expanded(pattern: str) -> str:
    while (at := pattern.rfind("${")) >= 0:  # the last variable contains no other variable
        end = _bracket_end(pattern, at + 1)
        if end < 0:
            Groups(pattern).refuse(at, "this bracket is not closed")
        name, has_default, default = pattern[at + 2 : end - 1].partition(":-")
        name = name.split(":")[-1]
        if name not in VARIABLES and not has_default:
            Groups(pattern).refuse(at, f"write what ${{{name}}} stands for")
        pattern = pattern[:at] + VARIABLES.get(name, default) + pattern[end:]
    return pattern


def _bracket_end(text: str, at: int) -> int:
    depth = 0
    for place in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if not depth:
            return place + 1
    return -1


def _without_tail(pieces: list[Piece]) -> list[Piece]:
    """Leaves out the line end and the stack trace, if the pattern ends with them. The message takes
    their text.
    """
    end = len(pieces)
    while end and pieces[end - 1].kind in ("mark", "trace", "newline"):
        end -= 1
    has_trace = any(piece.kind == "trace" for piece in pieces[end:])
    kept = [*pieces[:end], *(each for each in pieces[end:] if each.kind == "mark")]
    if has_trace and end and pieces[end - 1].kind == "literal":
        last = kept[end - 1]
        if not last.name.strip():
            kept[end - 1] = Piece(last.at, last.name, f"(?:{last.regex})?", last.kind)
    return kept


@dataclass(slots=True)
class _Compiler:
    """Reads a pattern from left to right. time: the group and the format of the pattern's first
    date that contains a day. zone: the time zone of this date.
    """

    text: str
    groups: Groups
    time: tuple[tuple[str, ...], str] | None = None
    zone: str | None = None
    depth: int = 0

    def pieces(self) -> list[Piece]:
        found, at = self._until(0, "")
        assert at == len(self.text)
        return found

    def _until(self, at: int, closing: str) -> tuple[list[Piece], int]:
        """Returns the pieces of the regular expression up to a closing bracket, and the index of
        this bracket."""
        if self.depth > _DEPTH_MAX:
            self.groups.refuse(at, f"brackets are nested in more than {_DEPTH_MAX} others")
        self.depth += 1
        found: list[Piece] = []
        begin = at
        while at < len(self.text) and self.text[at] != closing:
            if self.text[at] == "%" and self.text[at + 1 : at + 2] != "%":
                pieces, at = self._directive(at)
                found += pieces
                continue
            char, length = _literal(self.text, at)
            found.append(Piece(at, char, escaped(char), "literal"))
            at += length
        if at == len(self.text) and closing:
            self.groups.refuse(begin - 1, "this bracket is not closed")
        self.depth -= 1
        return found, at

    def _directive(self, at: int) -> tuple[list[Piece], int]:
        match = _DIRECTIVE.match(self.text, at)
        assert match is not None
        letters = match["name"]
        name = next((each for each in KNOWN if letters.startswith(each)), "")
        end = match.start("name") + len(name)
        if self.text[end : end + 1] == "(" and (name in COLORS or not letters):
            inner, end = self._until(end + 1, ")")
            _, end = self._options(end + 1)
            return _padded([_mark(at), *inner, _mark(at)], match), end
        if not name:
            self.groups.refuse(at, f"%{letters} is no directive that can be read back")
        if name in COLORS or name in OPTIONAL:
            if self.text[end : end + 1] != "{":
                self.groups.refuse(at, f"%{name} needs a pattern in brackets")
            inner, end = self._until(end + 1, "}")
            _, end = self._options(end + 1)
            if name in OPTIONAL:
                regex = "".join(piece.regex for piece in inner)
                return [Piece(at, name, f"(?:{regex})?", "optional")], end
            return _padded([_mark(at), *inner, _mark(at)], match), end
        options, end = self._options(end)
        return _padded([self._group(at, name, options)], match), end

    def _options(self, at: int) -> tuple[list[str], int]:
        found = []
        while self.text[at : at + 1] == "{":
            end = _bracket_end(self.text, at)
            if end < 0:
                self.groups.refuse(at, "this bracket is not closed")
            found.append(self.text[at + 1 : end - 1])
            at = end
        return found, at

    def _group(self, at: int, name: str, options: list[str]) -> Piece:
        if name in NEWLINES:
            return Piece(at, name, r"\r?\n", "newline")
        if name in TRACES:
            return Piece(at, name, "", "trace")
        if name in DATES:
            return self._date(at, name, options)
        if name in MAPS:
            key = options[0].split(":-")[0] if options else ""
            return Piece(at, name, self.groups.named(key or "mdc", TEXT), "text")
        if name in BRACKETED:
            group = self.groups.named(*BRACKETED[name])
            return Piece(at, name, rf"(?:\[{group}\] )??", "fixed")
        group, regex, kind = DIRECTIVES[name]
        if regex == TEXT and any(f"%{each}" in self.text for each in BRACKETED):
            regex = UNBRACKETED if group == "thread" else regex
        text = self.groups.named(group, regex, kind)
        if group == "line":
            text = rf"(?:{text}|\?)"
        return Piece(at, name, text, "fixed" if regex == DIGITS else "text")

    def _date(self, at: int, name: str, options: list[str]) -> Piece:
        text, zone = (options[0] if options else ""), None
        logback = _LOGBACK_ZONE.match(text)
        if logback and not _FRACTION.fullmatch(logback[2]):
            text, zone = logback.groups()
        text = text.strip().strip('"')
        try:
            date = java_dates.compiled(text)
        except DateRefused as error:
            begin = self.text.find(text, at)
            self.groups.refuse(begin + error.at, str(error))
        group = self.groups.named("time", date.pattern)
        if self.time is None and date.format is not None:
            self.time = (self.groups.names[-1],), date.format
            named = options[1] if len(options) > 1 else zone
            self.zone = named and java_dates.zone_of(named)
        return Piece(at, name, group, "fixed")


def _mark(at: int) -> Piece:
    """Returns the piece (part of the regular expression) that matches the escape code with which a
    color begins or ends. The escape code may be missing in a record."""
    return Piece(at, "", COLOUR, "mark")


def _padded(pieces: list[Piece], match: re.Match[str]) -> list[Piece]:
    if not match["width"]:
        return pieces
    width, is_left = int(match["width"]), bool(match["left"])
    if len(pieces) == 1:
        return padded(pieces[0], width, is_left=is_left)
    around = padded(_mark(pieces[0].at), width, is_left=is_left)
    return [*pieces, around[1]] if is_left else [around[0], *pieces]


def _literal(text: str, at: int) -> tuple[str, int]:
    if text.startswith("%%", at):
        return "%", 2
    if text[at] == "\\" and at + 1 < len(text):
        return {"n": "\n", "t": "\t", "r": "\r"}.get(text[at + 1], text[at + 1]), 2
    return text[at], 1

r"""Compiles conversion patterns of log4j 1 and 2 and of Logback to the settings of a regex parser.

    %d{yyyy-MM-dd HH:mm:ss,SSS} [%t] %-5p %c{1} - %m%n
    (?P<time>\d{4}-...) \[(?P<thread>.*?)\] (?P<level>\w+) * (?P<logger>\S*?)\ \-\ (?P<message>.*)

Each directive becomes a group; `_DIRECTIVES` has their names. Colors are transparent, and so are
groups in parentheses. A directive of text ends where the text behind it begins, so two of them
cannot follow one another. The message takes the rest of the record, so a stack trace is a part of
the message. A pattern that cannot be read back is refused, with a mark under the place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from skidway.agent.formats import java_dates
from skidway.agent.formats.java_dates import DateRefused, escaped
from skidway.errors import ConfigurationRefused

_WORD: Final = r"\S*?"
_TEXT: Final = ".*?"
_DIGITS: Final = r"\d+"

_DIRECTIVES: Final[dict[str, tuple[str, str, str]]] = {
    name: (group, pattern, kind)
    for names, group, pattern, kind in (
        ("t tn thread threadName", "thread", _TEXT, "string"),
        ("p le level", "level", r"\w+?", "string"),
        ("c lo logger", "logger", _WORD, "string"),
        ("C class", "class", _WORD, "string"),
        ("M method", "method", _WORD, "string"),
        ("F file", "file", _TEXT, "string"),
        ("L line", "line", r"\d+", "int"),
        ("l location", "location", _TEXT, "string"),
        ("r relative", "elapsed", _DIGITS, "long"),
        ("pid processId", "pid", _DIGITS, "long"),
        ("T tid threadId", "thread_id", _DIGITS, "long"),
        ("tp threadPriority", "thread_priority", _DIGITS, "int"),
        ("sn sequenceNumber", "sequence", _DIGITS, "long"),
        ("x NDC", "ndc", _TEXT, "string"),
        ("marker markerSimpleName", "marker", _TEXT, "string"),
        ("kvp", "pairs", _TEXT, "string"),
        ("contextName cn", "context", _TEXT, "string"),
        ("h hostName host", "host", _WORD, "string"),
        ("m msg message", "message", _TEXT, "string"),
    )
    for name in names.split()
}
_DATES: Final = ("d", "date")
_MAPS: Final = ("X", "mdc", "MDC", "property")
_NEWLINES: Final = ("n",)
_TRACES: Final = (
    "ex", "exception", "throwable", "rEx", "rException", "rThrowable", "xEx", "xException",
    "xThrowable", "wEx", "wex", "nopex", "nopexception", "rootException",
)  # fmt: skip
_BRACKETED: Final = {
    "applicationName": ("application", r"[^\]]*"),
    "applicationGroup": ("application_group", r"[^\]]*"),
    "correlationId": ("correlation", "[0-9a-f-]*| *"),
}
"""Directives of Spring Boot that write `[text] `, or nothing, and what the text may be."""

_COLORS: Final = (
    "clr", "highlight", "black", "red", "green", "yellow", "blue", "magenta", "cyan", "white",
    "gray", "boldRed", "boldGreen", "boldYellow", "boldBlue", "boldMagenta", "boldCyan",
    "boldWhite", "style", "enc", "encode", "maxLen", "maxLength",
)  # fmt: skip
_OPTIONAL: Final = ("notEmpty", "varsNotEmpty", "variablesNotEmpty")
_KNOWN: Final = sorted(
    [*_DIRECTIVES, *_DATES, *_MAPS, *_NEWLINES, *_TRACES, *_BRACKETED, *_COLORS, *_OPTIONAL],
    key=len,
    reverse=True,
)
_VARIABLES: Final = {
    "PID": "%pid",
    "LOG_LEVEL_PATTERN": "%5p",
    "LOG_DATEFORMAT_PATTERN": "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
    "LOG_EXCEPTION_CONVERSION_WORD": "%wEx",
    "LOG_CORRELATION_PATTERN": "%correlationId",
    "LOGGED_APPLICATION_NAME": "%applicationName",
    "LOGGED_APPLICATION_GROUP": "%applicationGroup",
}
"""What Spring Boot's variables stand for."""

_UNBRACKETED: Final = r"[^\]]*?"
"""A thread beside Spring Boot's texts in brackets, which must not be taken for parts of it."""

_ANSI: Final = r"(?:\x1b\[[0-9;]*m)?"
_VARIABLE: Final = re.compile(r"\$\{(?:(?:sys|env|ctx|spring):)?([\w.]+)(?::-([^{}]*))?\}")
_DIRECTIVE: Final = re.compile(r"%(?P<left>-?)0?(?P<width>\d*)(?:\.-?\d+)?(?P<name>[A-Za-z]*)")
_LOGBACK_ZONE: Final = re.compile(r"""^"?(.*?)"?,\s*([A-Z][A-Za-z_]+(?:[/+-][\w/+:-]*)?)$""")


@dataclass(frozen=True, slots=True)
class Layout:
    """A compiled pattern. pattern: RE2 for a record. types: groups that are no strings. time: the
    group of the event time and its format; None if the pattern has none. zone: that of the times,
    if the pattern names one.
    """

    pattern: str
    types: dict[str, str]
    time: tuple[str, str] | None = None
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a regular expression. at: its place in the pattern. name: of the directive. kind:
    `text` ends where the next literal begins; `literal`, `fixed`, `trace` and `newline` do not
    need one; `mark` stands for nothing that is read.
    """

    at: int
    name: str
    regex: str
    kind: str


def compiled(pattern: str) -> Layout:
    """Compiles a conversion pattern. Raises ConfigurationRefused."""
    compiler = _Compiler(_expanded(pattern))
    pieces = compiler.pieces()
    _check_order(compiler, pieces)
    pieces = _without_tail(pieces)
    for index, piece in enumerate(pieces):
        if piece.kind == "trace":
            compiler.refuse(piece.at, f"%{piece.name} can only be behind the message, at the end")
        if piece.kind == "text" and piece.name in ("m", "msg", "message"):
            is_last = all(each.kind == "mark" for each in pieces[index + 1 :])
            if is_last:
                regex = piece.regex.replace(_TEXT, ".*")
                pieces[index] = _Piece(piece.at, piece.name, regex, piece.kind)
    if not compiler.names:
        compiler.refuse(0, "the pattern has no directive such as %m")
    regex = "".join(piece.regex for piece in pieces)
    return Layout(regex, compiler.types, compiler.time, compiler.zone)


def _expanded(pattern: str) -> str:
    """The pattern with what its variables stand for."""
    while True:
        found = _VARIABLE.search(pattern)
        if found is None:
            return pattern
        name, default = found.groups()
        text = _VARIABLES.get(name, default)
        if text is None:
            raise ConfigurationRefused(
                _marked(pattern, found.start(), f"write what ${{{name}}} stands for")
            )
        pattern = pattern[: found.start()] + text + pattern[found.end() :]


def _marked(pattern: str, at: int, why: str) -> str:
    return f"parser.pattern: {why}\n    {pattern}\n    {' ' * at}^"


def _check_order(compiler: _Compiler, pieces: list[_Piece]) -> None:
    """Refuses a text that is followed by something else than a literal."""
    read = [piece for piece in pieces if piece.kind not in ("mark", "trace", "newline")]
    for piece, following in pairwise(read):
        if piece.kind == "text" and following.kind not in ("literal", "optional"):
            compiler.refuse(
                following.at,
                f"there must be some text between %{piece.name} and %{following.name}, so that "
                f"the end of %{piece.name} can be found",
            )


def _without_tail(pieces: list[_Piece]) -> list[_Piece]:
    """The pieces without the line end and the stack trace at the end, which are no groups."""
    end = len(pieces)
    while end and pieces[end - 1].kind in ("mark", "trace", "newline"):
        end -= 1
    has_trace = any(piece.kind == "trace" for piece in pieces[end:])
    kept = [*pieces[:end], *(each for each in pieces[end:] if each.kind == "mark")]
    if has_trace and end and pieces[end - 1].kind == "literal":
        last = kept[end - 1]
        if not last.name.strip():
            kept[end - 1] = _Piece(last.at, last.name, f"(?:{last.regex})?", last.kind)
    return kept


@dataclass(slots=True)
class _Compiler:
    """Reads a pattern from left to right. names: the groups so far."""

    text: str
    names: list[str] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    time: tuple[str, str] | None = None
    zone: str | None = None

    def pieces(self) -> list[_Piece]:
        """The pieces of the whole pattern."""
        found, at = self._until(0, "")
        assert at == len(self.text)
        return found

    def refuse(self, at: int, why: str) -> None:
        """Raises ConfigurationRefused, with a mark under a place of the pattern."""
        raise ConfigurationRefused(_marked(self.text, at, why))

    def _until(self, at: int, closing: str) -> tuple[list[_Piece], int]:
        """The pieces up to a closing bracket, and the place of this bracket."""
        found: list[_Piece] = []
        begin = at
        while at < len(self.text) and self.text[at] != closing:
            if self.text[at] == "%" and self.text[at + 1 : at + 2] != "%":
                pieces, at = self._directive(at)
                found += pieces
                continue
            char, length = _literal(self.text, at)
            found.append(_Piece(at, char, escaped(char), "literal"))
            at += length
        if at == len(self.text) and closing:
            self.refuse(begin - 1, "this bracket is not closed")
        return found, at

    def _directive(self, at: int) -> tuple[list[_Piece], int]:
        match = _DIRECTIVE.match(self.text, at)
        assert match is not None
        letters = match["name"]
        name = next((each for each in _KNOWN if letters.startswith(each)), "")
        end = match.start("name") + len(name)
        if self.text[end : end + 1] == "(" and (name in _COLORS or not letters):
            inner, end = self._until(end + 1, ")")
            _, end = self._options(end + 1)
            return _padded([_mark(at), *inner, _mark(at)], match), end
        if not name:
            self.refuse(at, f"%{letters} is no directive that can be read back")
        if name in _COLORS or name in _OPTIONAL:
            if self.text[end : end + 1] != "{":
                self.refuse(at, f"%{name} needs a pattern in brackets")
            inner, end = self._until(end + 1, "}")
            _, end = self._options(end + 1)
            if name in _OPTIONAL:
                regex = "".join(piece.regex for piece in inner)
                return [_Piece(at, name, f"(?:{regex})?", "optional")], end
            return _padded([_mark(at), *inner, _mark(at)], match), end
        options, end = self._options(end)
        return _padded([self._group(at, name, options)], match), end

    def _options(self, at: int) -> tuple[list[str], int]:
        """The texts in curly brackets that begin at a place, and the place behind them."""
        found = []
        while self.text[at : at + 1] == "{":
            depth, end = 1, at + 1
            while end < len(self.text) and depth:
                depth += {"{": 1, "}": -1}.get(self.text[end], 0)
                end += 1
            if depth:
                self.refuse(at, "this bracket is not closed")
            found.append(self.text[at + 1 : end - 1])
            at = end
        return found, at

    def _group(self, at: int, name: str, options: list[str]) -> _Piece:
        if name in _NEWLINES:
            return _Piece(at, name, r"\r?\n", "newline")
        if name in _TRACES:
            return _Piece(at, name, "", "trace")
        if name in _DATES:
            return self._date(at, name, options)
        if name in _MAPS:
            key = options[0].split(":-")[0] if options else "mdc"
            return _Piece(at, name, self._named(key, _TEXT), "text")
        if name in _BRACKETED:
            group = self._named(*_BRACKETED[name])
            return _Piece(at, name, rf"(?:\[{group}\] )??", "fixed")
        group, regex, kind = _DIRECTIVES[name]
        if regex == _TEXT and any(f"%{each}" in self.text for each in _BRACKETED):
            regex = _UNBRACKETED if group == "thread" else regex
        text = self._named(group, regex, kind)
        if group == "line":
            text = rf"(?:{text}|\?)"
        return _Piece(at, name, text, "fixed" if regex == _DIGITS else "text")

    def _date(self, at: int, name: str, options: list[str]) -> _Piece:
        text, zone = (options[0] if options else ""), None
        logback = _LOGBACK_ZONE.match(text)
        if logback and set(logback[2]) != {"S"}:
            text, zone = logback.groups()
        text = text.strip().strip('"')
        try:
            date = java_dates.compiled(text)
        except DateRefused as error:
            begin = self.text.find(text, at)
            self.refuse(begin + error.at, str(error))
            raise
        group = self._named("time", date.pattern)
        if self.time is None and date.format is not None:
            self.time = self.names[-1], date.format
            self.zone = options[1] if len(options) > 1 else zone
        return _Piece(at, name, group + date.rest, "fixed")

    def _named(self, name: str, regex: str, kind: str = "string") -> str:
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


def _mark(at: int) -> _Piece:
    """The codes with which a terminal begins and ends a color."""
    return _Piece(at, "", _ANSI, "mark")


def _padded(pieces: list[_Piece], match: re.Match[str]) -> list[_Piece]:
    """The pieces with the blanks that fill them up to their least width."""
    if not match["width"]:
        return pieces
    blanks = _Piece(match.start(), "", " *", "mark")
    return [*pieces, blanks] if match["left"] else [blanks, *pieces]


def _literal(text: str, at: int) -> tuple[str, int]:
    """A character that stands for itself, and how long it is in the pattern."""
    if text.startswith("%%", at):
        return "%", 2
    if text[at] == "\\" and at + 1 < len(text):
        return {"n": "\n", "t": "\t", "r": "\r"}.get(text[at + 1], text[at + 1]), 2
    return text[at], 1

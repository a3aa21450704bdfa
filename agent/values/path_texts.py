"""The texts of path patterns, as the settings `paths` and `exclude` have them: one rule for both.

A pattern is an absolute path of files. `*`, `?` and `[...]` match within a name; a name `**`
matches any number of directories, also none; as the last name, it matches all files below. As in a
shell, a name that begins with a dot matches only a name of the pattern that begins with a dot.
`{a,b}` stands for each of its alternatives, which may contain slashes. A character in brackets,
such as `[{]`, means itself. Patterns match files: to mean the files of a directory, a pattern ends
in `/*` or `/**`.

`refusal` is strict, because people write patterns. The other functions accept any text, because the
agent's state may have patterns that an earlier version accepted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import Final

from skidway.errors import ConfigurationRefused

EXPANDED_MAX: Final = 100
"""The braces of a pattern may stand for at most this many patterns."""

_CLASS: Final = r"\[[!^]?+.[^\]]*\]"
_TOKEN: Final = re.compile(rf"({_CLASS})|(\*+)|(.)", re.DOTALL)
_CLASSES: Final = re.compile(_CLASS, re.DOTALL)
_BRACES: Final = re.compile(rf"({_CLASS})|\{{((?:{_CLASS}|[^\[{{}}])*)\}}", re.DOTALL)
_COMMA: Final = re.compile(r",(?![^\[]*\])")
_SPECIAL: Final = re.compile(r"([*?\[{}])")
_NO_CHARACTER: Final = re.compile(r"[\ud800-\udfff]")
_NEVER: Final = "(?!)"
_DEEP: Final = 70
_LONG: Final = 300


def check(setting: str, texts: Sequence[str]) -> None:
    """Raises ConfigurationRefused, which names the setting, if a text is no pattern of paths."""
    for text in texts:
        if (why := refusal(text)) is not None:
            raise ConfigurationRefused(f"{setting}: {text!r} {why}")


def refusal(text: str) -> str | None:
    """Returns what is wrong with a pattern; None if nothing is."""
    if not text.startswith("/"):
        further = f"; for this name in every directory, write /**/{text}" if text else ""
        return "must be absolute" + further
    if "\0" in text or (not text.isascii() and _is_broken(text)):
        return "has a character that no path has"
    plain = _CLASSES.sub("", text)
    if any(_COMMA.search(each[2]) is None for each in _BRACES.finditer(text) if not each[1]):
        return "has braces without a comma; [{] means the character {"
    patterns = expanded(text)
    if len(patterns) > EXPANDED_MAX:
        return f"stands for more than {EXPANDED_MAX} patterns"
    left = "".join(_CLASSES.sub("", each) for each in patterns)
    if "[" in plain or "[" in left:
        return "has a bracket [ that is not closed in its name; [[] means the character ["
    if "{" in left or "}" in left:
        return "has a brace without its other; [{] means the character {"
    for each in patterns:
        if (why := _refusal_of_names(each)) is not None:
            return why
    return None


def literal(path: str) -> str:
    """Returns a pattern that matches a path. It matches no other, unless the path has bytes that
    are not UTF-8, which no pattern can name: any character may be in their place."""
    return _NO_CHARACTER.sub("?", _SPECIAL.sub(r"[\1]", path))


def expanded(text: str) -> list[str]:
    """Returns the patterns for which the braces of a pattern stand; [text] if it has none. If there
    are more than EXPANDED_MAX, some braces are left."""
    found = [text]
    while len(found) <= EXPANDED_MAX:
        some = list(dict.fromkeys(each for one in found for each in _without_braces(one)))
        if some == found:
            break
        found = some
    return found


@lru_cache(4096)
def matcher(text: str) -> re.Pattern[str]:
    """Returns the regular expression that matches the paths of a pattern without braces."""
    *above, last = text.removeprefix("/").split("/")
    directories = "".join(
        f"(?:{_ANY_NAME}/)*" if each == "**" else f"{_name(each)}/" for each in above
    )
    file = f"(?:{_ANY_NAME}/)*{_ANY_NAME}" if last == "**" else _name(last)
    return re.compile(f"/{directories}{file}" if text.startswith("/") else _NEVER, re.DOTALL)


def covers(allowed: str, text: str) -> bool:
    """Whether a pattern matches every path that another pattern matches. Both have no braces. In
    some cases in which it does, the answer is no."""
    if text == allowed:
        return True
    return all(matcher(allowed).fullmatch(each) is not None for each in _extremes(text))


@lru_cache(4096)
def name_matcher(name: str) -> re.Pattern[str]:
    """Returns the regular expression that matches the names of one part of a pattern, between two
    slashes."""
    return re.compile(_name(name), re.DOTALL)


_ANY_NAME: Final = r"[^./][^/]*"


def _name(name: str) -> str:
    """Returns the regular expression of one part of a pattern between two slashes. What stands
    between two `*` is matched at the first place, and at no other: a later place matches nothing
    more, and to try all places would take very long for some names."""
    hidden = "" if name.startswith(".") else r"(?!\.)"
    texts = [""]
    for of_class, stars, character in _TOKEN.findall(name):
        if stars:
            texts.append("")
        else:
            texts[-1] += _class(of_class) if of_class else _character(character)
    first, *between = texts
    last = f"[^/]*{between.pop()}" if between else ""
    return hidden + first + "".join(f"(?>[^/]*?{each})" for each in between) + last


def _extremes(text: str) -> Iterator[str]:
    """Yields paths that a pattern matches, such that a pattern that matches all of them matches all
    paths of the first pattern: with as few and with very many directories and characters. A line
    end, which no pattern names, stands for any character."""
    for depth in (0, 1, 2, _DEEP):
        for length in (0, 1, _LONG):
            names = []
            for name in text.split("/"):
                if name == "**":
                    names += ["\n"] * depth
                else:
                    filled = _TOKEN.sub(partial(_filled, length=length), name)
                    is_hidden = name.startswith("*") and filled[:1] in ("", ".")  # matches no name
                    names.append(f"\n{filled}" if is_hidden else filled)
            last = ["\n"] if text.endswith("/**") else []
            yield "/".join([*names, *last])


def _filled(token: re.Match[str], *, length: int) -> str:
    of_class, stars, character = token.groups()
    if of_class is not None:
        return of_class[1] if len(of_class) == 3 else "\n"
    return "\n" * length if stars else "\n" if character == "?" else character


def _character(character: str) -> str:
    return "[^/]" if character == "?" else re.escape(character)


def _class(text: str) -> str:
    content = text[1:-1]
    negation = "^" if content[:1] in ("!", "^") else ""
    content = re.sub(r"([\\\[\]^&~|])", r"\\\1", content[len(negation) :])
    found = f"(?!/)[{negation}{content}]"
    try:
        re.compile(found)
    except re.error:  # a range whose end comes before its beginning
        return _NEVER
    return found


def _without_braces(text: str) -> list[str]:
    """Returns the patterns for which the first innermost braces of a pattern stand."""
    for found in _BRACES.finditer(text):
        if (inside := found[2]) is not None:
            before, behind = text[: found.start()], text[found.end() :]
            return [before + each + behind for each in _COMMA.split(inside)]
    return [text]


def _refusal_of_names(text: str) -> str | None:
    names = text[1:].split("/")
    if not names[-1]:
        return "ends in a slash, so it means no file; end it in /* or /**"
    if any(each in ("", ".", "..") for each in names):
        return "has an empty name, . or .. between slashes"
    if any("**" in _CLASSES.sub("", each) and each != "**" for each in names):
        return "has ** beside other characters; ** is a whole name between slashes"
    for each in _CLASSES.findall(text):
        if "/" in each or "[:" in each or _class(each) == _NEVER:
            return f"has the brackets {each}, which match no character"
    return None


def _is_broken(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False

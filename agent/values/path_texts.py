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
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from skidway.errors import ConfigurationRefused

CHARACTERS_MAX = 4_096
"""A pattern has at most this many characters, as a path has on Linux."""
NAMES_MAX = 100
"""A pattern has at most this many names between slashes."""
EXPANDED_MAX: Final = 100
"""The braces of a pattern may stand for at most this many patterns."""
EXPANDED_CHARACTERS_MAX = 4 * CHARACTERS_MAX
"""The patterns for which braces stand have together at most this many characters."""

_CLASS: Final = r"\[[!^]?+.[^\]]*\]"
_TOKEN: Final = re.compile(rf"({_CLASS})|(\*+)|(.)", re.DOTALL)
_CLASSES: Final = re.compile(_CLASS, re.DOTALL)
_OPEN: Final = re.compile(rf"{_CLASS}|(\[.*)", re.DOTALL)
_BRACES: Final = re.compile(rf"([{{}},])|(?:{_CLASS}|[^{{}},])+", re.DOTALL)
_SPECIAL: Final = re.compile(r"([*?\[{}])")
_MAGIC: Final = re.compile(r"[*?\[]")
_RANGE: Final = re.compile(r"(.)-(.)", re.DOTALL)
_NO_CHARACTER: Final = re.compile(r"[\ud800-\udfff]")
_NEVER: Final = "(?!)"


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
    try:
        patterns = _expanded(text)
    except _Refused as refused:
        return str(refused)
    for each in patterns:
        if (why := _refusal_of_names(each)) is not None:
            return why
    return None


def literal(path: str) -> str:
    """Returns a pattern that matches a path. It matches no other, unless the path has bytes that
    are not UTF-8, which no pattern can name: any character may be in their place."""
    return _NO_CHARACTER.sub("?", _SPECIAL.sub(r"[\1]", path))


def expanded(text: str) -> list[str]:
    """Returns the patterns for which the braces of a pattern stand; [text] if it has none, or if
    `refusal` refuses them."""
    try:
        return _expanded(text)
    except _Refused:
        return [text]


@lru_cache(4096)
def matcher(text: str) -> re.Pattern[str]:
    """Returns the regular expression that matches the paths of a pattern without braces. What
    stands between two `**` is matched at the first place, and at no other (see `_name`)."""
    parts: list[list[str]] = [[]]
    for each in text.removeprefix("/").split("/"):
        if each == "**":
            parts.append([])
        else:
            parts[-1].append(_name(each))
    if not parts[-1]:  # a `**` as the last name
        parts[-1].append(_ANY_NAME)
    first, *between = ["/".join(each) for each in parts]
    gap = f"(?:{_ANY_NAME}/)*"
    last = f"{gap}{between.pop()}" if between else ""
    whole = "".join([
        "/", first, "/" if first and last else "",
        *(f"(?>{gap}?{each}/)" for each in between if each), last,
    ])  # fmt: skip
    return re.compile(whole if text.startswith("/") else _NEVER, re.DOTALL)


def lies_within(text: str, allowed: str) -> bool:
    """Whether each name of a pattern lies within its name of another pattern, so that the other one
    matches every path that the first matches. Both have no braces."""
    names, others = _names(text), _names(allowed)
    reached = _with_none({0}, others)
    for name in names:
        is_any = name == "**"
        stays = {at for at in reached if others[at : at + 1] == ["**"]}
        moves = {at + 1 for at in reached - stays if at < len(others)}
        moves = {at for at in moves if not is_any and _is_narrower(name, others[at - 1])}
        reached = _with_none(moves | ({*stays} if not name.startswith(".") else set()), others)
    return len(others) in reached


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


def _names(text: str) -> list[str]:
    """Returns the names of a pattern. A `**` at the end matches at least one name."""
    names = text.split("/")
    return [*names, "*"] if names[-1] == "**" else names


def _with_none(places: set[int], names: Sequence[str]) -> set[int]:
    """Adds the places that follow `**`, because it also matches no name."""
    found = set(places)
    for at in sorted(places):
        while names[at : at + 1] == ["**"]:
            at += 1
            found.add(at)
    return found


def _is_narrower(name: str, other: str) -> bool:
    """Whether a name of a pattern surely matches nothing that another name does not match."""
    if name == other:
        return True
    if not _MAGIC.search(name):
        return name_matcher(other).fullmatch(name) is not None
    before, star, behind = other.partition("*")
    return (
        bool(star)
        and not _MAGIC.search(before + behind)
        and len(name) >= len(before) + len(behind)
        and name.startswith(before)
        and name.endswith(behind)
        and name.startswith(".") == other.startswith(".")
        and "]" not in behind
    )


def _character(character: str) -> str:
    return "[^/]" if character == "?" else re.escape(character)


def _class(text: str) -> str:
    content = text[1:-1]
    negation = "^" if content[:1] in ("!", "^") else ""
    content = content[len(negation) :]
    if any(low > high for low, high in _RANGE.findall(content)):
        return _NEVER  # a range whose end comes before its beginning
    escaped = re.sub(r"([\\\[\]^&~|])", r"\\\1", content)
    return f"(?!/)[{negation}{escaped}]"


class _Refused(Exception):
    """Says what is wrong with a pattern."""


def _expanded(text: str) -> list[str]:
    """Returns the patterns for which the braces of a pattern stand. Raises _Refused if they are
    too many or too long, or a bracket or brace has no other."""
    if len(text) > CHARACTERS_MAX:
        raise _Refused(f"has more than {CHARACTERS_MAX:,} characters")
    if any(each[1] for each in _OPEN.finditer(text)):
        raise _Refused("has a bracket [ that is not closed in its name; [[] means the character [")
    above: list[tuple[list[str], list[str]]] = []  # the braces that are open here
    done: list[str] = []  # the alternatives of the innermost braces before this one
    found = [""]
    plain: list[str] = []
    for token in _BRACES.finditer(text):
        if not token[1] or (token[1] == "," and not above):
            plain.append(token[0])
            continue
        found, plain = _behind(found, ["".join(plain)]), []
        if token[1] == "{":
            above.append((done, found))
            done, found = [], [""]
        elif token[1] == ",":
            done, found = [*done, *found], [""]
        elif not above:
            raise _Refused("has a brace without its other; [{] means the character {")
        elif not done:
            raise _Refused("has braces without a comma; [{] means the character {")
        else:
            alternatives = [*done, *found]
            done, found = above.pop()
            found = _behind(found, alternatives)
        _check_size([*done, *found])
    if above:
        raise _Refused("has a brace without its other; [{] means the character {")
    return list(dict.fromkeys(_behind(found, ["".join(plain)])))


def _behind(texts: list[str], more: list[str]) -> list[str]:
    found = [each + one for each in texts for one in more[: EXPANDED_MAX + 1]]
    _check_size(found)
    return found


def _check_size(texts: list[str]) -> None:
    if len(texts) > EXPANDED_MAX:
        raise _Refused(f"stands for more than {EXPANDED_MAX} patterns")
    if sum(map(len, texts)) > EXPANDED_CHARACTERS_MAX:
        raise _Refused(
            f"stands for patterns of more than {EXPANDED_CHARACTERS_MAX:,} characters together"
        )


def _refusal_of_names(text: str) -> str | None:
    names = text[1:].split("/")
    if len(names) > NAMES_MAX:
        return f"has more than {NAMES_MAX} names between slashes"
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

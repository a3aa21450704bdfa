"""Makes texts for people: excerpts of lines and values, which are safe to show on a terminal, and
counts."""

from __future__ import annotations

from typing import Final

_PLURALS: Final = {"": "", " is": " are", " has": " have"}


def excerpt(value: object, characters_max: int) -> str:
    """Returns a value as one line of printable text, cut to `characters_max` characters. Line feeds
    and tabs are shown as `\\n` and `\\t`. Other control characters, which a terminal could obey,
    are replaced by U+FFFD.
    """
    text = str(value).replace("\n", "\\n").replace("\t", "\\t")
    text = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return text if len(text) <= characters_max else f"{text[: characters_max - 3]}..."


def counted(count: int, noun: str, verb: str = "") -> str:
    """Returns a number with its noun, and perhaps a verb, such as `1 record is` or `2 records
    are`."""
    behind = f" {verb}" if verb else ""
    return f"{count:,} {noun}{behind}" if count == 1 else f"{count:,} {noun}s{_PLURALS[behind]}"

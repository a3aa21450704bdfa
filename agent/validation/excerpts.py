"""Makes excerpts of lines and values. The excerpts are safe to show on a terminal."""

from __future__ import annotations


def excerpt(value: object, characters_max: int) -> str:
    """Returns a value as one line of printable text, cut to `characters_max` characters. Line feeds
    and tabs are shown as `\\n` and `\\t`. Other control characters, which a terminal could obey,
    are replaced by U+FFFD.
    """
    text = str(value).replace("\n", "\\n").replace("\t", "\\t")
    text = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return text if len(text) <= characters_max else f"{text[: characters_max - 3]}..."

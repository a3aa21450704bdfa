"""Counts, for each topic, the lines with members or keys for which the schema has no field and
which `_extra` does not take (see skidway.agent.parsing.fieldless).

The names are texts of the log, so they are cut and made printable, and a topic has at most
NAMES_MAX of them. All further names of the topic share the count OTHERS.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from skidway.audit.topic.fieldless_note import NAME_CHARACTERS_MAX, NAMES_MAX, OTHERS

SENTENCES_MAX: Final = 10


class Fieldless:
    """Owns the counts of each topic since the agent started or took changed settings."""

    def __init__(self) -> None:
        self._by_topic: dict[str, dict[str, int]] = {}

    def saw(self, topic: str, counts: Mapping[str, int]) -> None:
        """Adds the counts of some lines of a topic: by name, the number of lines."""
        if counts:
            add(self._by_topic.setdefault(topic, {}), counts)

    def copy(self) -> dict[str, dict[str, int]]:
        """Returns the counts as they are now: by topic and name, the number of lines."""
        return {topic: dict(counts) for topic, counts in self._by_topic.items()}

    def forget(self) -> None:
        """Forgets all counts, because the schemas may have changed."""
        self._by_topic.clear()


def add(known: dict[str, int], counts: Mapping[str, int]) -> None:
    """Adds counts to those in `known`. If there is no room for all new names, the most frequent
    ones get it."""
    for text, count in sorted(counts.items(), key=lambda each: (-each[1], each[0])):
        name = _shown(text)
        if name not in known and len(known.keys() - {OTHERS}) >= NAMES_MAX:
            name = OTHERS
        known[name] = known.get(name, 0) + count


def sentences(counts: Mapping[str, int], lines: int) -> list[str]:
    """Returns a sentence for each of the most frequent names in `counts`, and one for all others.
    lines: the number of all lines."""
    found = sorted(
        ((name, count) for name, count in counts.items() if name != OTHERS),
        key=lambda each: (-each[1], each[0]),
    )
    said = [
        f"member {name} has no field, in {count:,} of {lines:,} line{'s'[: lines - 1]}"
        for name, count in found[:SENTENCES_MAX]
    ]
    others = sum(count for _, count in found[SENTENCES_MAX:]) + counts.get(OTHERS, 0)
    if others:
        said.append(f"further members have no field, {others:,} times")
    return said


def _shown(name: str) -> str:
    name = name[: NAME_CHARACTERS_MAX + 1]
    text = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in name)
    is_whole = len(text) <= NAME_CHARACTERS_MAX
    return text if is_whole else f"{text[: NAME_CHARACTERS_MAX - 3]}..."

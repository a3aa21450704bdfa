"""Which topics a configuration means: names, and regular expressions that match whole names.

A text of legal topic characters only is a name; everything else is a pattern. Topics of our own
(`_skidway_audit`, also behind a mirror's cluster prefix) are never data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from skidway.errors import ConfigurationRefused

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def is_pattern(text: str) -> bool:
    """Whether it is a pattern rather than a name."""
    return _NAME.fullmatch(text) is None


def is_own(topic: str) -> bool:
    """Whether the name behind the cluster prefix, if there is one, begins with `_`."""
    return topic.startswith("_") or topic.partition(".")[2].startswith("_")


def check(texts: Iterable[str]) -> None:
    """ConfigurationRefused for what can never be loaded."""
    for text in texts:
        if not is_pattern(text):
            if is_own(text):
                raise ConfigurationRefused(f"topics: {text} is no data topic and is never loaded")
            continue
        try:
            re.compile(text)
        except re.error as error:
            raise ConfigurationRefused(
                f"topics: {text!r} is neither a topic's name nor a regular expression: {error}"
            ) from error


def choose(texts: Sequence[str], existing: Iterable[str]) -> tuple[list[str], list[str]]:
    """(topics to load in order of name, configured names that do not exist)."""
    known = sorted(existing)
    names = [text for text in texts if not is_pattern(text)]
    patterns = [re.compile(text) for text in texts if is_pattern(text)]
    chosen = [
        topic
        for topic in known
        if not is_own(topic) and (topic in names or any(p.fullmatch(topic) for p in patterns))
    ]
    return chosen, [name for name in names if name not in known]

"""Finds the topics that a configuration chooses. The configuration lists names, and regular
expressions that match whole names.

An entry of the configuration is a name if each of its characters is legal in a topic name. Any
other entry is a pattern. Patterns never match Skidway's own topics, such as `_skidway_audit`, with
or without the cluster prefix of a mirror. An entry that is the name `app` also chooses
`app.rejected`, the topic of the rejected lines of `app`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from skidway.errors import ConfigurationRefused

REJECTED_SUFFIX = ".rejected"
"""The topic for a topic's rejects has the name of that topic and this suffix."""

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def check(texts: Iterable[str], key: str = "topics") -> None:
    """Raises ConfigurationRefused, with the setting's key, for a text that is neither a topic's
    name nor a regular expression."""
    for text in texts:
        try:
            re.compile(text)
        except re.error as error:
            raise ConfigurationRefused(
                f"{key}: {text!r} is neither a topic's name nor a regular expression: {error}"
            ) from error


def choose(texts: Sequence[str], existing: Iterable[str]) -> list[str]:
    """Returns the existing topics that the texts name or match, in order of name."""
    names = {text for text in texts if _NAME.fullmatch(text)}
    names |= {name + REJECTED_SUFFIX for name in names}
    patterns = [re.compile(text) for text in texts if not _NAME.fullmatch(text)]
    return sorted(
        topic
        for topic in existing
        if topic in names or (not is_own(topic) and any(p.fullmatch(topic) for p in patterns))
    )


def is_own(topic: str) -> bool:
    """Whether the name begins with `_`, or with a cluster prefix and then `_`."""
    return topic.startswith("_") or topic.partition(".")[2].startswith("_")

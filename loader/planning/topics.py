"""Finds the topics that a configuration chooses by names and patterns (see
audit.counts.topic_patterns). Also says for which of these names there is no topic.

The loader never loads topics whose names begin with `_`, such as Skidway's own topic
`_skidway_audit`, with or without the cluster prefix that a mirror adds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from skidway.audit.counts import topic_patterns
from skidway.errors import ConfigurationRefused, SkidwayError

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def check(texts: Iterable[str]) -> None:
    """Raises ConfigurationRefused if a text is neither a name nor a regular expression, or if it is
    the name of a topic that is never loaded."""
    texts = list(texts)
    topic_patterns.check(texts)
    for text in texts:
        if _NAME.fullmatch(text) and topic_patterns.is_own(text):
            raise ConfigurationRefused(f"topics: {text} is no data topic and is never loaded")


def unknown(topic: str) -> SkidwayError:
    """Returns the error about a topic that no broker has named. Brokers do not name a topic to
    those who may not see it."""
    return SkidwayError(f"the topic {topic} does not exist, or this user may not DESCRIBE it")


def choose(texts: Sequence[str], existing: Iterable[str]) -> tuple[list[str], list[str]]:
    """Returns the topics to load, sorted by name, and the configured names that do not exist."""
    known = list(existing)
    chosen = topic_patterns.choose(texts, known)
    data = [topic for topic in chosen if not topic_patterns.is_own(topic)]
    return data, [text for text in texts if _NAME.fullmatch(text) and text not in known]

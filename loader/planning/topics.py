"""Which topics a configuration means (audit.counts.topic_patterns), and which of them are missing.

Topics of our own (`_skidway_audit`, also behind a mirror's cluster prefix) are never data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from skidway.audit.counts import topic_patterns
from skidway.errors import ConfigurationRefused

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def check(texts: Iterable[str]) -> None:
    """Raises ConfigurationRefused for topics that can never be loaded."""
    texts = list(texts)
    topic_patterns.check(texts)
    for text in texts:
        if _NAME.fullmatch(text) and topic_patterns.is_own(text):
            raise ConfigurationRefused(f"topics: {text} is no data topic and is never loaded")


def choose(texts: Sequence[str], existing: Iterable[str]) -> tuple[list[str], list[str]]:
    """(topics to load in order of name, configured names that do not exist)."""
    known = list(existing)
    chosen = topic_patterns.choose(texts, known)
    data = [topic for topic in chosen if not topic_patterns.is_own(topic)]
    return data, [text for text in texts if _NAME.fullmatch(text) and text not in known]

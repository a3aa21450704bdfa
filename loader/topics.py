"""Which topics a configuration means, as everywhere (audit.topics), and which of them are missing.

Topics of our own (`_skidway_audit`, also behind a mirror's cluster prefix) are never data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from skidway.audit.counts import topic_patterns as topics
from skidway.errors import ConfigurationRefused

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def check(texts: Iterable[str]) -> None:
    """ConfigurationRefused for what can never be loaded."""
    texts = list(texts)
    topics.check(texts)
    for text in texts:
        if _NAME.fullmatch(text) and topics.is_own(text):
            raise ConfigurationRefused(f"topics: {text} is no data topic and is never loaded")


def choose(texts: Sequence[str], existing: Iterable[str]) -> tuple[list[str], list[str]]:
    """(topics to load in order of name, configured names that do not exist)."""
    known = list(existing)
    chosen = [topic for topic in topics.choose(texts, known) if not topics.is_own(topic)]
    return chosen, [text for text in texts if _NAME.fullmatch(text) and text not in known]

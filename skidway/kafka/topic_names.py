"""Which names a topic may have: Kafka's rule. A legal name is also a safe name of a file or of a
ZooKeeper node."""

from __future__ import annotations

import re

TOPIC_NAME_MAX = 249  # as in Kafka; leaves room for "-<partition>" in a name of 255 characters

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def illegal_topic(name: str) -> str | None:
    """Returns a sentence that says why a topic cannot have this name; None if the name is legal."""
    if not name:
        return "a topic name must not be empty"
    if name in (".", ".."):
        return f"a topic name must not be {name!r}"
    if len(name) > TOPIC_NAME_MAX:
        return f"a topic name has at most {TOPIC_NAME_MAX} characters, this one {len(name)}"
    if _LEGAL.fullmatch(name) is None:
        return f"a topic name consists of ASCII letters, digits, '.', '_' and '-': {name!r}"
    return None

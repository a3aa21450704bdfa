"""Names of source topics: as reports print them, and as people and programs give them back.

A name is `<topic>`, or `<cluster>.<topic>`. If a topic was deleted and created again, the beginning
of its id follows: `dc1.logs (id 0123abcd)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.kafka.source import Source

ID_SHOWN = 8
"""How many of the 32 digits of a topic's id are shown."""

_WITH_ID = re.compile(r"(.+) \(id (\w+)\)")


def topic_name(source: Source) -> str:
    """`<cluster>.<topic>`."""
    return f"{source.cluster}.{source.topic}"


def topic_names(sources: Iterable[Source]) -> dict[Source, str]:
    """For each topic, the name that `topic_name` gives it. If a topic was deleted and created
    again, the beginning of its id follows its name."""
    ids: dict[str, set[Source]] = {}
    for source in sources:
        ids.setdefault(topic_name(source), set()).add(source)
    return {
        source: name if len(same) == 1 else with_id(source, ID_SHOWN)
        for name, same in ids.items()
        for source in same
    }


def with_id(source: Source, digits: int = 32) -> str:
    """The topic's name with the beginning of its id."""
    return f"{topic_name(source)} (id {source.topic_id[:digits] or 'none'})"


def with_rejects(names: Iterable[str]) -> list[str]:
    """The named topics, and for each of them the topic of its rejects. The topic of rejects may
    have any topic id."""
    return [each for name in names for each in (name, _named(name)[0] + REJECTED_SUFFIX)]


def topics_named(names: Sequence[str] | None) -> list[str] | None:
    """The topics in their source clusters that these names may mean."""
    if names is None:
        return None
    known = [_named(name)[0] for name in names]
    return sorted({each for name in known for each in (name, name.partition(".")[2]) if each})


def is_named(source: Source, names: Iterable[str]) -> bool:
    """Whether a topic has one of these names, with or without the cluster's name and the topic
    id."""
    known = {source.topic, topic_name(source)}
    topic_id = source.topic_id or "none"
    return any(name in known and topic_id.startswith(begin) for name, begin in map(_named, names))


def _named(text: str) -> tuple[str, str]:
    """The topic's name, and the beginning of the topic id; "" if the text has no id."""
    match = _WITH_ID.fullmatch(text)
    return (match[1], match[2]) if match else (text, "")

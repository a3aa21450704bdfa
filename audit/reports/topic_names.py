"""Names of source topics: how reports print them, and how people and programs pass them as
arguments.

A name is `<topic>` or `<cluster>.<topic>`. If a topic was deleted and created again, the name is
followed by the beginning of the topic's id: `dc1.logs (id 0123abcd)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.kafka.source import Source

ID_SHOWN = 8
"""Of the 32 digits of a topic's id, this many are shown."""

_WITH_ID = re.compile(r"(.+) \(id (\w+)\)")


def topic_name(source: Source) -> str:
    """The topic's name in the form `<cluster>.<topic>`."""
    return f"{source.cluster}.{source.topic}"


def topic_names(sources: Iterable[Source]) -> dict[Source, str]:
    """Maps each topic to its name. If several of these topics have the same name, because a topic
    was deleted and created again, the name of each is followed by the first digits of its id."""
    ids: dict[str, set[Source]] = {}
    for source in sources:
        ids.setdefault(topic_name(source), set()).add(source)
    return {
        source: name if len(same) == 1 else with_id(source, ID_SHOWN)
        for name, same in ids.items()
        for source in same
    }


def with_id(source: Source, digits: int = 32) -> str:
    """The topic's name, followed by the first `digits` digits of its id."""
    return f"{topic_name(source)} (id {source.topic_id[:digits] or 'none'})"


def without_id(name: str) -> str:
    """The given topic name without the topic's id, so that it names every topic that ever had this
    name."""
    return _named(name)[0]


def with_rejects(names: Iterable[str]) -> list[str]:
    """The given topic names, each followed by the name of its topic of rejects. The name of a topic
    of rejects gets no topic id, so it matches topics with any id."""
    return [each for name in names for each in (name, _named(name)[0] + REJECTED_SUFFIX)]


def topics_named(names: Sequence[str] | None) -> list[str] | None:
    """Returns the topics, without cluster and id, that these names may mean. For example, `a.b` may
    mean the topic `a.b`, or the topic `b` of cluster `a`. Returns None if `names` is None."""
    if names is None:
        return None
    known = [_named(name)[0] for name in names]
    return sorted({each for name in known for each in (name, name.partition(".")[2]) if each})


def is_named(source: Source, names: Iterable[str]) -> bool:
    """Whether one of `names` names the topic `source`. A name may begin with the cluster's name,
    and may end with the first digits of the topic's id."""
    known = {source.topic, topic_name(source)}
    topic_id = source.topic_id or "none"
    return any(name in known and topic_id.startswith(begin) for name, begin in map(_named, names))


def _named(text: str) -> tuple[str, str]:
    match = _WITH_ID.fullmatch(text)
    return (match[1], match[2]) if match else (text, "")

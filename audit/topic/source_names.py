"""The source topics of a message as strings: four for each topic, in the order of `Source`.

Most messages of a sender name the same topics. So readers look up all topics of a message at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from skidway.kafka.source import Source

SourceNames = tuple[str, ...]

_WIDTH = 4


@lru_cache(maxsize=1024)
def sources_of(names: SourceNames) -> tuple[Source, ...]:
    """The source topics that these strings name. Raises ValueError if a string is missing."""
    if len(names) % _WIDTH:
        raise ValueError(f"{len(names)} strings do not name sources")
    parts = [names[begin : begin + _WIDTH] for begin in range(0, len(names), _WIDTH)]
    return tuple(Source(*part) for part in parts)


def names_of(sources: Iterable[Source]) -> SourceNames:
    """The strings that name these source topics."""
    return tuple(name for x in sources for name in (x.cluster, x.cluster_id, x.topic, x.topic_id))

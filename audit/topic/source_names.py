"""The source topics of a message in one text: a JSON array of strings, four strings for each topic,
in the order of the fields of `Source`.

Most messages of a sender have the same text. So a cache from texts to topics saves parsing the text
of each message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache

from skidway.audit.topic.field_bounds import TEXT_MAX
from skidway.kafka.source import Source

_WIDTH = 4


@lru_cache(maxsize=1024)
def sources_of(names: str) -> tuple[Source, ...]:
    """The source topics that this text names. Raises ValueError if the text does not have the form
    that the module's docstring shows."""
    try:
        found = json.loads(names)
    except RecursionError as error:
        raise ValueError("the sources are nested") from error
    if not (isinstance(found, list) and all(isinstance(name, str) for name in found)):
        raise ValueError("the sources are no array of strings")
    "".join(found).encode()  # raises an error for half of a surrogate pair
    if any(len(name) > TEXT_MAX for name in found):
        raise ValueError(f"a source has a name of more than {TEXT_MAX:,} characters")
    if len(found) % _WIDTH:
        raise ValueError(f"{len(found)} strings do not name sources")
    return tuple(Source(*found[begin : begin + _WIDTH]) for begin in range(0, len(found), _WIDTH))


def names_of(sources: Iterable[Source]) -> str:
    """The text that names these source topics."""
    found = [name for x in sources for name in (x.cluster, x.cluster_id, x.topic, x.topic_id)]
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))

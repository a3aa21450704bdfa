"""Decides which topics of a source cluster are mirrored, and under which names.

The audit topic is always mirrored. Other topics whose names begin with `_` are never mirrored, even
if a pattern matches them. The selection leaves out topics that are themselves mirrors in the
source. It also leaves out topics of the source that, by their names, are mirrors of this cluster's
topics. Otherwise two clusters would mirror the same records back and forth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from skidway.kafka.source import CLUSTER_CONFIG

AUDIT_TOPIC = "_skidway_audit"
INTERNAL = "_"
TOPIC_CHARACTERS_MAX = 249


def mirror_name(cluster: str, topic: str) -> str:
    """Returns the name of the mirror topic for a topic of a source cluster."""
    return f"{cluster}.{topic}"


def wanted(names: Iterable[str], patterns: Sequence[re.Pattern[str]], here: str) -> list[str]:
    """Selects from `names` the topics to mirror. (Later, the configs of a selected topic may still
    exclude it.) here: the name of this cluster. Topics of the source that are mirrors of this
    cluster's topics are left out.
    """
    return sorted(
        name
        for name in names
        if name == AUDIT_TOPIC
        or (
            not _is_internal(name)
            and not name.startswith(f"{here}.")
            and any(pattern.fullmatch(name) for pattern in patterns)
        )
    )


def is_mirror(configs: Mapping[str, str]) -> bool:
    """Returns whether a topic with these configs is a mirror in its own cluster."""
    return bool(configs.get(CLUSTER_CONFIG))


def name_refusal(cluster: str, topic: str) -> str | None:
    """Returns None if a topic can have the name `mirror_name(cluster, topic)`. If the name is too
    long, returns a sentence that says so.
    """
    name = mirror_name(cluster, topic)
    if len(name) > TOPIC_CHARACTERS_MAX:
        return f"its name here would be longer than {TOPIC_CHARACTERS_MAX}: {len(name)} characters"
    return None


def _is_internal(name: str) -> bool:
    """Returns whether the name, without the prefix of a cluster if it has one, begins with an
    underscore.
    """
    return name.startswith(INTERNAL) or name.partition(".")[2].startswith(INTERNAL)

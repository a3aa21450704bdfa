"""Which topics of a source cluster are mirrored, and what they are called here.

The audit topic is mirrored always; other topics whose name begins with `_` never, whatever the
patterns say. What is itself a mirror in the source is left out, and so is what came from here:
mirrors never feed each other in a circle.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

AUDIT_TOPIC = "_skidway_audit"
INTERNAL = "_"
TOPIC_CHARACTERS_MAX = 249


def mirror_name(cluster: str, topic: str) -> str:
    """What a topic of that cluster is called in a mirror."""
    return f"{cluster}.{topic}"


def wanted(names: Iterable[str], patterns: Sequence[re.Pattern[str]], here: str) -> list[str]:
    """The topics to be mirrored among `names`, but for those whose configs say otherwise.

    here: the name of our own cluster, whose mirrors in the source are not copied back.
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
    """Whether a topic with these configs is a mirror in its own cluster."""
    return bool(configs.get("mirror.source.cluster"))


def name_refusal(cluster: str, topic: str) -> str | None:
    """Why a topic cannot be mirrored under its name; None if it can."""
    name = mirror_name(cluster, topic)
    if len(name) > TOPIC_CHARACTERS_MAX:
        return f"its name here would be longer than {TOPIC_CHARACTERS_MAX}: {len(name)} characters"
    return None


def _is_internal(name: str) -> bool:
    """Whether the name, behind a cluster's prefix, begins with an underscore."""
    return name.startswith(INTERNAL) or name.partition(".")[2].startswith(INTERNAL)

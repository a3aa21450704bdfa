"""Decides which topics of a source cluster are mirrored, and under which names.

The audit topic is always mirrored. Other topics whose names begin with `_` are never mirrored, even
if a pattern matches them. The selection leaves out topics that are themselves mirrors in the
source. It also leaves out topics of the source that have the name of a mirror of one of this
cluster's topics, or the name of a mirror of an internal topic. Otherwise two clusters would mirror
the same records back and forth. A topic that is no mirror may have such a name, too. `mistakable`
finds the topics with such names, so that the mirror can report them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from skidway.kafka.source import CLUSTER_CONFIG
from skidway.kafka.topic_names import TOPIC_NAME_MAX

AUDIT_TOPIC = "_skidway_audit"
INTERNAL = "_"


def mirror_name(cluster: str, topic: str) -> str:
    """Returns the name of the mirror topic for a topic of a source cluster."""
    return f"{cluster}.{topic}"


def wanted(names: Iterable[str], patterns: Sequence[re.Pattern[str]], here: str) -> list[str]:
    """Selects from `names` the topics to mirror. (Later, the configs of a selected topic may still
    exclude it.) Leaves out a topic that has the name of a mirror of one of this cluster's topics,
    or the name of a mirror of an internal topic. here: the name of this cluster.
    """
    return sorted(
        name
        for name in names
        if name == AUDIT_TOPIC
        or (_is_matched(name, patterns) and _mistaken_for(name, here) is None)
    )


def mistakable(
    names: Iterable[str], patterns: Sequence[re.Pattern[str]], here: str
) -> dict[str, str]:
    """Returns the topics in `names` that `wanted` leaves out only because they have names of
    mirrors, each with the reason. Even if such a topic is no mirror, its records are not mirrored,
    although a pattern matches its name.
    """
    matched = [name for name in names if _is_matched(name, patterns)]
    found = {name: _mistaken_for(name, here) for name in matched}
    return {name: reason for name, reason in found.items() if reason is not None}


def is_mirror(configs: Mapping[str, str]) -> bool:
    """Returns whether a topic with these configs is a mirror in its own cluster."""
    return bool(configs.get(CLUSTER_CONFIG))


def name_refusal(cluster: str, topic: str) -> str | None:
    """Returns None if a topic can have the name `mirror_name(cluster, topic)`. If the name is too
    long, returns a sentence that says so.
    """
    name = mirror_name(cluster, topic)
    if len(name) > TOPIC_NAME_MAX:
        return f"its name here would be longer than {TOPIC_NAME_MAX}: {len(name)} characters"
    return None


def _is_matched(name: str, patterns: Sequence[re.Pattern[str]]) -> bool:
    return not name.startswith(INTERNAL) and any(each.fullmatch(name) for each in patterns)


def _mistaken_for(name: str, here: str) -> str | None:
    cluster, _, topic = name.partition(".")
    if name.startswith(f"{here}."):
        return f"names that begin with {here}. are for mirrors of topics of {here}"
    if topic.startswith(INTERNAL):
        return f"names that begin with {cluster}.{INTERNAL} are for mirrors of internal topics"
    return None

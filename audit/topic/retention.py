"""The report of a counter about how long the brokers of its cluster keep the records of topics, as
the body of a note (see module notes).

    {"topics": [[CLUSTER, CLUSTER_ID, TOPIC, TOPIC_ID, MS], ...]}

The names are those of the source topic, even if the cluster has only a mirrored copy. MS is the
value of the topic's setting `retention.ms`. If the topic has no such limit, or also has the setting
`retention.bytes` or `retention.hold`, MS would not show when records expire. So the note leaves out
such a topic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple
from typing import Any, Final

from skidway.audit.topic.notes import Note, is_count
from skidway.kafka.source import Source

KIND: Final = "retention"
TOPICS_MAX: Final = 500


def known_ms(settings: Mapping[str, str]) -> int | None:
    """Returns for how long (ms) the brokers keep the records of a topic with these settings. None
    if the settings do not determine this (see the module's docstring).
    """
    ms, size = settings.get("retention.ms", ""), settings.get("retention.bytes", "-1")
    is_by_time = "delete" in settings.get("cleanup.policy", "delete") and size == "-1"
    if settings.get("retention.hold") or not is_by_time or not ms.isdecimal():
        return None
    return int(ms)


def body_of(found: Mapping[Source, int]) -> dict[str, Any]:
    """Returns the body of a note, with at most TOPICS_MAX topics: those with the shortest
    retention. found: the retention of each topic, in ms.
    """
    soonest = sorted(found.items(), key=lambda x: (x[1], astuple(x[0])))[:TOPICS_MAX]
    return {"topics": [[x.cluster, x.cluster_id, x.topic, x.topic_id, ms] for x, ms in soonest]}


def retention_of(note: Note) -> dict[Source, int]:
    """Returns the retention of each topic in a note, in ms. Leaves out entries that do not have the
    form that `body_of` gives them.
    """
    rows = note.body.get("topics")
    found = {}
    for row in rows[:TOPICS_MAX] if isinstance(rows, list) else ():
        if isinstance(row, list) and len(row) == 5:
            *names, ms = row
            if is_count(ms) and all(isinstance(x, str) for x in names):
                found[Source(*names)] = int(ms)
    return found

"""The report of an agent about members and keys of lines for which the schemas of its topics have
no field, so that the agent left them out. The report is the body of a note (see module notes).

    {"since": MS, "topics": [{"topic": NAME, "members": {MEMBER: LINES, "(others)": TIMES}}]}

The counts begin at `since`: when the agent started, or took changed settings. They say nothing
about earlier lines, and lines that are sent again after a crash are counted again. A note has at
most NAMES_MAX members of a topic. If it would have more than BYTES_MAX bytes, it names only some
members, and `(others)` counts the rest.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from skidway.audit.topic.notes import Note, is_count

KIND: Final = "fieldless"
TOPICS_MAX: Final = 100
NAMES_MAX: Final = 100
NAME_CHARACTERS_MAX: Final = 64
OTHERS: Final = "(others)"
BYTES_MAX: Final = 64 * 1024

Members = Mapping[str, int]
"""By name of a member, the number of lines in which it had no field. OTHERS counts all further
members together."""


@dataclass(frozen=True, slots=True)
class FieldlessMembers:
    """Members without a field, by topic. since_ms: when the count began; None if unknown."""

    since_ms: int | None = None
    topics: Mapping[str, Members] = field(default_factory=dict)


def body_of(found: FieldlessMembers) -> dict[str, Any]:
    """The report as the body of a note."""
    most = sorted(found.topics.items(), key=lambda each: (-sum(each[1].values()), each[0]))
    room, topics = BYTES_MAX, []
    for topic, members in most[:TOPICS_MAX]:
        size = len(json.dumps(members))
        if size > room:
            members, size = {OTHERS: sum(members.values())}, 0
        room -= size
        topics.append({"topic": topic, "members": dict(members)})
    return {"since": found.since_ms, "topics": topics}


def fieldless_of(note: Note) -> FieldlessMembers:
    """Returns the report in a note. Leaves out values that do not have the form that the module's
    docstring shows."""
    since, listed = note.body.get("since"), note.body.get("topics")
    topics = {
        each["topic"]: _members(each.get("members"))
        for each in (listed[:TOPICS_MAX] if isinstance(listed, list) else ())
        if isinstance(each, dict) and isinstance(each.get("topic"), str)
    }
    return FieldlessMembers(since if is_count(since) else None, topics)


def by_topic(notes: Iterable[Note]) -> dict[tuple[str, str], Counter[str]]:
    """Returns, by cluster and topic, the members without a field that all agents together have
    counted, each with its number of lines. Topics without such members are left out."""
    found: dict[tuple[str, str], Counter[str]] = {}
    for note in notes:
        if note.kind == KIND:
            for topic, members in fieldless_of(note).topics.items():
                if members:
                    found.setdefault((note.cluster, topic), Counter()).update(members)
    return found


def _members(found: object) -> Members:
    if not isinstance(found, dict):
        return {}
    known = [(name, count) for name, count in found.items() if is_count(count) and _is_name(name)]
    return dict(known[: NAMES_MAX + 1])


def _is_name(name: str) -> bool:
    return len(name) <= NAME_CHARACTERS_MAX and name.isprintable()

"""Reports which members of lines the agents left out, because a topic's schema has no field for
them. Changes no verdict: the lines themselves arrive."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from skidway.audit.reports.topic_names import is_named, topic_name
from skidway.audit.topic.fieldless_note import OTHERS, Members, by_topic
from skidway.audit.topic.notes import Note
from skidway.kafka.source import Source

NAMED_MAX: Final = 5
"""A sentence names at most this many members; the JSON document has all that agents named."""


def fieldless(notes: Iterable[Note], names: Sequence[str] | None) -> dict[Source, Members]:
    """Returns, by topic, the members without a field and the number of lines in which agents left
    each out, since they started. names: the topics; None for all. The sources have no ids, because
    the notes have none."""
    found = {Source(cluster, "", topic, ""): x for (cluster, topic), x in by_topic(notes).items()}
    return {
        source: dict(sorted(members.items(), key=lambda each: (-each[1], each[0])))
        for source, members in sorted(found.items(), key=lambda each: topic_name(each[0]))
        if names is None or is_named(source, names)
    }


def sentences(found: Mapping[Source, Members]) -> list[str]:
    """One sentence for each topic."""
    return [f"{topic_name(source)}: {words(members)}" for source, members in found.items()]


def words(members: Members) -> str:
    """Says which members have no field, the most frequent first."""
    named = [
        f"{name} (in {count:,} line{'' if count == 1 else 's'})"
        for name, count in members.items()
        if name != OTHERS
    ]
    more = len(named) - NAMED_MAX + (OTHERS in members)
    shown = ", ".join(named[:NAMED_MAX]) + (" and more" if named and more > 0 else "")
    return f"no field for {shown or 'some members'}"


def document(found: Mapping[Source, Members]) -> list[dict[str, Any]]:
    """The report as JSON."""
    return [
        {"topic": source.topic, "cluster": source.cluster, "members": dict(members)}
        for source, members in found.items()
    ]

"""The report of a counter about transactions in the topics that it counts, and about partitions
that it cannot count further, as the body of a note (see module notes).

    {"topics": [[CLUSTER, CLUSTER_ID, TOPIC, TOPIC_ID, ABORTED, HELD], ...]}

The names are those of the source topic. ABORTED is the number of records that the counter left out,
because their transactions were aborted. HELD is null, or [PARTITION, OFFSET, SINCE, REASON] if the
counter does not count the records of PARTITION from OFFSET on. REASON says why it has stopped this
partition for good. It is empty if a transaction is open: then nobody counts or loads these records
before it ends. SINCE (ms) is the time up to which the counter has counted all records of the
partition. If several partitions are held, HELD is a stopped one if there is one, and of these the
one with the lowest SINCE. The note leaves out topics that have neither.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, Final, NamedTuple

from skidway.audit.topic.notes import NOTE_BYTES_MAX, Note, is_count
from skidway.kafka.source import Source

KIND: Final = "transactions"
TOPICS_MAX: Final = 500
TOPICS_BYTES_MAX: Final = NOTE_BYTES_MAX // 2
REASON_MAX: Final = 500


class Held(NamedTuple):
    """Where a counter cannot go on, and why (see the module's docstring). reason: "" if it waits
    for the end of a transaction."""

    partition: int
    offset: int
    since_ms: int
    reason: str = ""


class Transactions(NamedTuple):
    """What a counter says about a topic. held: None if nothing holds it up."""

    aborted: int
    held: Held | None = None


def body_of(found: Mapping[Source, Transactions]) -> dict[str, Any]:
    """Returns the body of a note, with at most TOPICS_MAX topics and TOPICS_BYTES_MAX bytes: first
    the topics that are held, and of the others those with most aborted records."""
    named = {source: x for source, x in found.items() if x.aborted or x.held}
    ordered = sorted(named.items(), key=lambda each: (each[1].held is None, -each[1].aborted))
    rows = [
        [x.cluster, x.cluster_id, x.topic, x.topic_id, told.aborted, told.held and [*told.held]]
        for x, told in ordered[:TOPICS_MAX]
    ]
    ends = accumulate(len(json.dumps(row)) for row in rows)
    return {"topics": [row for row, end in zip(rows, ends, strict=True) if end <= TOPICS_BYTES_MAX]}


def transactions_of(note: Note) -> dict[Source, Transactions]:
    """Returns what a note says about each topic. Leaves out entries that do not have the form that
    `body_of` gives them.
    """
    rows = note.body.get("topics")
    found = {}
    for row in rows[:TOPICS_MAX] if isinstance(rows, list) else ():
        if isinstance(row, list) and len(row) == 6:
            *names, aborted, held = row
            is_sound = is_count(aborted) and (held is None or _is_held(held))
            if is_sound and all(isinstance(x, str) for x in names):
                known = None if held is None else Held(*held)
                found[Source(*names)] = Transactions(aborted, known)
    return found


def _is_held(row: object) -> bool:
    if not isinstance(row, list) or len(row) != 4 or not isinstance(row[-1], str):
        return False
    return all(map(is_count, row[:-1]))

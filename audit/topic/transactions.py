"""The report of a counter about transactions in the topics that it counts, as the body of a note
(see module notes).

    {"topics": [[CLUSTER, CLUSTER_ID, TOPIC, TOPIC_ID, ABORTED, OPEN], ...]}

The names are those of the source topic. ABORTED is the number of records that the counter left out,
because their transactions were aborted. OPEN is null, or [PARTITION, OFFSET, SINCE] if a
transaction is open: nobody counts or loads the records of PARTITION from OFFSET on before it ends.
SINCE (ms) is the time up to which the counter has counted all records of the partition. If
transactions are open in several partitions, OPEN is the one with the lowest SINCE. The note leaves
out topics that have neither.
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


class OpenSince(NamedTuple):
    """A transaction that is open, at an offset of a partition (see the module's docstring)."""

    partition: int
    offset: int
    since_ms: int


class Transactions(NamedTuple):
    """What a counter says about a topic. open: None if no transaction is open."""

    aborted: int
    open: OpenSince | None = None


def body_of(found: Mapping[Source, Transactions]) -> dict[str, Any]:
    """Returns the body of a note, with at most TOPICS_MAX topics and TOPICS_BYTES_MAX bytes: first
    the topics with an open transaction, and of the others those with most aborted records."""
    named = {source: x for source, x in found.items() if x.aborted or x.open}
    ordered = sorted(named.items(), key=lambda each: (each[1].open is None, -each[1].aborted))
    rows = [
        [x.cluster, x.cluster_id, x.topic, x.topic_id, told.aborted, told.open and [*told.open]]
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
            *names, aborted, still_open = row
            is_sound = is_count(aborted) and (still_open is None or _is_open(still_open))
            if is_sound and all(isinstance(x, str) for x in names):
                known = None if still_open is None else OpenSince(*still_open)
                found[Source(*names)] = Transactions(aborted, known)
    return found


def _is_open(row: object) -> bool:
    return isinstance(row, list) and len(row) == 3 and all(map(is_count, row))

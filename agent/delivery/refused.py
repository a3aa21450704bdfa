"""Handles records that a broker refuses: counts a record if an earlier attempt arrived, and
otherwise declares the record lost or uncertain.

    refused, never sent before  lost: no broker has the record, and the broker does not accept it
    refused, sent before        looked for in its partition (search.py says how long this may take)
        found                   counted and passed like an acknowledged record
        not found               lost
        log not readable        uncertain

"Sent before" means that the response to an earlier attempt was lost, or that the intent was made
before the agent started. A record counts as found if it is in the log and readers do not drop it.
In the log, a record that arrived late may stand after records from later bytes of its file; readers
drop such a record.

The checkpoint passes a refused record's intent only when the agent has decided how to account for
the record: as delivered, lost or uncertain. The agent sends the records after the refused record as
soon as a transaction has flagged this intent as refused. Without the flag, the agent would send the
refused record again after a crash. The record would then follow later records, and readers would
drop it. The agent declares a record lost or uncertain only in the transaction in which the
checkpoint passes the intent. If the agent crashes before that transaction, the next process looks
for the record in the log again. If the record is not in the log, the agent may send it again, and
this time the broker may accept it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import numpy as np

from skidway.agent.delivery.outbound import Refusal
from skidway.agent.delivery.presses import Presses
from skidway.agent.delivery.progress import Progress
from skidway.agent.delivery.read_back import Marks, Rows
from skidway.agent.delivery.search import Logs, Search
from skidway.agent.files.tracking import Tracker
from skidway.agent.state.changes import Changes
from skidway.agent.values.intents import Intent
from skidway.agent.values.set_apart import SetApart
from skidway.audit.topic.messages import Certainty
from skidway.kafka.types import TopicPartition

RECORDS_MAX = 10_000
"""If this many refused records are undecided, the agent reads nothing more."""


class Sought:
    """Finds out which of the refused records are in the partitions' logs. A record that readers
    drop as a repeat does not count as found. Does no I/O.
    """

    def __init__(self, agent: int, refusals: Iterable[Refusal]) -> None:
        self._agent = agent
        self._missing: dict[tuple[TopicPartition, int], set[tuple[int, int]]] = defaultdict(set)
        self._marks = Marks()
        for each in refusals:
            self._missing[each.tp, each.file].add((each.first, each.end))

    def add(self, rows: Rows) -> None:
        """Adds the records that were read from a partition."""
        for (tp, file), missing in self._missing.items():
            if tp != rows.tp:
                continue
            mine = (rows.agent == self._agent) & (rows.file == file)
            first = rows.first[mine]
            end = first + rows.length[mine]
            kept = first >= self._marks.move(file, tp, end)
            kept &= np.isin(first, [first for first, _ in missing])
            missing.difference_update(zip(first[kept].tolist(), end[kept].tolist(), strict=True))

    def gap(self, tp: TopicPartition) -> None:
        """Notes that the next records of a partition cannot be read."""
        self._marks.gap(tp)

    def has(self, refusal: Refusal) -> bool:
        """Whether the refused record was found in its partition."""
        return (refusal.first, refusal.end) not in self._missing[refusal.tp, refusal.file]

    def has_all(self) -> bool:
        """Whether all of the refused records were found in their partitions."""
        return not any(self._missing.values())


class Refused:
    """Owns refused records from their refusal until the checkpoint passes their intents."""

    def __init__(
        self,
        tracker: Tracker,
        presses: Presses,
        progress: Progress,
        logs: Logs,
        agent: int,
        wait_s: float,
    ) -> None:
        """wait_s: how long after a refusal an earlier attempt to send the record may still
        arrive."""
        self._tracker = tracker
        self._presses = presses
        self._progress = progress
        self._search = Search(logs, Sought(agent, []))
        self._agent = agent
        self._wait_s = wait_s
        self._asked: list[Refusal] = []
        self._searching: list[Refusal] = []  # the records of the present search
        self._asked_at = self._past_at = 0.0
        self._unmarked: dict[int, Intent] = {}
        self._marking: dict[int, Intent] = {}
        self._apart: defaultdict[int, list[SetApart]] = defaultdict(list)  # by intent: its ranges

    @property
    def is_over(self) -> bool:
        """Whether the agent has decided about every refused record: arrived, lost or uncertain."""
        return not self._asked and not self._searching

    @property
    def has_news(self) -> bool:
        """Whether records have arrived for the search, so that the next turn of the agent's loop
        should begin at once."""
        return self._search.has_news

    @property
    def is_full(self) -> bool:
        """Whether RECORDS_MAX records are undecided, so that the agent must read nothing more."""
        return len(self._asked) + len(self._searching) >= RECORDS_MAX

    @property
    def has_unwritten(self) -> bool:
        """Whether the intent of a refused record is not yet flagged in the state, or the
        transaction with the flag is not durable yet. Until the flag is durable, no batches may be
        sent."""
        return bool(self._unmarked or self._marking)

    def take(self, refusals: Iterable[Refusal], now: float) -> None:
        """Adds records that brokers have just refused. A record that was never sent before is lost;
        the others are searched for."""
        for each in refusals:
            self._unmarked[each.flight.intent.sequence] = each.flight.intent
            if each.was_sent or self._progress.is_of_before(each.flight.intent.sequence):
                self._asked.append(each)
                self._asked_at = now
            else:
                self._set_apart(each, Certainty.LOST, "")

    def write(self, changes: Changes) -> None:
        """Flags the intents of refused records, in this turn's transaction. (After a crash, the
        agent looks for the records of flagged intents, instead of sending them again.) Must be
        called before the checkpoint passes intents in the same transaction, because flagging an
        intent stores it again, even if the checkpoint has already deleted it.
        """
        self._marking |= self._unmarked
        self._presses.mark_refused(changes, self._unmarked.values())
        self._unmarked = {}

    def committed(self) -> None:
        """Notes that the flags that `write` wrote are durable."""
        self._marking = {}

    def turn(self, now: float) -> None:
        """Processes the responses that have arrived from brokers, without waiting for more. Decides
        for each refused record whether it arrived, is lost or is uncertain, as soon as this is
        known.
        """
        if not self._searching and self._asked:
            self._begin(now)
        if not self._searching:
            return
        self._search.turn(now, is_past=now >= self._past_at)
        self._searching = [each for each in self._searching if not self._decide(each)]
        if not self._searching:
            self._search.end()

    def passed(self, intents: Iterable[int]) -> list[SetApart]:
        """Called when the checkpoint passes these intents. Returns the byte ranges of those refused
        records of the intents that must be declared lost or uncertain.
        """
        return [each for intent in intents for each in self._apart.pop(intent, [])]

    def status(self, now: float) -> dict[str, object] | None:
        """Returns, for /health, how many refused records are undecided, and what the search for
        them waits for; None if no record is undecided."""
        if self.is_over:
            return None
        count = len(self._searching) + len(self._asked)
        return {"records": count, **self._search.status(self._past_at, now)}

    def silent_s(self, now: float) -> Mapping[TopicPartition, float]:
        """Returns the partitions that the search has not read up to their high watermarks, each
        with the time (s) since the search last made progress in any partition."""
        return self._search.silent_s(now)

    def _begin(self, now: float) -> None:
        self._searching, self._asked = self._asked, []
        self._past_at = self._asked_at + self._wait_s
        floors = self._progress.floors_of({each.tp for each in self._searching})
        self._search.begin(Sought(self._agent, self._searching), floors, now)

    def _decide(self, refusal: Refusal) -> bool:
        if self._search.found.has(refusal):
            refusal.land()
            return True
        if not self._search.knows((refusal.tp,)):
            return False
        self._set_apart(refusal, *self._search.verdict((refusal.tp,)))
        return True

    def _set_apart(self, refusal: Refusal, certainty: Certainty, more: str) -> None:
        refusal.set_apart(certainty)
        reason = f"the broker refuses the record: {refusal.reason}{more}"
        tracked = self._tracker.files[refusal.file]
        apart = SetApart(tracked, refusal.first, refusal.end, certainty, reason)
        self._apart[refusal.flight.intent.sequence].append(apart)

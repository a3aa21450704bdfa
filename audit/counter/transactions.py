"""What the counter says about transactions (where one is open, and how many records were aborted),
and about partitions that it has stopped counting.

The records behind an open transaction cannot be read, so they are not counted. Heartbeats say up to
when the counter has counted (see counted_until). The note (audit.topic.transactions) says why it
has not counted further.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from skidway import log
from skidway.audit.topic import notes, transactions
from skidway.audit.topic.messages import Sender
from skidway.audit.topic.notes import Note
from skidway.audit.topic.transactions import REASON_MAX, Held, Transactions
from skidway.clock import Clock
from skidway.kafka.client.transactions import OpenTransaction
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition

TELL_EVERY_S = 300.0
CHANGES_EVERY_S = 5.0
LONG_S = 60.0
"""After this time, a transaction is named in the log and in /health. By default, producers of Kafka
end a transaction after this time (`transaction.timeout.ms`)."""

Open = Mapping[TopicPartition, OpenTransaction]

_log = log.get(__name__)


class Known(NamedTuple):
    """What the counter knows about a partition. aborted: how many records were aborted. until_ms:
    up to when all records are counted. next_offset: up to which offset. stopped: why it cannot be
    counted further; "" if it can."""

    aborted: int
    until_ms: int
    next_offset: int
    stopped: str


class CountedTransactions:
    """The transactions in the partitions that one counter counts. Only one thread uses this
    object."""

    def __init__(self, sender: Sender, clock: Clock) -> None:
        self._sender = sender
        self._clock = clock
        self._named: dict[TopicPartition, int] = {}
        self._told: object = None
        self._look_at = self._tell_at = clock.monotonic()

    def long_open(self, now_open: Open) -> dict[str, str]:
        """Returns, for each partition in which a transaction has been open for long, a text for
        /health. Logs each of these transactions once."""
        found = {}
        for tp, each in now_open.items():
            open_s = self._clock.monotonic() - each.since
            if open_s < LONG_S:
                continue
            since = datetime.fromtimestamp(self._clock.time_ms() // 1000 - round(open_s), UTC)
            words = f"a transaction is open at offset {each.offset} since {since:%FT%TZ}"
            found[str(tp)] = f"{words}: nothing behind it is counted or loaded"
            if self._named.get(tp) != each.offset:
                self._named[tp] = each.offset
                _log.warning("transaction_open", partition=str(tp), reason=found[str(tp)])
        return found

    @property
    def is_due(self) -> bool:
        """Whether it is time to look whether there is something to tell."""
        return self._clock.monotonic() >= self._look_at

    def note(
        self,
        number: int,
        partitions: Mapping[tuple[Source, TopicPartition], Known],
        now_open: Open,
    ) -> bytes | None:
        """Returns the bytes of a note; None if nothing has changed since the last note, and this
        was not long ago. number: the number of the counter's last numbered message. partitions:
        what is known about each counted partition."""
        now = self._clock.monotonic()
        self._look_at = now + CHANGES_EVERY_S
        facts = (
            {key: (known.aborted, known.stopped) for key, known in partitions.items()},
            dict(now_open),
        )
        if facts == self._told and now < self._tell_at:
            return None
        self._told, self._tell_at = facts, now + TELL_EVERY_S
        body = transactions.body_of(_by_source(partitions, now_open))
        who, now_ms, kind = self._sender, self._clock.time_ms(), transactions.KIND
        return notes.encode(
            Note(kind, who.producer, who.host, who.cluster, who.epoch, number, now_ms, body)
        )


def _by_source(
    partitions: Mapping[tuple[Source, TopicPartition], Known], now_open: Open
) -> dict[Source, Transactions]:
    counts: Counter[Source] = Counter()
    worst: dict[Source, Held] = {}
    for (source, tp), known in partitions.items():
        counts[source] += known.aborted
        if known.stopped or tp in now_open:
            at = known.next_offset if known.stopped else now_open[tp].offset
            found = Held(tp.partition, at, known.until_ms, known.stopped[:REASON_MAX])
            worst[source] = min(worst.get(source, found), found, key=_least_hope)
    return {source: Transactions(count, worst.get(source)) for source, count in counts.items()}


def _least_hope(held: Held) -> tuple[bool, int]:
    return not held.reason, held.since_ms

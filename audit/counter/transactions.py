"""What the counter says about transactions: where one is open, and how many records were aborted.

The records behind an open transaction cannot be read, so they are not counted. The counter reports
this in a note (audit.topic.transactions). It takes the report back only when a commit has stored
the counts of all records that were held back. Otherwise the audit could call a bucket complete just
before these counts arrive.
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
from skidway.audit.topic.transactions import OpenSince, Transactions
from skidway.clock import Clock
from skidway.kafka.client.transactions import OpenTransaction
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition

TELL_EVERY_S = 300.0
CHANGES_EVERY_S = 5.0
LONG_S = 60.0
"""After this time, a transaction is named in the log and in /health. By default, producers of Kafka
end a transaction after this time (`transaction.timeout.ms`)."""

Open = dict[TopicPartition, OpenTransaction]

_log = log.get(__name__)


class Known(NamedTuple):
    """What the counter knows about a partition. aborted: how many records were aborted. newest_ms:
    the greatest timestamp in the newest batch that was read. If the counter finds a transaction
    open at its start, it does not know since when. But the transaction began after this batch."""

    aborted: int
    newest_ms: int


class CountedTransactions:
    """The transactions in the partitions that one counter counts. Only one thread uses this
    object."""

    def __init__(self, sender: Sender, clock: Clock) -> None:
        self._sender = sender
        self._clock = clock
        self._open: Open = {}
        self._named: dict[TopicPartition, int] = {}
        self._told: object = None
        self._told_open: Open = {}
        self._look_at = self._tell_at = clock.monotonic()

    def found(self, now_open: Mapping[TopicPartition, OpenTransaction]) -> None:
        """Notes in which partitions a transaction is open now."""
        for tp, each in now_open.items():
            self._open[tp] = self._open.get(tp, each)._replace(end=each.end)

    def counted(
        self,
        positions: Mapping[TopicPartition, int],
        now_open: Mapping[TopicPartition, OpenTransaction],
    ) -> None:
        """Forgets transactions that have ended, if everything that they held back is counted.
        positions: up to which offsets the durable counts of each partition reach."""
        for tp, each in list(self._open.items()):
            next_one = now_open.get(tp)
            if next_one is None and positions.get(tp, each.end) >= each.end:
                del self._open[tp]
            elif next_one is not None and positions.get(tp, 0) >= next_one.offset:
                self._open[tp] = next_one

    def long_open(self) -> dict[str, str]:
        """Returns, for each partition in which a transaction has been open for long, a text for
        /health. Logs each of these transactions once."""
        found = {}
        for tp, each in self._open.items():
            if self._clock.monotonic() - each.since < LONG_S:
                continue
            since = datetime.fromtimestamp(self._since_ms(each) // 1000, UTC)
            words = f"a transaction is open at offset {each.offset} since {since:%FT%TZ}"
            found[str(tp)] = f"{words}: nothing behind it is counted or loaded"
            if self._named.get(tp) != each.offset:
                self._named[tp] = each.offset
                _log.warning("transaction_open", partition=str(tp), reason=found[str(tp)])
        return found

    def due(
        self, number: int, partitions: Mapping[tuple[Source, TopicPartition], Known]
    ) -> bytes | None:
        """Returns the bytes of a note if one is due. A transaction that was just found is told at
        once, before the counter's next heartbeat says that all is counted. number: the number of
        the counter's last numbered message. partitions: what is known about each counted
        partition."""
        now = self._clock.monotonic()
        is_new = not self._open.keys() <= self._told_open.keys()
        if now < self._look_at and not is_new:
            return None
        self._look_at = now + CHANGES_EVERY_S
        still_open = dict(self._open)
        facts = {key: known.aborted for key, known in partitions.items()}, still_open
        if facts == self._told and now < self._tell_at:
            return None
        self._told, self._told_open, self._tell_at = facts, still_open, now + TELL_EVERY_S
        body = transactions.body_of(self._by_source(partitions))
        who, now_ms, kind = self._sender, self._clock.time_ms(), transactions.KIND
        return notes.encode(
            Note(kind, who.producer, who.host, who.cluster, who.epoch, number, now_ms, body)
        )

    def _by_source(
        self, partitions: Mapping[tuple[Source, TopicPartition], Known]
    ) -> dict[Source, Transactions]:
        counts: Counter[Source] = Counter()
        oldest: dict[Source, OpenSince] = {}
        for (source, tp), known in partitions.items():
            counts[source] += known.aborted
            each = self._open.get(tp)
            if each is not None:
                since_ms = self._since_ms(each)
                if each.is_older:
                    since_ms = max(min(since_ms, known.newest_ms), 0)
                found = OpenSince(tp.partition, each.offset, since_ms)
                oldest[source] = min(oldest.get(source, found), found, key=lambda x: x.since_ms)
        return {source: Transactions(count, oldest.get(source)) for source, count in counts.items()}

    def _since_ms(self, each: OpenTransaction) -> int:
        waited_s = self._clock.monotonic() - each.since
        return max(self._clock.time_ms() - round(waited_s * 1000), 0)

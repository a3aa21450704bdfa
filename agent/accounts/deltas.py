"""Collects the counts of records that the checkpoint passed, and the declared losses, and makes
numbered deltas of them. A delta is an audit message with counts by bucket (`audit.bucket.ms` of
event time).

The sums of these counts become durable in the transaction that moves the checkpoint. Every
`audit.interval.ms`, and before each seal, the transaction of a turn also replaces the sums by
numbered deltas. The database contains the same sums as the object `Deltas`, so a crash between the
two transactions neither loses nor doubles a count.

The deltas of a bucket form a chain: each delta names the number of the bucket's previous delta. A
line can come late, so the database keeps the number of a bucket's last delta until the bucket size
or the epoch changes. Without this number, the delta that counts the late line could not continue
the chain. Each bucket that ever had a line costs a row of about 100 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from skidway.agent.accounts.mail import Mail
from skidway.agent.state.changes import Changes
from skidway.audit.counts.counts import BucketKey, Counts, Sums
from skidway.audit.counts.deltas import number_deltas, number_seals
from skidway.audit.topic.messages import Heartbeat, Loss, Sender
from skidway.audit.topic.seal_columns import SealedTopic

Previous = Callable[[Iterable[BucketKey]], Mapping[BucketKey, int]]


class Deltas:
    """Owns the sequence numbers of this agent's audit messages, and the counts and losses that no
    delta contains yet."""

    def __init__(
        self,
        sender: Sender,
        number: int,
        bucket_ms: int,
        mail: Mail,
        previous: Previous,
        sums: Iterable[tuple[BucketKey, Sums]] = (),
        losses: Iterable[Loss] = (),
    ) -> None:
        """number: the last sequence number that was used. previous: a function that looks up the
        numbers of the buckets' last deltas. sums, losses: those sums and losses in the state that
        no delta contains yet.
        """
        # This method has seven arguments, because an agent that was restarted continues with the
        # numbers, buckets and counts that it had before.
        self._sender = sender
        self._mail = mail
        self._previous = previous
        self._counts = Counts(bucket_ms)
        for key, each in sums:
            self._counts.put(key, each)
        self._losses = list(losses)
        # By bucket: the number of the bucket's last delta. The entry is deleted when the
        # transaction with this delta is durable.
        self._touched: dict[BucketKey, int] = {}
        self.number = number

    @property
    def is_empty(self) -> bool:
        """Whether no count and no declared loss waits for a delta."""
        return not len(self._counts) and not self._losses

    def passed(self, counts: Iterable[Counts], changes: Changes) -> None:
        """Adds the counts of records that the checkpoint (the position up to which a file is
        accounted for) passes in this transaction."""
        touched: dict[BucketKey, None] = {}
        for each in counts:
            for key, sums in each.items():
                self._counts.put(key, sums)
                touched[key] = None
        if touched:
            known = dict(self._counts.items())
            changes.put_sums((key, known[key]) for key in touched)

    def lost(self, loss: Loss, now_ms: int, changes: Changes) -> None:
        """Adds a loss that is declared in this transaction."""
        self._losses.append(loss)
        changes.put_loss(loss, now_ms)

    def cut(self, now_ms: int, changes: Changes) -> None:
        """Makes numbered deltas of all counts and losses that are in no delta yet."""
        if self.is_empty:
            return
        keys = [key for key, _ in self._counts.items()]
        numbered = number_deltas(
            self._sender,
            now_ms,
            self.number,
            self._counts,
            {**self._previous(keys), **self._touched},
            losses=self._losses,
        )
        for delta in numbered.deltas:
            self._mail.stage(delta, number=delta.number)
        self._use(numbered.last, changes)
        changes.clear_sums()
        changes.put_touched(numbered.touched.items())
        self._touched.update(numbered.touched)
        changes.number_losses(numbered.last)
        self._counts.clear()
        self._losses.clear()

    def committed(self) -> None:
        """Notes that the transaction is durable. From now on `previous` reads the numbers of the
        transaction's deltas from the database.
        """
        self._touched.clear()

    def seal(self, topics: list[SealedTopic], now_ms: int, changes: Changes) -> None:
        """Gives numbers to the seals of these topics, and adds the seals to the outbox. Deltas must
        already contain all counts that these seals confirm."""
        for seal in number_seals(self._sender, now_ms, self.number, topics):
            self._mail.stage(seal, number=seal.number)
            self._use(seal.number, changes)

    def prove_life(self, now_ms: int) -> None:
        """Adds a heartbeat to the outbox. The heartbeat gets no new number: it names the number of
        the last delta or seal."""
        self._mail.stage(Heartbeat(self._sender, self.number, now_ms))

    def _use(self, number: int, changes: Changes) -> None:
        self.number = number
        changes.put_meta("number", number)

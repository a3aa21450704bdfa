"""The fleet of `audit_fleet_model`, with further events that concern the collector's store: Old
buckets are deleted, and messages about these buckets come later. The disk is full for a moment. The
store is rebuilt. Buckets have different sizes, or begin before 1970 or in the future. A topic is
deleted and created again.
"""

from __future__ import annotations

import sqlite3

from skidway.audit.evidence.ledger import Ledger
from skidway.audit.evidence.pruning import OldBucket, digest_of
from skidway.audit.evidence.tallies import BucketTallies
from skidway.audit.judgement.completeness import is_good
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import TOPIC, Certainty, Delta, Loss, Tier
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition
from support.audit_fleet_model import SIZE, AuditFleet, Teller
from support.audit_senders import LOGS, OTHER, REJECTED

MADE_AGAIN = Source(LOGS.cluster, LOGS.cluster_id, LOGS.topic, "made again")
HOUR = 60 * SIZE
AUDIT = TopicPartition(TOPIC, 0)
FULL_PAGES = 1 << 30

Deleted = tuple[Source, int, int]
"""Topic, start and size of a bucket that was deleted."""


class StoredFleet(AuditFleet):
    """The fleet, with events that concern the collector's store. If `rebuilds` is true, the store
    is sometimes rebuilt. `deleted` contains the buckets that were deleted, and `happened` says how
    often each event happened.
    """

    def __init__(self, seed: int, *, rebuilds: bool = True) -> None:
        self.deleted: list[Deleted] = []
        self.happened: dict[str, int] = {}
        self.rebuilds = rebuilds
        super().__init__(seed)

    def step(self) -> None:
        """Lets one random event happen."""
        if self.random.random() < 0.7:
            return super().step()
        fates = [
            self._prune, self._prune, self._come_late, self._lose_late, self._use_other_size,
            self._write_long_ago, self._write_ahead, self._make_again, self._fill_disk,
            self._send_old_number, self._rebuild, self._narrow,
        ]  # fmt: skip
        fate = self.random.choice(fates)
        self.happened[fate.__name__] = self.happened.get(fate.__name__, 0) + 1
        return fate()

    def old(self) -> list[OldBucket]:
        """Returns the buckets that may be deleted according to their verdicts. Ignores how old the
        buckets are."""
        evidence = self.ledger.evidence()
        found = []
        for each in verdicts(evidence, self.policy, self.clock.time_ms()):
            key = each.bucket, each.bucket_ms
            tallies = evidence.topic(each.source).tallies.get(key)
            if isinstance(tallies, BucketTallies) and is_good(each):
                found.append(OldBucket(each.source, *key, digest_of(tallies.columns)))
        return found

    def _prune(self) -> None:
        old = self.old()
        chosen = self.random.sample(old, min(len(old), self.random.choice([1, 3, 100])))
        if self.random.random() < 0.3:  # an event between judging these buckets and deleting them
            super().step()
        before = self._counted()
        self.ledger.prune(chosen, self.clock.time_ms() - self.random.choice([0, HOUR]))
        self.deleted += sorted(before - self._counted(), key=repr)

    def _narrow(self) -> None:
        narrow_some(self, self.ledger)

    def _counted(self) -> set[Deleted]:
        return {(source, *key) for source, keys in self.ledger.buckets().items() for key in keys}

    def _come_late(self) -> None:
        if self.deleted:
            self._tell(*self.random.choice(self.deleted))

    def _lose_late(self) -> None:
        if not self.deleted:
            return
        (source, start, _), teller = self.random.choice(self.deleted), self._any_agent()
        agent, certainty = int(teller.sender.producer), self.random.choice([*Certainty])
        loss = Loss(source, agent, 4, 0, 50, certainty, "it vanished", start, start)
        teller.last += 1
        self._send(Delta(teller.sender, teller.last, self.clock.time_ms(), losses=(loss,)))

    def _use_other_size(self) -> None:
        size = self.random.choice([1_000, HOUR, 2 * HOUR])
        self._tell(LOGS, (self.clock.time_ms() // size - self.random.randrange(3)) * size, size)

    def _write_long_ago(self) -> None:
        self._tell(LOGS, -SIZE * self.random.randrange(1, 200))

    def _write_ahead(self) -> None:
        ahead = self.random.choice([1, 5, 100, 10**6])
        self._tell(OTHER, (self.clock.time_ms() // SIZE + ahead) * SIZE)

    def _make_again(self) -> None:
        self._tell(self.random.choice([MADE_AGAIN, REJECTED]), self._bucket())

    def _fill_disk(self) -> None:
        """Lets a transaction of the store fail because the disk is full, and then repeats the
        transaction.
        """
        connection, sent = self.ledger._connection, len(self.sent)
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages}")
        try:
            self._tell(LOGS, self._bucket())
        except sqlite3.OperationalError:
            self.happened["disk full"] = self.happened.get("disk full", 0) + 1
            connection.execute(f"PRAGMA max_page_count={FULL_PAGES}")
            self._take(self.sent[sent:])
        connection.execute(f"PRAGMA max_page_count={FULL_PAGES}")

    def _send_old_number(self) -> None:
        """Lets a copy of a sender (for example, a cloned host) use a message number again. The
        store may have already deleted the digest of the first message with this number.
        """
        teller = self.random.choice([*self._running(), *self.counters])
        number = self.random.randint(1, max(1, teller.last))
        now = self.clock.time_ms() - self.random.choice([0, 10**6, 10**9])
        count = Count(LOGS, 100, self._bucket(), SIZE, 1, 1, self.random.getrandbits(20))
        self._send(Delta(teller.sender, number, now, counts=(count,)))

    def _rebuild(self) -> None:
        if self.rebuilds:
            self.ledger.rebuild({AUDIT: 0 if self.ledger.rebuilding else self.offset + 1})

    def _any_agent(self) -> Teller:
        return self.random.choice(self._running())

    def _tell(self, source: Source, start: int, size: int = SIZE) -> None:
        """Lets an agent send a delta that counts one record of the bucket of `size` ms that begins
        at `start`. Each counter counts the record, too, with a probability of 0.9.
        """
        agent = self._any_agent()
        number = int(agent.sender.producer)
        for teller in [agent, *(x for x in self.counters if self.random.random() < 0.9)]:
            teller.last += 1
            if teller.sender.tier is Tier.AGENT:
                teller.last_delta = teller.last
            key = source, number, start
            previous, teller.touched[key] = teller.touched.get(key, 0), teller.last
            count = Count(source, number, start, size, 1, 1, 1, previous=previous)
            now = self.clock.time_ms()
            self._send(Delta(teller.sender, teller.last, now, counts=(count,)))


def narrow_some(fleet: AuditFleet, ledger: Ledger) -> int:
    """Lets the ledger shorten the stored checksums of randomly chosen buckets. Returns the number
    of these buckets.
    """
    counted = [(x, key) for x, keys in ledger.buckets().items() for key in sorted(keys)]
    chosen = [each for each in counted if fleet.random.random() < 0.3]
    ledger.narrow(chosen)
    return len(chosen)

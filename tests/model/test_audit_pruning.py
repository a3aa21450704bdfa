"""Under random schedules, a ledger (the store of a collector) that deletes old buckets calls a
bucket complete only if a ledger with all buckets does so, too.

Two ledgers take the same messages. One of them deletes old buckets at random moments. After each
step, the test compares their verdicts.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Sequence

import pytest

from skidway.audit.collector import pruning
from skidway.audit.collector.pruning import CLOCK_S, DAY_MS, DELETED_MAX, OldBuckets
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.evidence.pruning import OldBucket
from skidway.audit.evidence.tallies import BucketId
from skidway.audit.judgement import acceptances
from skidway.audit.judgement.completeness import completeness, is_good
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.standing import judged
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import BucketVerdict, Status
from skidway.audit.reports.completeness_question import question
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import (
    Certainty,
    Delta,
    Loss,
    Message,
    Range,
    Seal,
    Sender,
    Tier,
    encode,
)
from skidway.audit.topic.seal_columns import SealedTopic
from skidway.errors import UsageError
from support.audit_senders import LOGS
from support.clock import ManualClock
from support.ledgers import take
from support.promises import promise
from support.randomness import Seeds

SIZE, DAYS = 60_000, 8
POLICY = Policy(tiers=(Tier.AGENT, Tier.BROKER), lateness_ms=0, silence_ms=10**12)
AGENTS = [Sender(Tier.AGENT, "dc1", str(x), f"web{x}", 1) for x in (7, 8)]
BROKER = Sender(Tier.BROKER, "dc1", "broker-dc1", "c1", 1)


class Site:
    """Two agents and a counter, and two ledgers that take their messages: `full` keeps all buckets,
    and `lean` deletes old ones. `pruned` has the buckets that `lean` deleted, and says for each of
    them whether records of the bucket came after the deletion. `came_after_pruning` becomes True
    when a record of a deleted bucket comes, or when an agent declares a loss after a deletion.
    (`lean` does not show the loss in deleted buckets.)"""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.clock = ManualClock(time_ms=1_700_000_000_000 // SIZE * SIZE)
        self.begin_ms = self.clock.time_ms()
        self.full, self.lean = Ledger(), Ledger()
        self.old = OldBuckets(self.lean, lambda: POLICY, self.clock, DAYS)
        self.last = dict.fromkeys((*AGENTS, BROKER), 0)
        self.touched: dict[tuple[Sender, int, int], int] = {}
        self.said: list[Message] = []
        self.pruned: dict[BucketId, bool] = {}
        self.came_after_pruning = False

    def tell(self, *said: Message) -> None:
        self.said += said
        for ledger in (self.full, self.lean):
            take(ledger, [encode(x) for x in said], now_ms=self.clock.time_ms())

    def count(self, sender: Sender, agent: int, bucket: int, records: int) -> None:
        number = self.last[sender] = self.last[sender] + 1
        previous = self.touched.get((sender, agent, bucket), 0)
        self.touched[sender, agent, bucket] = number
        counted = Count(LOGS, agent, bucket, SIZE, records, records, records, previous=previous)
        ranges = (Range(LOGS, 0, 0, 5),) if sender is BROKER else ()
        self.tell(Delta(sender, number, self.clock.time_ms(), ranges, (counted,)))
        if (bucket, SIZE) in self.pruned:
            self.pruned[bucket, SIZE] = self.came_after_pruning = True

    def write(self) -> None:
        """An agent counts lines, mostly with the present time. In most cases the counter counts
        these lines, too."""
        sender = self.chance.choice(AGENTS)
        ago = self.chance.choice([0, 0, 0, 1, DAYS - 1, DAYS, DAYS + 1]) * DAY_MS
        bucket = self.clock.time_ms() // SIZE * SIZE - ago
        if self.pruned and self.chance.random() < 0.1:
            bucket, _ = self.chance.choice(sorted(self.pruned))
        records = self.chance.randint(1, 3)
        self.count(sender, int(sender.producer), bucket, records)
        if self.chance.random() < 0.9:
            self.count(BROKER, int(sender.producer), bucket, records)

    def seal(self, count: int = 1) -> None:
        said = []
        for sender in AGENTS * count:
            at, self.last[sender] = self.last[sender], self.last[sender] + 1
            sealed = SealedTopic(LOGS, self.clock.time_ms(), at)
            said.append(Seal(sender, at + 1, self.clock.time_ms(), (sealed,)))
        self.tell(*said)

    def rest(self) -> None:
        """The agents send only seals (messages without counts, which say that all earlier lines are
        counted). Meanwhile some days pass."""
        self.seal(70)
        self.clock.advance((DAYS + 1) * 86_400)

    def pass_time(self) -> None:
        self.clock.advance(self.chance.choice([1, 60, 86_400, 5 * 86_400]))

    def lose(self) -> None:
        self.came_after_pruning |= bool(self.pruned)
        sender = self.chance.choice(AGENTS)
        number = self.last[sender] = self.last[sender] + 1
        end, now = self.chance.choice([None, 9]), self.clock.time_ms() // SIZE * SIZE
        loss = Loss(LOGS, int(sender.producer), 1, 0, end, Certainty.LOST, "gone", now, now)
        self.tell(Delta(sender, number, self.clock.time_ms(), losses=(loss,)))

    def accept(self) -> None:
        """A person accepts the findings of verdicts that one of the ledgers (`full` or `lean`)
        leads to.
        """
        ledger = self.chance.choice([self.full, self.lean])
        found = [x for x in self.verdicts(ledger) if x.is_overdue]
        signed = acceptances.Signature(self.clock.time_ms(), "ada", "ticket 1")
        with contextlib.suppress(UsageError):  # raised if there is nothing to accept
            self.tell(*acceptances.acceptances(found, signed))

    def say_again(self) -> None:
        """Gives both ledgers the messages of the audit topic again, from a random offset on."""
        begin = self.chance.randrange(len(self.said) + 1)
        for ledger in (self.full, self.lean):
            take(ledger, [encode(x) for x in self.said[begin:]], now_ms=self.clock.time_ms())

    def prune(self) -> None:
        """Looks for old buckets that may be deleted, and deletes them from one of the two ledgers,
        `lean`. Sometimes an agent counts further lines between these two steps."""
        self.clock.advance(CLOCK_S)
        while self.old.look():
            pass
        good = {(x.bucket, x.bucket_ms) for x in self.verdicts(self.full) if is_good(x)}
        if self.chance.random() < 0.2:
            self.write()
        found: list[OldBucket] | None = None
        while found is None or found:
            found = self.old.take()
            before = set(self.lean.evidence().topic(LOGS).tallies)
            assert self.old.before_ms is not None
            self.lean.prune(found, self.old.before_ms, self.old.settled_ms)
            gone = before - set(self.lean.evidence().topic(LOGS).tallies)
            assert gone - self.pruned.keys() <= good
            self.pruned |= dict.fromkeys(gone, False)

    def verdicts(self, ledger: Ledger) -> list[BucketVerdict]:
        return verdicts(ledger.evidence(), POLICY, self.clock.time_ms())

    def check(self) -> None:
        """One ledger (`lean`) deletes buckets, and the other (`full`) keeps all of them. Asserts
        that both lead to the same verdicts on the buckets that `lean` still has."""
        lean = {(x.bucket, x.bucket_ms): x for x in self.verdicts(self.lean)}
        full = {(x.bucket, x.bucket_ms): x for x in self.verdicts(self.full)}
        assert lean.keys() == full.keys() - {x for x, late in self.pruned.items() if not late}
        for key, verdict in lean.items():
            if key in self.pruned:
                assert verdict.status is Status.UNKNOWN
            else:
                assert verdict == full[key]
        self._check_standing()

    def _check_standing(self) -> None:
        now_ms = self.clock.time_ms()
        for topic in judged(self.lean.evidence(), POLICY, now_ms).topics:
            [other] = judged(self.full.evidence(), POLICY, now_ms).topics
            if topic.complete_until is not None and not self.came_after_pruning:
                assert other.complete_until is not None
                assert topic.complete_until <= other.complete_until
        for start, size in [x for x, is_late in self.pruned.items() if not is_late]:
            asked = question("logs", start, start + size)
            [found] = completeness(self.lean.evidence(), POLICY, asked, now_ms)
            assert found.is_short


def _acts(site: Site) -> Sequence[object]:
    return [
        *[site.write] * 8, *[site.seal] * 3, site.rest, site.lose, site.accept, *[site.prune] * 3,
        site.say_again, site.pass_time,
    ]  # fmt: skip


@promise("6 pruning")
def test_a_ledger_that_deletes_old_buckets_never_says_more(seeds: Seeds) -> None:
    """A bucket is deleted only if it is complete or accepted. The deletion changes no verdict on
    another bucket, even if old messages come again. If records of a deleted bucket come later, the
    bucket's status is "unknown"."""
    for seed in seeds(range(6)):
        site = Site(random.Random(seed))
        for _ in range(50):
            site.chance.choice(_acts(site))()
            site.check()


@promise("6 pruning")
def test_the_schedules_delete_buckets_and_bring_records_of_them() -> None:
    """The schedules contain all of these events: the ledger deletes buckets, keeps incomplete old
    buckets, deletes its hashes of old messages, deletes seals, and gets records of deleted
    buckets."""
    deleted = late = kept = settled = seals = 0
    for seed in range(6):
        site = Site(random.Random(seed))
        for _ in range(60):
            site.chance.choice(_acts(site))()
        deleted, late = deleted + len(site.pruned), late + sum(site.pruned.values())
        old = site.clock.time_ms() - DAYS * DAY_MS
        kept += sum(x.bucket < old and not is_good(x) for x in site.verdicts(site.lean))
        settled += site.lean.settled
        seals += _seals(site.full) - _seals(site.lean)
    assert min(deleted, late, kept, settled, seals) > 0


def _seals(ledger: Ledger) -> int:
    (count,) = ledger._connection.execute("SELECT count(*) FROM seals").fetchone()
    return int(count)


def test_the_queue_of_old_buckets_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread looks for old buckets, and puts them into a queue; another thread deletes them, at
    most DELETED_MAX at once. When WAITING_MAX buckets (here only 30) are in the queue, the first
    thread waits. No bucket is left out."""
    monkeypatch.setattr(pruning, "WAITING_MAX", 30)
    site = Site(random.Random(0))
    first = site.begin_ms - (DAYS + 1) * DAY_MS
    buckets = [first + each * SIZE for each in range(31)]
    for bucket in buckets:
        site.count(AGENTS[0], 7, bucket, 1)
        site.count(BROKER, 7, bucket, 1)
    site.seal()
    site.clock.advance(CLOCK_S)
    thread = threading.Thread(target=lambda: all(iter(site.old.look, False)), daemon=True)
    thread.start()
    while site.old._found.qsize() < 30:
        assert thread.is_alive()
        thread.join(0.01)
    assert site.old._found.full()
    taken: list[list[OldBucket]] = []
    while thread.is_alive() or not site.old._found.empty():
        taken.append(site.old.take())
        thread.join(0.01)
    assert max(map(len, taken)) == DELETED_MAX
    assert [each.bucket for found in taken for each in found] == buckets

"""The collector judges only buckets whose verdicts may have changed. It judges a bucket of many
agents by columns: all agents at once, in arrays. The verdicts are the same as if the collector
judged every bucket again, one agent after the other.

The fleet of `support.audit_fleet_model` sends random messages, changes the policy and sets the
clock. After each step, the test compares the standing of the judge (the verdicts on all buckets)
with a standing that is computed from all evidence at once.
"""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest

from skidway.audit.collector import judge as judge_module
from skidway.audit.collector.judge import Judge
from skidway.audit.evidence.evidence import Evidence
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.evidence.pruning import OldBucket, digest_of
from skidway.audit.evidence.tallies import BucketTallies
from skidway.audit.judgement.acceptances import unaccepted
from skidway.audit.judgement.completeness import is_good
from skidway.audit.judgement.standing import judged
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import BucketVerdict, Finding, Parts, Status
from skidway.audit.judgement.verdicts_of_agents import gravest_first, not_complete
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.messages import TOPIC, Certainty, Delta, Loss, Tier
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition
from support.audit_fleet_model import SIZE, AuditFleet, Teller
from support.audit_senders import LOGS, OTHER, REJECTED
from support.promises import promise
from support.randomness import Seeds

STEPS = 60


@promise("6 complete")
def test_judging_by_difference_is_judging_everything(seeds: Seeds) -> None:
    """The judge (the collector's part that judges buckets) updates its standing after each message,
    each step of a clock, each change of the roster and each decision of a person. The updated
    standing is equal to a standing that is computed from all evidence, although the judge judges
    only the buckets whose verdicts may have changed.
    """
    stepped = everything = 0
    for seed in seeds(range(12)):
        fleet = AuditFleet(seed)
        noted: list[int] = []
        judge = Judge(
            fleet.ledger, lambda fleet=fleet: fleet.policy, fleet.clock,
            lambda found, now_ms, noted=noted: noted.append(len(found)),
        )  # fmt: skip
        for number in range(STEPS):
            fleet.step()
            found = judge.step()
            whole = judged(fleet.ledger.evidence(), fleet.policy, fleet.clock.time_ms())
            assert found.topics == whole.topics, f"seed {seed}, step {number}"
            assert found == whole, f"seed {seed}, step {number}"
            everything += sum(found.by_status.values())
            fleet.ledger.narrow(judge.take_balanced())
            fleet.ledger.merge(judge.take_scattered())
        stepped += sum(noted)
    assert stepped < everything / 2


class _TwoLedgers(AuditFleet):
    """The fleet, with a second ledger (collector's store) that takes the same messages. Only the
    first ledger makes checksums narrow: it keeps the checksums of some buckets in shorter form.
    `narrowed` counts how often it did so."""

    def __init__(self, seed: int) -> None:
        self.narrowed = 0
        self.wide = Ledger()
        super().__init__(seed)

    def step(self) -> None:
        super().step()
        if self.random.random() < 0.5:
            self.narrowed += narrow_some(self, self.ledger)

    def _take(self, values: list[bytes]) -> None:
        state = self.random.getstate()
        offset, count, ledger = self.offset, len(self.sent), self.ledger
        super()._take(values)
        self.random.setstate(state)
        self.offset, self.sent, self.ledger = offset, self.sent[:count], self.wide
        super()._take(values)
        self.ledger = ledger


@promise("6 complete")
@promise("6 checksum")
def test_narrow_checksums_lead_to_the_same_verdicts(seeds: Seeds) -> None:
    """If a ledger makes the checksums of buckets narrow (shorter) at some moment, it leads to the
    same verdicts as a ledger that never does so. This is so even if further records of these
    buckets are counted afterwards. The reasons, the findings' names and the acceptances are the
    same, too."""
    narrowed = 0
    for seed in seeds(range(6)):
        fleet = _TwoLedgers(seed)
        for number in range(2 * STEPS):
            fleet.step()
            if number % 3:
                continue
            now_ms = fleet.clock.time_ms()
            found, wide = (
                verdicts(x.evidence(), fleet.policy, now_ms) for x in (fleet.ledger, fleet.wide)
            )
            assert [*map(_told, found)] == [*map(_told, wide)], f"seed {seed}, step {number}"
        narrowed += fleet.narrowed
    assert narrowed > 100


def _told(verdict: BucketVerdict) -> tuple[object, ...]:
    """Returns what a verdict says, without the checksums, but with the names by which people accept
    its findings."""
    names = [(x.agent, x.status, x.residue, *_names(x.findings)) for x in verdict.agents]
    return (
        verdict.source, verdict.bucket, verdict.bucket_ms, verdict.status, verdict.residue,
        verdict.reasons, verdict.is_warned, verdict.records, verdict.rejects,
        *_names(verdict.findings), *names,
    )  # fmt: skip


def _names(findings: Iterable[Finding]) -> list[tuple[object, ...]]:
    return [(x.status, x.words, x.name, x.acceptance) for x in findings]


@promise("6 complete")
@promise("6 pruning")
def test_judging_by_difference_knows_what_became_of_the_store(
    seeds: Seeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An updated standing (the verdicts on all buckets) is equal to a standing that is computed
    from all evidence, even if buckets are deleted, the disk is full, or the store is rebuilt. This
    is also so if buckets have several sizes or begin before 1970, and if the collector has too
    little time in one step to judge all changed buckets."""
    for seed in seeds(range(20)):
        fleet, chance = StoredFleet(seed), random.Random(seed)
        judge = Judge(
            fleet.ledger, lambda fleet=fleet: fleet.policy, fleet.clock, lambda found, now_ms: None
        )
        for number in range(STEPS):
            fleet.step()
            if chance.random() < 0.3:
                _hurry(judge, monkeypatch, chance.randrange(3))
                continue
            found = judge.step()
            whole = judged(fleet.ledger.evidence(), fleet.policy, fleet.clock.time_ms())
            where = f"seed {seed}, step {number}"
            if fleet.ledger.rebuilding:
                assert (found.rebuilding, found.by_status) == (whole.rebuilding, {}), where
                assert not whole.by_status.keys() - {Status.UNKNOWN, Status.LOST}, where
            else:
                assert found == whole, where


def test_the_schedules_delete_buckets_of_the_store() -> None:
    """The schedules contain most of the events that can happen to a store, including deletions of
    buckets."""
    happened: Counter[str] = Counter()
    for seed in range(6):
        fleet = StoredFleet(seed)
        for _ in range(STEPS):
            fleet.step()
        happened.update(fleet.happened)
        happened["deleted"] += len(fleet.deleted)
    assert len(happened) > 8
    assert happened["deleted"]


def _hurry(judge: Judge, monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """Lets the judge (the collector's part that judges buckets) make `steps` steps. In each step,
    the judge has time for only one bucket."""
    with monkeypatch.context() as patch:
        patch.setattr(judge_module, "STEP_S", -1.0)
        patch.setattr(judge_module, "DUE_STEP_S", -1.0)
        for _ in range(steps):
            judge.step()


@promise("6 complete")
def test_judging_by_columns_is_judging_each_agent(seeds: Seeds) -> None:
    """If a bucket of many agents is judged by columns (all agents at once in arrays), its verdict
    has the same status, reasons, agents and sums as if it were judged agent by agent."""
    by_columns = 0
    for seed in seeds(range(1000, 1010)):
        fleet = AuditFleet(seed)
        for number in range(STEPS):
            fleet.step()
            if number % 4:
                continue
            now_ms = fleet.clock.time_ms()
            found = verdicts(fleet.ledger.evidence(), fleet.policy, now_ms)
            slow = verdicts(_one_by_one(fleet.ledger.evidence()), fleet.policy, now_ms)
            assert found == slow, f"seed {seed}, step {number}"
            for one, other in zip(found, slow, strict=True):
                by_columns += one.known_parts is not None
                assert one.parts == Parts.of(other.agents), f"seed {seed}, step {number}"
                assert one.short() == other.short(), f"seed {seed}, step {number}"
                bad = [x for x in other.agents if x.status > Status.COMPLETE]
                assert list(not_complete(one.agents)) == bad, f"seed {seed}, step {number}"
                assert [*gravest_first(one.agents, 2)] == [*gravest_first(list(other.agents), 2)]
                assert unaccepted(one) == unaccepted(other), f"seed {seed}, step {number}"
                assert replace(one, known_parts=None).residue == one.residue
    assert by_columns


def _one_by_one(evidence: Evidence) -> Evidence:
    for topic in evidence.topics.values():
        topic.tallies = {key: dict(found) for key, found in topic.tallies.items()}
    return evidence


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

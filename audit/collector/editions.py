"""An edition is what the collector knew at the end of one step of judging. The dashboard makes all
its answers from editions.

After each step, the judging thread publishes an edition, unless answers still use both connections
(see below). The edition has the judge's evidence and standing (the verdicts on all buckets), and a
connection that sees the store as it was in this step. Each answer is made from one edition. So the
counts that an answer reads from the store belong to the same moment as the standing. And an answer
need not read the evidence of all senders again, or search again for the newest agents and seals.

Publishing never waits for an answer. There are two connections, and a new edition gets one that no
answer uses. If answers use both connections, no edition of this step is published. While no answer
uses an older edition, SQLite can reuse its write-ahead log, because no connection needs an older
state.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from skidway.audit.collector.judge import Judge
from skidway.audit.evidence.evidence import Evidence, Window
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.evidence.tallies import BucketId
from skidway.audit.judgement.agent_columns import FleetColumns
from skidway.audit.judgement.clocks import Clocks, clocks
from skidway.audit.judgement.completeness import Known
from skidway.audit.judgement.hosts import HostState, survey
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.rules.topic_facts import CommonFacts
from skidway.audit.judgement.standing import Standing, order
from skidway.audit.judgement.topic_judgement import TopicJudgement, verdicts_of
from skidway.audit.judgement.verdict import BucketVerdict
from skidway.audit.reports.topic_names import is_named, topics_named
from skidway.kafka.source import Source


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one step of judging. standing: the verdicts on all buckets, summed up. blocks:
    by hour of event time, the verdicts on the buckets of this hour, summed up. common, fleet: the
    facts that the judgements of all topics share; the evidence in `common` has no counts. hosts,
    clocks: the states of all hosts and clocks.
    """

    standing: Standing
    blocks: Mapping[int, Standing]
    common: CommonFacts
    fleet: FleetColumns
    hosts: Sequence[HostState]
    clocks: Clocks


def step_of(judge: Judge, standing: Standing, now_ms: int) -> Step:
    """Returns the result of the step in which the judge returned this standing."""
    evidence, policy = judge.evidence, judge.common.policy
    return Step(
        standing,
        judge.blocks,
        judge.common,
        judge.fleet,
        survey(evidence, policy, now_ms, judge.fleet),
        clocks(evidence, policy, now_ms),
    )


@dataclass(frozen=True, slots=True)
class Edition:
    """A step, and the store as it was in this step. Only the thread that has got the edition from
    `Editions.newest` may use it. kept: by name, values that one answer has computed from the
    edition, so that later answers need not compute them again.
    """

    step: Step
    ledger: Ledger
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def policy(self) -> Policy:
        """The policy of the step: what the audit expected of hosts and tiers."""
        return self.step.common.policy

    def evidence(self, window: Window, topics: Sequence[str] | None = None) -> Evidence:
        """Returns the evidence about these topics (None: all topics). The evidence has the counts
        of the buckets that start in the window; see Ledger.evidence. The caller must not change the
        evidence.
        """
        return self.ledger.evidence_of(self.step.common.evidence, window, topics)

    def verdicts(
        self, window: Window, names: Sequence[str] | None
    ) -> tuple[list[BucketVerdict], Evidence]:
        """Returns the verdicts on the buckets that start in the window, and the evidence about
        these buckets. names: the names of topics as reports print them; None for all topics.
        """
        evidence = self.evidence(window, topics_named(names))
        return self.verdicts_in(evidence, names), evidence

    def verdicts_in(
        self,
        evidence: Evidence,
        names: Sequence[str] | None,
        chosen: Collection[BucketId] | None = None,
    ) -> list[BucketVerdict]:
        """Returns the verdicts on the buckets in `evidence`, which the method `evidence` returned.
        names: as in `verdicts`. chosen: if given, only these buckets are judged.
        """
        found = verdicts_of(self.common(evidence), self.step.fleet, chosen)
        return [x for x in found if names is None or is_named(x.source, names)]

    def short_verdicts(self, window: Window, names: Sequence[str] | None) -> list[BucketVerdict]:
        """Returns short verdicts on the buckets that start in the window. A short verdict names
        only the agents with the gravest findings. If the standing already has the short verdict on
        a bucket, returns that verdict. If not, judges the bucket.
        """
        evidence = self.evidence(window, topics_named(names))
        known = {
            (each.source, x.bucket, x.bucket_ms): x
            for each in self.step.standing.topics
            for x in each.newest.values()
        }
        found = []
        for source in sorted(evidence.topics, key=order):
            if names is not None and not is_named(source, names):
                continue
            judgement = self.judgement(evidence, source)
            for bucket in judgement.buckets():
                short = known.get((source, *bucket))
                found.append(judgement.bucket(bucket).short() if short is None else short)
        return found

    def agents_of(self, names: Sequence[str] | None) -> int:
        """Returns how many agents these topics have. An agent counts once for each topic. For each
        topic, the result counts one agent more, which stands for the records that come from no
        agent.
        """
        topics = self.step.common.evidence.topics
        return sum(
            len(topic.agents) + 1
            for source, topic in topics.items()
            if names is None or is_named(source, names)
        )

    def judgement(self, evidence: Evidence, source: Source) -> TopicJudgement:
        """Returns the judgement of a topic. evidence: a result of this edition's `evidence`."""
        common = self.common(evidence)
        return TopicJudgement(
            evidence, source, common.policy, common.now_ms, common, self.step.fleet
        )

    def known(self, evidence: Evidence) -> Known:
        """Returns the facts of `common`, with the columns of the fleet and the states of all hosts.
        evidence: what the method `evidence` returned; the result contains it.
        """
        return Known(self.common(evidence), self.step.fleet, self.step.hosts)

    def common(self, evidence: Evidence) -> CommonFacts:
        """Returns the facts that the judgements of all topics share. evidence: what the method
        `evidence` returned; the result contains it.
        """
        found = copy.copy(self.step.common)
        found.evidence = evidence
        return found


@dataclass(slots=True)
class _Connection:
    """One connection with its edition. is_used: a lock that an answer holds while it uses the
    edition, and that the judging thread holds while it makes a new edition.
    """

    ledger: Ledger
    is_used: threading.Lock = field(default_factory=threading.Lock)
    edition: Edition | None = None


class Editions:
    """Publishes editions, and gives the newest one to answers. ledgers: connections to the store
    that nothing else uses. checkpoint: a function that lets SQLite reuse its write-ahead log. The
    judging thread calls `publish`, and other threads call `newest`.
    """

    def __init__(self, ledgers: Sequence[Ledger], checkpoint: Callable[[], None]) -> None:
        self._connections = [_Connection(x) for x in ledgers]
        self._checkpoint = checkpoint
        self._published = threading.Event()
        self._newest = self._connections[0]

    def publish(self, step: Step) -> bool:
        """Makes an edition from this step, unless answers use all connections. From then on,
        `newest` returns the new edition. Returns whether an edition was made.
        """
        free = [x for x in self._connections if x.is_used.acquire(blocking=False)]
        try:
            if not free:
                return False
            for each in free:
                each.ledger.let_go()
                each.edition = None
            self._checkpoint()
            chosen = free[0]
            chosen.ledger.hold()
            chosen.edition = Edition(step, chosen.ledger)
            self._newest = chosen
        finally:
            for each in free:
                each.is_used.release()
        self._published.set()
        return True

    @contextmanager
    def newest(self) -> Iterator[Edition]:
        """Yields the newest edition for a `with` block. Waits if no edition is published yet."""
        self._published.wait()
        while True:
            connection = self._newest
            with connection.is_used:
                if connection is self._newest and connection.edition is not None:
                    yield connection.edition
                    return

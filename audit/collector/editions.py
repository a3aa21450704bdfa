"""What the collector knew at the end of one step of judging, for all answers of its dashboard.

The judging thread publishes an edition after each step. It has the judge's evidence and standing,
and a connection that sees the store as it was in this step, so that counts which an answer reads
later belong to the same moment. An answer is made from one edition. So it repeats neither the
reading of the evidence of all senders nor the search for the newest agents and seals, and it agrees
with the standing.

Publishing never waits for an answer. There are two connections: if an answer still uses the older
edition, the next edition gets the other one; if both are in use, the edition is left out. While
nobody uses an older edition, no connection keeps SQLite's log from being used anew.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from skidway.audit.collector.judge import Judge
from skidway.audit.evidence.evidence import Evidence, Window
from skidway.audit.evidence.ledger import Ledger
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
    """What one step of judging found. standing, blocks: of all buckets, and of each hour.
    common, fleet: what the judgements of all topics share; its evidence has no counts. hosts,
    clocks: the states of all hosts and clocks."""

    standing: Standing
    blocks: Mapping[int, Standing]
    common: CommonFacts
    fleet: FleetColumns
    hosts: Sequence[HostState]
    clocks: Clocks


def step_of(judge: Judge, standing: Standing, now_ms: int) -> Step:
    """What the judge found in the step that returned this standing."""
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
    """A step, and the store as it was then. Only the thread that has opened it may ask. kept: what
    answers have computed of it for further answers, by name."""

    step: Step
    ledger: Ledger
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def policy(self) -> Policy:
        """What the audit expected in the step."""
        return self.step.common.policy

    def evidence(self, window: Window, topics: Sequence[str] | None = None) -> Evidence:
        """All evidence about these topics, for the buckets that start in the window; see
        Ledger.evidence. Nobody may change it."""
        return self.ledger.evidence_of(self.step.common.evidence, window, topics)

    def verdicts(
        self, window: Window, names: Sequence[str] | None
    ) -> tuple[list[BucketVerdict], Evidence]:
        """The verdicts on the buckets that start in the window, and the evidence about them. names:
        of topics as reports print them; None for all topics."""
        evidence = self.evidence(window, topics_named(names))
        found = verdicts_of(self.common(evidence), self.step.fleet)
        return [x for x in found if names is None or is_named(x.source, names)], evidence

    def short_verdicts(self, window: Window, names: Sequence[str] | None) -> list[BucketVerdict]:
        """Short verdicts on these buckets. Those that the standing has are not made again."""
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
        """How many agents these topics have; an agent counts once for each topic."""
        topics = self.step.common.evidence.topics
        return sum(
            len(topic.agents) + 1
            for source, topic in topics.items()
            if names is None or is_named(source, names)
        )

    def judgement(self, evidence: Evidence, source: Source) -> TopicJudgement:
        """Judges the buckets of a topic of evidence that this edition returned."""
        common = self.common(evidence)
        return TopicJudgement(
            evidence, source, common.policy, common.now_ms, common, self.step.fleet
        )

    def known(self, evidence: Evidence) -> Known:
        """What is the same for all topics, with evidence that this edition returned."""
        return Known(self.common(evidence), self.step.fleet, self.step.hosts)

    def common(self, evidence: Evidence) -> CommonFacts:
        """The facts that are the same for all topics, with evidence that this edition returned."""
        found = copy.copy(self.step.common)
        found.evidence = evidence
        return found


@dataclass(slots=True)
class _Connection:
    """is_used: held by the answer that uses the edition, or by the thread that makes one."""

    ledger: Ledger
    is_used: threading.Lock = field(default_factory=threading.Lock)
    edition: Edition | None = None


class Editions:
    """ledgers: connections to the store that nobody else uses. checkpoint: lets SQLite use its log
    anew. The judging thread calls `publish`, and other threads call `newest`."""

    def __init__(self, ledgers: Sequence[Ledger], checkpoint: Callable[[], None]) -> None:
        self._connections = [_Connection(x) for x in ledgers]
        self._checkpoint = checkpoint
        self._published = threading.Event()
        self._newest = self._connections[0]

    def publish(self, step: Step) -> bool:
        """Makes this the newest edition. Returns whether a connection was free for it."""
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
        """The newest edition. Waits for the first one."""
        self._published.wait()
        while True:
            connection = self._newest
            with connection.is_used:
                if connection is self._newest and connection.edition is not None:
                    yield connection.edition
                    return

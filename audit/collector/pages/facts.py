"""The facts from which all pages are made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from skidway.audit.collector.history_store import Completion
from skidway.audit.collector.pages import words
from skidway.audit.collector.pages.pace import Pace, paces
from skidway.audit.collector.reject_examples import Examples
from skidway.audit.collector.risks import Kept, backlogs, kept
from skidway.audit.counts.topic_patterns import REJECTED_SUFFIX
from skidway.audit.evidence.evidence import Evidence
from skidway.audit.explanation.explanation import Explanation, explain
from skidway.audit.explanation.next_command import Access
from skidway.audit.explanation.present_cause import PresentCause
from skidway.audit.explanation.present_causes import present_causes
from skidway.audit.explanation.programs import Programs, programs_of
from skidway.audit.explanation.worst_problem import Problem, worst_problem
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.clocks import Clocks, present_ms
from skidway.audit.judgement.hosts import HostState
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.sender_states import SenderState, sender_states
from skidway.audit.judgement.standing import Standing, TopicStanding
from skidway.audit.judgement.verdict import BucketVerdict
from skidway.audit.reports.source_remarks import Unread, unread
from skidway.audit.reports.topic_names import topic_names
from skidway.audit.topic.backlog import Backlog
from skidway.audit.topic.fieldless_note import by_topic
from skidway.audit.topic.notes import Note
from skidway.kafka.source import Source


@dataclass(frozen=True)
class Facts:
    """The facts at one moment. Derived values are computed when a page first asks for them, and
    then cached in the object, so this class has no slots.

    standing: the last verdicts on all buckets, summed up. blocks: by hour of event time, the last
    verdicts on the buckets of this hour, summed up. evidence: the content of all audit messages,
    without the counts of buckets. completions: when the buckets of the last day were first
    complete, the newest first; None without a history. notes: the newest notes of each sender
    (messages that change no verdict, for example about unsafe bytes).
    """

    standing: Standing
    blocks: Mapping[int, Standing]
    evidence: Evidence
    policy: Policy
    now_ms: int
    completions: Sequence[Completion] | None = None
    hosts: Sequence[HostState] = ()
    clocks: Clocks = field(default_factory=Clocks)
    notes: Sequence[Note] = ()
    access: Access = field(default_factory=Access)
    examples: Examples = field(default_factory=dict)

    @cached_property
    def names(self) -> Mapping[Source, str]:
        """The topics' names, as reports print them."""
        return topic_names(topic.source for topic in self.standing.topics)

    @cached_property
    def topics(self) -> tuple[TopicStanding, ...]:
        """All topics except the topics of rejects."""
        found = self.standing.topics
        return tuple(x for x in found if not x.source.topic.endswith(REJECTED_SUFFIX))

    @cached_property
    def backlogs(self) -> Mapping[int, tuple[Note, Backlog]]:
        """By agent id: the note with the agent's newest report about unsafe bytes (bytes that no
        broker has acknowledged yet), and the report itself."""
        return backlogs(self.notes)

    @cached_property
    def fieldless(self) -> Mapping[tuple[str, str], Counter[str]]:
        """By cluster and topic: the members of lines that agents left out, because the schema has
        no field for them, each with the number of lines."""
        return by_topic(self.notes)

    @cached_property
    def kept(self) -> Kept:
        """How long (ms) the clusters keep the records of topics, according to the counters."""
        return kept(self.notes)

    @cached_property
    def senders(self) -> list[SenderState]:
        """For each sender of counts: when it was last heard, and in words, what its state is."""
        now_ms = present_ms(self.evidence, self.policy, self.now_ms)
        return sender_states(self.evidence, self.policy, now_ms)

    @cached_property
    def present(self) -> list[PresentCause]:
        """What is wrong now, whichever bucket it concerns; the nearest to the source of trouble
        comes first."""
        return present_causes(self.evidence, self.policy, self.now_ms, self.access)

    @cached_property
    def as_of(self) -> str:
        """Words that begin a sentence which was true when the collector last read its topics; ""
        while it reads them."""
        unread = any(x.cause is Cause.CLUSTER_AWAY and not x.clusters for x in self.present)
        taken_ms = self.evidence.taken_ms
        return f"As of {words.moment(taken_ms)}: " if unread and taken_ms else ""

    @cached_property
    def worst(self) -> Problem | None:
        """The worst problem of the newest buckets; None if something is wrong now, because that is
        told first."""
        if self.present:
            return None
        newest = (x for topic in self.standing.topics for x in topic.newest.values())
        return worst_problem(newest, self._explained, self.names)

    def _explained(self, verdict: BucketVerdict) -> list[Explanation]:
        return explain(verdict, self.evidence, self.policy, self.now_ms, self.access)

    @cached_property
    def unread(self) -> Unread:
        """What agents cannot read."""
        return unread(self.evidence, self.policy, self.now_ms)

    @cached_property
    def programs(self) -> Programs:
        """How the site's programs were started."""
        return programs_of(self.evidence.statuses, self.access.starts)

    @cached_property
    def paces(self) -> Mapping[Source, Pace]:
        """How fast the buckets of each topic become complete."""
        return paces(self.standing.topics, self.completions, self.policy, self.now_ms)

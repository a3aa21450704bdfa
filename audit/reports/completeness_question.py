"""Asks the ledger whether a topic is complete, for `skidway audit complete` and for the
collector."""

from __future__ import annotations

from dataclasses import dataclass

from skidway.audit.counts.bucket import DEFAULT_BUCKET_MS
from skidway.audit.evidence.evidence import Evidence, Window
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.judgement.completeness import Completeness, Question, completeness
from skidway.audit.judgement.policy import Policy
from skidway.audit.reports.topic_names import is_named, topics_named, with_rejects


@dataclass(frozen=True, slots=True)
class Answered:
    """The answers to a question, one for each topic, and the evidence from which they follow."""

    found: list[Completeness]
    evidence: Evidence

    @property
    def is_complete(self) -> bool:
        """Whether all topics of the question are complete."""
        return not any(x.is_short for x in self.found)


def question(
    name: str, since_ms: int, until_ms: int, bucket_ms: int = DEFAULT_BUCKET_MS
) -> Question:
    """The question whether the topic of this name and the topic of its rejects are complete from
    `since_ms` to `until_ms`."""
    names = with_rejects([name])
    return Question(
        name,
        lambda source: is_named(source, [name]),
        lambda source: is_named(source, names),
        since_ms,
        until_ms,
        bucket_ms,
    )


def answered(ledger: Ledger, policy: Policy, asked: Question, now_ms: int) -> Answered:
    """Answers the question from the current content of the ledger. Raises UsageError if the span of
    the question is empty or too long (see judgement.completeness)."""
    evidence = ledger.evidence(window_of(ledger, asked), topics_of(asked))
    return Answered(completeness(evidence, policy, asked, now_ms), evidence)


def window_of(ledger: Ledger, asked: Question) -> Window:
    """Returns a span of time that contains the starts of all buckets that overlap the question's
    time span.
    """
    size = max(ledger.bucket_sizes(), default=asked.bucket_ms)
    return asked.since_ms - size, asked.until_ms


def topics_of(asked: Question) -> list[str] | None:
    """The names of the topics that the question may mean, without cluster and topic id. For
    example, the name `a.b` may mean the topic `a.b`, or the topic `b` of cluster `a`."""
    return topics_named(with_rejects([asked.name]))

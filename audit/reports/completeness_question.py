"""Asks the ledger whether a topic is complete, for `skidway audit complete` and for the
collector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skidway.audit.evidence.evidence import Evidence, Window
from skidway.audit.evidence.ledger import Ledger
from skidway.audit.judgement.completeness import Completeness, Question, completeness
from skidway.audit.judgement.policy import Policy
from skidway.audit.reports.topic_names import is_named, topics_named, with_rejects, without_id


@dataclass(frozen=True, slots=True)
class Answered:
    """The answers to a question, one for each topic, and the evidence from which they follow.
    notes: sentences about the question (see notes_on)."""

    found: list[Completeness]
    evidence: Evidence
    notes: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether all topics of the question are complete."""
        return not any(x.is_short for x in self.found)


def question(name: str, since_ms: int, until_ms: int) -> Question:
    """The question whether the topic of this name and the topic of its rejects are complete from
    `since_ms` to `until_ms`."""
    names = with_rejects([name])
    return Question(
        name,
        lambda source: is_named(source, [name]),
        lambda source: is_named(source, names),
        since_ms,
        until_ms,
    )


def answered(ledger: Ledger, policy: Policy, asked: Question, now_ms: int) -> Answered:
    """Answers the question from the current content of the ledger. Raises UsageError if the span of
    the question is empty or too long (see judgement.completeness)."""
    evidence = ledger.evidence(window_of(ledger, asked), topics_of(asked))
    found = completeness(evidence, policy, asked, now_ms)
    return Answered(found, evidence, tuple(notes_on(asked, found, evidence)))


def notes_on(asked: Question, found: Sequence[Completeness], evidence: Evidence) -> Iterator[str]:
    """Yields a sentence if the name in the question may mean a topic that no answer is about. For
    example, `a.b` may mean the topic `b` of cluster `a`. If the audit knows this cluster, but never
    heard of its topic, the answers are about topics that are called `a.b`."""
    name = without_id(asked.name)
    cluster, _, topic = name.partition(".")
    known = {x.cluster for x in evidence.topics} | {x.cluster for x in evidence.senders.values()}
    judged = [each.name for each in found]
    if topic and cluster in known and name not in judged:
        yield (
            f"{name} may also mean topic {topic} of cluster {cluster}, of which the audit has never"
            f" heard; the answer is about {', '.join(judged)}"
        )


def window_of(ledger: Ledger, asked: Question) -> Window:
    """Returns a span of time that contains the starts of all buckets that overlap the question's
    time span.
    """
    return ledger.window_of(asked.since_ms, asked.until_ms)


def topics_of(asked: Question) -> list[str] | None:
    """The names of the topics that the question may mean, without cluster and topic id. For
    example, the name `a.b` may mean the topic `a.b`, or the topic `b` of cluster `a`."""
    return topics_named(with_rejects([asked.name]))

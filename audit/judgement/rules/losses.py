"""Finds, without I/O, the buckets that may contain lines which an agent declared lost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from skidway.audit.evidence.evidence import LossNote, SealNote
from skidway.audit.evidence.tallies import BucketId
from skidway.audit.judgement import reasons
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.rules.topic_facts import Tallies, TopicFacts
from skidway.audit.judgement.verdict import Finding, Status
from skidway.audit.topic.messages import NOTHING_SAID, Certainty, Tier


@dataclass(frozen=True, slots=True)
class _Lost:
    """A declared loss. prior: the last seal that the agent sent before it declared the loss; None
    if there is none. begin, end: the first and the last event time that the lost lines can have
    (see `_span`)."""

    note: LossNote
    prior: SealNote | None
    begin: int | None
    end: int
    finding: Finding


class Losses:
    """The losses that agents declared in one topic. Each agent's losses are examined only once for
    all buckets, because one report needs the findings for many buckets."""

    def __init__(self, facts: TopicFacts) -> None:
        self._facts = facts
        self._of_agents: dict[int, list[_Lost]] = {}

    def findings(self, agent: int, bucket: BucketId, tallies: Tallies) -> Iterator[Finding]:
        """Yields a finding for each loss that the agent declared, if the lost lines may belong to
        the bucket.
        """
        start, size = bucket
        for lost in self.of_agent(agent):
            begin, end = lost.begin, lost.end
            inside = (begin is None or start + size > begin) and start <= end
            # if the agent counted lines of the bucket between `prior` and the declaration of the
            # loss, lost lines may belong to the bucket too
            if not inside and tallies:
                inside = _touched_between(tallies, agent, lost.note, lost.prior)
            if inside:
                yield lost.finding

    def of_agent(self, agent: int) -> list[_Lost]:
        """Returns the losses that the agent declared, each with the event times that the lost lines
        can have.
        """
        if agent not in self._of_agents:
            self._of_agents[agent] = list(_of_agent(self._facts, agent))
        return self._of_agents[agent]


def _of_agent(facts: TopicFacts, agent: int) -> Iterator[_Lost]:
    for topic in facts.related:
        for note in topic.losses.get(agent, ()):
            path = topic.paths.get((note.loss.agent, note.loss.file), "")
            seals = facts.seals.get(agent, ())  # empty if no message of the agent came
            before = [x for x in seals if x[:2] < (note.epoch, note.number)]
            prior = before[-1] if before else None
            is_lost = note.loss.certainty is Certainty.LOST
            status = Status.LOST if is_lost else Status.UNKNOWN
            cause = Cause.DECLARED_LOSS if is_lost else Cause.UNCERTAIN
            words, name = reasons.of_loss(note, path), reasons.name_of_loss(note)
            finding = Finding(status, words, cause, name, about=note)
            yield _Lost(note, prior, *_span(facts, note, prior), finding)


def _span(facts: TopicFacts, note: LossNote, prior: SealNote | None) -> tuple[int | None, int]:
    """Returns the first and the last event time that the lost lines can have. The first time is
    None if the lines can be of any age.

    The first time is `from_bucket` of the declared loss (the first bucket that the agent had not
    sealed) minus the lateness. If the loss has no `from_bucket`, `prior.sealed_until` replaces it.
    The lateness is the agent's bound or the policy's bound, whichever is larger. The last time is
    the loss's `to_bucket`. If the loss has no `to_bucket`, the last time is the later of two times:
    the time of the message with the loss, and `prior.sealed_until`.
    """
    begin, end = note.loss.from_bucket, note.loss.to_bucket
    if begin is None and prior is not None:
        begin = prior.sealed_until
    if begin is not None and note.loss.end is None:
        # The agent's clock may have been set back between `prior` and the message with the loss.
        # Then lost lines may have event times before `begin`.
        begin = min(begin, note.time_ms)
    if begin is not None:
        said = facts.evidence.bounds.get(note.loss.agent, NOTHING_SAID)
        begin -= max(facts.policy.lateness_ms, said.lateness_ms)
    if end is None:
        end = max(note.time_ms, prior.sealed_until if prior is not None else note.time_ms)
    return begin, end


def _touched_between(tallies: Tallies, agent: int, note: LossNote, prior: SealNote | None) -> bool:
    """Whether the agent may have counted lines of the bucket in a delta between `prior` and the
    message with the loss. prior: the agent's last seal before the loss; None if there is none."""
    since = (prior.epoch, prior.at) if prior is not None else (0, 0)
    return any(
        (key.epoch, tally.first) <= (note.epoch, note.number) and (key.epoch, tally.last) > since
        for key, tally in tallies.items()
        if key[:2] == (Tier.AGENT, str(agent))
    )

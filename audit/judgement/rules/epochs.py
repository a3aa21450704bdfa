"""Finds, without I/O, the buckets that are in doubt because an agent began a new epoch.

If an agent starts with an older copy of its state (for example, from a backup), the agent begins a
new epoch. Two kinds of lines may then count twice or not at all: lines that the old epoch delivered
after that copy was made, and lines that the new epoch delivered before its first seal.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from skidway.audit.evidence.tallies import BucketId
from skidway.audit.judgement import reasons
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.rules.topic_facts import Tallies, TopicFacts, name_of_doubt
from skidway.audit.judgement.verdict import Finding, Status


def findings(
    facts: TopicFacts, agent: int, bucket: BucketId, tallies: Tallies
) -> Iterator[Finding]:
    """Findings on one agent. For each pair of consecutive epochs, yields a finding if lines of the
    bucket may count twice or not at all because of the newer epoch."""
    epochs = facts.epochs.get(agent, [])
    if epochs and epochs[0].epoch > 1:  # older epochs expired: 0 stands for them
        epochs = [epochs[0]._replace(epoch=0), *epochs]
    for old, new in pairwise(epochs):
        until = [x for x in facts.seals[agent] if x.epoch == old.epoch]
        since = [x for x in facts.seals[agent] if x.epoch >= new.epoch]
        proven = bool(until) and until[-1].vouched_until >= facts.due(bucket)
        untouched = old not in tallies or (until and tallies[old].last <= until[-1].at)
        resumed_ms = max(
            facts.evidence.resumed.get((agent, epoch), 0)
            for epoch in {new.epoch, *(x.epoch for x in since[:1])}
        )
        before = not since or bucket[0] <= max(since[0].sealed_until, resumed_ms)
        if before and not (proven and untouched):
            yield Finding(
                Status.UNKNOWN,
                f"the agent's epoch {new.epoch} sealed nothing before this bucket"
                " (its state had been an older copy)",
                Cause.STATE_RESTORED,
            )
        first = (new.epoch, tallies[new].first) if new in tallies else None
        if first is not None and not (since and first > since[0][:2]):
            words = reasons.of_epoch_before_its_seal(new.epoch)
            name = name_of_doubt(words, tallies)
            yield Finding(Status.UNKNOWN, words, Cause.STATE_RESTORED, name)

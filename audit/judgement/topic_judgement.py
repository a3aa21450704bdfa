"""The judgement: from evidence to verdicts. Pure; the rules are docs/delivery.md, section 6.

For each (source topic, agent, bucket), all of these must hold before it is complete:

    schemas   no message has a schema that this version does not have: it may say anything
    numbers   no sender that counts here misses a number, came with two contents under one number,
              or lost its beginning (an expired topic) at a time when it could touch the bucket
    chains    each sender's deltas of this bucket are all there
    epochs    the bucket does not lie between an agent's old epoch and its new one
    doublings no delta touched it while its agent may have read what another one had delivered
    losses    no declared loss may belong to it
    seal      the agent's newest seal was made behind the bucket's end plus lateness, or is the
              last word of an agent that nobody waits for; and no delta touched the bucket after
              that seal's `at`. A seal is of a topic by its name, also where it was made again
    clock     ours, too, is behind the bucket's end plus lateness (clocks: where it is ahead
              of most others, what it should say)
    equation  every tier that the topic must have counted, and all counted the same records

Records without origin have no seal; instead the counter that sees them first must have been heard
since the bucket was due.

Nothing is taken for granted that was not said: a tier that never reported is not zero, a host that
never sealed is not idle. Doubts only ever make a verdict worse.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

from skidway.audit.counts.bucket import DEFAULT_BUCKET_MS
from skidway.audit.counts.counts import NO_AGENT, Sums
from skidway.audit.evidence.evidence import (
    BucketId,
    Evidence,
    LossNote,
    SealNote,
    SenderKey,
    Tally,
    agent_named,
)
from skidway.audit.judgement import reasons
from skidway.audit.judgement.clocks import behind_ms, ours_ahead_ms, present_ms
from skidway.audit.judgement.counting_places import counting_places, needed_still, place_of
from skidway.audit.judgement.expectation import Expectation, usable_seals
from skidway.audit.judgement.retired_places import retired_by
from skidway.audit.judgement.rules import rejects
from skidway.audit.judgement.rules.doublings import Doublings
from skidway.audit.judgement.verdict import (
    AgentVerdict,
    BucketVerdict,
    Finding,
    Place,
    Policy,
    Status,
)
from skidway.audit.topic.decisions import Acceptance
from skidway.audit.topic.messages import NOTHING_SAID, Certainty, Tier
from skidway.kafka.source import Source

Tallies = dict[SenderKey, Tally]

_FROM_BROKER_ON = Finding(Status.COMPLETE, "audited from the broker on")
_TOO_YOUNG = Finding(
    Status.OPEN, "it is too young: more lines may come until its end and the lateness are over"
)


def verdicts(evidence: Evidence, policy: Policy, now_ms: int) -> list[BucketVerdict]:
    """One verdict per source topic and bucket in which anything was counted, in that order."""
    now_ms = present_ms(evidence, policy, now_ms)
    found = []
    for source in sorted(evidence.topics, key=lambda x: (x.cluster, x.topic, x.topic_id)):
        if evidence.asked is not None and source.topic not in evidence.asked:
            continue
        judgement = TopicJudgement(evidence, source, policy, now_ms)
        found += [judgement.bucket(bucket) for bucket in judgement.buckets()]
    return found


class TopicJudgement:
    """Judges the buckets of one source topic."""

    def __init__(self, evidence: Evidence, source: Source, policy: Policy, now_ms: int) -> None:
        self._evidence = evidence
        self._source = source
        self._policy = policy
        self._tiers = policy.tiers_of(source)
        self._now_ms = now_ms
        self._ours_ahead_ms: int | None = None
        said = (bounds.ahead_ms for bounds in evidence.bounds.values())
        self._ahead_ms = max(policy.ahead_ms, max(said, default=0))
        self._topic = evidence.topic(source)
        self._expectation = Expectation(evidence, source, policy, now_ms)
        self._related = self._expectation.topics
        self._doublings = [Doublings(evidence, topic) for topic in self._related]
        self._retired = retired_by(policy.retired_places, evidence.retirements)
        self._places = list(counting_places(evidence, self._topic, self._tiers, self._retired))
        self._needed = needed_still(evidence, source, self._places, self._retired)
        self._epochs = self._epochs_by_agent()
        self._acceptances = _by_finding(self._topic.acceptances)
        self._seals = {
            agent: usable_seals(evidence, self._expectation.namesakes, agent)
            for agent in self._expectation.known
        }

    def buckets(self) -> list[BucketId]:
        """Those in which anything was counted, and those of the declaration of each loss: where no
        line arrived nobody counted anything."""
        begin, end = self._evidence.window
        size = self._evidence.bucket_ms or DEFAULT_BUCKET_MS
        declared = {note.loss.to_bucket for notes in self._topic.losses.values() for note in notes}
        lossy = {(x, size) for x in declared if x is not None and begin <= x < end}
        if Tier.AGENT not in self._tiers:  # what agents lost is not asked
            lossy = set()
        return sorted(self._topic.tallies.keys() | lossy)

    def bucket(self, bucket: BucketId) -> BucketVerdict:
        """The verdict on one bucket, all agents together."""
        start, size = bucket
        by_agent = self._topic.tallies.get(bucket, {})
        judged = self._expectation.agents | set(by_agent) | self._replaced(start)
        agents = [self._agent(agent, bucket, by_agent.get(agent, {})) for agent in sorted(judged)]
        agents += [x for x in self._losers(judged, bucket) if x.findings]
        findings = self._accepted(NO_AGENT, bucket, self._unheard_findings(bucket))
        findings = (*self._unread_findings(), *findings)
        statuses = [x.status for x in agents] + [x.status for x in findings]
        found = BucketVerdict(
            self._source,
            start,
            size,
            max(statuses, default=Status.OPEN),
            (*(x.words for x in findings), *reasons.by_host(agents)),
            due=self._now_ms >= self._due(bucket),
            agents=tuple(agents),
            findings=findings,
        )
        said = rejects.warnings(found, self._related[1:], self._policy.rejects_share)
        return replace(found, warnings=self._accepted(NO_AGENT, bucket, said))

    def _replaced(self, start: int) -> set[int]:
        """Agents that a newer one replaced: what they had unread may be of this bucket."""
        replaced = self._expectation.replaced
        return {agent for agent, until_ms in replaced.items() if start <= until_ms}

    # One agent's part of a bucket.

    def agent(self, agent: int, bucket: BucketId) -> AgentVerdict:
        """The verdict on one agent's part; where nobody counted anything there is nothing to
        compare, and it is complete if the agent has sealed it."""
        found = self._agent(agent, bucket, self._topic.tallies.get(bucket, {}).get(agent, {}))
        for each in self._unread_findings():
            found = replace(
                found,
                status=max(found.status, each.status),
                reasons=(each.reason, *found.reasons),
                findings=(each, *found.findings),
            )
        return found

    def _agent(self, agent: int, bucket: BucketId, tallies: Tallies) -> AgentVerdict:
        sums = self._sums(tallies)
        findings = [*self._number_findings(agent, bucket, tallies)]
        findings += self._chain_findings(tallies)
        if agent == NO_AGENT or Tier.AGENT not in self._tiers:
            findings += self._unsealed_findings(bucket)
        else:
            findings += self._agent_findings(agent, bucket, tallies)
        if tallies and self._now_ms >= self._due(bucket):
            findings += self._equation_findings(agent, sums)
        return self._verdict(agent, bucket, findings, sums)

    def _verdict(
        self,
        agent: int,
        bucket: BucketId,
        findings: Iterable[Finding],
        sums: Mapping[Place, Sums | None],
    ) -> AgentVerdict:
        marked = self._accepted(agent, bucket, findings)
        return AgentVerdict(
            agent,
            self._evidence.hosts.get(agent, ""),
            max([x.status for x in marked], default=Status.COMPLETE),
            tuple(dict.fromkeys(x.words for x in marked)),
            sums,
            agent != NO_AGENT and self._expectation.is_retired(agent),
            marked,
        )

    def _losers(self, others: set[int], bucket: BucketId) -> Iterator[AgentVerdict]:
        """Of agents that nobody waits for in this bucket: what they declared lost stays lost."""
        losers = {agent for topic in self._related for agent in topic.losses}
        for agent in sorted(losers - others) if Tier.AGENT in self._tiers else ():
            yield self._verdict(agent, bucket, self._losses_of(agent, bucket, {}), {})

    def _accepted(
        self, agent: int, bucket: BucketId, findings: Iterable[Finding]
    ) -> tuple[Finding, ...]:
        """The findings, the gravest first, each once; those that were accepted for this bucket say
        by whom."""
        accepted = self._acceptances.get(bucket, {})
        ordered = sorted(set(findings), key=lambda x: (-x.status, x.reason, x.key))
        return tuple(
            replace(x, acceptance=accepted.get((agent, x.name))) if accepted else x for x in ordered
        )

    def _unread_findings(self) -> Iterator[Finding]:
        """What nobody here can read may be of any agent, tier and bucket."""
        if self._evidence.unread:
            yield Finding(Status.UNKNOWN, reasons.of_unread(self._evidence.unread))

    def _unheard_findings(self, bucket: BucketId) -> Iterator[Finding]:
        for host in self._expectation.unheard():
            status = Status.OPEN
            if self._now_ms >= self._due(bucket) + self._policy.silence_ms:
                status = Status.UNKNOWN
            yield Finding(status, f"host {host} is expected, but no agent of it reported yet")

    def _agent_findings(self, agent: int, bucket: BucketId, tallies: Tallies) -> Iterator[Finding]:
        if namesakes := self._expectation.side_by_side(agent):
            yield Finding(Status.COMPLETE, reasons.of_namesakes(namesakes))
        for doublings in self._doublings:
            for reason in doublings.reasons(agent, self._topic.tallies.get(bucket, {})):
                yield Finding(Status.UNKNOWN, reason, self._of_now(reason, tallies))
        yield from self._epoch_findings(agent, bucket, tallies)
        yield from self._losses_of(agent, bucket, tallies)
        yield from self._seal_findings(agent, bucket, tallies)

    def _of_now(self, words: str, tallies: Tallies) -> str:
        """What an acceptance calls a doubt of lines: more of them are in doubt anew."""
        counted = [key for key in tallies if key.tier is Tier.AGENT]
        return reasons.name_of_lack(words, _added(tallies, counted))

    # Numbers: what must be there of every sender.

    def _number_findings(self, agent: int, bucket: BucketId, tallies: Tallies) -> Iterator[Finding]:
        for key in self._epochs.get(agent, ()):
            yield from self._sender_findings(key, bucket, tallies)
        for counting in self._places:
            found = [
                each
                for key in counting.senders
                for each in self._sender_findings(key, bucket, tallies)
            ]
            for each in (*found, *counting.findings):
                yield _remark(each) if counting.place.is_retired else each
        if agent == NO_AGENT:
            yield from self._beginning_findings(bucket)

    def _sender_findings(
        self, key: SenderKey, bucket: BucketId, tallies: Tallies
    ) -> Iterator[Finding]:
        numbers = self._evidence.senders[key]
        who, start = reasons.of_sender(key), bucket[0]
        if numbers.missing is not None and not self._overcome(key, start):
            yield Finding(Status.UNKNOWN, f"message {numbers.missing} of {who} is missing")
        if numbers.first > 1 and start < numbers.first_time_ms + self._ahead_ms:
            yield Finding(
                Status.UNKNOWN,
                f"the messages of {who} before number {numbers.first} are no longer there",
            )
        if numbers.cloned_at is not None:
            touched = key in tallies and tallies[key].last >= numbers.cloned_at
            if touched or not self._sealed_usably(key, bucket):
                words = f"message {numbers.cloned_at} of {who} came with two contents"
                yield Finding(Status.UNKNOWN, f"{words} (a restored or copied state)")

    def _chain_findings(self, tallies: Tallies) -> Iterator[Finding]:
        for key, tally in tallies.items():
            if not tally.chained:
                words = f"deltas of {reasons.of_sender(key)} for this bucket are missing"
                found = Finding(Status.UNKNOWN, words, reasons.name_of_lack(words, tally.sums))
                yield _remark(found) if self._is_retired(key) else found

    def _is_retired(self, key: SenderKey) -> bool:
        if key.tier is Tier.AGENT or key not in self._evidence.senders:
            return False
        return place_of(key, self._evidence, self._retired).is_retired

    def _sealed_usably(self, key: SenderKey, bucket: BucketId) -> bool:
        if key.tier is not Tier.AGENT:
            return True
        seals = self._seals.get(agent_named(key.producer), ())
        return any(seal.vouched_until >= self._due(bucket) for seal in seals)

    def _overcome(self, key: SenderKey, start: int) -> bool:
        """Whether an agent's later epoch has sealed so that this one cannot touch the bucket."""
        if key.tier is not Tier.AGENT:
            return False
        later = [x for x in self._seals.get(agent_named(key.producer), ()) if x.epoch > key.epoch]
        return bool(later) and start >= min(later).sealed_until + self._ahead_ms

    def _beginning_findings(self, bucket: BucketId) -> Iterator[Finding]:
        """Without origins nothing but the offsets shows what is not there."""
        for key, partitions in self._topic.coverage.items():
            late = [p for p, covered in partitions.items() if covered.first > 0]
            if not late or not self._current(key):
                continue
            if bucket[0] < self._evidence.senders[key].first_time_ms + self._ahead_ms:
                yield Finding(
                    Status.UNKNOWN,
                    f"{reasons.of_sender(key)} did not count partition {min(late)} from its start",
                )
        for note in self._topic.gaps:
            if self._current(note.sender) and bucket[0] < note.time_ms + self._ahead_ms:
                yield Finding(Status.UNKNOWN, reasons.of_gap(note))

    def _current(self, key: SenderKey) -> bool:
        """Whether its counts hold, and somebody waits for them."""
        return any(key in x.senders for x in self._places if not x.place.is_retired)

    # Epochs, losses and seals: what an agent says of its own.

    def _epoch_findings(self, agent: int, bucket: BucketId, tallies: Tallies) -> Iterator[Finding]:
        epochs = self._epochs.get(agent, [])
        if epochs and epochs[0].epoch > 1:  # what was before it has left no trace
            epochs = [epochs[0]._replace(epoch=0), *epochs]
        for old, new in pairwise(epochs):
            until = [x for x in self._seals[agent] if x.epoch == old.epoch]
            since = [x for x in self._seals[agent] if x.epoch >= new.epoch]
            proven = bool(until) and until[-1].vouched_until >= self._due(bucket)
            untouched = old not in tallies or (until and tallies[old].last <= until[-1].at)
            resumed_ms = max(
                self._evidence.resumed.get((agent, epoch), 0)
                for epoch in {new.epoch, *(x.epoch for x in since[:1])}
            )
            before = not since or bucket[0] <= max(since[0].sealed_until, resumed_ms)
            if before and not (proven and untouched):
                yield Finding(
                    Status.UNKNOWN,
                    f"the agent's epoch {new.epoch} sealed nothing before this bucket"
                    " (its state had been an older copy)",
                )
            first = (new.epoch, tallies[new].first) if new in tallies else None
            if first is not None and not (since and first > since[0][:2]):
                words = reasons.of_epoch_before_its_seal(new.epoch)
                yield Finding(Status.UNKNOWN, words, self._of_now(words, tallies))

    def _losses_of(self, agent: int, bucket: BucketId, tallies: Tallies) -> Iterator[Finding]:
        for topic in self._related:
            for note in topic.losses.get(agent, ()):
                path = topic.paths.get((note.loss.agent, note.loss.file), "")
                yield from self._loss_findings(agent, note, path, bucket, tallies)

    def _loss_findings(
        self, agent: int, note: LossNote, path: str, bucket: BucketId, tallies: Tallies
    ) -> Iterator[Finding]:
        loss, (start, size) = note.loss, bucket
        before = [x for x in self._seals[agent] if x[:2] < (note.epoch, note.number)]
        prior = before[-1] if before else None
        begin, end = self._loss_span(note, prior)
        inside = (begin is None or start + size > begin) and start <= end
        if not inside:  # a lost line may be older than those that came between
            inside = _touched_between(tallies, agent, note, prior)
        if inside:
            lost = loss.certainty is Certainty.LOST
            status = Status.LOST if lost else Status.UNKNOWN
            yield Finding(status, reasons.of_loss(note, path), reasons.name_of_loss(note))

    def _loss_span(self, note: LossNote, prior: SealNote | None) -> tuple[int | None, int]:
        """Event times that the lost lines can have, both ends included; None: however old.

        They reach back behind the seal by the agent's lateness or by ours, whichever is larger."""
        begin, end = note.loss.from_bucket, note.loss.to_bucket
        if begin is None and prior is not None:
            begin = prior.sealed_until
        if begin is not None and note.loss.end is None:
            begin = min(begin, note.time_ms)  # the clock may have been set back since that seal
        if begin is not None:
            said = self._evidence.bounds.get(note.loss.agent, NOTHING_SAID)
            begin -= max(self._policy.lateness_ms, said.lateness_ms)
        if end is None:
            end = max(note.time_ms, prior.sealed_until if prior is not None else note.time_ms)
        return begin, end

    def _seal_findings(self, agent: int, bucket: BucketId, tallies: Tallies) -> Iterator[Finding]:
        seals = self._seals.get(agent)
        if not seals:
            yield self._waiting(agent, bucket, "the agent has not sealed this topic yet", 0)
            return
        newest = seals[-1]
        until_ms = newest.vouched_until
        if until_ms < self._due(bucket) and not self._is_last_word(agent, newest):
            when = reasons.of_time(until_ms)
            yield self._waiting(agent, bucket, f"the agent has sealed up to {when} only", until_ms)
        touched = [
            (key.epoch, tally.last) for key, tally in tallies.items() if key.tier is Tier.AGENT
        ]
        if any(touch > (newest.epoch, newest.at) for touch in touched):
            yield self._waiting(
                agent, bucket, "lines came after the agent's newest seal", newest.sealed_until
            )
        if self._now_ms < self._due(bucket):
            yield _TOO_YOUNG

    def _is_last_word(self, agent: int, newest: SealNote) -> bool:
        """Whether nothing comes behind the seal: the agent said so, and nobody waits for it. It is
        none on a topic that was made again, once the agent has spoken of that."""
        if not newest.final or not self._expectation.is_gone(agent):
            return False
        spoke = any(agent in topic.agents for topic in self._related)
        return not spoke or any(topic.seals.get(agent) for topic in self._related)

    def _waiting(self, agent: int, bucket: BucketId, reason: str, since_ms: int) -> Finding:
        """Open while the agent lives; unknown once it is silent and the bucket is due."""
        seen = self._evidence.heard_ms((Tier.AGENT, str(agent)))
        deadline = max(self._due(bucket), seen) + self._policy.silence_ms
        if self._now_ms < deadline:
            return Finding(Status.OPEN, reason)
        since = f"since {reasons.of_time(since_ms)}" if since_ms else "from its beginning on"
        name = f"the agent is silent: unknown {since}"
        if late_ms := self._behind_ms(agent):
            return Finding(
                Status.UNKNOWN, f"the agent is {reasons.of_delay(late_ms)}: unknown {since}", name
            )
        return Finding(Status.UNKNOWN, name)

    def _behind_ms(self, agent: int) -> int:
        if self._ours_ahead_ms is None:  # asked of every sender, so not before somebody is silent
            self._ours_ahead_ms = ours_ahead_ms(self._evidence, self._policy)
        sender = Tier.AGENT, str(agent)
        return behind_ms(self._evidence, self._policy, sender, self._now_ms, self._ours_ahead_ms)

    def _unsealed_findings(self, bucket: BucketId) -> Iterator[Finding]:
        due = self._due(bucket)
        if self._now_ms < due:
            yield _TOO_YOUNG
        elif not self._has_counters():
            yield Finding(Status.UNKNOWN, "nobody counts what has no origin before it is loaded")
        else:
            for key in self._first_counters():
                seen = self._evidence.heard_ms(key[:2])
                if seen < due:
                    patient = self._now_ms < due + self._policy.silence_ms
                    yield Finding(
                        Status.OPEN if patient else Status.UNKNOWN,
                        f"{reasons.of_sender(key)} was heard last at {reasons.of_time(seen)},"
                        " before this bucket was due",
                    )
        yield _FROM_BROKER_ON

    def _has_counters(self) -> bool:
        """Whether a tier is asked that has a counter: none of a loader's own counts is proof."""
        return Tier.BROKER in self._tiers or Tier.MIRROR in self._tiers

    def _first_counters(self) -> tuple[SenderKey, ...]:
        """Who counts first what no agent seals: equal sums prove nothing while they stand still.
        Where all are retired, it is the one that was heard last."""
        waited = [x for x in self._places if not x.place.is_retired]
        for tier in (Tier.BROKER, Tier.MIRROR):
            if tier in self._tiers and not self._retired.holds_tier(tier):
                found = tuple(x for p in waited if p.place.tier is tier for x in p.senders)
                if found or not any(p.place.tier is tier for p in self._places):
                    return found
        counters = [x for p in self._places if p.place.tier is not Tier.HDFS for x in p.senders]
        return tuple(sorted(counters, key=lambda x: self._evidence.heard_ms(x[:2]))[-1:])

    # The equation.

    def _sums(self, tallies: Tallies) -> dict[Place, Sums | None]:
        sums: dict[Place, Sums | None] = {}
        for tier in self._tiers:
            if tier is Tier.AGENT:
                keys = [key for key in tallies if key.tier is Tier.AGENT]
                sums[Place(tier, "")] = _added(tallies, keys)
                continue
            places = [x for x in self._places if x.place.tier is tier]
            for counting in places:
                sums[counting.place] = _added(tallies, counting.senders)
            if not places:
                sums[Place(tier, "", self._retired.holds_tier(tier))] = None
        return sums

    def _equation_findings(self, agent: int, sums: dict[Place, Sums | None]) -> Iterator[Finding]:
        known = [
            (place, x or Sums())
            for place, x in sums.items()
            if not (agent == NO_AGENT and place.tier is Tier.AGENT)
        ]
        known.sort(key=lambda each: each[0].is_retired)  # what counts comes first
        silent = [place for place, x in sums.items() if x is None]
        largest = max((x for _, x in known), key=lambda x: x.count, default=Sums())
        for place in silent:
            words = f"tier {reasons.of_place(place)} never reported this topic"
            yield Finding(_gravity(place), words, reasons.name_of_lack(words, largest))
        if not known:
            return
        (first, expected), *others = known
        others = [(place, found) for place, found in others if place not in silent]
        differing = [(p, found) for p, found in others if _content(found) != _content(expected)]
        is_sealed = any(place.tier is Tier.AGENT for place, _ in known)
        for place, found in differing:
            words = reasons.difference(first, expected, place, found)
            name = reasons.name_of_difference(words, expected, found)
            gravity = _gravity(place)
            if not is_sealed and found.count >= expected.count:  # it is the first that lacks some
                gravity = max(gravity, _gravity(first))
            yield Finding(gravity, words, name)
            yield from self._gap_findings(place)
        lack = {place for place, _ in differing}
        for tier in sorted(self._needed):
            if all(place in lack for place in sums if place.tier is tier):
                words = reasons.of_needed(tier)
                name = reasons.name_of_lack(words, largest)
                yield Finding(Status.INCOMPLETE, words, name)
        lacking = [*silent, *(place for place, _ in differing)]
        if lacking and all(x.is_retired for x in lacking) and len(differing) == len(others):
            words = "all that could confirm the counts is retired"
            yield Finding(Status.UNKNOWN, words, reasons.name_of_lack(words, largest))

    def _gap_findings(self, place: Place) -> Iterator[Finding]:
        """The newest gap that may be why this place is short."""
        senders = {key for x in self._places if x.place == place for key in x.senders}
        gaps = [note for note in self._topic.gaps if note.sender in senders]
        if gaps:
            newest = max(gaps, key=lambda x: (x.time_ms, x.sender, x.gap.partition, x.gap.first))
            yield Finding(_gravity(place), reasons.of_gap(newest))

    def _epochs_by_agent(self) -> dict[int, list[SenderKey]]:
        epochs: dict[int, list[SenderKey]] = {}
        for key in sorted(x for x in self._evidence.senders if x.tier is Tier.AGENT):
            agent = agent_named(key.producer)
            if agent != NO_AGENT:
                epochs.setdefault(agent, []).append(key)
        return epochs

    def _due(self, bucket: BucketId) -> int:
        return sum(bucket) + self._policy.lateness_ms


def _by_finding(
    acceptances: Iterable[Acceptance],
) -> dict[BucketId, dict[tuple[int, str], Acceptance]]:
    """By bucket and finding; of several the oldest."""
    found: dict[BucketId, dict[tuple[int, str], Acceptance]] = {}
    for each in acceptances:
        named = found.setdefault((each.bucket, each.bucket_ms), {})
        for name in each.findings:
            named.setdefault(name, each)
    return found


def _touched_between(tallies: Tallies, agent: int, note: LossNote, prior: SealNote | None) -> bool:
    """Whether a delta touched the bucket since the seal before the loss and up to the loss."""
    since = (prior.epoch, prior.at) if prior is not None else (0, 0)
    return any(
        (key.epoch, tally.first) <= (note.epoch, note.number) and (key.epoch, tally.last) > since
        for key, tally in tallies.items()
        if key[:2] == (Tier.AGENT, str(agent))
    )


def _gravity(place: Place) -> Status:
    """What it means that a place lacks something."""
    return Status.COMPLETE if place.is_retired else Status.INCOMPLETE


def _remark(finding: Finding) -> Finding:
    """The same of a retired place: nobody waits for it."""
    return Finding(Status.COMPLETE, f"{finding.reason} (retired)")


def _added(tallies: Tallies, keys: Iterable[SenderKey]) -> Sums:
    return sum((tallies[key].sums for key in keys if key in tallies), Sums())


def _content(sums: Sums) -> tuple[int, int, int]:
    return sums.count, sums.bytes, sums.checksum

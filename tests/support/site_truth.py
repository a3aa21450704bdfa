"""Compares the verdicts of collectors with the true state of the simulated site (see
support.site_world).

A collector reads the messages of the audit topics and judges by those that it has read so far
("heard"). A seal is a message by which an agent guarantees that its deltas have counted all lines
that its files had at a given time. A recount counts the rows that are really in the loader's
output.

If a collector calls a bucket of a topic complete, then these statements must be true:

    E  all tiers have counted the same lines in this bucket: each line once, and under its agent
    D  if a line belongs to this bucket, and the newest seal of the line's agent guarantees that the
       line is counted, then the line is a row of this bucket and of no other bucket, or a rule left
       it out
    F  if a record without origin belongs to this bucket, then it is a row of this bucket and of no
       other bucket
    X  if the loader's messages count a row of this bucket, then the row has the bucket, agent and
       topic of its line; and no line has two rows in this bucket
    L  the verdict shows, for each rule, the number of lines of this bucket that the agents left out
       by this rule
    R  if rows were changed without a change in the manifests, the recount names each agent and
       bucket for which D, F or X does not hold

F is not checked if the topic was deleted and created again. Otherwise it is checked as soon as the
collector has heard a message that counts a record without origin in this bucket.

If all tiers counted the same lines of a bucket and all agents sealed the bucket, then a collector
that has heard every message must call the bucket complete. This module compares single lines. It
never compares sums.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace

from skidway.audit.counts.counts import NO_AGENT
from skidway.audit.evidence.evidence import Evidence
from skidway.audit.judgement.policy import Policy
from skidway.audit.judgement.topic_judgement import verdicts
from skidway.audit.judgement.verdict import BucketVerdict, Status
from skidway.audit.recount import recount
from skidway.audit.recount.manifests import Committed
from skidway.audit.recount.recount import Recounted
from skidway.audit.topic.messages import Tier
from skidway.kafka.source import Source
from support.audit_model import BUCKET_MS
from support.site_logs import NumberKey, Placed
from support.site_world import Collector, World

LATENESS_MS = 2_000
TIERS = (Tier.AGENT, Tier.BROKER, Tier.MIRROR, Tier.HDFS)
POLICY = Policy(tiers=TIERS, lateness_ms=LATENESS_MS, silence_ms=10**9, ahead_ms=20_000)

BucketName = tuple[Source, int]
Told = dict[BucketName, dict[Tier, Counter[tuple[int, int]]]]
"""For each bucket and tier: how often the tier counted each line, by the line's number and the
agent under which it was counted."""


class Wrong(AssertionError):
    """Raised if a verdict of a collector is false."""


def judged(world: World, collector: Collector) -> list[BucketVerdict]:
    """Returns the verdicts that a collector gives now. Raises Wrong if the truth contradicts one of
    these verdicts, or if a bucket is not complete and its verdict has no reason."""
    evidence = collector.fold.evidence()
    if world.faults.blind is not None:
        world.faults.blind(evidence)
    found = verdicts(evidence, POLICY, world.now_ms)
    told = told_by(world, collector.heard)
    for verdict in found:
        if verdict.status is Status.COMPLETE:
            Truth(world, collector, told, evidence).check(verdict)
        elif not verdict.reasons:
            raise Wrong(f"bucket {verdict.bucket}: nothing says why")
    return found


def completed(found: list[BucketVerdict]) -> set[BucketName]:
    """The buckets that these verdicts call complete."""
    return {(x.source, x.bucket) for x in found if x.status is Status.COMPLETE}


def told_by(world: World, heard: Collection[NumberKey]) -> Told:
    """The lines that the messages in `heard` count, by bucket and tier. Uses only the newest epoch
    of each counter and of the loader, and all epochs of the agents."""
    audit, newest = world.audit, _newest_epochs(world, heard)
    found: Told = defaultdict(lambda: defaultdict(Counter))
    for key in heard:
        tier, producer, epoch, _ = key
        for line, source, agent, bucket in audit.told.get(key, ()):
            if tier is Tier.AGENT or newest.get((source, tier, producer)) == epoch:
                found[source, bucket][tier][line, agent] += 1
    return found


def left_out(world: World, heard: Collection[NumberKey]) -> list[Placed]:
    """The lines that the messages in `heard` count as left out by rules of the agents."""
    return [place for key in heard for place in world.audit.left_out.get(key, ())]


def _newest_epochs(
    world: World, heard: Collection[NumberKey]
) -> dict[tuple[Source, Tier, str], int]:
    newest: dict[tuple[Source, Tier, str], int] = {}
    for tier, producer, epoch, number in heard:
        for part in world.audit.ranges.get((tier, producer, epoch, number), ()):
            name = part.source, tier, producer
            newest[name] = max(epoch, newest.get(name, 0))
    return newest


class Truth:
    """Compares the verdicts of one collector with the statements in the module's docstring. `told`
    contains what the tiers have counted, according to the messages that this collector has
    heard."""

    def __init__(self, world: World, collector: Collector, told: Told, evidence: Evidence) -> None:
        self.world, self.collector = world, collector
        self.told, self.evidence = told, evidence

    def check(self, verdict: BucketVerdict) -> None:
        """Raises Wrong if one of the statements in the module's docstring is false for this bucket,
        which the collector calls complete."""
        source, bucket = verdict.source, verdict.bucket
        self.check_told(source, bucket)
        self.check_left_out(verdict)
        for agent, words in self.wrong_rows(source, bucket):
            is_changed = self.world.faults.tampers
            if is_changed and (agent, bucket) in named(self.world, source, self.evidence):
                continue
            raise Wrong(f"{words} (bucket {bucket} of {source.topic_id})")

    def check_told(self, source: Source, bucket: int) -> None:
        """Raises Wrong if statement E in the module's docstring is false for this bucket."""
        told = self.told[source, bucket]
        first = told[Tier.AGENT]
        for tier in TIERS[1:]:
            own = Counter({x: n for x, n in told[tier].items() if x[1] != NO_AGENT})
            rest = set(told[tier]) - set(own)
            if own != first or max(own.values(), default=0) > 1:
                raise Wrong(f"E: bucket {bucket}: {tier} told {own}, the agents {first}")
            if rest != {x for x in told[Tier.HDFS] if x[1] == NO_AGENT}:
                raise Wrong(f"E: bucket {bucket}: {tier} told {rest} without origin")

    def check_left_out(self, verdict: BucketVerdict) -> None:
        """Raises Wrong if statement L in the module's docstring is false for this bucket."""
        out = left_out(self.world, self.collector.heard)
        here = (x for x in out if (x.source, x.bucket) == (verdict.source, verdict.bucket))
        counted = Counter(self.world.lines[place.line].rule for place in here)
        shown = {each.rule: each.records for each in verdict.filtered}
        if shown != counted:
            raise Wrong(f"L: bucket {verdict.bucket} shows {shown}, the agents told {counted}")

    def wrong_rows(self, source: Source, bucket: int) -> Iterator[tuple[int, str]]:
        """Checks the statements D, F and X in the module's docstring. For each line or row that
        contradicts one of them, yields the agent and what is wrong."""
        world = self.world
        lying = world.loader.lying(source, self.epoch_of_rows(source))
        rows = {x: n for x, n in lying.items() if x.bucket == bucket}
        lines = {(x.line, x.agent) for x in rows}
        lines |= {(x.line, x.agent) for x in left_out(world, self.collector.heard)}
        for line in world.lines:
            if line.bucket != bucket or (line.number, line.agent) in lines:
                continue
            if self.is_vouched_for(line.agent, line.number, line.written, source):
                yield line.agent, f"D: {line} is no row"
            if line.agent == NO_AGENT and line.number in self.standing(source, bucket):
                yield line.agent, f"F: {line} is no row"
        said = self.told[source, bucket][Tier.HDFS]
        for place, times in rows.items():
            line = world.lines[place.line]
            if (place.line, place.agent) not in said and not world.faults.tampers:
                continue  # the collector has not heard the delta of the load that wrote this row
            carried = line.number in self.carried(source)
            counted = self.counted_as(line.agent, line.number) == source
            if (line.agent, line.bucket) != (place.agent, bucket) or not (carried or counted):
                yield place.agent, f"X: {line} lies there"
            if times > 1:
                yield place.agent, f"X: {line} is {times} rows"

    def epoch_of_rows(self, source: Source) -> int | None:
        """The newest epoch of this topic's output from which the collector has read a message, or
        None if there is none. If an output is removed, the collector hears of the new epoch only
        with the counts of the next load."""
        newest = _newest_epochs(self.world, self.collector.heard)
        return max(
            (n for (x, tier, _), n in newest.items() if (x, tier) == (source, Tier.HDFS)),
            default=None,
        )

    def is_vouched_for(self, agent: int, line: int, written: int, source: Source) -> bool:
        """Whether the agent counted the line for this topic, and the newest seal that the collector
        has heard from this agent guarantees that the line is counted."""
        if self.counted_as(agent, line) != source:
            return False
        [its] = [x for x in self.world.agents if x.number == agent]
        seals = [n for n in its.vouched if (*its.teller.name, n) in self.collector.heard]
        return bool(seals) and written <= its.vouched[max(seals)]

    def counted_as(self, agent: int, line: int) -> Source | None:
        """The topic for which the agent counted the line, or None."""
        found = [x.counted_as.get(line) for x in self.world.agents if x.number == agent]
        return found[0] if found else None

    def carried(self, source: Source) -> set[int]:
        """The numbers of the lines that have ever had a record in the topic."""
        topics = [x for x in self.world.topics[source.topic] if x.source == source]
        return set().union(*(x.carried for x in topics))

    def standing(self, source: Source, bucket: int) -> set[int]:
        """The numbers of all lines that have ever had a record in the topic. The caller checks
        statement F of the module's docstring for the lines whose records have no origin. The set is
        empty if the topic was created again, or if no tier counted a record without origin in this
        bucket."""
        current = self.world.current(source.topic)
        told = self.told[source, bucket].values()
        is_told = any(agent == NO_AGENT for lines in told for _, agent in lines)
        return current.carried if is_told and current.source == source else set()


def named(world: World, source: Source, evidence: Evidence) -> set[tuple[int, int]]:
    """Each (agent, bucket) of the topic for which a recount of the rows reports a sum that differs
    from the sum in the loader's messages."""
    output = world.loader.output(source)
    committed = Committed(source.topic, source, output.teller.sender.producer)
    sums = world.loader.recounted(source)
    if world.faults.unsummed:
        sums = {key: replace(x, checksum=0) for key, x in sums.items()}
        evidence = _without_checksums(evidence, source)
    differences = recount.compare(Recounted(committed, sums=sums), evidence, [Tier.HDFS])
    return {(x.agent, x.bucket[0]) for x in differences}


def changed(world: World, source: Source) -> set[tuple[int, int]]:
    """Each (agent, bucket) of the topic in which the rows really have other lines than those that
    the loader's messages count."""
    told = told_by(world, world.audit.told)
    lying, found = world.loader.lying(source), set()
    by_bucket: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    for place, times in lying.items():
        by_bucket[place.agent, place.bucket][place.line] += times
    for (known, bucket), tiers in told.items():
        if known == source:
            for (line, agent), times in tiers[Tier.HDFS].items():
                by_bucket[agent, bucket][line] -= times
    for name, lines in by_bucket.items():
        if any(lines.values()):
            found.add(name)
    return found


def _without_checksums(evidence: Evidence, source: Source) -> Evidence:
    for by_agent in evidence.topic(source).tallies.values():
        for tallies in by_agent.values():
            for key, tally in tallies.items():
                tallies[key] = replace(tally, sums=replace(tally.sums, checksum=0))
    return evidence


def expected(world: World) -> set[BucketName]:
    """The buckets that must be complete if the collector has heard every published message.

    For each of these buckets, the following holds. All tiers counted the same lines, all agents
    sealed the bucket afterwards, and no loss is declared. If the topic has records without origin,
    it has no gap and was not created again. If a counter or the loader began a new epoch, it has
    counted in all partitions in which it counted in the old epoch.
    """
    heard, found = world.collectors[0].heard, set()
    told = told_by(world, heard)
    for place in left_out(world, heard):
        told.setdefault((place.source, place.bucket), defaultdict(Counter))
    for (source, bucket), tiers in told.items():
        same = all(_own(tiers[tier]) == tiers[Tier.AGENT] for tier in TIERS[1:])
        rest = [set(tiers[tier]) - set(tiers[Tier.AGENT]) for tier in TIERS[1:]]
        doubts = any(rest) and _is_doubted(world, source)
        alike = same and rest[0] == rest[1] == rest[2] and not doubts
        if alike and _is_sealed(world, source, bucket) and _is_replaced_whole(world, heard, source):
            found.add((source, bucket))
    return found


def _own(lines: Counter[tuple[int, int]]) -> Counter[tuple[int, int]]:
    return Counter({x: n for x, n in lines.items() if x[1] != NO_AGENT})


def _is_doubted(world: World, source: Source) -> bool:
    gaps = any(x.source == source for gaps in world.audit.gaps.values() for x in gaps)
    return gaps or source != world.current(source.topic).source


def _is_sealed(world: World, source: Source, bucket: int) -> bool:
    for agent in world.agents:
        losses = [x.bucket for x in agent.uncertain if x.source == source]
        if any(x - LATENESS_MS < bucket + BUCKET_MS and bucket <= x for x in losses):
            return False
        seals = [x for name, x in agent.sealed.items() if name.topic == source.topic]
        if not seals:
            if any(x.topic == source.topic for x in agent.counted_as.values()):
                return False
            continue
        until, at = max(seals, key=lambda x: (x[1], x[0]))  # the seal that was prepared last
        touched = agent.teller.touched.get((source, agent.number, bucket), 0)
        if until < bucket + BUCKET_MS + LATENESS_MS or touched > at:
            return False
    return True


def _is_replaced_whole(world: World, heard: Collection[NumberKey], source: Source) -> bool:
    covered: dict[tuple[Tier, str], dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for tier, producer, epoch, number in heard:
        for part in world.audit.ranges.get((tier, producer, epoch, number), ()):
            if part.source == source:
                covered[tier, producer][epoch].add(part.partition)
    return all(set().union(*x.values()) == x[max(x)] for x in covered.values())

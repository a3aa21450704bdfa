"""Evidence: what all messages together say, in whatever order and however often they came.

`Evidence` is what the judgement (reconcile) looks at. Two things make it: `Fold`, below, from
messages in memory; and ledger.Ledger, from its SQLite tables, for a window of buckets. Tests hold
the two equal. Every number in it is a sum, a least or a greatest over distinct messages, so order
and repetition cannot matter.

The chain of a bucket: each count names the number of the delta before that touched the bucket. The
sum over a tally's deltas of link(number) - link(previous) must be link(last) - link(0); anything
else means that a delta of the bucket is missing, for example because the topic expired.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from audit import checksum
from audit.counts import NO_AGENT, Sums
from audit.file_notes import FileNotes
from audit.hearing import Heard, Hearings, Log, Offsets, Reading, SenderName
from audit.messages import (
    NOTHING_SAID,
    Announcement,
    Bounds,
    Count,
    Delta,
    Gap,
    Heartbeat,
    Loss,
    Message,
    Seal,
    Sender,
    Tier,
)
from audit.rereading import Rereadings, rereadings
from skidway.kafka.source import Source

REJECTED_SUFFIX = ".rejected"

NEVER_AHEAD_MS = 1 << 62
"""A moment behind all seals."""

_ID_END = 1 << 63
_ID_DIGITS_MAX = 19


class SenderKey(NamedTuple):
    """Whose numbers have no holes. Every epoch begins with number 1."""

    tier: Tier
    producer: str
    epoch: int


class SealNote(NamedTuple):
    """One seal of one topic by one agent; sorts by (epoch, number), which is by age. taken_ms: our
    clock when we took it, where the agent's was ahead of that."""

    epoch: int
    number: int
    sealed_until: int
    at: int
    final: bool = False
    taken_ms: int = NEVER_AHEAD_MS

    @property
    def vouched_until(self) -> int:
        """Until when nothing is missing: no seal vouches for what comes after it was taken."""
        return min(self.sealed_until, self.taken_ms)


@dataclass(frozen=True, slots=True)
class Numbers:
    """What is known of a sender's numbered messages.

    first, last: least and greatest number known of, the latter also from heartbeats. missing: the
    least number between them that did not come. first_time_ms: the sender's clock at `first`.
    cloned_at: the least number that came with two contents.
    """

    cluster: str
    host: str
    first: int
    last: int
    first_time_ms: int
    missing: int | None = None
    cloned_at: int | None = None


@dataclass(frozen=True, slots=True)
class Tally:
    """What one sender counted of one (source topic, agent, bucket).

    first, last: the least and greatest number of the deltas that touched it; links: their chain.
    """

    sums: Sums
    first: int
    last: int
    links: int

    @property
    def chained(self) -> bool:
        """Whether no delta of this bucket is missing."""
        return self.links == checksum.signed(link(self.last) - link(0))


@dataclass(frozen=True, slots=True)
class LossNote:
    """A loss, and when its agent declared it (number and clock)."""

    epoch: int
    number: int
    time_ms: int
    loss: Loss


@dataclass(frozen=True, slots=True)
class GapNote:
    """A gap, and who named it when."""

    sender: SenderKey
    time_ms: int
    gap: Gap


class Coverage(NamedTuple):
    """The least and one past the greatest offset that a sender stands for in a partition."""

    first: int
    end: int


BucketId = tuple[int, int]
"""Start and size of a bucket, ms. Tiers that cut time differently never agree."""


@dataclass(slots=True)
class TopicEvidence:
    """All that was said of one source topic. agents: every one that announced, sealed or sent.
    rereadings: by agent, of those that may have read what others had read."""

    tallies: dict[BucketId, dict[int, dict[SenderKey, Tally]]] = field(default_factory=dict)
    seals: dict[int, list[SealNote]] = field(default_factory=dict)
    losses: dict[int, list[LossNote]] = field(default_factory=dict)
    gaps: list[GapNote] = field(default_factory=list)
    coverage: dict[SenderKey, dict[int, Coverage]] = field(default_factory=dict)
    agents: set[int] = field(default_factory=set)
    rereadings: dict[int, Rereadings] = field(default_factory=dict)


@dataclass(slots=True)
class Evidence:
    """hosts: by agent. last_seen: the greatest clock of any message of (tier, producer). began: the
    least clock of any message of an agent. bounds: by agent, the widest that it ever said. unread:
    how many messages have a schema that this version does not have, by its fingerprint. heard,
    readings, offsets (by agent): what does not rest on the senders' clocks alone, see
    audit.hearing. taken_ms: our clock when something was taken last; 0 for never."""

    topics: dict[Source, TopicEvidence] = field(default_factory=dict)
    senders: dict[SenderKey, Numbers] = field(default_factory=dict)
    hosts: dict[int, str] = field(default_factory=dict)
    last_seen: dict[tuple[Tier, str], int] = field(default_factory=dict)
    began: dict[int, int] = field(default_factory=dict)
    bounds: dict[int, Bounds] = field(default_factory=dict)
    unread: dict[str, int] = field(default_factory=dict)
    heard: dict[SenderName, int] = field(default_factory=dict)
    readings: dict[SenderName, Reading] = field(default_factory=dict)
    offsets: dict[int, dict[Log, Offsets]] = field(default_factory=dict)
    taken_ms: int = 0

    def topic(self, source: Source) -> TopicEvidence:
        """The evidence of a source topic, empty where nothing was said."""
        return self.topics.setdefault(source, TopicEvidence())

    def last_heard(self, agent: int) -> int:
        """The greatest clock of any message of an agent, ms; 0 for none."""
        return self.last_seen.get((Tier.AGENT, str(agent)), 0)

    def heard_ms(self, sender: SenderName) -> int:
        """When a sender was heard last, by a clock that was not ahead of ours then; 0 for never."""
        return self.heard.get(sender, self.last_seen.get(sender, 0))

    def first_heard(self, agent: int) -> int | None:
        """The least clock of any message of an agent, ms; None where its first message is not
        there, so that nobody knows."""
        numbers = self.senders.get(SenderKey(Tier.AGENT, str(agent), 1))
        if numbers is None or numbers.first > 1:
            return None
        return min(self.began.get(agent, numbers.first_time_ms), numbers.first_time_ms)


def link(number: int) -> int:
    """A 64-bit value for a number, by the finalizer of splitmix64 (see checksum), signed."""
    mask = (1 << 64) - 1
    mixed = (number + 0x9E3779B97F4A7C15) & mask
    mixed = ((mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9) & mask
    mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & mask
    return checksum.signed(mixed ^ mixed >> 31)


def links_of(number: int, previous: int) -> int:
    """What one delta adds to the chain of a bucket that it touches."""
    return checksum.signed(link(number) - link(previous))


def sums_of(count: Count) -> Sums:
    """The sums in one entry of a delta."""
    return Sums(count.count, count.bytes, count.checksum, count.rejects, count.repeats)


def agents_in(message: Delta | Seal) -> Iterator[tuple[Source, int]]:
    """The agents that a message shows to exist, per source topic; NO_AGENT is none."""
    if isinstance(message, Delta):
        parts: list[Count | Loss] = [*message.counts, *message.losses]
        for part in parts:
            if part.agent != NO_AGENT:
                yield part.source, part.agent
    elif agent_of(message.sender) != NO_AGENT:
        for sealed in message.topics:
            yield sealed.source, agent_of(message.sender)


def agent_of(sender: Sender) -> int:
    """The agent id of an agent's messages; NO_AGENT for a producer name that is no id."""
    return agent_named(sender.producer)


def agent_named(producer: str) -> int:
    """The agent id that a producer name is; NO_AGENT for any other name, however like one."""
    if not (producer.isascii() and producer.isdigit() and len(producer) <= _ID_DIGITS_MAX):
        return NO_AGENT
    agent = int(producer)
    return agent if str(agent) == producer and agent < _ID_END else NO_AGENT


def sender_key(sender: Sender) -> SenderKey:
    """The key under which the sender's numbers run."""
    return SenderKey(sender.tier, sender.producer, sender.epoch)


def loss_note(sender: SenderKey, number: int, time_ms: int, loss: Loss) -> LossNote:
    """A loss by its declaration. Somebody else's than the agent's own is older than any seal."""
    if sender[:2] != (Tier.AGENT, str(loss.agent)):
        return LossNote(0, 0, time_ms, loss)
    return LossNote(sender.epoch, number, time_ms, loss)


def only_claimed(cluster: str, host: str, number: int, time_ms: int) -> Numbers:
    """A sender of which only a heartbeat is there: what it said before is gone."""
    return Numbers(cluster, host, number + 1, number, time_ms)


def hear(hearings: Hearings, message: Message, where: Heard | None) -> None:
    """Takes what a message says of its sender by where and when it was taken.

    Where the broker writes its own clock into records, the sender's is read from what is sent as
    soon as it is made: seals and heartbeats. A delta may have waited, a loader's for a day.
    """
    if isinstance(message, Announcement):
        name = Tier.AGENT, str(message.agent)
    else:
        name = message.sender.tier, message.sender.producer
        hearings.take(name, message.time_ms, where)
    if where is None:
        return
    if name[0] is Tier.AGENT:
        hearings.place(agent_named(name[1]), where)
    if where.sent_ms is not None:
        hearings.read(name, where.sent_ms, where)
    elif isinstance(message, Seal | Heartbeat):
        hearings.read(name, message.time_ms, where)


class Fold:
    """Messages to evidence, in memory. For tests and models, and as the definition of the fold."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._messages: dict[SenderKey, dict[int, Delta | Seal]] = {}
        self._others: dict[SenderKey, dict[int, list[Delta | Seal]]] = {}
        self._claims: dict[SenderKey, Heartbeat] = {}
        self._files: dict[Source, FileNotes] = {}
        self._hosts: dict[int, tuple[int, str]] = {}
        self._began: dict[int, int] = {}
        self._bounds: dict[int, Bounds] = {}
        self._evidence = Evidence()
        self._hearings = Hearings()
        self._taken: dict[tuple[SenderKey, int], int] = {}
        for message in messages:
            self.apply(message)

    def apply(self, message: Message, where: Heard | None = None) -> None:
        """Takes one message, again or for the first time. where: it lies, where that is known."""
        hear(self._hearings, message, where)
        if where is not None:
            self._evidence.taken_ms = where.taken_ms
        if isinstance(message, Announcement):
            self._announced(message)
            return
        key = sender_key(message.sender)
        seen = self._evidence.last_seen
        seen[key[:2]] = max(seen.get(key[:2], message.time_ms), message.time_ms)
        if message.sender.tier is Tier.AGENT:
            agent, bounds = agent_of(message.sender), message.sender.bounds
            self._host(agent, message.time_ms, message.sender.host)
            self._bounds[agent] = self._bounds.get(agent, NOTHING_SAID).or_wider(bounds)
        if isinstance(message, Heartbeat):
            known_claim = self._claims.get(key, message)
            self._claims[key] = max(known_claim, message, key=lambda x: (x.number, x.time_ms))
            return
        known = self._messages.setdefault(key, {})
        if message.number not in known:
            known[message.number] = message
            if where is not None:
                self._taken[key, message.number] = where.taken_ms
        elif known[message.number] != message:
            self._others.setdefault(key, {}).setdefault(message.number, []).append(message)

    def evidence(self) -> Evidence:
        """What all messages so far say."""
        hosts = {agent: host for agent, (_, host) in self._hosts.items()}
        found = Evidence(
            hosts=hosts,
            last_seen=dict(self._evidence.last_seen),
            began=dict(self._began),
            bounds=dict(self._bounds),
            heard=dict(self._hearings.heard),
            readings=dict(self._hearings.readings),
            taken_ms=self._evidence.taken_ms,
        )
        for (agent, log), offsets in self._hearings.offsets.items():
            found.offsets.setdefault(agent, {})[log] = offsets
        for source, topic in self._evidence.topics.items():
            found.topic(source).agents |= topic.agents
        for key in self._messages:
            self._add_sender(found, key)
        for key, claim in self._claims.items():
            if key not in found.senders and claim.number > 0:
                found.senders[key] = only_claimed(
                    claim.sender.cluster, claim.sender.host, claim.number, claim.time_ms
                )
        for source, notes in self._files.items():
            known = rereadings(notes.files(), found.first_heard, found.last_heard)
            found.topic(source).rereadings = known
        return found

    def _add_sender(self, found: Evidence, key: SenderKey) -> None:
        found.senders[key] = self._numbers(key)
        for message in self._messages[key].values():
            taken_ms = self._taken.get((key, message.number), NEVER_AHEAD_MS)
            _add(found, key, message, counted=True, taken_ms=taken_ms)
        for clones in self._others.get(key, {}).values():
            for message in clones:
                _add(found, key, message, counted=False)

    def _announced(self, message: Announcement) -> None:
        self._host(message.agent, message.time_ms, message.host)
        self._evidence.topic(message.source).agents.add(message.agent)
        self._files.setdefault(message.source, FileNotes()).take(message)

    def _host(self, agent: int, time_ms: int, host: str) -> None:
        """The host that an agent named last."""
        self._hosts[agent] = max(self._hosts.get(agent, (time_ms, host)), (time_ms, host))
        self._began[agent] = min(self._began.get(agent, time_ms), time_ms)

    def _numbers(self, key: SenderKey) -> Numbers:
        messages = self._messages[key]
        first = messages[min(messages)]
        claimed = self._claims[key].number if key in self._claims else 0
        last = max(max(messages), claimed)
        missing = next((n for n in range(first.number, last + 1) if n not in messages), None)
        return Numbers(
            cluster=first.sender.cluster,
            host=first.sender.host,
            first=first.number,
            last=last,
            first_time_ms=first.time_ms,
            missing=missing,
            cloned_at=min(self._others[key]) if key in self._others else None,
        )


def _add(
    found: Evidence,
    key: SenderKey,
    message: Delta | Seal,
    *,
    counted: bool,
    taken_ms: int = NEVER_AHEAD_MS,
) -> None:
    """Adds one message; with counted=False (another content of a known key) its touches only."""
    for source, agent in agents_in(message):
        found.topic(source).agents.add(agent)
    if isinstance(message, Delta):
        for count in message.counts:
            _add_count(found.topic(count.source), key, message.number, count, counted=counted)
        if counted:
            _add_progress(found, key, message)
    elif counted:
        agent = agent_of(message.sender)
        for sealed in message.topics:
            note = SealNote(
                key.epoch, message.number, sealed.sealed_until, sealed.at, sealed.final,
                taken_ms if taken_ms < sealed.sealed_until else NEVER_AHEAD_MS,
            )  # fmt: skip
            found.topic(sealed.source).seals.setdefault(agent, []).append(note)


def _add_count(
    topic: TopicEvidence, key: SenderKey, number: int, count: Count, *, counted: bool
) -> None:
    by_agent = topic.tallies.setdefault((count.bucket, count.bucket_ms), {})
    tallies = by_agent.setdefault(count.agent, {})
    sums = sums_of(count) if counted else Sums()
    links = links_of(number, count.previous) if counted else 0
    known = tallies.get(key)
    if known is None:
        tallies[key] = Tally(sums, number, number, links)
    else:
        tallies[key] = Tally(
            known.sums + sums,
            min(known.first, number),
            max(known.last, number),
            checksum.add(known.links, links),
        )


def _add_progress(found: Evidence, key: SenderKey, message: Delta) -> None:
    for loss in message.losses:
        note = loss_note(key, message.number, message.time_ms, loss)
        found.topic(loss.source).losses.setdefault(loss.agent, []).append(note)
    for gap in message.gaps:
        found.topic(gap.source).gaps.append(GapNote(key, message.time_ms, gap))
    for part in message.ranges:
        covered = found.topic(part.source).coverage.setdefault(key, {})
        known = covered.get(part.partition, Coverage(part.first, part.end))
        covered[part.partition] = Coverage(min(known.first, part.first), max(known.end, part.end))

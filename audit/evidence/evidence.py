"""Evidence is the content of all audit messages together.

The judgement works on an `Evidence`, which the ledger makes from its tables for a window of
buckets. Nearly every number in an `Evidence` is a sum, a minimum or a maximum over distinct
messages, so it does not matter in which order and how often the messages arrived. The module
ledger_rows names the exceptions. One order is stored: the order in which the first messages of the
senders arrived. The judgement uses that order only to raise a doubt (see counting_places).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from skidway.audit.counts.counts import NO_AGENT
from skidway.audit.evidence.counted_until import CountedUntil
from skidway.audit.evidence.hearing import Log, Offsets, Reading, SenderName
from skidway.audit.evidence.refused import Refused
from skidway.audit.evidence.rereading import Rereadings
from skidway.audit.evidence.statuses import Statuses
from skidway.audit.evidence.tallies import BucketId, SenderKey, Tally
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.decisions import (
    Acceptance,
    Decision,
    Disownment,
    Retirement,
    not_revoked,
)
from skidway.audit.topic.field_bounds import is_agent_id
from skidway.audit.topic.messages import (
    Bounds,
    Delta,
    Gap,
    Loss,
    Seal,
    Sender,
    Tier,
)
from skidway.audit.topic.recount_result import RecountResult
from skidway.audit.topic.seal_columns import fileless_since
from skidway.audit.topic.source_report import SourceReport
from skidway.audit.topic.transactions import Transactions
from skidway.kafka.source import Source

NEVER_AHEAD_MS = 1 << 62
"""A time that is later than the time of every seal."""


class SealNote(NamedTuple):
    """One seal of one topic by one agent: the agent vouches that it has counted all lines up to
    `sealed_until`. Seals are sorted by (epoch, number), so the oldest seal comes first. taken_ms:
    normally NEVER_AHEAD_MS, which is later than every seal. But if the seal arrived before the time
    `sealed_until`, the agent's clock was ahead, and `taken_ms` is the time of arrival, by the
    reader's clock or the broker's clock, whichever time is earlier. is_fileless: whether nobody
    knows of the lines after `sealed_until`, because no file has matched a source since then."""

    epoch: int
    number: int
    sealed_until: int
    at: int
    final: bool = False
    taken_ms: int = NEVER_AHEAD_MS
    is_fileless: bool = False

    @classmethod
    def of(
        cls, epoch: int, number: int, said: int, at: int, final: bool, taken_ms: int
    ) -> SealNote:
        """Makes the seal of a message. said: its `sealed_until` (see `SealedTopic`). taken_ms: the
        time of its arrival, or a later time."""
        since_ms = fileless_since(said)
        until = said if since_ms is None else since_ms
        taken_ms = taken_ms if taken_ms < until else NEVER_AHEAD_MS
        return cls(epoch, number, until, at, final, taken_ms, since_ms is not None)

    @property
    def vouched_until(self) -> int:
        """The time up to which the agent vouches that nothing is missing. If the agent's clock was
        ahead, this is the time at which the seal arrived: a seal cannot vouch for lines that were
        written later."""
        return min(self.sealed_until, self.taken_ms)


@dataclass(frozen=True, slots=True)
class Numbers:
    """The facts about the numbers of those messages of a sender that have arrived.

    first, last: the least and the greatest known number. A number is also known if only a heartbeat
    names it, so `last` may come from a heartbeat. missing: the least number between `first` and
    `last` whose message did not arrive; None if all arrived. first_time_ms: the time in the message
    with the number `first`, by the sender's clock. cloned_at: the least number for which two
    messages with different contents arrived; None if there is none.
    """

    cluster: str
    host: str
    first: int
    last: int
    first_time_ms: int
    missing: int | None = None
    cloned_at: int | None = None

    @property
    def is_doubtful(self) -> bool:
        """Whether a message of the sender is missing, its first messages have expired, or two
        messages with the same number had different contents."""
        return self.missing is not None or self.first > 1 or self.cloned_at is not None


@dataclass(frozen=True, slots=True)
class LossNote:
    """A loss, and the message that declared it: the message's epoch and number, and its time by the
    sender's clock."""

    epoch: int
    number: int
    time_ms: int
    loss: Loss


@dataclass(frozen=True, slots=True)
class GapNote:
    """A gap (offsets that a mirror or a counter could not read), the sender that named it, and the
    time of the sender's message.
    """

    sender: SenderKey
    time_ms: int
    gap: Gap


class Coverage(NamedTuple):
    """The range of offsets that a sender has counted in a partition: the least offset, and the
    greatest offset plus 1."""

    first: int
    end: int


Window = tuple[int, int]

FOREVER: Window = (-(1 << 62), 1 << 62)
"""A window that contains every bucket."""


Tallies = Mapping[BucketId, Mapping[int, Mapping[SenderKey, Tally]]]
"""The tallies of buckets, by agent and sender."""


@dataclass(slots=True)
class TopicEvidence:
    """All evidence about one source topic.

    agents: every agent that announced files of the topic, sealed it, or has counts or losses in it.
    rereadings: an entry for each agent that may have read bytes that another agent had read before.
    acceptances: people's decisions to accept findings, except those that were taken back.
    recounts: for each output, the result of its newest recount.
    paths: the paths of the files with losses that may concern the window, by agent and file id.
    pruned: the buckets whose counts were deleted because the buckets were old, and complete or
        accepted. If such a bucket has tallies, they count records that came later.
    lossy: the buckets that declared losses name and in which nothing was counted (see
        loss_buckets).
    transactions: by the name of the counter, what it says about transactions.
    loss_acceptances: the acceptances of buckets that begin after the window, and in which declared
        losses end. Such a loss may also concern buckets of the window.
    """

    tallies: Tallies = field(default_factory=dict)
    seals: dict[int, list[SealNote]] = field(default_factory=dict)
    losses: dict[int, list[LossNote]] = field(default_factory=dict)
    gaps: list[GapNote] = field(default_factory=list)
    coverage: dict[SenderKey, dict[int, Coverage]] = field(default_factory=dict)
    agents: set[int] = field(default_factory=set)
    rereadings: dict[int, Rereadings] = field(default_factory=dict)
    acceptances: list[Acceptance] = field(default_factory=list)
    recounts: list[RecountResult] = field(default_factory=list)
    paths: dict[tuple[int, int], str] = field(default_factory=dict)
    pruned: set[BucketId] = field(default_factory=set)
    lossy: set[BucketId] = field(default_factory=set)
    loss_acceptances: list[Acceptance] = field(default_factory=list)
    transactions: dict[str, Transactions] = field(default_factory=dict)

    @property
    def deleted(self) -> int:
        """How many buckets have no counts any more, because the counts were deleted."""
        return len(self.pruned - self.tallies.keys())


@dataclass(slots=True)
class Evidence:
    """The evidence of all messages, for a window of buckets.

    senders: all senders of numbered messages, in the order in which their first messages arrived.
    hosts: the host of each agent, from the agent's message with the greatest epoch and number, even
        if another message has a later time.
    last_seen: by (tier, producer), the latest time in the sender's deltas, seals and heartbeats, by
        the sender's clock.
    began: by agent, the earliest time in any of the agent's messages, by the agent's clock.
    began_here: by agent, the earliest time in those of the agent's messages that have the present
        name of the agent's host.
    bounds: by agent, the widest bounds for event times that the agent ever announced.
    unread: by the schema's fingerprint, the number of messages whose schema this version of the
        program does not have, and that nobody has disowned. Such a message may concern every
        bucket, unless its sender has signed it and may speak of nothing else than its own: of an
        agent (unread_of_agents, by agent), or of the topics of one cluster (unread_of_clusters, by
        cluster).
    disownments: people's decisions to disown messages, except those that were taken back.
    disowned: by the schema's fingerprint, the number of unread messages that somebody disowned.
    refused: the refused messages, those that were read last first. No verdict depends on them.
    unproven: whether signatures are required, but could not be verified (see module admission).
    rebuilding: how many messages the ledger still lacks while it is being rebuilt; 0 if it is
        complete. While the ledger is being rebuilt, nothing can be judged.
    heard: when each sender sent its last delta, seal or heartbeat.
    counted: what each counter says about the time up to which it has counted.
    readings: by how much each sender's clock differs from the reader's clock.
    offsets: by agent, the least and greatest offset of those of the agent's messages that have the
        present name of the agent's host. The module hearing explains the fields heard, readings and
        offsets.
    overlaps: by agent, other agents of its host that were alive at the same time.
    resumed: for each epoch of an agent except the first, the earliest known time at which a seal of
        the epoch arrived (see SenderColumns.resumed_rows).
    taken_ms: the time by the reader's clock at which the last record was read; 0 if no record was
        read.
    retirements: people's decisions to retire places, except those that were taken back.
    statuses: what programs have told about themselves: how they were started, and what they wait
        for. No verdict depends on it.
    source_reports: by agent, its newest note about paths that it cannot read, and sources without
        files. No verdict depends on them.
    asked: the names of the topics to judge; None for all topics. The evidence includes further
        topics only if the judgement of the named topics needs them.
    window: the range of time in which the judged buckets start; its end is excluded.
    """

    topics: dict[Source, TopicEvidence] = field(default_factory=dict)
    senders: dict[SenderKey, Numbers] = field(default_factory=dict)
    hosts: dict[int, str] = field(default_factory=dict)
    last_seen: dict[tuple[Tier, str], int] = field(default_factory=dict)
    began: dict[int, int] = field(default_factory=dict)
    began_here: dict[int, int] = field(default_factory=dict)
    bounds: dict[int, Bounds] = field(default_factory=dict)
    unread: dict[str, int] = field(default_factory=dict)
    unread_of_agents: dict[int, dict[str, int]] = field(default_factory=dict)
    unread_of_clusters: dict[str, dict[str, int]] = field(default_factory=dict)
    disownments: list[Disownment] = field(default_factory=list)
    disowned: dict[str, int] = field(default_factory=dict)
    refused: tuple[Refused, ...] = field(default=(), compare=False)
    unproven: bool = field(default=False, compare=False)
    rebuilding: int = 0
    heard: dict[SenderName, int] = field(default_factory=dict)
    counted: dict[SenderKey, CountedUntil] = field(default_factory=dict)
    readings: dict[SenderName, Reading] = field(default_factory=dict)
    offsets: dict[int, dict[Log, Offsets]] = field(default_factory=dict)
    overlaps: dict[int, set[int]] = field(default_factory=dict)
    resumed: dict[tuple[int, int], int] = field(default_factory=dict)
    taken_ms: int = 0
    retirements: list[Retirement] = field(default_factory=list)
    statuses: Statuses = field(default_factory=Statuses, compare=False)
    source_reports: dict[int, SourceReport] = field(default_factory=dict, compare=False)
    asked: frozenset[str] | None = None
    window: Window = FOREVER

    def decided(self, decisions: Iterable[Decision]) -> None:
        """Adds decisions of people, except those that a revocation in `decisions` takes back."""
        for each in not_revoked(decisions):
            if isinstance(each, Retirement):
                self.retirements.append(each)
            elif isinstance(each, Disownment):
                self.disownments.append(each)
            else:
                self.topic(each.source).acceptances.append(each)

    def topic(self, source: Source) -> TopicEvidence:
        """Returns the evidence of a source topic; empty if no message mentions the topic."""
        return self.topics.setdefault(source, TopicEvidence())

    def last_heard(self, agent: int) -> int:
        """Returns the latest time in an agent's deltas, seals and heartbeats, by the agent's clock,
        in ms; 0 if there is no such message."""
        return self.last_seen.get((Tier.AGENT, str(agent)), 0)

    def heard_ms(self, sender: SenderName) -> int:
        """Returns the time of a sender's last delta, seal or heartbeat: the time by the sender's
        clock, or the time at which the reader read the message, whichever is earlier. Returns 0 if
        no such message arrived."""
        return self.heard.get(sender, self.last_seen.get(sender, 0))

    def counted_until_ms(self, sender: SenderKey, source: Source) -> int:
        """Returns up to when a counter says that it has counted all records of a topic; 0 if it
        does not say it of any time."""
        said = self.counted.get(sender)
        return 0 if said is None else said.until_ms(source)

    def first_heard(self, agent: int) -> int | None:
        """Returns the earliest time in any message of an agent, by the agent's clock, in ms.
        Returns None if the agent's first message is missing, because then the time is unknown."""
        numbers = self.senders.get(SenderKey(Tier.AGENT, str(agent), 1))
        if numbers is None or numbers.first > 1:
            return None
        return self.began[agent]


def agents_in(message: Delta | Seal) -> Iterator[tuple[Source, int]]:
    """Yields the source topic and the agent of each count, loss or seal in a message. The message
    proves that these agents exist. NO_AGENT is left out."""
    if isinstance(message, Delta):
        parts: list[Count | Loss] = [*message.counts, *message.losses]
        for part in parts:
            if part.agent != NO_AGENT:
                yield part.source, part.agent
    elif agent_of(message.sender) != NO_AGENT:
        for sealed in message.topics:
            yield sealed.source, agent_of(message.sender)


def agent_of(sender: Sender) -> int:
    """Returns the agent that sent a message; NO_AGENT (the id 0) if the producer's name is not an
    agent id."""
    return agent_named(sender.producer)


@lru_cache(maxsize=1 << 16)
def agent_named(producer: str) -> int:
    """Returns the agent id whose decimal digits are the producer's name; NO_AGENT (the id 0) for
    any other name."""
    return int(producer) if is_agent_id(producer) else NO_AGENT


def sender_key(sender: Sender) -> SenderKey:
    """Returns tier, producer and epoch of a sender: the key of its sequence of message numbers."""
    return SenderKey(sender.tier, sender.producer, sender.epoch)


def loss_note(sender: SenderKey, number: int, time_ms: int, loss: Loss) -> LossNote:
    """Returns the loss with the epoch, number and time of its message. Another sender than the
    loss's agent may have declared the loss. In this case, nobody knows which of the agent's seals
    came before the loss, so the loss gets an epoch and a number that are lower than those of any
    seal.
    """
    if sender[:2] != (Tier.AGENT, str(loss.agent)):
        return LossNote(0, 0, time_ms, loss)
    return LossNote(sender.epoch, number, time_ms, loss)


def only_claimed(cluster: str, host: str, number: int, time_ms: int) -> Numbers:
    """Returns what is known about a sender whose numbered messages are all gone: only a heartbeat
    shows that the sender exists. number: the last number of the sender, as the heartbeat names
    it."""
    return Numbers(cluster, host, number + 1, number, time_ms)

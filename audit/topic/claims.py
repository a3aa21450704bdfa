"""Which messages a sender may send: those about itself. The module does no I/O.

    agent      its own counts, seals, losses and files; notes in the name of its own id
    counter    counts and heartbeats of its tier, its cluster and its producer; in tier BROKER only
               of topics of its own cluster
    loader     counts of the outputs below its own one
    recount    results of its host
    person     decisions in its own name

An agent's identity says no agent id, because an agent chooses its id at random. The caller knows to
which identity an id belongs.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple, Self

from skidway.audit.signing.identity import Identity, Role
from skidway.audit.topic import (
    backlog,
    fieldless_note,
    load_note,
    program_status,
    retention,
    source_report,
    transactions,
)
from skidway.audit.topic.count_columns import COLUMNS, CountColumns
from skidway.audit.topic.decisions import Acceptance, Disownment, Retirement, Revocation
from skidway.audit.topic.field_bounds import is_agent_id
from skidway.audit.topic.messages import (
    Announcement,
    Delta,
    Gap,
    Heartbeat,
    Loss,
    Message,
    Range,
    Seal,
    Sender,
    Tier,
)
from skidway.audit.topic.notes import Note
from skidway.audit.topic.recount_result import RecountResult
from skidway.audit.topic.seal_columns import SealColumns
from skidway.audit.topic.source_names import sources_of
from skidway.kafka.source import Source

_NOTES: Final = {
    backlog.KIND: {Role.AGENT},
    fieldless_note.KIND: {Role.AGENT},
    source_report.KIND: {Role.AGENT},
    retention.KIND: {Role.COUNTER},
    transactions.KIND: {Role.COUNTER},
    load_note.KIND: {Role.LOADER},
    program_status.KIND: {Role.AGENT, Role.COUNTER, Role.LOADER},
}
"""The roles whose senders send notes of a kind."""

_AGENT: Final = COLUMNS.index("agent")
_LONG: Final = 8
_TIERS: Final = {Role.AGENT: Tier.AGENT, Role.LOADER: Tier.HDFS}
_PROGRAMS: Final = {Role.AGENT, Role.COUNTER, Role.LOADER}


class Claim(NamedTuple):
    """What a message says about its sender. kind: the kind of the message. name: the sender's name:
    an agent's id, the name of a producer or of a person, a recounted output. sender: the identity
    that may send it, as far as the message says it."""

    kind: str
    name: str
    sender: str


def claim_of(message: Message) -> Claim:
    """Returns what a message claims."""
    kind = type(message).__name__.lower()
    match message:
        case Delta() | Seal() | Heartbeat():
            said = message.sender
            name = sender_name(said.tier, said.cluster, said.producer, said.host)
            return Claim(kind, said.producer, name)
        case Announcement():
            name = sender_name(Tier.AGENT, message.source.cluster, "", message.host)
            return Claim(kind, str(message.agent), name)
        case RecountResult():
            return Claim("recount", message.output, f"{Role.RECOUNT.value}/{message.host}")
        case Note():
            name = f"{message.producer} on {message.host}"
            if is_agent_id(message.producer):
                name = sender_name(Tier.AGENT, message.cluster, "", message.host)
            return Claim(f"note {message.kind}", message.producer, name)
        case _:
            return Claim(kind, message.person, f"{Role.PERSON.value}/{message.person}")


def sender_name(tier: Tier, cluster: str, producer: str, host: str) -> str:
    """Returns the identity of a sender of counts, as far as they say it. producer: that of a loader
    is its output and topic."""
    if tier is Tier.AGENT:
        return f"{Role.AGENT.value}/{cluster}/{host}"
    if tier is Tier.HDFS:
        return f"{Role.LOADER.value}/{cluster}/{producer.rpartition('/')[0]}"
    usual = f"{tier.value.lower()}-{cluster}"
    more = "" if producer == usual else f"/{producer}"
    return f"{Role.COUNTER.value}/{tier.value.lower()}/{cluster}{more}"


def overclaim(identity: Identity, message: Message) -> str | None:
    """Returns what a message has that is not the sender's to say, such as "a decision of ada"; None
    if the sender may send the message."""
    match message:
        case Delta() | Seal() | Heartbeat():
            sender = message.sender
            return sender_overclaim(identity, sender) or content_overclaim(
                Rights.of(identity, sender), message
            )
        case Announcement():
            said = message.source.cluster, str(message.agent), message.host
            sender = Sender(Tier.AGENT, *said, 0)
            return sender_overclaim(identity, sender)
        case Acceptance() | Retirement() | Disownment() | Revocation():
            is_own = identity == Identity(Role.PERSON, (message.person,))
            return None if is_own else f"a decision of {message.person}"
        case RecountResult():
            is_own = identity == Identity(Role.RECOUNT, (message.host,))
            return None if is_own else f"a recount on {message.host}"
        case _:
            return _note(identity, message)


def loads_overclaim(identity: Identity, cluster: str) -> str | None:
    """Like `overclaim`, for everything that loads from a cluster send, into whatever output."""
    is_own = identity.role is Role.LOADER and identity.parts[0] == cluster
    return None if is_own else f"a message of loads from {cluster}"


def sender_overclaim(identity: Identity, sender: Sender) -> str | None:
    """Like `overclaim`, for the sender that numbered messages name."""
    tier = sender.tier.value.lower()
    match identity.role, identity.parts:
        case Role.AGENT, (cluster, host, *_):
            own = Tier.AGENT.value.lower(), cluster, sender.producer, host
        case Role.COUNTER, (tier_named, cluster, *rest):
            producer = rest[0] if rest else f"{tier_named}-{cluster}"
            own = tier_named, cluster, producer, sender.host
        case Role.LOADER, (cluster, output):
            above, _, topic = sender.producer.rpartition("/")
            producer = sender.producer if topic and above == output else output
            own = Tier.HDFS.value.lower(), cluster, producer, sender.host
        case _:
            return "counts"
    said = tier, sender.cluster, sender.producer, sender.host
    words = ("tier ", "cluster ", "", "host ")
    for word, claimed, due in zip(words, said, own, strict=True):
        if claimed != due:
            return f"a message of {word}{claimed}"
    return None


def only_cluster(identity: Identity) -> str | None:
    """The only cluster of whose topics the sender may speak; None if it may speak of all."""
    match identity.role, identity.parts:
        case Role.AGENT, (cluster, *_):
            return cluster
        case Role.COUNTER, ("broker", cluster, *_):
            return cluster
    return None


class Rights(NamedTuple):
    """What the numbered messages of a sender may contain. agent: the id of the agent whose counts
    and losses they may have, as 8 bytes; None for a counter or a loader, which counts for all
    agents. cluster: see `only_cluster`."""

    agent: bytes | None
    cluster: str | None

    @classmethod
    def of(cls, identity: Identity, sender: Sender) -> Self:
        """Returns the rights of a sender that has this identity."""
        agent = None
        if identity.role is Role.AGENT:
            is_id = is_agent_id(sender.producer)
            agent = int(sender.producer if is_id else 0).to_bytes(_LONG, "little")
        return cls(agent, only_cluster(identity))


def content_overclaim(rights: Rights, message: Delta | Seal | Heartbeat) -> str | None:
    """Like `overclaim`, for the counts, seals and losses of a message."""
    if isinstance(message, Heartbeat):
        return _topics(rights, (x.source for x in message.behind)) if message.behind else None
    if isinstance(message, Seal):
        names = SealColumns.of(message.topics).names
        return "seals" if rights.agent is None else _names(rights, names)
    counts = CountColumns.of(message.counts)
    if rights.agent is None:
        if message.losses:
            return "losses of an agent"
    elif message.ranges or message.gaps:
        return "counts of offsets"
    elif counts.table[_AGENT].tobytes() != rights.agent * len(counts):
        return "counts of another agent"
    elif any(
        x.agent.to_bytes(_LONG, "little", signed=True) != rights.agent for x in message.losses
    ):
        return "losses of another agent"
    found = _names(rights, counts.names)
    if found is None and (message.ranges or message.gaps or message.losses):
        parts: list[Range | Gap | Loss] = [*message.ranges, *message.gaps, *message.losses]
        return _topics(rights, (x.source for x in parts))
    return found


def _note(identity: Identity, note: Note) -> str | None:
    if identity.role not in _NOTES.get(note.kind, _PROGRAMS):
        return f"a note of the kind {note.kind}"
    if identity.role is Role.AGENT and note.body.get("brokers"):
        return "the status of brokers"
    tier = _TIERS.get(identity.role) or Tier(identity.parts[0].upper())
    sender = Sender(tier, note.cluster, note.producer, note.host, note.epoch)
    return sender_overclaim(identity, sender)


def _names(rights: Rights, names: str) -> str | None:
    """Does the same as `_topics`, for a text of source names."""
    return None if rights.cluster is None else _strange_in(names, rights.cluster)


def _topics(rights: Rights, sources: Iterable[Source]) -> str | None:
    """Like `overclaim`, for the topics of a message."""
    return None if rights.cluster is None else _strange(sources, rights.cluster)


@lru_cache(maxsize=1024)
def _strange_in(names: str, cluster: str) -> str | None:
    return _strange(sources_of(names), cluster)


def _strange(sources: Iterable[Source], cluster: str) -> str | None:
    for source in sources:
        if source.cluster != cluster:
            return f"topics of cluster {source.cluster}"
    return None

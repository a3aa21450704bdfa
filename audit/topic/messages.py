"""The messages of `_skidway_audit` as values, and as bytes (Avro single-object encoding).

Notes are JSON (see module notes). All other messages have one of four schemas:

    schemas/audit.avsc          messages of a tier: Delta and Seal, which are numbered, and
                                Heartbeat, which has the number of the sender's last Delta or Seal
    schemas/announcement.avsc   which file a file id stands for
    schemas/decision.avsc       decisions of people (decisions)
    schemas/recount.avsc        results of recounts (recount_result)

The key of a numbered message is (tier, producer, epoch, number). A sender never gives one key to
two messages with different contents, unless its state was copied; the audit notices such messages.

Positions count bytes, and offsets count records. Times and the starts of buckets are in ms since
1970.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from skidway.audit.topic import field_bounds, notes, recount_result
from skidway.audit.topic.count_columns import NO_COUNTS, Count, CountColumns
from skidway.audit.topic.decisions import Decision, decision_of, record_of
from skidway.audit.topic.notes import Note
from skidway.audit.topic.recount_result import RecountResult
from skidway.audit.topic.seal_columns import SealColumns, SealedTopic
from skidway.dataclass import dataclass
from skidway.errors import SkidwayError
from skidway.kafka.source import Source
from skidway.schemas import single_object

TOPIC = "_skidway_audit"
"""The topic for these messages in every cluster. The name of a mirrored copy begins with the source
cluster's name and a dot."""

AUDIT_SCHEMA = "Audit"
ANNOUNCEMENT_SCHEMA = "Announcement"
DECISION_SCHEMA = "Decision"
RECOUNT_SCHEMA = "Recount"


class MessageRefused(SkidwayError):
    """Raised if a record's value is not an audit message, is damaged, or has a schema that this
    version of Skidway does not have."""


class SchemaUnknown(MessageRefused):
    """Raised for a message whose schema this version of Skidway does not have. fingerprint: the
    schema's fingerprint, in hex."""

    def __init__(self, fingerprint: bytes) -> None:
        super().__init__(
            f"A record of {TOPIC} has a schema that this version does not have (fingerprint"
            f" {fingerprint.hex()}): a newer version wrote it."
        )
        self.fingerprint = fingerprint.hex()


class Tier(StrEnum):
    """The tiers that count records, in the order in which records pass through them."""

    AGENT = "AGENT"
    BROKER = "BROKER"
    MIRROR = "MIRROR"
    HDFS = "HDFS"

    __hash__ = str.__hash__  # Enum's __hash__ is slow, and tiers are in many dictionary keys


class Certainty(StrEnum):
    """Whether the bytes that an agent declared in a Loss certainly did not arrive (LOST), or may
    have arrived (UNCERTAIN)."""

    LOST = "LOST"
    UNCERTAIN = "UNCERTAIN"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What an agent assumes about event times. lateness_ms: suppose that a line is lost before the
    agent can read it, and that the agent's last seal of the topic reaches up to time T. Then the
    line's event time is at most `lateness_ms` before T. ahead_ms: a line's event time is at most
    `ahead_ms` after the time at which the agent reads the line.
    """

    lateness_ms: int = 0
    ahead_ms: int = 0


NOTHING_SAID = Bounds()


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of a message. cluster: the cluster where the sender counts; for a loader, the
    cluster from which it loads.

    producer: an agent's id in decimal, a counter's name, or a loader's output and topic. bounds:
    what an agent assumes about event times.
    """

    tier: Tier
    cluster: str
    producer: str
    host: str
    epoch: int
    bounds: Bounds = NOTHING_SAID


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets [first, end) of a partition. A delta of a counter or a loader has the ranges whose
    records it counts."""

    source: Source
    partition: int
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Loss:
    """Bytes [first, end) of a file that an agent declares lost or possibly lost. end: None if the
    agent does not know where the lost bytes end.

    from_bucket: the bucket that contains the time up to which the agent had sealed the topic; an
    earlier bucket if the agent never read the file and the file has older lines. to_bucket: the
    latest time of an unread line: normally the time of the declaration, but a later time if the
    clock was set back. Each of the two is None if unknown. Lost lines can be older than
    `from_bucket` (see Bounds).
    """

    source: Source
    agent: int
    file: int
    first: int
    end: int | None
    certainty: Certainty
    reason: str
    from_bucket: int | None = None
    to_bucket: int | None = None


@dataclass(frozen=True, slots=True)
class Gap:
    """The offsets [first, end) that a mirror or a counter could not read in a partition."""

    source: Source
    partition: int
    first: int
    end: int
    reason: str


@dataclass(frozen=True, slots=True)
class Delta:
    """The records that a sender has counted since its previous delta. One transaction stores the
    delta and the sender's progress."""

    sender: Sender
    number: int
    time_ms: int
    ranges: tuple[Range, ...] = ()
    counts: Sequence[Count] = ()
    losses: tuple[Loss, ...] = ()
    gaps: tuple[Gap, ...] = ()


@dataclass(frozen=True, slots=True)
class Seal:
    """An agent's seals of its topics. An agent's messages of the kinds Seal and Delta are numbered
    in one common sequence."""

    sender: Sender
    number: int
    time_ms: int
    topics: Sequence[SealedTopic]


@dataclass(frozen=True, slots=True)
class Behind:
    """How far a counter is behind in a topic (see Heartbeat)."""

    source: Source
    lag_ms: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Says that the sender is running. number: the number of the sender's last numbered message. If
    the audit lacks the message with this number, it knows that messages are missing.

    lag_ms: only in heartbeats of counters: all records that were in the topics `lag_ms` before the
    heartbeat are counted, and the numbered messages have their counts. behind: the topics for which
    this holds only with a greater lag. No other message says up to when a counter has counted.
    """

    sender: Sender
    number: int
    time_ms: int
    lag_ms: int = 0
    behind: tuple[Behind, ...] = ()


@dataclass(frozen=True, slots=True)
class Announcement:
    """Says which file the id `file` of an agent stands for.

    fingerprint: SHA-256 of the first `fingerprint_length` bytes of the file. source: the topic to
    which the agent sends the file's records. begin: the position of the first byte that belongs to
    the id. length: the final length of the file; None until the file id has ended. born_ns: when
    the file's inode was created, in ns since 1970; None if unknown.
    """

    time_ms: int
    agent: int
    file: int
    host: str
    path: str
    device: int
    inode: int
    fingerprint: bytes
    fingerprint_length: int
    source: Source
    begin: int = 0
    predecessor: int | None = None
    predecessor_position: int | None = None
    length: int | None = None
    born_ns: int | None = None


Message = Delta | Seal | Heartbeat | Announcement | Decision | RecountResult | Note


def encode(message: Message) -> bytes:
    """Encodes a message as a record's value."""
    if isinstance(message, Announcement):
        return single_object.encode(ANNOUNCEMENT_SCHEMA, _announcement_record(message))
    if isinstance(message, Decision):
        return single_object.encode(DECISION_SCHEMA, record_of(message))
    if isinstance(message, RecountResult):
        return single_object.encode(RECOUNT_SCHEMA, recount_result.record_of(message))
    if isinstance(message, Note):
        return notes.encode(message)
    return single_object.encode(AUDIT_SCHEMA, _audit_record(message))


def decode(value: bytes) -> Message:
    """Decodes the message in a record's value. Raises SchemaUnknown if the message was written by a
    newer version, and MessageRefused for any other value that cannot be decoded."""
    try:
        if notes.is_note(value):
            return notes.decode(value)
        field_bounds.check_length(value)
        name, record = single_object.decode(value)
        field_bounds.check(record)
        if name == AUDIT_SCHEMA:
            return _audit_message(record)
        if name == ANNOUNCEMENT_SCHEMA:
            return _announcement(record)
        if name == DECISION_SCHEMA:
            return decision_of(record, record["time"])
        if name == RECOUNT_SCHEMA:
            return recount_result.result_of(record, record["time"])
    except single_object.UnknownFingerprint as error:
        raise SchemaUnknown(error.fingerprint) from error
    except (SkidwayError, ValueError, KeyError, TypeError) as error:
        raise MessageRefused(f"A record of {TOPIC} cannot be read as a message: {error}") from error
    raise MessageRefused(f"A record of {TOPIC} has the schema {name}, which is none of its own.")


def sender_of(
    tier: Tier, cluster: str, producer: str, host: str, epoch: int, bounds: Bounds
) -> Sender:
    """Returns the sender that a message names. Raises ValueError if no program is this sender."""
    if tier is Tier.AGENT and not field_bounds.is_agent_id(producer):
        raise ValueError("its producer is not the id of an agent")
    return Sender(tier, cluster, producer, host, epoch, bounds)


def announcement_in(value: bytes) -> Announcement | None:
    """The announcement in a record's value; None if the value is not an announcement. Decodes only
    announcements. Raises MessageRefused for a damaged announcement."""
    if single_object.name_of(value) != ANNOUNCEMENT_SCHEMA:
        return None
    message = decode(value)
    return message if isinstance(message, Announcement) else None


def _audit_record(message: Delta | Seal | Heartbeat) -> dict[str, Any]:
    sender = message.sender
    record: dict[str, Any] = {
        "kind": type(message).__name__.upper(),
        "tier": sender.tier.value,
        "cluster": sender.cluster,
        "producer": sender.producer,
        "host": sender.host,
        "epoch": sender.epoch,
        "number": message.number,
        "time": message.time_ms,
        "ranges": [],
        "columns": None,
        "losses": [],
        "gaps": [],
        "sealed": None,
        "lag_ms": 0,
        "behind": [],
        "lateness_ms": sender.bounds.lateness_ms,
        "ahead_ms": sender.bounds.ahead_ms,
    }
    if isinstance(message, Delta):
        record["ranges"] = [_flat(x, "partition", "first", "end") for x in message.ranges]
        if message.counts:
            record["columns"] = CountColumns.of(message.counts).to_record()
        record["losses"] = [_flat(x, *_LOSS_FIELDS) for x in message.losses]
        record["gaps"] = [_flat(x, "partition", "first", "end", "reason") for x in message.gaps]
    elif isinstance(message, Seal):
        record["sealed"] = SealColumns.of(message.topics).to_record()
    else:
        record["lag_ms"] = message.lag_ms
        record["behind"] = [_flat(x, "lag_ms") for x in message.behind]
    return record


_LOSS_FIELDS = (
    "agent", "file", "first", "end", "certainty", "reason", "from_bucket", "to_bucket"
)  # fmt: skip
_SOURCE_FIELDS = ("cluster", "cluster_id", "topic", "topic_id")
_ANNOUNCEMENT_FIELDS = (
    "agent", "file", "host", "path", "device", "inode", "fingerprint", "fingerprint_length",
    "begin", "predecessor", "predecessor_position", "length", "born_ns",
)  # fmt: skip


def _flat(part: Range | Loss | Gap | Behind, *names: str) -> dict[str, Any]:
    record = {name: getattr(part.source, name) for name in _SOURCE_FIELDS}
    for name in names:
        field = getattr(part, name)
        record[name] = field.value if isinstance(field, Certainty) else field
    return record


def _announcement_record(message: Announcement) -> dict[str, Any]:
    record = {name: getattr(message, name) for name in _ANNOUNCEMENT_FIELDS}
    record |= {name: getattr(message.source, name) for name in _SOURCE_FIELDS}
    record["kind"] = "OPEN" if message.length is None else "CLOSE"
    record["time"] = message.time_ms
    return record


def _audit_message(record: dict[str, Any]) -> Delta | Seal | Heartbeat:
    names = record["cluster"], record["producer"], record["host"]
    bounds = Bounds(record["lateness_ms"], record["ahead_ms"])
    sender = sender_of(Tier(record["tier"]), *names, record["epoch"], bounds)
    number, time_ms = record["number"], record["time"]
    if record["kind"] == "HEARTBEAT":
        behind = tuple(Behind(**_nested(x)) for x in record["behind"])
        return Heartbeat(sender, number, time_ms, record["lag_ms"], behind)
    if record["kind"] == "SEAL":
        return Seal(sender, number, time_ms, _seals(record))
    columns = record["columns"]
    return Delta(
        sender,
        number,
        time_ms,
        ranges=tuple(Range(**_nested(x)) for x in record["ranges"]),
        counts=NO_COUNTS if columns is None else CountColumns.from_record(columns),
        losses=tuple(_loss(x) for x in record["losses"]),
        gaps=tuple(Gap(**_nested(x)) for x in record["gaps"]),
    )


def _announcement(record: dict[str, Any]) -> Announcement:
    return Announcement(
        time_ms=record["time"],
        source=_source(record),
        **{name: record[name] for name in _ANNOUNCEMENT_FIELDS},
    )


def _loss(record: dict[str, Any]) -> Loss:
    fields = _nested(record)
    fields["certainty"] = Certainty(fields["certainty"])
    return Loss(**fields)


def _seals(record: dict[str, Any]) -> SealColumns:
    if record["sealed"] is None:
        raise ValueError("a seal has no topics")
    return SealColumns.from_record(record["sealed"])


def _source(record: dict[str, Any]) -> Source:
    return Source(*(record[name] for name in _SOURCE_FIELDS))


def _nested(record: dict[str, Any]) -> dict[str, Any]:
    fields = {name: value for name, value in record.items() if name not in _SOURCE_FIELDS}
    return {"source": _source(record)} | fields

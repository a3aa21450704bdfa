"""Decides, without I/O, the fate of a line in each tier (whether the tier has the line and, if not,
why), and which tier is the first that lacks the line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from skidway.audit.evidence.line_evidence import DeclaredRange
from skidway.audit.tracing.host_files import HostFile
from skidway.audit.tracing.lines import (
    HAS_IT,
    REJECTED_SUFFIX,
    Fate,
    FileName,
    LineRecord,
    LineRow,
    State,
)

HOST, BROKER, MIRROR, HDFS = "host", "broker", "mirror", "hdfs"
EVENT_TIME, ANNOUNCED, COMMITTED = "event time", "file announced", "load committed"


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What is known about the line's file. name: host, path and topic of the file, from its
    announcement. file: the file in the agent's state; None if the command does not run on the
    file's host. first, text: the position of the line's first byte, and the line's text; None if
    the line was not read from the file. declared: the ranges of the file that the agent declared
    lost or uncertain. filtered: by rule, how many of the topic's records the agent left out."""

    name: FileName
    file: HostFile | None = None
    first: int | None = None
    text: bytes | None = None
    declared: Sequence[DeclaredRange] = ()
    filtered: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What a search found out about the line in a cluster. record: the line's record; None if it
    was not found. begins: the first offset that the record's partition still has; if the partition
    is unknown, the greatest first offset of all searched partitions; 0 if nothing has expired.
    is_behind: whether the cluster may have the record later: another cluster has it at an
    offset that this cluster's partition has not reached yet, or a transaction is open. why: why
    the record was not found, in words; "" if there is nothing to say."""

    cluster: str
    tier: str
    record: LineRecord | None
    begins: int = 0
    is_behind: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class RowFacts:
    """What a search found out about the line in an output. rows: the line's rows, including
    rejects. committed_ms: when the load that wrote the first of these rows was committed.
    loaded_to: the offset up to which the partition of the line's record is loaded; None if the
    record is unknown. unread: sentences about files of the output that could not be read.
    """

    output: str
    rows: Sequence[LineRow]
    committed_ms: int | None = None
    loaded_to: int | None = None
    unread: Sequence[str] = ()


def host_fate(facts: HostFacts, byte: int) -> Fate:
    """The fate of the line on its host, as far as the host's agent and the audit know it. byte: the
    position of a byte of the line."""
    name, file = facts.name, facts.file
    if file is None:
        if name.announced_ms is None:
            return Fate(HOST, State.UNKNOWN, _place(name), detail="nobody announced this file")
        words = "announced by its agent; run this command on that host to see the file"
        return Fate(HOST, State.FOUND, _place(name), name.announced_ms, ANNOUNCED, words)
    place = f"{file.path} at byte {byte if facts.first is None else facts.first:,}"
    reach = f"accounted for up to byte {file.position:,}"
    if facts.text is None:
        reach += "; the text cannot be read here any more"
    state = State.FOUND if byte < file.position else State.PENDING
    return Fate(HOST, state, place, name.announced_ms, ANNOUNCED, reach)


def log_fate(facts: LogFacts, host: HostFacts, byte: int, sibling: LineRecord | None) -> Fate:
    """The fate of the line in a cluster. byte: the position of a byte of the line in its file.
    sibling: the line's record in another cluster, if one was found there."""
    place = f"cluster {facts.cluster}"
    if facts.record is not None:
        record = facts.record
        where = f"{place}, {record.topic}-{record.partition} at offset {record.offset:,}"
        state = State.REJECTED if record.topic.endswith(REJECTED_SUFFIX) else State.FOUND
        return Fate(facts.tier, state, where, record.time_ms, EVENT_TIME)
    if sibling is not None:
        if facts.is_behind:
            return Fate(facts.tier, State.PENDING, place, detail=facts.why)
        state = State.EXPIRED if sibling.offset < facts.begins else State.MISSING
        return Fate(facts.tier, state, place, detail=facts.why)
    return _absent(facts, host, byte, place)


def _absent(facts: LogFacts, host: HostFacts, byte: int, place: str) -> Fate:
    """Returns the fate, in one cluster, of a line that no cluster has. If there are several
    possible reasons, the fate names the most certain one."""
    if host.file is not None and byte >= host.file.position:
        words = f"the agent has got as far as byte {host.file.position:,}"
        return Fate(facts.tier, State.PENDING, place, detail=words)
    for each in host.declared:
        if each.has(byte):
            end = "the end" if each.end is None else f"{each.end:,}"
            words = f"the agent declared bytes {each.first:,} to {end}: {each.reason}"
            state = State(each.certainty.lower())
            return Fate(facts.tier, state, place, each.time_ms, "declared", words)
    if facts.is_behind:
        return Fate(facts.tier, State.PENDING, place, detail=facts.why)
    if host.filtered:
        rules = ", ".join(f"{rule} ({count:,})" for rule, count in host.filtered.items())
        words = f"not lost, not rejected: one of these rules left it out, or it expired: {rules}"
        if not facts.begins:
            words = f"not lost, not rejected: one of these rules left it out: {rules}"
        return Fate(facts.tier, State.FILTERED, place, detail=words)
    if facts.begins:
        words = f"the log begins at offset {facts.begins:,} now; older records have expired"
        return Fate(facts.tier, State.EXPIRED, place, detail=words)
    return Fate(facts.tier, State.MISSING, place, detail=facts.why or "no record has this byte")


def row_fate(facts: RowFacts, record: LineRecord | None, above: Fate | None) -> Fate:
    """The fate of the line in an output. record: the line's record; None if no cluster has it.
    above: the line's fate in the cluster that was searched last; None if none was searched."""
    if facts.rows:
        row, count = facts.rows[0], len(facts.rows)
        words = f"written by load {row.load}"
        if count > 1:
            words += f"; {count} rows have this line"
        elif row.is_reject:
            words += ", among the loader's rejects"
        state = State.REJECTED if row.is_reject else State.FOUND
        place = f"{facts.output}/{row.path}"
        return Fate(HDFS, state, place, facts.committed_ms, COMMITTED, words)
    if facts.unread:
        return Fate(HDFS, State.UNKNOWN, facts.output, detail=facts.unread[0])
    if record is not None and facts.loaded_to is not None and record.offset >= facts.loaded_to:
        words = f"partition {record.partition} is loaded up to offset {facts.loaded_to:,}"
        return Fate(HDFS, State.PENDING, facts.output, detail=words)
    if record is None and above is not None and above.state not in HAS_IT:
        return Fate(HDFS, above.state, facts.output, detail="no row has this byte")
    return Fate(HDFS, State.MISSING, facts.output, detail="no row has this byte")


def unseen(tier: str, how: str) -> Fate:
    """The fate of a line in a tier that was not searched, because no option of the command names
    this tier. how: a text that names the option."""
    return Fate(tier, State.UNKNOWN, detail=how)


def first_without(fates: Iterable[Fate]) -> Fate | None:
    """Of the tiers that were searched, takes the first that lacks the line, and returns the line's
    fate in this tier. Returns None if all these tiers have the line."""
    return next((x for x in fates if x.state not in HAS_IT | {State.UNKNOWN}), None)


def is_everywhere(fates: Sequence[Fate]) -> bool:
    """Returns whether every tier but the host has the line. A tier that was not searched counts as
    a tier without the line. The host is left out, because the records prove that the host had the
    line.
    """
    return bool(fates) and all(x.state in HAS_IT for x in fates if x.tier != HOST)


def _place(name: FileName) -> str:
    return f"{name.host}:{name.path}" if name.path else f"file {name.file}"

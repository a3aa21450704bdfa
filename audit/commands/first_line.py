"""`skidway audit why` shows the first line that is missing, doubled or rejected. This module reads
the line from its file, if the command runs on the file's host and the host's agent knows the file:
the path in an audit message may be anybody's word. If the file cannot be read, the module reads the
line's record from the brokers. The text of a rejected line is read only from the
topic of rejects, because only there the rules of the agent (`shape`) have masked it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from skidway.audit.commands import options
from skidway.audit.comparison.lines import may_have_been
from skidway.audit.explanation.explanation import Explanation
from skidway.audit.explanation.offsets import OffsetRange
from skidway.audit.judgement.cause import Cause
from skidway.audit.judgement.verdict import BucketVerdict
from skidway.audit.settings import AuditSettings
from skidway.audit.topic.messages import Tier
from skidway.audit.tracing.host_files import HostFile, HostState
from skidway.audit.tracing.logs import topic_here
from skidway.errors import SkidwayError
from skidway.kafka.client import EARLIEST, LATEST, Client
from skidway.kafka.types import TopicPartition
from skidway.schemas.consuming.asking import registry
from skidway.schemas.consuming.rejected_examples import rejected_example
from skidway.schemas.consuming.rejected_lines import Wanted
from skidway.schemas.consuming.values import Values
from skidway.schemas.topic_reading import read_ranges

TEXT_BYTES_MAX = 4_096
NAMES_MAX = 10_000
READ_MAX = 3
"""The command explains several causes why buckets are not complete. It reads a line from brokers
for at most this many causes, because each read may have to wait for the brokers.
"""
RECORDS_MAX = 20_000
"""To find a record of the explained bucket, the command searches at most about this many
records."""

_KINDS = {
    Cause.READ_TWICE: "doubled",
    Cause.RECORDS_DOUBLED: "doubled",
}
"""Maps some causes why a bucket is not complete to the kind of the line that the command shows,
that is, to what is wrong with this line. For the causes in `_OF_REJECTS`, the kind is `rejected`.
For causes that are neither here nor in `_OF_REJECTS`, it is `missing`."""
_RECORD_COLUMN = "line"
_OF_REJECTS = (Cause.REJECTED, Cause.WRONG_PATTERN)


@dataclass(frozen=True, slots=True)
class FirstLine:
    """A line. kind: missing, doubled or rejected. where: in words, either path and byte, or topic,
    partition and offset."""

    kind: str
    where: str
    text: str

    def document(self) -> dict[str, Any]:
        """Returns the line as a part of a JSON document."""
        return {"kind": self.kind, "where": self.where, "text": self.text}


class FirstLines:
    """Reads one line for each of several explanations (an explanation is one cause why a bucket is
    not complete): for example, the first of the lines that are missing. Reads at most READ_MAX of
    the lines from brokers. host: returns what this host's agent knows of its files."""

    def __init__(
        self,
        args: argparse.Namespace,
        settings: AuditSettings | None,
        host: Callable[[], HostState | None],
    ) -> None:
        self._args, self._settings, self._host = args, settings, host
        self._here = options.here(settings)
        self._left = READ_MAX

    def of(self, verdict: BucketVerdict, found: Explanation) -> FirstLine | None:
        """Returns the first line that an explanation (one cause why a bucket is not complete) is
        about; None if it can be read neither from a file of this host nor from the brokers."""
        if found.cause in _OF_REJECTS:
            return self._of_brokers("rejected", lambda client: _rejected(client, verdict, found))
        kind = _KINDS.get(found.cause, "missing")
        if found.path and found.ranges and found.host == self._here:
            known = _known(self._host(), found)
            text = None if known is None else line_of_file(known, found.ranges[0].first)
            if known is not None and text is not None:
                where = f"{known.path} at byte {found.ranges[0].first}"
                return FirstLine(kind, where, text)
        if not found.offsets or found.cause in (Cause.RETENTION, Cause.GAP):
            return None
        return self._of_brokers(kind, lambda client: self._of_log(client, verdict, found, kind))

    def _of_brokers(
        self, kind: str, read: Callable[[Client], FirstLine | None]
    ) -> FirstLine | None:
        if self._left == 0:
            return None
        self._left -= 1
        try:
            with options.client_of(self._args, self._settings) as client:
                return read(client)
        except (SkidwayError, OSError) as error:
            print(f"note: the first {kind} line cannot be read: {error}", file=sys.stderr)
            return None

    def _of_log(
        self, client: Client, verdict: BucketVerdict, found: Explanation, kind: str
    ) -> FirstLine | None:
        """Returns the text of a record. Normally this is the record at the first of the
        explanation's offsets. If these offsets may have records of other buckets, this is the first
        record that is found in the bucket. If the brokers have a mirrored copy of the topic, reads
        this copy."""
        topic = topic_here(client, verdict.source)
        if topic is None or found.tier is Tier.MIRROR:
            return None  # the mirror itself does not have the record
        span = (verdict.bucket, verdict.bucket + verdict.bucket_ms)
        if found.spans_buckets:
            record = _record_of_bucket(client, topic, found.offsets, span)
        else:
            record = _first_record(client, topic, found.offsets[0])
        if record is None:
            return None
        tp, offset, value = record
        client_of_registry, is_named = registry(self._args)
        said = Values(client_of_registry, _note, is_named=is_named).read(value)[0]
        text = said.line.decode("utf-8", "replace")
        if isinstance(said.decoded, dict) and isinstance(said.decoded.get(_RECORD_COLUMN), str):
            text = said.decoded[_RECORD_COLUMN]
        return FirstLine(kind, f"{tp} at offset {offset}", text[:TEXT_BYTES_MAX])


def _note(sentence: str) -> None:
    print(f"note: {sentence}", file=sys.stderr)


def _rejected(client: Client, verdict: BucketVerdict, found: Explanation) -> FirstLine | None:
    """Returns one of the lines that agents rejected in the bucket; if the explanation names an
    agent, preferably a line that this agent rejected. The text is as the agent's rules (`shape`)
    have masked it. Returns None if no such line is found. Also returns None for rejects of the
    loader, because the loader copies them to no topic.
    """
    if found.tier is not Tier.AGENT:
        return None
    topic = topic_here(client, verdict.source)
    span = Wanted(since=verdict.bucket, until=verdict.bucket + verdict.bucket_ms)
    example = topic and rejected_example(
        client, topic, span, lambda document: found.agent in (None, document["agent"])
    )
    if not example:
        _note(
            f"none of the rejected lines of {verdict.source.topic} can be shown: these brokers have"
            " not got their records yet, or have deleted them"
        )
        return None
    return FirstLine("rejected", example.where, example.text)


def _known(host: HostState | None, found: Explanation) -> HostFile | None:
    if host is None:
        return None
    if found.file is not None:
        known = host.files.get(found.file)
        return known if known is not None and known.agent == found.agent else None
    return next((x for x in host.files.values() if x.announced_path == found.path), None)


def line_of_file(file: HostFile, position: int) -> str | None:
    """Returns the line that begins at a position of a file; None if the file is gone. Finds the
    file at the path at which the agent knows it or, if it was rotated since, in the same directory
    at a rotated name of this path."""
    for path in _candidates(file):
        opened = file.opened_at(path)
        if opened is None:
            continue
        try:
            with opened:
                opened.seek(position)
                data = opened.read(TEXT_BYTES_MAX)
        except OSError:
            continue
        if data:
            return data.partition(b"\n")[0].decode("utf-8", "replace")
    return None


def _candidates(file: HostFile) -> Iterator[str]:
    yield file.path
    path = Path(file.path)
    try:
        with os.scandir(path.parent) as entries:
            for _, entry in zip(range(NAMES_MAX), entries, strict=False):
                is_renamed = entry.name != path.name and may_have_been(entry.path, str(path))
                if entry.inode() == file.inode and is_renamed:
                    yield entry.path
    except OSError:
        return


_Record = tuple[TopicPartition, int, pa.BinaryArray]
"""A record: its partition, its offset, and its value as an array of one value."""


def _first_record(client: Client, topic: str, wanted: OffsetRange) -> _Record | None:
    """Returns the first record of a range of offsets or, if the log has none there, the first
    record after the range; None if the log has neither."""
    tp = TopicPartition(topic, wanted.partition)
    begin, end = _bounds(client, [tp])[tp]
    begin = max(begin, wanted.first)
    return next(_records(client, {tp: (begin, min(begin + 1, end))}), None)


def _record_of_bucket(
    client: Client, topic: str, offsets: Sequence[OffsetRange], span: tuple[int, int]
) -> _Record | None:
    """Returns a record of these offsets whose event time lies in the bucket: the first that is
    found. Searches at most about RECORDS_MAX records. span: the bucket's start and its end, which
    is excluded. Returns None if no such record is found."""
    wanted = {TopicPartition(topic, x.partition): x for x in offsets}
    most = max(RECORDS_MAX // len(wanted), 1)
    ranges = {}
    for tp, (first, end) in _bounds(client, list(wanted)).items():
        begin = max(first, wanted[tp].first)
        ranges[tp] = (begin, min(begin + most, end, wanted[tp].end))
    return next(_records(client, ranges, span), None)


def _bounds(client: Client, tps: Sequence[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
    first = client.list_offsets(dict.fromkeys(tps, EARLIEST))
    end = client.list_offsets(dict.fromkeys(tps, LATEST))
    return {tp: (first[tp].offset, end[tp].offset) for tp in tps}


def _records(
    client: Client,
    ranges: dict[TopicPartition, tuple[int, int]],
    span: tuple[int, int] | None = None,
) -> Iterator[_Record]:
    """Yields the records of these ranges. If the last batch of a range has further records after
    the range, yields these, too. span: if it is not None, only records whose event times lie in
    this span of time."""
    for tp, batch in read_ranges(client, ranges):
        is_meant = batch.offsets >= ranges[tp][0]
        if span is not None:
            is_meant &= (batch.timestamps >= span[0]) & (batch.timestamps < span[1])
        for at in np.flatnonzero(is_meant).tolist():
            yield tp, int(batch.offsets[at]), batch.values.slice(at, 1)

"""Makes the loader's audit deltas (tier HDFS), which are messages with the counts of one load.

A load makes its deltas together with its manifest, stores them in the manifest, and publishes them
after the commit.

The manifest stores deltas as rows of numbers. The rows do not contain topic and sender, because
these are in other fields of the manifest:

    "audit": {"host": "...", "time": ms, "bucket_ms": 60000, "last": 9, "deltas": [
        {"number": 9, "ranges": [[partition, first, end]],
         "gaps": [[partition, first, end, reason]],
         "counts": [{"agent", "bucket", "count", "bytes", "checksum", "rejects", "repeats",
                     "previous"}]}]}

`last` is the number of the newest delta of this output. A load that reads no new offsets adds a
delta only if it changes the number of rejects. If runs publish the deltas of a manifest twice, the
second messages equal the first messages, so the audit's collector counts each delta once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skidway import invocation
from skidway.audit.counts.counts import BucketKey, Counts
from skidway.audit.counts.deltas import Numbered, number_deltas
from skidway.audit.topic import program_status
from skidway.audit.topic.count_columns import Count
from skidway.audit.topic.load_note import KIND, Load, RejectedRecord, body_of
from skidway.audit.topic.messages import Delta, Range, Sender, Tier
from skidway.audit.topic.messages import Gap as NamedGap
from skidway.audit.topic.notes import Note
from skidway.audit.topic.program_status import ProgramStatus
from skidway.kafka.source import Source
from skidway.loader.state import layout
from skidway.loader.state.manifest import REJECTS, ROWS, Manifest, PartitionRange

COUNTED = ("agent", "bucket", "count", "bytes", "checksum", "rejects", "repeats", "previous")


@dataclass(frozen=True, slots=True)
class Head:
    """The sender of a load's deltas, and the time at which they are made. last: the number of the
    output's last delta before this load."""

    sender: Sender
    time_ms: int
    last: int


def last_number(newest: Manifest | None) -> int:
    """Returns the number of the last delta in the chain of manifests, or 0 if there is no delta."""
    return int(newest.audit["last"]) if newest else 0


def last_key(newest: Manifest) -> tuple[int, int]:
    """Returns epoch and number of the last delta in the chain of manifests."""
    return newest.epoch, last_number(newest)


def make(
    head: Head,
    counts: Counts,
    previous: Mapping[BucketKey, int],
    source: Source,
    partitions: Sequence[PartitionRange],
) -> tuple[Numbered, dict[str, Any]]:
    """Makes the deltas of one load. Returns the deltas, and the manifest's field `audit`, which
    contains the deltas."""
    numbered = number_deltas(
        head.sender,
        head.time_ms,
        head.last,
        counts,
        previous,
        ranges=[Range(source, p.partition, p.first, p.end) for p in partitions if p.first < p.end],
        gaps=[
            NamedGap(source, p.partition, gap.first, gap.end, gap.reason)
            for p in partitions
            for gap in p.gaps
        ],
    )
    return numbered, {
        "host": head.sender.host,
        "time": head.time_ms,
        "bucket_ms": counts.bucket_ms,
        "last": numbered.last,
        "deltas": [_rows(delta) for delta in numbered.deltas],
    }


def messages(manifest: Manifest) -> list[Delta]:
    """Returns the audit messages of a manifest, ready to be published."""
    audit = manifest.audit
    sender = Sender(Tier.HDFS, manifest.cluster, manifest.producer, audit["host"], manifest.epoch)
    return [_delta(manifest, sender, rows) for rows in audit["deltas"]]


def note(manifest: Manifest) -> Note:
    """Returns the note that tells people about the load that this manifest commits."""
    files = [each for each in manifest.files if each.kind == ROWS]
    load = Load(
        manifest.number,
        manifest.source,
        manifest.seconds,
        sum(each.end - each.first for each in manifest.partitions),
        manifest.rows(),
        manifest.rejects(),
        len(files),
        sum(each.length for each in files),
        _rejected(manifest),
    )
    host, epoch = manifest.audit["host"], manifest.epoch
    return Note(
        KIND, manifest.producer, host, manifest.cluster, epoch, load.number, manifest.created,
        body_of(load),
    )  # fmt: skip


def status(manifest: Manifest) -> Note:
    """Returns the note that says how the loader was started."""
    host, epoch, number = manifest.audit["host"], manifest.epoch, manifest.number
    body = program_status.body_of(ProgramStatus(invocation.of_this_process()))
    kind, time_ms = program_status.KIND, manifest.created
    return Note(kind, manifest.producer, host, manifest.cluster, epoch, number, time_ms, body)


def _rejected(manifest: Manifest) -> RejectedRecord | None:
    """Returns one of the records that the load rejected, or None if the load rejected nothing. This
    function opens no file: the name of a file of rejects says which record is the file's first
    record.
    """
    paths = (each.path for each in manifest.files if each.kind == REJECTS)
    for hour, partition, offset in filter(None, map(layout.first_reject, paths)):
        return RejectedRecord(hour * layout.HOUR_MS, partition, offset)
    return None


def _rows(delta: Delta) -> dict[str, Any]:
    return {
        "number": delta.number,
        "ranges": [[each.partition, each.first, each.end] for each in delta.ranges],
        "gaps": [[each.partition, each.first, each.end, each.reason] for each in delta.gaps],
        "counts": [{name: getattr(each, name) for name in COUNTED} for each in delta.counts],
    }


def _delta(manifest: Manifest, sender: Sender, rows: Mapping[str, Any]) -> Delta:
    source, bucket_ms = manifest.source, manifest.audit["bucket_ms"]
    return Delta(
        sender,
        rows["number"],
        manifest.audit["time"],
        ranges=tuple(Range(source, *each) for each in rows["ranges"]),
        counts=tuple(Count(source=source, bucket_ms=bucket_ms, **each) for each in rows["counts"]),
        gaps=tuple(NamedGap(source, *each) for each in rows["gaps"]),
    )

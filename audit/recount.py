"""Recount: the second way to the verdict, from the rows themselves.

Every committed row carries its origin and event time. Counting the columns `_agent`, `_file_id`,
`_offset`, `_length`, `_timestamp` of the files that manifests name, rejects included, must give
what the loader said it committed (hdfs tier) and what the agents said they sent (agent tier), in
count, bytes and checksum. Nothing else of the loader is trusted: of a manifest only which files
belong to the output, and how many rows with which checksum each must hold.

    <root>/_skidway/<topic>/<load as 20 digits>.json    a manifest: one committed load
    files[].path, .staged    where the file is, or still is if the loader stopped before moving it
    removed[]                files of earlier loads that this one replaces
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from audit import checksum
from audit.counts import BucketKey, Counts, Sums
from audit.evidence import BucketId, Evidence, SenderKey
from audit.messages import Tier
from audit.output import Output, OutputUnreadable
from skidway.kafka.columns import Origins
from skidway.kafka.source import Source

FORMAT = 1
STATE = "_skidway"
ROWS, REJECTS = "rows", "rejects"

_MANIFEST = re.compile(r"\d{20}\.json")
_ORIGIN = ("_agent", "_file_id", "_offset", "_length")


@dataclass(frozen=True, slots=True)
class CommittedFile:
    """A file of rows or rejects that a manifest names, with what it must hold."""

    kind: str
    path: str
    staged: str
    rows: int
    checksum: int
    bucket_ms: int


@dataclass(slots=True)
class Committed:
    """What the manifests of one topic leave committed. problems: sentences."""

    topic: str
    source: Source
    producer: str
    loads: int = 0
    files: dict[str, CommittedFile] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Recounted:
    """A topic, counted again: sums per (source, agent, bucket), per size of bucket."""

    committed: Committed
    rows: int = 0
    sums: dict[tuple[BucketKey, int], Sums] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Difference:
    """A (source, agent, bucket) where the rows are not what a tier counted."""

    source: Source
    agent: int
    bucket: BucketId
    tier: Tier
    recounted: Sums
    counted: Sums

    @property
    def reason(self) -> str:
        """In words."""
        missing = self.counted.count - self.recounted.count
        name = self.tier.value.lower()
        if missing > 0:
            return f"{missing} of the {self.counted.count} records that {name} counted are no rows"
        if missing < 0:
            return f"there are {-missing} more rows than the {self.counted.count} of {name}"
        return f"as many rows as {name} counted, but not of the same records"


def topics(output: Output) -> list[str]:
    """The topics that have at least one manifest."""
    names = output.names(STATE)
    return [x for x in names if any(_MANIFEST.fullmatch(y) for y in output.names(f"{STATE}/{x}"))]


def committed(output: Output, topic: str) -> Committed:
    """Reads all manifests of a topic. Raises OutputUnreadable for one that cannot be understood."""
    folder = f"{STATE}/{topic}"
    names = [name for name in output.names(folder) if _MANIFEST.fullmatch(name)]
    found: Committed | None = None
    for number, name in enumerate(names, start=1):
        manifest = _manifest(output, f"{folder}/{name}")
        if found is None:
            source = Source(**{x: manifest["source"][x] for x in Source.__slots__})
            found = Committed(topic, source, manifest["producer"])
        if manifest["number"] != found.loads + 1:
            found.problems.append(f"manifest {number} of {topic} is missing")
        found.loads = manifest["number"]
        _take(found, manifest)
    assert found is not None  # topics() names none without a manifest
    return found


def recount(output: Output, found: Committed) -> Recounted:
    """Counts every committed file of a topic."""
    result = Recounted(found, problems=list(found.problems))
    counts: dict[int, Counts] = {}
    for file in found.files.values():
        counted = counts.setdefault(file.bucket_ms, Counts(file.bucket_ms))
        try:
            result.rows += _count_file(output, found.source, file, counted, result.problems)
        except (OutputUnreadable, pa.ArrowException, OSError) as error:
            result.problems.append(f"{file.path} cannot be read: {error}")
    for bucket_ms, counted in counts.items():
        result.sums.update({(key, bucket_ms): sums for key, sums in counted.items()})
    return result


def compare(result: Recounted, evidence: Evidence, tiers: Iterable[Tier]) -> list[Difference]:
    """Where the rows are not what hdfs or the agents counted, of the tiers that are expected."""
    source = result.committed.source
    found = []
    for tier in (Tier.HDFS, Tier.AGENT):
        if tier in tiers:
            counted = _counted(evidence, source, tier, result.committed.producer)
            found += list(_differences(source, tier, result.sums, counted))
    return sorted(found, key=lambda x: (x.bucket, x.agent, x.tier))


def _take(found: Committed, manifest: Mapping[str, Any]) -> None:
    for path in manifest["removed"]:
        if found.files.pop(path, None) is None:
            found.problems.append(f"load {found.loads} removed {path}, which no load had added")
    bucket_ms = manifest["audit"]["bucket_ms"]
    for file in manifest["files"]:
        if file["kind"] in (ROWS, REJECTS):
            found.files[file["path"]] = CommittedFile(
                file["kind"],
                file["path"],
                file["staged"],
                file["rows"],
                file["checksum"],
                bucket_ms,
            )


def _manifest(output: Output, path: str) -> Mapping[str, Any]:
    try:
        manifest = json.loads(output.read(path))
        if not isinstance(manifest, dict) or manifest["format"] != FORMAT:
            raise OutputUnreadable(f"{path} is no manifest of format {FORMAT}")
        missing = {"number", "source", "producer", "files", "removed", "audit"} - set(manifest)
    except (ValueError, KeyError) as error:
        raise OutputUnreadable(f"{path} is no manifest: {error!r}") from error
    if missing:
        raise OutputUnreadable(f"{path} lacks {', '.join(sorted(missing))}")
    return manifest


def _count_file(
    output: Output, source: Source, file: CommittedFile, counts: Counts, problems: list[str]
) -> int:
    """Adds a file's rows to the counts; returns how many there are."""
    path = file.path if output.exists(file.path) else file.staged
    time_column = "timestamp_ms" if file.kind == REJECTS else "_timestamp"
    rows, total = 0, 0
    with output.open(path) as opened:
        parquet = pq.ParquetFile(opened)
        for batch in parquet.iter_batches(columns=[*_ORIGIN, time_column]):
            origins = Origins(*(_int64(batch.column(name)) for name in _ORIGIN))
            times = _int64(batch.column(time_column))
            rejected = np.full(len(times), file.kind == REJECTS)
            counts.add(source, times, origins, rejected=rejected)
            hashes = checksum.record_hash(
                origins.agent, origins.file, origins.first, origins.length
            )
            total = checksum.add(total, checksum.total(hashes))
            rows += len(times)
    if (rows, total) != (file.rows, file.checksum):
        problems.append(f"{path} has {rows} rows, and not the {file.rows} that were committed")
    return rows


def _int64(column: pa.Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    found = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return np.asarray(found, np.int64)


def _counted(
    evidence: Evidence, source: Source, tier: Tier, producer: str
) -> dict[tuple[BucketKey, int], Sums]:
    """What a tier counted of the source topic: agents all together, hdfs of this output in its
    newest epoch."""
    found: dict[tuple[BucketKey, int], Sums] = {}
    topic = evidence.topic(source)
    epochs = [x.epoch for x in evidence.senders if x[:2] == (tier, producer)]
    for (start, size), by_agent in topic.tallies.items():
        for agent, tallies in by_agent.items():
            keys = [key for key in tallies if _belongs(key, tier, producer, epochs)]
            if keys:
                sums = sum((tallies[key].sums for key in keys), Sums())
                found[(source, agent, start), size] = sums
    return found


def _belongs(key: SenderKey, tier: Tier, producer: str, epochs: list[int]) -> bool:
    if key.tier is not tier:
        return False
    return tier is Tier.AGENT or (key.producer == producer and key.epoch == max(epochs))


def _differences(
    source: Source,
    tier: Tier,
    recounted: Mapping[tuple[BucketKey, int], Sums],
    counted: Mapping[tuple[BucketKey, int], Sums],
) -> Iterator[Difference]:
    for key, size in {*recounted, *counted}:
        _, agent, start = key
        if tier is Tier.AGENT and agent == 0:
            continue  # records without origin have no agent that counted them
        rows, said = recounted.get((key, size), Sums()), counted.get((key, size), Sums())
        if (rows.count, rows.bytes, rows.checksum) != (said.count, said.bytes, said.checksum):
            yield Difference(source, agent, (start, size), tier, rows, said)

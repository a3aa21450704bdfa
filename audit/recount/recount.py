"""The recount verifies an output by reading its files and rows. The recount checks that all of
these statements are true:

    files   the directories contain every file of the output (see below), and no other file that
            programs read as rows
    bytes   each file has the length and the CRC-32C that were committed
    rows    every column of every row can be read. The recount computes count, bytes and checksum
            from `_agent`, `_file_id`, `_offset`, `_length` and the time (`_timestamp` of rows,
            `timestamp_ms` of rejects). All three equal what the loader reported for its loads (tier
            hdfs), and what the agents reported (tier agent)

The output consists of the files that a manifest adds and that no later manifest removes. The
recount does not count files that a manifest removes. If such a file still exists in its directory,
this is normally a fault. But a load may still be at work. A load moves its new files to their final
paths, and deletes the files that its manifest removes. The load moves its last new file at the very
end. Until then, a file that the manifest removes may still exist without being a fault.

A loader may load the topic at the same time. The loader writes a manifest before it moves the first
file of a load to its final path. So if the listing finds a file that no manifest named before, the
recount looks for the file in the manifests that were written since. If a named file is not at its
final path, the recount looks in the staging directory, and then at the final path again. The
recount does not list staging directories, because programs do not read rows there. If a later load
has removed a named file, this is not a fault. But the rows of that file are now in a file that this
recount does not read. So this recount leaves the buckets of the file's hour to the next recount.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import IO

from skidway.audit.counts.counts import BucketKey, Counts, Sums
from skidway.audit.evidence.evidence import Evidence
from skidway.audit.evidence.tallies import BucketId, BucketTallies, SenderKey
from skidway.audit.output import Output, StoreFailed, row_file
from skidway.audit.recount import committed_files, listing, manifests, row_files
from skidway.audit.recount.faults import (
    HOUR_MS,
    Fault,
    Faults,
    Kind,
    Whereabouts,
    by_manifest,
    by_name,
    hour_ms,
    is_before,
)
from skidway.audit.recount.later import LaterLoads
from skidway.audit.recount.manifests import STATE, Committed, ManifestUnreadable
from skidway.audit.recount.named_files import COUNTED, NamedFile, NamedFiles
from skidway.audit.topic.messages import Tier
from skidway.kafka.source import Source


@dataclass(slots=True)
class Recounted:
    """The result of recounting a topic. loads: the number of the newest load that was counted.
    sums: count, bytes and checksum of the rows, by (source, agent, bucket) and size of bucket.
    unjudged: the starts of the hours that are left to the next recount, because a load removed
    files of these hours before the recount had read them.
    """

    committed: Committed
    loads: int = 0
    files: int = 0
    rows: int = 0
    sums: dict[tuple[BucketKey, int], Sums] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)
    unjudged: set[int] = field(default_factory=set)

    def leave(self, path: str) -> None:
        """Leaves the hour of this file to the next recount: adds it to `unjudged`."""
        begin_ms = hour_ms(path)
        if begin_ms is not None:
            self.unjudged.add(begin_ms)


@dataclass(frozen=True, slots=True)
class Difference:
    """A (source, agent, bucket) in which the rows differ from the counts of a tier."""

    source: Source
    agent: int
    bucket: BucketId
    tier: Tier
    recounted: Sums
    counted: Sums

    @property
    def reason(self) -> str:
        """The difference in words."""
        missing = self.counted.count - self.recounted.count
        name = self.tier.value.lower()
        if missing > 0:
            return f"{missing} of the {self.counted.count} records that {name} counted are no rows"
        if missing < 0:
            return f"there are {-missing} more rows than the {self.counted.count} of {name}"
        return f"as many rows as {name} counted, but not of the same records"


def topics(output: Output) -> list[str]:
    """The topics that have a manifest, and the topics that have rows of a loader but no
    manifest."""
    known = set(output.names(STATE))
    beside = (name for name in output.names("") if name not in known and name != STATE)
    rows = [name for name in beside if listing.has_rows(output, name)]
    return sorted([*(name for name in known if _has_any(output, name)), *rows])


def expected(
    output: Output, known: Iterable[Committed], evidence: Evidence
) -> dict[str, Committed]:
    """The topics that the output should have, by name. These are all topics in the output
    (`known`), and all topics whose rows in this output a loader has counted, even if the output has
    no files of the topic any more. If a topic has no manifest, its source is the source topic in
    the counts of its loader.
    """
    there = {each.topic: each for each in known}
    roots = {output.url, *(_root(x.producer) for x in there.values() if x.producer)}
    for producer in sorted({x.producer for x in evidence.senders if x.tier is Tier.HDFS}):
        topic = producer.rpartition("/")[2]
        if _root(producer) in roots and (topic not in there or there[topic].source is None):
            there[topic] = Committed(topic, _source_of(producer, evidence), producer)
    return there


def _root(producer: str) -> str:
    return producer.rpartition("/")[0]


def _source_of(producer: str, evidence: Evidence) -> Source | None:
    for source, topic in evidence.topics.items():
        if any(key.producer == producer for key in topic.coverage):
            return source
    return None


def recount(output: Output, committed: Committed, since_ms: int | None = None) -> Recounted:
    """Counts every committed file of a topic. since_ms: if given, counts only hours and buckets
    that begin at this time or later. Lists all files, even with `since_ms`. Raises
    ManifestUnreadable if a manifest or a checkpoint cannot be understood, or vanishes while it is
    read. Raises StoreFailed if a directory, a manifest or a checkpoint cannot be read, and
    StoreUnreachable if the output's server does not answer."""
    if committed.source is None:
        committed = manifests.head(output, committed.topic)  # a first load may be committed by now
    result = Recounted(committed)
    with closing(NamedFiles()) as named:
        result.loads, found = committed_files.read(output, committed.topic, named)
        for fault in found:
            result.faults.add(fault)
        listing.look(output, committed.topic, named)
        later = LaterLoads(output, committed.topic, named, result.loads)
        later.read()
        for fault in listing.faults(output, named):
            result.faults.add(fault)
        if committed.source is not None:
            _count(output, committed.source, result, named, later, since_ms)
        result.files = named.count()
    return result


def loaded_since(output: Output, result: Recounted) -> set[tuple[int, BucketId]]:
    """The (agent, bucket) pairs in the manifests of the loads that were committed while the topic
    was recounted. The recount has not read the rows of these loads, but the evidence may have their
    counts already. Raises the same errors as `recount`.
    """
    topic = result.committed.topic
    return {
        (agent, (start, size))
        for load in manifests.loads_after(output, topic, result.loads)
        for agent, start, size in manifests.buckets_of(manifests.read(output, topic, load))
    }


def compare(
    result: Recounted,
    evidence: Evidence,
    tiers: Iterable[Tier],
    since: Collection[tuple[int, BucketId]] = (),
) -> list[Difference]:
    """The buckets in which the rows differ from the counts of tier hdfs or tier agent. A tier is
    compared only if `tiers` names it.

    since: the (agent, bucket) pairs that were loaded during this recount. This recount leaves these
    pairs, and all buckets that overlap an hour in `Recounted.unjudged`, to the next recount.

    If the evidence has only the low 24 bits of a bucket's checksums (narrow checksums), only these
    bits of the rows' checksums are compared. A bucket whose counts were deleted (setting
    `keep.days`) is not compared. If the rows equal the counts of tier hdfs but the agents counted
    more, the loader has not loaded the missing records. The recount does not report these records
    as a difference, because the verdict on the bucket already covers them.
    """
    source = result.committed.source
    if source is None:
        return []
    rows = _narrowed(result.sums, evidence, source)
    loaded = _counted(evidence, source, Tier.HDFS, result.committed.producer)
    found: list[Difference] = []
    if Tier.HDFS in tiers:
        found += _differences(source, Tier.HDFS, rows, loaded)
    if Tier.AGENT in tiers:
        counted = _counted(evidence, source, Tier.AGENT, "")
        found += [
            each
            for each in _differences(source, Tier.AGENT, rows, counted)
            if not _is_unloaded(each, loaded)
        ]
    found = [each for each in found if (each.agent, each.bucket) not in since]
    found = [each for each in found if not _is_unjudged(each.bucket, result)]
    pruned = evidence.topic(source).pruned
    found = [each for each in found if each.bucket not in pruned]
    return sorted(found, key=lambda x: (x.bucket, x.agent, x.tier))


def _is_unjudged(bucket: BucketId, result: Recounted) -> bool:
    start, size = bucket
    return any(start < hour + HOUR_MS and hour < start + size for hour in result.unjudged)


def _has_any(output: Output, topic: str) -> bool:
    return bool(manifests.loads(output, topic)) or listing.has_rows(output, topic)


def _count(
    output: Output,
    source: Source,
    result: Recounted,
    named: NamedFiles,
    later: LaterLoads,
    since_ms: int | None,
) -> None:
    counts: dict[int, Counts] = {}
    for file in named.all():
        if since_ms is not None and is_before(file.path, since_ms):
            continue
        counted = counts.setdefault(file.bucket_ms, Counts(file.bucket_ms))
        rows, found = _check(output, source, file, counted)
        result.rows += rows
        if found is None:
            continue
        kind, words = found
        if kind in (Kind.GONE, Kind.UNREADABLE) and later.removes(file.path):
            result.leave(file.path)
            continue
        place = Whereabouts()
        if not result.faults.is_full:
            place = _place(output, result.committed.topic, file)
        result.faults.add(Fault(kind, file.path, words, place))
    for bucket_ms, counted in counts.items():
        result.sums.update(
            {
                (key, bucket_ms): sums
                for key, sums in counted.items()
                if since_ms is None or key[2] >= since_ms
            }
        )


def _place(output: Output, topic: str, file: NamedFile) -> Whereabouts:
    if file.load < manifests.oldest_kept(output, topic):
        return by_name(file.path)
    try:
        return by_manifest(file.path, manifests.read(output, topic, file.load))
    except ManifestUnreadable:  # the manifest was just deleted, or is lost (a fault)
        return by_name(file.path)


def _check(
    output: Output, source: Source, file: NamedFile, counts: Counts
) -> tuple[int, tuple[Kind, str] | None]:
    """Adds the rows of a file to `counts`. Returns the number of rows (0 if they cannot be read),
    and the kind and the words of the file's fault (None if the file has no fault).
    """
    try:
        opened = _open(output, file)
        if opened is None:
            words = f"{file.path} is gone, with {file.rows} rows of load {file.load}"
            return 0, (Kind.GONE, words)
        with opened:
            return _check_opened(opened, source, file, counts)
    except StoreFailed as error:
        return 0, (Kind.UNREADABLE, str(error))


def _check_opened(
    opened: IO[bytes], source: Source, file: NamedFile, counts: Counts
) -> tuple[int, tuple[Kind, str] | None]:
    found = _other_bytes(file, row_files.measure(opened))
    if file.kind not in COUNTED:
        return 0, found
    opened.seek(0)
    try:
        rows, total = row_files.count(opened, file, source, counts)
    except row_file.UNREADABLE as error:
        return 0, found or (Kind.UNREADABLE, f"{file.path} cannot be read: {error}")
    if found is None and (rows, total) != (file.rows, file.checksum):
        words = f"{file.path} has {rows} rows, and not the {file.rows} that were committed"
        found = Kind.OTHER_ROWS, words
    return rows, found


def _other_bytes(file: NamedFile, has: row_files.Bytes) -> tuple[Kind, str] | None:
    if has.length != file.length:
        words = f"{file.path} has {has.length} bytes instead of {file.length}"
    elif has.crc32c != file.crc32c:
        words = (
            f"{file.path} has other bytes than those that were committed (CRC-32C "
            f"{has.crc32c:08x} instead of {file.crc32c:08x})"
        )
    else:
        return None
    return Kind.DAMAGED, f"{words}; it had {file.rows} rows of load {file.load}"


def _open(output: Output, file: NamedFile) -> IO[bytes] | None:
    """Opens the file at its final path or at its staging path; None if it is at neither path. Tries
    the final path again at the end, because the loader may have moved the file meanwhile.
    """
    for path in (file.path, file.staged, file.path):
        opened = output.open(path)
        if opened is not None:
            return opened
    return None


def _counted(
    evidence: Evidence, source: Source, tier: Tier, producer: str
) -> dict[tuple[BucketKey, int], Sums]:
    """The counts of a tier for the source topic: for tier agent, the counts of all agents; for tier
    hdfs, the counts of this output's loader in its newest epoch."""
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


def _narrowed(
    sums: Mapping[tuple[BucketKey, int], Sums], evidence: Evidence, source: Source
) -> dict[tuple[BucketKey, int], Sums]:
    """Returns `sums`, the sums of the rows, for the comparison with the evidence. If the evidence
    has only the low 24 bits of a bucket's checksums, the result has only these bits of that
    bucket's checksums, too.
    """
    tallies = evidence.topic(source).tallies.items()
    narrow = {
        bucket for bucket, x in tallies if isinstance(x, BucketTallies) and x.columns.is_narrow
    }
    return {
        (key, size): x.narrowed() if (key[2], size) in narrow else x
        for (key, size), x in sums.items()
    }


def _is_unloaded(difference: Difference, loaded: Mapping[tuple[BucketKey, int], Sums]) -> bool:
    start, size = difference.bucket
    said = loaded.get(((difference.source, difference.agent, start), size), Sums())
    rows = difference.recounted
    return rows.count < difference.counted.count and _content(rows) == _content(said)


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
            continue  # records without an origin, which no agent counts
        rows, said = recounted.get((key, size), Sums()), counted.get((key, size), Sums())
        if _content(rows) != _content(said):
            yield Difference(source, agent, (start, size), tier, rows, said)


def _content(sums: Sums) -> tuple[int, int, int]:
    return sums.count, sums.bytes, sums.checksum

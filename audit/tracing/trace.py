"""Looks for one line in all tiers. The result is a *story*: the line, and its *fate* in each tier
(whether the tier has the line and, if not, why)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from skidway.audit.evidence.line_evidence import AnnouncedFile
from skidway.audit.tracing.fates import (
    BROKER,
    HDFS,
    HostFacts,
    LogFacts,
    RowFacts,
    host_fate,
    is_everywhere,
    log_fate,
    row_fate,
    unseen,
)
from skidway.audit.tracing.lines import HAS_IT, Fate, FileName, LineRecord, Point, is_at
from skidway.audit.tracing.log_search import LogSearch
from skidway.audit.tracing.logs import (
    OPEN,
    SiteCluster,
    open_transactions,
    ranges_since,
    record_of,
    searched,
    spans_of_topics,
)
from skidway.audit.tracing.outputs import LoadedTopic
from skidway.audit.tracing.places import FilePlace, RecordPlace
from skidway.audit.tracing.site import Site, name_of, with_topic
from skidway.errors import UsageError
from skidway.kafka.origin import Origin
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition

CANDIDATES_MAX: Final = 20
"""If a path has had more file ids than this, lines are looked for only under the newest ids."""
MARGIN_MS: Final = 3_600_000
"""A search for a record first reads only the newer part of the log. This part begins one hour
before the time at which the agent announced the record's file. The search reads the older part only
if the newer part does not have the record.
"""
HOW: Final = {
    BROKER: "--cluster HOST:PORT names its brokers",
    "mirror": "--cluster HOST:PORT names its brokers",
    HDFS: "--output names the loader's output",
}


@dataclass(frozen=True, slots=True)
class Story:
    """One line and its fate in each tier. first, length: position and length of the line in its
    file. If neither a tier nor this host's file shows where the line begins, `first` is the
    position that the caller gave, and `length` is None. text: the line's text, if it can be read on
    this host."""

    name: FileName
    first: int
    length: int | None
    fates: tuple[Fate, ...]
    record: LineRecord | None = None
    text: bytes | None = None

    @property
    def is_everywhere(self) -> bool:
        """Whether every tier but the host has the line (see fates.is_everywhere)."""
        return is_everywhere(self.fates)


def trace_file(
    site: Site, place: FilePlace, topics: Sequence[str] | None, since_ms: int | None
) -> list[Story]:
    """Returns the stories (see the module's docstring) of the lines that contain `place.byte` of a
    file. A path may have had several file ids, for example because of rotation, and each of them
    may have such a line. Returns a story for each of these lines that has a record or a row. If
    there are none, returns a story for each line that can be read on this host. If there are no
    such lines either, returns one story, for the newest file id.

    topics: only files of these topics; None for all. since_ms: the search in the logs begins with
    the records from this event time on; None stands for a time shortly before the file's
    announcement. Raises UsageError if nobody announced such a file."""
    names = named(site, place, topics)
    stories = [
        follow(site, each, Point(each.agent, each.file, place.byte), since_ms)
        for each in names[:CANDIDATES_MAX]
    ]
    known = [each for each in stories if each.record is not None or _has_row(each)]
    here = [each for each in stories if each.text is not None]
    return known or here or stories[:1]


def trace_record(site: Site, place: RecordPlace) -> Story:
    """Returns the story of the line from which the record at `place` was made. Raises UsageError if
    the record can be read in no cluster."""
    record, why = None, f"no cluster that was named has a topic {place.topic}"
    for cluster in site.clusters:
        key = cluster.source_named(place.topic)
        if key is None:
            continue
        found = record_of(cluster, place.topic, place.partition, place.offset)
        if isinstance(found, LineRecord):
            record = found
            break
        why = found
    if record is None:
        raise UsageError(f"This record cannot be read: {why}.")
    assert key is not None
    source = Source(key[0], "", key[1].removesuffix(".rejected"), "")
    if record.origin is None:
        return _without_origin(site, source, record)
    origin = record.origin
    point = Point(origin.agent, origin.file, origin.first)
    return follow(site, _name_in(site, origin, source), point, None, record, cluster.name)


def _name_in(site: Site, origin: Origin, source: Source) -> FileName:
    """Returns the names of the file from which a record of the topic `source` was made. If an agent
    begins to send a file to another topic, it announces the file again for this topic, so one file
    may have several announcements."""
    names = [name_of(x) for x in site.evidence.files_with(origin.file) if x.agent == origin.agent]
    for each in names:
        if each.source and (each.source.cluster, each.source.topic) == (
            source.cluster,
            source.topic,
        ):
            return each
    name = names[0] if names else FileName(origin.agent, origin.file)
    return replace(name, source=source)


def named(site: Site, place: FilePlace, topics: Sequence[str] | None) -> list[FileName]:
    """The files that `place` may mean, the newest announcement first. topics: only files of these
    topics; None for all. Raises UsageError if no agent announced such a file."""
    if place.file is not None:
        files = site.evidence.files_with(place.file)
    else:
        files = [x for x in site.evidence.files_of(place.host or "") if x.path == place.path]
        files = _there_now(site, place) or files
    files = [x for x in with_topic(files, topics) if place.agent in (None, x.agent)]
    if place.file is not None and place.host is not None:
        files = [x for x in files if x.host == place.host]
    if not files:
        what = f"file {place.file}" if place.path is None else f"{place.host}:{place.path}"
        raise UsageError(
            f"No agent has announced {what}, as far as the audit topics that were read reach."
        )
    return [name_of(each) for each in files]


def _there_now(site: Site, place: FilePlace) -> list[AnnouncedFile]:
    """Returns the announcements of the file that is at the path of `place` now. (Other files may
    have been at this path before.) Returns an empty list if the command does not run on the file's
    host.
    """
    if site.host is None:
        return []
    here = [
        x.file
        for x in site.host.files.values()
        if x.path == place.path and x.begin <= place.byte < max(x.size, x.position)
    ]
    files = [each for file in here for each in site.evidence.files_with(file)]
    return [x for x in files if x.host == place.host and site.text_here(*x[1:3], place.byte)]


def follow(
    site: Site, name: FileName, point: Point, since_ms: int | None,
    record: LineRecord | None = None, read_in: str | None = None,
) -> Story:  # fmt: skip
    """Returns the story of the line that contains `point`. name: the names (host, path, topic) of
    the file in which `point` is. record, read_in: the line's record and the name of the cluster
    from which it was read, if they are known.
    """
    source = name.source
    assert source is not None
    line = site.text_here(point.agent, point.file, point.byte)
    facts = HostFacts(
        name,
        site.file_here(point.agent, point.file),
        None if line is None else line[0],
        None if line is None else line[1],
        site.declared(point.agent, point.file),
        site.evidence.filtered(point.agent, source),
    )
    fates = [host_fate(facts, point.byte)]
    begin = since_ms
    if begin is None and name.announced_ms is not None:
        begin = name.announced_ms - MARGIN_MS
    logs = _log_facts(site, source, point, begin, record, read_in)
    record = next((each.record for each in logs if each.record is not None), None)
    fates += [log_fate(each, facts, point.byte, record) for each in logs]
    rows = _row_facts(site, source, point, record)
    above = fates[-1] if logs else None
    fates += [row_fate(each, record, above) for each in rows]
    fates += [unseen(x, HOW[x]) for x in site.tiers if x not in {fate.tier for fate in fates}]
    known = _origin(record, rows)
    first = known.first if known is not None else (point.byte if line is None else line[0])
    length = known.length if known is not None else (None if line is None else len(line[1]))
    return Story(name, first, length, tuple(fates), record, facts.text)


def _log_facts(
    site: Site, source: Source, point: Point, since_ms: int | None, record: LineRecord | None,
    read_in: str | None,
) -> list[LogFacts]:  # fmt: skip
    """Looks for the line's record in each cluster. A record has the same partition and offset in
    all clusters. So once one cluster has the record, this function asks the other clusters for the
    record at this offset."""
    clusters = site.clusters_of(source)
    found: dict[str, LogFacts] = {}
    for cluster in clusters:
        if record is None:
            found[cluster.name] = _search(cluster, source, point, since_ms)
            record = found[cluster.name].record
        elif cluster.name == read_in:
            found[cluster.name] = LogFacts(cluster.name, cluster.tier(source), record)
    if record is None:
        return [found[each.name] for each in clusters]
    return [
        found[each.name]
        if each.name in found and found[each.name].record is record
        else _at_offset(each, source, point, record)
        for each in clusters
    ]


def _search(cluster: SiteCluster, source: Source, point: Point, since_ms: int | None) -> LogFacts:
    tier = cluster.tier(source)
    spans = spans_of_topics(cluster.client, cluster.topics_of(source))
    for ranges in ranges_since(cluster.client, spans, since_ms):
        record = next(searched(cluster, ranges, LogSearch(point)), None)
        if record is not None:
            return LogFacts(cluster.name, tier, record)
    begins = max((span.first for span in spans.values()), default=0)
    why = next(iter(open_transactions(spans)), "")
    return LogFacts(cluster.name, tier, None, begins, is_behind=bool(why), why=why)


def _at_offset(cluster: SiteCluster, source: Source, point: Point, record: LineRecord) -> LogFacts:
    """Looks for a record in a cluster, at the offset that the record has in another cluster.
    Returns what was found."""
    tier = cluster.tier(source)
    is_reject = record.topic.endswith(".rejected")
    topic = next(
        (x for x in cluster.topics_of(source) if x.endswith(".rejected") == is_reject), None
    )
    if topic is None:
        return LogFacts(cluster.name, tier, None, why="the topic is not there")
    tp = TopicPartition(topic, record.partition)
    span = cluster.span(tp)
    if record.offset >= span.readable:
        words = f"partition {record.partition} reaches up to offset {span.end:,}"
        if record.offset < span.end:
            words = OPEN.format(tp=tp, at=span.readable)
        return LogFacts(cluster.name, tier, None, span.first, is_behind=True, why=words)
    found = record_of(cluster, topic, record.partition, record.offset)
    if isinstance(found, str):
        return LogFacts(cluster.name, tier, None, span.first, why=found)
    if found.origin != record.origin or (found.origin and not is_at(found.origin, point)):
        words = f"offset {record.offset:,} has another record"
        return LogFacts(cluster.name, tier, None, span.first, why=words)
    return LogFacts(cluster.name, tier, found)


def _row_facts(
    site: Site, source: Source, point: Point, record: LineRecord | None
) -> list[RowFacts]:
    topics = site.loaded(source)
    if not topics or site.output is None:
        return [RowFacts(site.output.url, ())] if site.output is not None else []
    rows, writer = [], None
    for topic in topics:
        found = topic.search(point, None if record is None else record.time_ms)
        if found and writer is None:
            writer = (topic, found[0].load)
        rows += found
    committed = None if writer is None else writer[0].created_ms(writer[1])
    unread = [each for topic in topics for each in topic.unread]
    return [RowFacts(site.output.url, rows, committed, _loaded_to(topics, record), unread)]


def _loaded_to(topics: Sequence[LoadedTopic], record: LineRecord | None) -> int | None:
    """The offset up to which the record's partition is loaded: 0 if none of its records is loaded,
    None if `record` is None."""
    if record is None:
        return None
    is_reject = record.topic.endswith(".rejected")
    for topic in topics:
        if topic.source.topic.endswith(".rejected") == is_reject:
            return topic.ends.get(record.partition, 0)
    return 0


def _origin(record: LineRecord | None, rows: Sequence[RowFacts]) -> Origin | None:
    if record is not None:
        return record.origin
    return next((row.origin for each in rows for row in each.rows), None)


def _has_row(story: Story) -> bool:
    return any(each.tier == HDFS and each.state in HAS_IT for each in story.fates)


def _without_origin(site: Site, source: Source, record: LineRecord) -> Story:
    """Returns the story of a record that no agent sent. Such a record has no origin, so it is found
    in the other tiers only by its partition and offset."""
    fates = []
    nowhere = Point(-1, -1, 0)
    name = FileName(0, 0, source=source)
    facts = HostFacts(name)
    for cluster in site.clusters_of(source):
        log = _at_offset(cluster, source, nowhere, record)
        fates.append(log_fate(log, facts, 0, record))
    topics = site.loaded(source)
    rows = [(topic, row) for topic in topics for row in topic.search(record, record.time_ms)]
    if site.output is not None:
        committed = rows[0][0].created_ms(rows[0][1].load) if rows else None
        found = RowFacts(
            site.output.url, [row for _, row in rows], committed, _loaded_to(topics, record)
        )
        fates.append(row_fate(found, record, None))
    fates += [unseen(x, HOW[x]) for x in site.tiers if x not in {fate.tier for fate in fates}]
    return Story(name, 0, None, tuple(fates), record)

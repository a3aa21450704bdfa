"""Looks for the rows and records of samples, compares them with the samples, and finds out in which
fields they differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from skidway.audit.recount.manifests import ManifestUnreadable
from skidway.audit.sampling import row_contents
from skidway.audit.sampling.comparison import Compared, Differing, compare, unfound
from skidway.audit.sampling.record_contents import RecordContents
from skidway.audit.sampling.wanted import Found, Span, Wanted, least_ms
from skidway.audit.tracing import logs
from skidway.audit.tracing.logs import SiteCluster
from skidway.audit.tracing.outputs import HOUR_MS, LoadedTopic, hour_ms
from skidway.audit.tracing.site import Site
from skidway.kafka.source import Source
from skidway.kafka.types import TopicPartition
from skidway.schemas.codec import Codec
from skidway.schemas.topic_reading import MAX_BYTES

CLOSER_MAX: Final = 20
"""For the first CLOSER_MAX differences of a topic, the survey also reads the values of the row, the
record, and the line of the log file, to show them.
"""

CodecOf = Callable[[int], Codec | str]
"""A function that returns the codec of a schema id, or the reason why no codec is known."""

_UNREADABLE: Final = (pa.ArrowException, OSError, ValueError, KeyError)


@dataclass(frozen=True, slots=True)
class Closer:
    """Details of a difference. record: if a row differs from its sample, a sentence that says
    whether the record of this row agrees with the sample; None if the record was not found. fields:
    the fields in which row and record differ from each other. line: the line's text, if its log
    file is on this host. values: the values of the row or the record.
    """

    record: str | None = None
    fields: tuple[str, ...] = ()
    line: str | None = None
    values: Mapping[str, Any] | None = None


@dataclass(slots=True)
class Surveyed:
    """The result of a survey of one source topic. wanted: the parts of samples for this topic.
    compared: the result of comparing all of them. by_day: the same result, divided by the day of
    the samples. output: the topic's name in the output; empty if the output does not have the
    topic. cluster: the cluster in which records were looked for; empty if there is none. unread:
    sentences about files of the output that could not be read. closer: details of the first
    differences; the key is the difference's index in `compared.differing`.
    """

    source: Source
    wanted: Sequence[Wanted]
    compared: Compared = field(default_factory=Compared)
    by_day: dict[int, Compared] = field(default_factory=dict)
    output: str = ""
    cluster: str = ""
    unread: list[str] = field(default_factory=list)
    closer: dict[int, Closer] = field(default_factory=dict)

    @property
    def ranges(self) -> int:
        """How many sampled ranges of bytes have records of this topic."""
        return len(self.wanted)


def survey(site: Site, wanted: Sequence[Wanted], codec_of: CodecOf) -> list[Surveyed]:
    """Compares all parts of samples with the rows of the output and the records of the brokers,
    topic by topic. Returns a result for each topic."""
    by_source: dict[Source, list[Wanted]] = {}
    for each in wanted:
        by_source.setdefault(each.part.source, []).append(each)
    return [
        _of_topic(site, source, parts, codec_of)
        for source, parts in sorted(by_source.items(), key=lambda x: (x[0].cluster, x[0].topic))
    ]


def _of_topic(site: Site, source: Source, wanted: Sequence[Wanted], codec_of: CodecOf) -> Surveyed:
    result = Surveyed(source, wanted)
    topics = _loaded(site, source, result)
    rows = _rows(topics, wanted, codec_of, result)
    lacking = [each for each in wanted if unfound(each, rows.get(each.span, ()))]
    cluster = _cluster(site, source)
    records: dict[Span, list[Found]] = {}
    if cluster is not None:
        result.cluster = cluster.name
        records = _records(cluster, source, lacking)
    # A record that is loaded but has no row counts as a difference. But if a file of the output
    # could not be read, the row may be in that file. In this case no offset counts as loaded.
    ends = topics[0].ends if topics and not result.unread else {}
    for each in wanted:
        found = compare(each, rows.get(each.span, ()), records.get(each.span, ()), ends)
        result.compared.add(found)
        result.by_day.setdefault(each.day, Compared()).add(found)
    for at, differing in enumerate(result.compared.differing[:CLOSER_MAX]):
        result.closer[at] = _closer(site, cluster, topics, source, differing, codec_of)
    return result


def _loaded(site: Site, source: Source, result: Surveyed) -> list[LoadedTopic]:
    if site.output is None:
        return []
    try:
        found = site.loaded_alone(source)
    except ManifestUnreadable as error:
        result.unread.append(str(error))
        return []
    result.output = found[0].name if found else ""
    return found


def _rows(
    topics: Iterable[LoadedTopic], wanted: Sequence[Wanted], codec_of: CodecOf, result: Surveyed
) -> dict[Span, list[Found]]:
    """Returns, for each span of sampled bytes, the output's rows that were made from lines in this
    span. Adds to `result` a sentence about each file that cannot be read.
    """
    rows: dict[Span, list[Found]] = {}
    for topic in topics:
        for named in topic.files:
            codecs = {
                each.span: codec_of(each.part.schema_id)
                for each in wanted
                if _may_be_in(hour_ms(named.path), each)
            }
            if not codecs:
                continue
            for span, row in _rows_of(topic, named.path, named.staged, codecs, result):
                rows.setdefault(span, []).append(row)
    return rows


def _rows_of(
    topic: LoadedTopic,
    path: str,
    staged: str,
    codecs: Mapping[Span, Codec | str],
    result: Surveyed,
) -> Iterator[tuple[Span, Found]]:
    for each in (path, staged):
        file = topic.output.open(each)
        if file is None:
            continue
        with file:
            try:
                yield from row_contents.rows_in(file, path, codecs)
            except _UNREADABLE as error:
                result.unread.append(f"{path} cannot be read: {error}")
        return
    result.unread.append(f"{path} is not there")


def _may_be_in(hour: int | None, wanted: Wanted) -> bool:
    part = wanted.part
    return hour is None or (hour <= part.greatest_ms and part.least_ms < hour + HOUR_MS)


def _cluster(site: Site, source: Source) -> SiteCluster | None:
    """Returns the source's own cluster if the command searches in it. If not, returns a cluster
    with a mirror of the topic; None if the command searches in no such cluster either.
    """
    having = (x for x in site.clusters if (source.cluster, source.topic) in x.topics)
    return next(iter(sorted(having, key=lambda x: x.name != source.cluster)), None)


def _records(
    cluster: SiteCluster, source: Source, wanted: Sequence[Wanted]
) -> dict[Span, list[Found]]:
    """Returns, for each span of sampled bytes of `wanted`, the cluster's records that were made
    from lines in this span.
    """
    if not wanted:
        return {}
    search = RecordContents({each.span: each.part.schema_id for each in wanted})
    name = cluster.topics[source.cluster, source.topic]
    ranges, _ = logs.spans(cluster.client, [name], least_ms(wanted))
    found: dict[Span, list[Found]] = {}
    for tp, header, raw in cluster.read(cluster.client, ranges, MAX_BYTES):
        for span, record in search.take(tp.topic, tp.partition, header, raw):
            if ranges[tp][0] <= record.offset < ranges[tp][1]:
                found.setdefault(span, []).append(record)
    return found


def _closer(
    site: Site,
    cluster: SiteCluster | None,
    topics: Sequence[LoadedTopic],
    source: Source,
    differing: Differing,
    codec_of: CodecOf,
) -> Closer:
    """Returns the details of a difference, as far as the log file and the brokers still have
    them."""
    wanted, found = differing.wanted, differing.found
    text = site.text_here(wanted.sample.agent, wanted.sample.file, found.first)
    line = None if text is None else text[1].decode("utf-8", "replace").rstrip("\r\n")
    codec = codec_of(wanted.part.schema_id)
    if isinstance(codec, str):
        return Closer(line=line)
    if not differing.is_row:
        return Closer(line=line, values=_decoded(found, codec))
    row = _row_values(topics, differing, codec)
    record = None if cluster is None else _record(cluster, source, wanted, found)
    if cluster is None or record is None:
        return Closer(line=line, values=row)
    sums = dict(zip(wanted.part.firsts, wanted.part.sums, strict=True))
    is_right = record.content == sums.get(found.first)
    said = f"the record in {cluster.name} {'has the right content' if is_right else 'differs, too'}"
    values = _decoded(record, codec)
    fields = () if row is None or values is None else _differing_fields(row, values)
    return Closer(said, fields, line, row)


def _record(cluster: SiteCluster, source: Source, wanted: Wanted, found: Found) -> Found | None:
    """Returns the record from which the row `found` was made, or None if the cluster no longer has
    the record.
    """
    name = cluster.topics[source.cluster, source.topic]
    tp, offset = TopicPartition(name, found.partition), found.offset
    first, end = cluster.span(tp)
    if not first <= offset < end:
        return None
    search = RecordContents({wanted.span: wanted.part.schema_id})
    for _, header, raw in cluster.read(cluster.client, {tp: (offset, offset + 1)}, logs.ONE_BATCH):
        for _, record in search.take(name, found.partition, header, raw):
            if record.offset == offset:
                return record
    return None


def _decoded(record: Found, codec: Codec) -> dict[str, Any] | None:
    """Returns the values of a record, or None if its datum does not fit its schema."""
    rows = codec.decode(pa.array([record.datum], pa.binary())).batch.to_pylist()
    return dict(rows[0]) if rows else None


def _row_values(
    topics: Sequence[LoadedTopic], differing: Differing, codec: Codec
) -> dict[str, Any] | None:
    """Reads the values of a differing row once more from its Parquet file. Returns None if they
    cannot be read.
    """
    path, _, number = differing.found.place.rpartition(" row ")
    for topic in topics:
        for named in topic.files:
            if named.path != path:
                continue
            file = topic.output.open(path)
            if file is None:
                return None
            with file:
                return row_contents.row_at(file, int(number), codec)
    return None


def _differing_fields(row: Mapping[str, Any], record: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(name for name in record if repr(row.get(name)) != repr(record[name]))

"""Reports the result of a survey of samples: as text, as JSON, and as messages to the collector."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from skidway.audit.reports.report import time_text
from skidway.audit.reports.topic_names import topic_name
from skidway.audit.sampling.comparison import OTHER_FILE, Compared, Differing
from skidway.audit.sampling.survey import Closer, Surveyed
from skidway.audit.sampling.told import Told
from skidway.audit.sampling.wanted import Found
from skidway.audit.topic.messages import Tier
from skidway.audit.topic.sample import Sample
from skidway.audit.topic.sample_result import (
    DIFFERENCES_MAX,
    ContentDifference,
    SampleResult,
    day_text,
)
from skidway.schemas.consuming.values import plain

COLUMNS: Final = (
    "topic", "ranges", "lines", "in_rows", "in_records", "equal", "different", "not_compared",
)  # fmt: skip
SHOWN: Final = 20
TEXT_CHARACTERS_MAX: Final = 300


def table(found: Sequence[Surveyed]) -> list[dict[str, Any]]:
    """The table of the report: a row for each topic."""
    return [
        {
            "topic": topic_name(each.source),
            "ranges": each.ranges,
            "lines": each.compared.compared + each.compared.uncompared.total(),
            "in_rows": each.compared.rows,
            "in_records": each.compared.records,
            "equal": each.compared.equal,
            "different": len(each.compared.differing),
            "not_compared": each.compared.uncompared.total(),
        }
        for each in found
    ]


def lines(found: Sequence[Surveyed], gone: Sequence[Sample], told: Told) -> Iterator[str]:
    """The lines of text below the table: the differences, and the reasons why lines were not
    compared. gone: the samples whose bytes were gone before the agent could read them again."""
    for each in found:
        for at, differing in enumerate(each.compared.differing[:SHOWN]):
            yield from _difference_lines(each, differing, each.closer.get(at, Closer()))
        if len(each.compared.differing) > SHOWN:
            more = len(each.compared.differing) - SHOWN
            yield f"and {more:,} more differences in {topic_name(each.source)} (--json has them)"
        for reason, count in sorted(each.compared.uncompared.items()):
            yield f"not compared: {count:,} lines of {topic_name(each.source)}: {reason}"
        yield from (f"not compared: {words}" for words in each.unread)
    for sample in gone[:SHOWN]:
        yield f"not compared: {_file(sample)} bytes {sample.first:,} to {sample.end:,}: " + (
            sample.gone
        )
    if len(gone) > SHOWN:
        yield f"and {len(gone) - SHOWN:,} more ranges that are gone (--json has them)"
    if told.missing:
        yield f"not compared: {told.missing:,} ranges that their agents have not told (yet)"
    if told.refused:
        yield f"not compared: {told.refused:,} damaged messages with samples"
    if told.is_cut:
        yield "There are more samples: this run took the first ones only."


def sentence(found: Sequence[Surveyed], told: Told) -> str:
    """Says in one sentence how many of the compared lines differ from their rows or records."""
    if not told.samples:
        return (
            "No agent has told a sample: set sample.ranges in agent.yml; samples come after the end"
            " of their period."
        )
    compared = sum(each.compared.compared for each in found)
    differing = sum(len(each.compared.differing) for each in found)
    if differing:
        return f"{differing:,} of {compared:,} compared lines have other content: content differs."
    if not compared:
        return "No line could be compared."
    return f"All {compared:,} compared lines have the content of their line."


def is_good(found: Sequence[Surveyed]) -> bool:
    """Whether at least one line was compared, and no compared line differs from its row or
    record."""
    compared = sum(each.compared.compared for each in found)
    return compared > 0 and not any(each.compared.differing for each in found)


def document(found: Sequence[Surveyed], gone: Sequence[Sample], told: Told) -> dict[str, Any]:
    """The whole report as JSON."""
    return {
        "ok": is_good(found),
        "topics": [_topic_document(each) for each in found],
        "gone": [
            {
                "host": x.host, "path": x.path, "agent": x.agent, "file": x.file,
                "first": x.first, "end": x.end, "reason": x.gone,
            }
            for x in gone
        ],
        "untold_ranges": told.missing,
        "refused_messages": told.refused,
    }  # fmt: skip


def results(
    found: Sequence[Surveyed],
    told: Told,
    earlier: Sequence[SampleResult],
    time_ms: int,
    host: str,
    output: str,
) -> Iterator[SampleResult]:
    """Yields the messages to the collector: one for each topic and day of samples.

    earlier: for each topic, output and day, the newest result published before this run. If a line
    differs in an earlier result and was not compared in this run, it still counts as differing. An
    earlier result may name a row for which the agent makes no record. Such a row no longer counts
    if this run has read the same sampled bytes and all files of the output, and has not found the
    row. If this run could not read all files, or if the output does not have the topic, this run
    may have missed rows of any line. In this case, all earlier differences still count.

    An earlier result may also count differences that it does not list (see DIFFERENCES_MAX). A
    result does not say which lines were compared, only how many. So nothing proves that this run
    has compared the lines whose differences are not listed. These differences still count unless
    all of these statements are true: This run has read all files and compared all lines of the
    samples. No sample of the day is known to be missing (see Told.has_all_of). This run has
    compared at least as many lines as the earlier result. If the differences still count,
    `compared` of the new result is not smaller than `compared` of the earlier result, even if this
    run has compared fewer lines. So the next run must compare at least that many lines. One mistake
    remains possible. Suppose that this run has read no sample of one agent, because it did not read
    an audit topic or because a mirror lags. If new samples of other agents have at least as many
    lines, the run does not notice this.

    If a row or record is not known to have its line's event time, the line may be in any bucket
    between the least and the greatest event time of its sample. The result has these two times in
    `unlisted_least` and `unlisted_greatest`, so that no bucket between them counts as complete.
    Later results keep these two times as long as one of the differences of this result still
    counts.
    """
    for each in found:
        for day, compared in sorted(each.by_day.items()):
            made = SampleResult(
                time_ms, host, output, each.source, day, len(compared.lines), compared.equal, 0
            )
            before = [x for x in earlier if (x.source, x.name) == (each.source, made.name)]
            yield _result(each, told, before, made)


def _result(
    surveyed: Surveyed, told: Told, earlier: Sequence[SampleResult], made: SampleResult
) -> SampleResult:
    """Returns `made` with a list of differences: those that this run found, and those of `earlier`
    that still count. earlier: the earlier results for the same topic, output and day.
    """
    compared = surveyed.by_day[made.day]
    is_blind = bool(surveyed.unread or (made.output and not surveyed.output))
    differences = [_difference(surveyed, x) for x in compared.differing]
    seen = {(x.agent, x.file, x.first) for x in differences}
    seen |= set() if is_blind else compared.lines
    kept = [
        x
        for result in earlier
        for x in result.differences
        if (x.agent, x.file, x.first) not in seen and not _is_removed(surveyed, x)
    ]
    has_all = not is_blind and not compared.uncompared and told.has_all_of(made.day)
    unlisted = [x for x in earlier if x.unlisted and not (has_all and x.compared <= made.compared)]
    times = _unproven_times(compared)
    if kept or unlisted:
        times += [ms for x in earlier for ms in x.unlisted_times]
    return _with_differences(made, [*differences, *kept], unlisted, times)


def _unproven_times(compared: Compared) -> list[int]:
    """If a row or record differs from its sample, its event time may be wrong, too. Returns, for
    each row and record with such an unproven time, the least and the greatest event time (ms) that
    its line can have.
    """
    parts = [x.wanted.part for x in compared.differing if not x.is_time_proven]
    return [ms for part in parts for ms in (part.least_ms, part.greatest_ms)]


def _is_removed(surveyed: Surveyed, earlier: ContentDifference) -> bool:
    """Whether the earlier difference was a row for which the agent makes no record, and this run
    would have found the row if it were still in the output. Always false if the earlier difference
    was a record in the brokers. A run reads such records only for lines without a row, so perhaps
    this run has not looked for the record.
    """
    if earlier.tier != Tier.HDFS or surveyed.unread or not surveyed.output:
        return False
    place = earlier.agent, earlier.file, earlier.first
    return any(each.has_no_line(*place) for each in surveyed.wanted)


def _with_differences(
    made: SampleResult,
    differences: Sequence[ContentDifference],
    earlier: Sequence[SampleResult],
    times_ms: Sequence[int],
) -> SampleResult:
    """Returns the result `made` with the given differences, and with a count of differences that
    are not listed.

    Lists the first DIFFERENCES_MAX of the given differences. Suppose that M given differences are
    left over, and that a result in `earlier` counts N differences that it does not list. The M
    differences may be some of the N. So the new result counts M or N differences as unlisted,
    whichever is greater, and not their sum. times_ms: lines with differences may have any event
    time between the least and the greatest of these times."""
    listed, others = differences[:DIFFERENCES_MAX], differences[DIFFERENCES_MAX:]
    times = [*times_ms, *(x.time_ms for x in others)]
    return replace(
        made,
        compared=max(made.compared, *(x.compared for x in earlier), 0),
        differing=len(listed) + max(len(others), *(x.unlisted for x in earlier), 0),
        differences=tuple(listed),
        unlisted_least=min(times, default=0),
        unlisted_greatest=max(times, default=0),
    )


def _difference(surveyed: Surveyed, differing: Differing) -> ContentDifference:
    sample, found = differing.wanted.sample, differing.found
    return ContentDifference(
        time_ms=differing.time_ms,
        agent=sample.agent,
        host=sample.host,
        file=sample.file,
        path=sample.path,
        first=found.first,
        end=found.first + found.length,
        tier=_tier(surveyed, differing).value,
        place=_place(surveyed, differing),
        partition=found.partition,
        offset=found.offset,
        words=differing.words,
    )


def _tier(surveyed: Surveyed, differing: Differing) -> Tier:
    if differing.is_row:
        return Tier.HDFS
    return Tier.BROKER if surveyed.cluster == surveyed.source.cluster else Tier.MIRROR


def _place(surveyed: Surveyed, differing: Differing) -> str:
    if differing.is_row:
        return differing.found.place or surveyed.output
    return surveyed.cluster


def _difference_lines(surveyed: Surveyed, differing: Differing, closer: Closer) -> Iterator[str]:
    sample, found = differing.wanted.sample, differing.found
    tier = _tier(surveyed, differing).value.lower()
    yield f"content differs: {_file(sample)} byte {found.first:,}, {found.length:,} bytes"
    yield f"  {differing.words}{f'; {closer.record}' if closer.record else ''}"
    yield f"  {tier}: {_place(surveyed, differing)}, {_offset(surveyed, found)}"
    if differing.words == OTHER_FILE:
        yield f"  the row's file: {_printable(f'{found.host}:{found.path}')}"
    if closer.fields:
        yield f"  differing fields: {', '.join(closer.fields)}"
    if closer.values is not None:
        text = json.dumps(plain(closer.values), ensure_ascii=False)
        yield f"  {'row' if differing.is_row else 'record'}: {_printable(text)}"
    if closer.line is not None:
        yield f"  line: {_printable(closer.line)}"


def _offset(surveyed: Surveyed, found: Found) -> str:
    return f"{topic_name(surveyed.source)}-{found.partition} offset {found.offset:,}"


def _file(sample: Sample) -> str:
    path = sample.path or f"file {sample.file}"
    return f"{sample.host}:{path}"


def _printable(text: str) -> str:
    kept = "".join(x if x.isprintable() else "\N{REPLACEMENT CHARACTER}" for x in text)
    return kept[:TEXT_CHARACTERS_MAX]


def _topic_document(surveyed: Surveyed) -> dict[str, Any]:
    compared = surveyed.compared
    return {
        "topic": topic_name(surveyed.source),
        "ranges": surveyed.ranges,
        "compared": compared.compared,
        "rows": compared.rows,
        "records": compared.records,
        "equal": compared.equal,
        "uncompared": dict(sorted(compared.uncompared.items())),
        "unread": surveyed.unread,
        "differences": [
            _difference_document(surveyed, each, surveyed.closer.get(at, Closer()))
            for at, each in enumerate(compared.differing)
        ],
    }


def _difference_document(
    surveyed: Surveyed, differing: Differing, closer: Closer
) -> dict[str, Any]:
    said = _difference(surveyed, differing)
    return {
        "host": said.host,
        "path": said.path,
        "agent": said.agent,
        "file": said.file,
        "first": said.first,
        "length": differing.found.length,
        "day": day_text(differing.wanted.day),
        "time": time_text(said.time_ms),
        "tier": said.tier.lower(),
        "place": said.place,
        "partition": said.partition,
        "offset": said.offset,
        "words": said.words,
        "row_host": differing.found.host,
        "row_path": differing.found.path,
        "record": closer.record,
        "fields": list(closer.fields),
        "values": None if closer.values is None else plain(closer.values),
        "line": closer.line,
    }

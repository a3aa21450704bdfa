"""Finds the lines of a host that contain a text, and looks for each of them in all tiers."""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final, NamedTuple

from skidway.audit.evidence.line_evidence import AnnouncedFile
from skidway.audit.tracing import host_files, trace
from skidway.audit.tracing.fates import HostFacts, LogFacts, RowFacts, host_fate, log_fate, row_fate
from skidway.audit.tracing.fates import unseen as unseen_tier
from skidway.audit.tracing.lines import FileName, LineRecord, LineRow, Point, is_at
from skidway.audit.tracing.log_search import LogSearch
from skidway.audit.tracing.logs import Ranges, SiteCluster, searched, spans
from skidway.audit.tracing.outputs import LoadedTopic, hours_of
from skidway.audit.tracing.row_search import RowQuestion
from skidway.audit.tracing.site import Site, name_of, with_topic
from skidway.audit.tracing.trace import HOW, Story
from skidway.errors import UsageError
from skidway.kafka.source import Source

AHEAD_MS: Final = 3_600_000
"""The event time of a line is assumed to be at most this many ms after the time at which the agent
read the line."""
HITS_MAX: Final = 100_000
"""If more than this many lines of a topic have the text, the search ends with an error, because it
stores each line that it finds.
"""


@dataclass(frozen=True, slots=True)
class FindQuestion:
    """The lines to find: lines of a host that contain `text` and have event times in [since_ms,
    until_ms). topics: only lines of these topics; None for all. paths: log files of `host`, or
    copies of them, on the machine on which the command runs; they are searched even if this machine
    is not `host`. limit: at most this many lines are shown."""

    text: str
    host: str
    since_ms: int
    until_ms: int
    topics: tuple[str, ...] | None = None
    paths: tuple[str, ...] = ()
    limit: int = 20


@dataclass(slots=True)
class Found:
    """The result of `find`. stories: the newest lines with the text, each with its fate in each
    tier. count: the number of all lines with the text. seen: how many records were searched.
    skipped: how many records of other hosts were skipped without reading them. notes: sentences
    that say what was not searched.
    """

    stories: list[Story] = field(default_factory=list)
    count: int = 0
    seen: int = 0
    skipped: int = 0
    notes: list[str] = field(default_factory=list)


class _HostLine(NamedTuple):
    """A line in a file of this host. points: the line's first byte, as one point for each file id
    to which the line may belong; a path may have had several file ids."""

    points: tuple[Point, ...]
    text: bytes


@dataclass(slots=True)
class _Line:
    """A line with the wanted text, and its record and its rows, if they were found."""

    point: Point
    time_ms: int = 0
    record: LineRecord | None = None
    rows: list[LineRow] = field(default_factory=list)
    writer: LoadedTopic | None = None
    text: bytes | None = None


def find(site: Site, question: FindQuestion) -> Found:
    """Returns the lines that the question describes. Raises UsageError if no agent has announced a
    file of the host."""
    files = with_topic(site.evidence.files_of(question.host), question.topics)
    if not files:
        raise UsageError(
            f"No agent of {question.host} has announced a file"
            f"{' of these topics' if question.topics else ''}, as far as the audit topics reach."
        )
    found = Found()
    sources = dict.fromkeys(each.source for each in files)
    for source in sources:
        _SourceSearch(site, question, source, [x for x in files if x.source == source], found).run()
    found.stories.sort(key=_time, reverse=True)
    del found.stories[question.limit :]
    return found


class _SourceSearch:
    """The search for lines of one source topic: in the host's log files, in the topic's log in one
    cluster, and in the rows. The search then looks in the other clusters for the lines that it has
    found."""

    def __init__(
        self, site: Site, question: FindQuestion, source: Source, files: Sequence[AnnouncedFile],
        found: Found,
    ) -> None:  # fmt: skip
        self._site, self._question, self._source, self._found = site, question, source, found
        self._files = {(each.agent, each.file): each for each in files}
        self._agents = {each.agent for each in files}
        self._lines = _Newest(question.limit)
        self._topics = site.loaded(source)
        self._clusters = site.clusters_of(source)
        self._begins = 0

    def run(self) -> None:
        """Searches for lines. Then adds their number and the stories of the newest lines to the
        `Found` of the search. A story says which tiers have a line and, if a tier lacks it,
        why."""
        host_lines = list(self._host_lines())
        if self._clusters:
            self._search_log(self._clusters[0], host_lines)
        else:
            self._take_host_lines(host_lines, {})
        self._search_rows()
        self._found.count += self._lines.count
        self._found.stories += [self._story(each) for each in self._lines.kept.values()]

    # These methods search in the host's log files.

    def _host_lines(self) -> Iterator[_HostLine]:
        """For each file of the host that is on this machine, yields the newest lines that contain
        the text. Skips files that nobody has written since `since_ms`.
        """
        text, limit = self._question.text.encode(), self._question.limit
        for path, ids in self._paths().items():
            try:
                with open(path, "rb") as file:
                    if os.fstat(file.fileno()).st_mtime * 1000 < self._question.since_ms:
                        continue
                    for first, line in host_files.lines_with(file, text, limit):
                        points = tuple(Point(*key, first) for key, begin in ids if begin <= first)
                        if points:
                            yield _HostLine(points, line)
            except OSError as error:
                self._found.notes.append(f"{path} cannot be read here: {error.strerror}")

    def _paths(self) -> dict[str, list[tuple[tuple[int, int], int]]]:
        """Returns the files to search on this machine. Each key is a path. Its value lists the file
        ids that this path may have, each as ((agent, file id), position at which the id begins),
        the highest position first.
        """
        paths: dict[str, list[tuple[tuple[int, int], int]]] = {}
        for path in self._question.paths:
            ids = [(key, 0) for key, each in self._files.items() if each.path == path]
            if ids:
                paths[path] = ids[: trace.CANDIDATES_MAX]
        for key in self._files:
            file = self._site.file_here(*key)
            if file is not None and not file.path.endswith(host_files.PACKED):
                opened = file.opened()
                if opened is not None:
                    opened.close()
                    paths.setdefault(file.path, []).append((key, file.begin))
        return {path: sorted(ids, key=lambda x: -x[1]) for path, ids in paths.items()}

    def _take_host_lines(
        self, host_lines: Iterable[_HostLine], matched: Mapping[Point, Point]
    ) -> None:
        """Adds the lines that were found in the host's files. If the record of a line was found in
        a log, `_lines` has the line already, and only gets the line's text. matched: each key is a
        point (a byte of a file) for which a record was found; the value is the point of the
        record's first byte.
        """
        for line in host_lines:
            known = next((matched[x] for x in line.points if x in matched), None)
            if known is None:
                point = line.points[0]
                self._lines.add(_Line(point, self._question.until_ms, text=line.text))
            elif known in self._lines.kept:
                self._lines.kept[known].text = line.text

    # These methods search in the topic's log.

    def _search_log(self, cluster: SiteCluster, host_lines: Sequence[_HostLine]) -> None:
        question = self._question
        later, earlier = spans(cluster.client, cluster.topics_of(self._source), question.since_ms)
        self._begins = max((first for first, _ in earlier.values()), default=0)
        points = [point for line in host_lines for point in line.points]
        search = LogSearch(
            self._agents, text=question.text.encode(), points=points,
            since_ms=question.since_ms, until_ms=question.until_ms,
        )  # fmt: skip
        matched: dict[Point, Point] = {}
        by_file = _by_file(points)
        outside = set[Point]()
        for record in searched(cluster, later, search):
            if record.origin is None:
                continue
            first = Point(record.origin.agent, record.origin.file, record.origin.first)
            near = {x for x in by_file.get(first[:2], ()) if is_at(record.origin, x)}
            if question.since_ms <= record.time_ms < question.until_ms:
                self._lines.add(_Line(first, record.time_ms, record))
                matched |= dict.fromkeys(near, first)
            else:
                outside |= near
        self._found.seen += search.seen
        self._found.skipped += search.skipped
        unmatched = set(points) - matched.keys() - outside
        outside |= self._older(cluster, earlier, search, unmatched)
        shown = (x for x in host_lines if not outside.intersection(x.points))
        self._take_host_lines(shown, matched)

    def _older(
        self, cluster: SiteCluster, earlier: Ranges, search: LogSearch, unmatched: set[Point]
    ) -> set[Point]:
        """Returns those points (bytes of log files) in `unmatched` that belong to lines from before
        the time span. The agent sends the records of a file in the order of its bytes. So if a
        point lies before the file's first record with an event time in the span, the point's line
        is from before the span. If the file has no record in the span, this function looks for the
        point's record in `earlier`: the offsets before each partition's first record in the span.
        """
        begun = search.begun
        old = {x for x in unmatched if x.byte < begun.get((x.agent, x.file), 0)}
        unclear = {x for x in unmatched if (x.agent, x.file) not in begun}
        if unclear:
            again = LogSearch({x.agent for x in unclear}, points=unclear)
            for record in searched(cluster, earlier, again):
                old |= {x for x in unclear if record.origin and is_at(record.origin, x)}
        return old

    # These methods search in the rows.

    def _search_rows(self) -> None:
        question = self._question
        span = hours_of(question.since_ms, question.until_ms)
        wanted = RowQuestion(
            frozenset(self._agents), question.text, tuple(self._lines.kept),
            since_ms=question.since_ms, until_ms=question.until_ms,
        )  # fmt: skip
        bare = _by_file(x.point for x in self._lines.kept.values() if x.record is None)
        for topic in self._topics:
            for row in topic.search(wanted, span):
                self._take_row(topic, row, bare.get(row.origin[:2], ()))

    def _take_row(self, topic: LoadedTopic, row: LineRow, bare: Iterable[Point]) -> None:
        """Adds a row to the line from which it was made; adds this line if it is new. bare: a point
        (a byte of a file) in each line whose record was not found. The row may come from such a
        line.
        """
        point = Point(row.origin.agent, row.origin.file, row.origin.first)
        point = next((x for x in bare if is_at(row.origin, x)), point)
        self._lines.add(_Line(point, row.time_ms or 0))
        line = self._lines.kept.get(point)
        if line is not None:
            line.rows.append(row)
            line.writer = line.writer or topic

    # These methods make the stories of the lines that were found.

    def _story(self, line: _Line) -> Story:
        site, source, point = self._site, self._source, line.point
        announced = self._files.get((point.agent, point.file))
        name = name_of(announced) if announced is not None else FileName(point.agent, point.file)
        facts = HostFacts(
            name, site.file_here(point.agent, point.file), point.byte, line.text,
            site.declared(point.agent, point.file), site.evidence.filtered(point.agent, source),
        )  # fmt: skip
        record = line.record or _as_record(line)
        fates = [host_fate(facts, point.byte)]
        logs = self._log_facts(line, record)
        fates += [log_fate(each, facts, point.byte, record) for each in logs]
        if site.output is not None:
            above = fates[-1] if logs else None
            fates.append(row_fate(self._row_facts(line, record), record, above))
        fates += [unseen_tier(x, HOW[x]) for x in site.tiers if x not in {f.tier for f in fates}]
        length = None if record is None or record.origin is None else record.origin.length
        text = line.text or next((x.text.encode() for x in line.rows if x.text), None)
        return Story(name, point.byte, length, tuple(fates), record, text)

    def _log_facts(self, line: _Line, record: LineRecord | None) -> list[LogFacts]:
        if record is not None:
            read_in = None if line.record is None else self._clusters[0].name
            return trace.log_facts(self._site, self._source, line.point, None, record, read_in)
        return [
            LogFacts(
                each.name, each.tier(self._source), None, self._begins,
                why="no record of the time span has this byte",
            )
            for each in self._clusters
        ]  # fmt: skip

    def _row_facts(self, line: _Line, record: LineRecord | None) -> RowFacts:
        assert self._site.output is not None
        committed = None
        if line.rows and line.writer is not None:
            committed = line.writer.created_ms(line.rows[0].load)
        unread = [each for topic in self._topics for each in topic.unread]
        loaded_to = trace.loaded_to(self._topics, record)
        return RowFacts(self._site.output.url, line.rows, committed, loaded_to, unread)


class _Newest:
    """Keeps the newest of the lines that are added. kept: at most `limit` lines. count: how many
    different lines were added, including those that were not kept."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known = set[Point]()
        self._order: list[tuple[int, Point]] = []
        self.kept: dict[Point, _Line] = {}

    @property
    def count(self) -> int:
        """How many different lines were added."""
        return len(self._known)

    def add(self, line: _Line) -> None:
        """Adds a line. Does nothing if the line was added before (because its record is repeated,
        or because another tier has it, too). Raises UsageError if there would be more than HITS_MAX
        lines."""
        if line.point in self._known:
            return
        if len(self._known) >= HITS_MAX:
            raise UsageError(
                f"More than {HITS_MAX:,} lines have this text; name a longer text, or a shorter"
                " time with --since and --until."
            )
        self._known.add(line.point)
        self.kept[line.point] = line
        heapq.heappush(self._order, (line.time_ms, line.point))
        if len(self._order) > self._limit:
            del self.kept[heapq.heappop(self._order)[1]]


def _by_file(points: Iterable[Point]) -> dict[tuple[int, int], list[Point]]:
    found: dict[tuple[int, int], list[Point]] = {}
    for point in points:
        found.setdefault((point.agent, point.file), []).append(point)
    return found


def _time(story: Story) -> float:
    """Returns the key by which stories are sorted: the event time of the line. A line without a
    record counts as newer than all others.
    """
    return inf if story.record is None else story.record.time_ms


def _as_record(line: _Line) -> LineRecord | None:
    """Makes a record from the line's first row, for a line of which no record was found. The record
    has the row's partition, offset, event time and origin, but no value. Returns None if the line
    has no row.
    """
    for row in line.rows:
        topic = "" if line.writer is None else line.writer.source.topic
        return LineRecord(topic, row.partition, row.offset, row.time_ms or 0, row.origin, None)
    return None


def words_of(found: Found, question: FindQuestion) -> Iterable[str]:
    """Sentences that say how many lines have the text, how much was searched, and what was not
    searched."""
    if found.count > len(found.stories):
        yield f"{found.count:,} lines have the text; the newest {len(found.stories)} are shown."
    yield (
        f"Looked at {found.seen:,} records of topics; skipped {found.skipped:,} of other hosts"
        " unread."
    )
    if not found.count:
        yield (
            f"No tier that was looked at has a line of {question.host} with this text. A text that"
            " a parser has divided into fields, or changed, is found only in the host's own file:"
            f" run this command on {question.host}."
        )
    yield from found.notes

"""Finds the committed files of a topic in the loader's output, and searches these files.

The list of files comes from the newest checkpoint (a file with the content of all manifests up to a
certain load) and from the manifests after this checkpoint. Every reader of the output makes the
list in this way (docs/loader.md). A recount also compares the checkpoint with older manifests. A
search does not do this, so it takes less time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from skidway.audit.output import Output
from skidway.audit.output.row_file import UNREADABLE
from skidway.audit.recount import checkpoints, manifests
from skidway.audit.recount.manifests import ManifestUnreadable
from skidway.audit.recount.named_files import COUNTED, NamedFile
from skidway.audit.tracing.lines import LineRow
from skidway.audit.tracing.row_search import Sought, rows_in
from skidway.errors import SkidwayError
from skidway.kafka.source import Source

ATTEMPTS: Final = 5
HOUR_MS: Final = 3_600_000
_HOUR = re.compile(r"/dt=(\d{4}-\d\d-\d\d)/hour=(\d\d)/")


@dataclass(slots=True)
class LoadedTopic:
    """A topic of an output. ends: by partition, the offset up to which the partition is loaded.
    files: the committed files of rows and rejects. unread: files that a search could not read, and
    why.
    """

    output: Output
    name: str
    source: Source
    ends: dict[int, int]
    files: list[NamedFile]
    unread: list[str] = field(default_factory=list)
    _created: dict[int, int | None] = field(default_factory=dict)

    def created_ms(self, load: int) -> int | None:
        """When a load was committed; None if its manifest is gone or cannot be read."""
        if load not in self._created:
            try:
                created = manifests.read(self.output, self.name, load).get("created")
            except SkidwayError:
                created = None
            self._created[load] = created if isinstance(created, int) else None
        return self._created[load]

    def search(self, sought: Sought, time_ms: int | None) -> list[LineRow]:
        """Returns the rows of a line. time_ms: the line's event time. Only those files are searched
        whose paths name the hour of this time, or name no hour.

        If `time_ms` is None (the event time is unknown), searches hour by hour, the newest hour
        first, and ends with the first hour that has a row of the line. All rows of a line have the
        same event time, so older hours have no more of them.
        """
        if time_ms is not None:
            return list(self._search(sought, time_ms - time_ms % HOUR_MS))
        first = next(self._search(sought), None)
        hour = None if first is None else _hour_ms(first.path)
        if first is None or hour is None:
            return [] if first is None else [first]
        return list(self._search(sought, hour))

    def _search(self, sought: Sought, hour: int | None = None) -> Iterator[LineRow]:
        """Yields the rows of a line, the newest hour first. hour: only files whose paths name the
        hour that begins at this time, or name no hour; None for all files."""
        chosen = [x for x in self.files if hour is None or _hour_ms(x.path) in (None, hour)]
        for named in sorted(chosen, key=lambda each: _hour_ms(each.path) or 0, reverse=True):
            yield from self._rows(named, sought)

    def _rows(self, named: NamedFile, sought: Sought) -> Iterator[LineRow]:
        for path in (named.path, named.staged):
            file = self.output.open(path)
            if file is None:
                continue
            with file:
                try:
                    yield from rows_in(file, named, sought)
                except UNREADABLE as error:
                    self.unread.append(f"{named.path} cannot be read: {error}")
            return
        self.unread.append(f"{named.path} is not there")


class OutputTopics:
    """The topics of an output. Keeps the names and the sources of the topics that it has read in
    memory, because a path may have had several file ids, and each is a search of its own."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._names: list[str] | None = None
        self._sources: dict[str, Source | None] = {}

    def loaded(self, source: Source) -> list[LoadedTopic]:
        """Returns the output's topics that were loaded from this source topic or from a mirrored
        copy of it. Raises ManifestUnreadable.
        """
        if self._names is None:
            self._names = self._output.names(manifests.STATE)
        # In an output, a topic has the name that it had in the cluster from which it was loaded. In
        # a mirror's cluster, this name begins with the source cluster's name.
        named = [x for x in self._names if x == source.topic or x.endswith(f".{source.topic}")]
        own = [(name, self._source_of(name)) for name in named]
        return [
            read_topic(self._output, name, head)
            for name, head in own
            if head is not None and (head.cluster, head.topic) == (source.cluster, source.topic)
        ]

    def _source_of(self, name: str) -> Source | None:
        if name not in self._sources:
            self._sources[name] = manifests.head(self._output, name).source
        return self._sources[name]


def read_topic(output: Output, name: str, source: Source) -> LoadedTopic:
    """Returns a topic of the output with the list of its files (see the module's docstring). Tries
    at most ATTEMPTS times, because a load may replace checkpoint and manifests meanwhile. If all
    attempts fail, raises ManifestUnreadable.
    """
    for left in reversed(range(ATTEMPTS)):
        try:
            return _read(output, name, source)
        except ManifestUnreadable:
            if not left:
                raise
    raise AssertionError("unreachable")


def _hour_ms(path: str) -> int | None:
    match = _HOUR.search(path)
    if match is None:
        return None
    begin = datetime.fromisoformat(f"{match[1]}T{match[2]}:00").replace(tzinfo=UTC)
    return int(begin.timestamp() * 1000)


def _read(output: Output, name: str, source: Source) -> LoadedTopic:
    known = manifests.loads(output, name)
    stored = [each for each in manifests.checkpoints(output, name) if each.load <= known[-1]]
    files: dict[str, NamedFile] = {}
    last = 0
    if stored:
        last = stored[-1].load
        files = {each.path: each for each in checkpoints.files_of(output, stored[-1])}
    manifest: Any = manifests.read(output, name, known[-1])
    for load in (each for each in known if each > last):
        manifest = manifests.read(output, name, load)
        for path in manifests.removed_by(manifest):
            files.pop(path, None)
        files |= {x.path: x for x in manifests.files_of(manifest) if x.kind in COUNTED}
    ends = {each["partition"]: each["end"] for each in manifest["partitions"]}
    return LoadedTopic(output, name, source, ends, list(files.values()))

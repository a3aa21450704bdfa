"""Decides where reading begins in files that exist when the agent first looks at their source. In a
look, the agent goes once through the directories of all sources, to find new, renamed and deleted
log files.

With `start_at: end`, the agent begins to read such a file at its last unfinished line, and skips
the bytes before this line. Each pattern of a source has its own first look. A pattern that is added
later has its first look after it is added. The state remembers each pattern that had its first
look, even if `start_at` is `beginning`. So if a file appears after the first look, neither a
restart nor a change of `start_at` skips its bytes.

Suppose that a pattern or the topic of a source changes. If an earlier pattern matches a path, the
agent has already looked at this path, and skips no bytes of files there. If it finds an unknown
file at the path, the file appeared after that look, for example by a rotation. So the agent reads
the whole file. The agent also reads an unknown rotated file of the path as a whole if the file
changed after the last look. Older rotated files were left unread before, so they are skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from skidway.agent.files.generations import generation
from skidway.agent.files.host import Handle
from skidway.agent.files.look import SLACK_MS
from skidway.agent.files.patterns import Pattern
from skidway.agent.files.sources import TailedSource
from skidway.agent.parsing.framing import READ_BYTES, Framer
from skidway.agent.values.found import Found
from skidway.agent.values.tracked import TrackedFile

Look = tuple[str, str]
"""A topic, and a pattern of one of its sources."""

Looked = tuple[str, str, tuple[str, ...]]
"""What the agent has looked at: a topic, a pattern of one of its sources, and the patterns of
`exclude` that the source had at every look at this pattern."""


class FirstLooks:
    """Owns the patterns at which the agent has looked."""

    def __init__(self) -> None:
        self._seen: dict[Look, Pattern] = {}
        self._new: dict[Look, Pattern] = {}
        self._since: dict[str, int] = {}
        self._now_ms = 0
        self._led: dict[str, set[str]] = {}

    def load(self, seen: Iterable[Looked], since: Mapping[str, int]) -> None:
        """Takes over the patterns at which an earlier process has looked. since: for each topic,
        the time (ms) that counts as the time of the topic's last look.
        """
        self._seen.update({(topic, text): Pattern(text, left) for topic, text, left in seen})
        self._since = dict(since)

    def begin_look(
        self, sources: Sequence[TailedSource], known: Iterable[TrackedFile], now_ms: int
    ) -> None:
        """If this look is the first with some pattern, notes under which paths the agent has found
        the known files. The new pattern may lead directly to a directory to which an earlier
        pattern led through a link. The noted paths then show that the agent has already looked
        there.
        """
        self._now_ms = now_ms
        self._led = {}
        if self._looks(sources).keys() <= self._seen.keys():
            return
        for tracked in known:
            above, name = os.path.split(tracked.meant)
            directory, now = os.path.split(tracked.location)
            if above != directory and name in (now, *_bases(now)):
                self._led.setdefault(directory, set()).add(above)

    def is_first(self, source: TailedSource, found: Found) -> bool:
        """Whether this is the agent's first look at the path: no pattern led to the path at an
        earlier look."""
        if all((source.topic, each.text) in self._seen for each in source.patterns):
            return False  # all patterns were looked at before
        looks = {(source.topic, each.text) for each in source.patterns if each.means(found.path)}
        if not looks or not self._seen.keys().isdisjoint(looks):
            return False
        return not any(
            pattern.means(path) or (self._is_new(topic, found) and _means_base(pattern, path))
            for path in self._paths(found)
            for (topic, _), pattern in self._seen.items()
        )

    def _paths(self, found: Found) -> Iterator[str]:
        """Yields the paths under which an earlier pattern may have led to the found file."""
        yield found.path
        yield found.real_path
        directory, name = os.path.split(found.real_path)
        for above in self._led.get(directory, ()):
            yield os.path.join(above, name)

    def _is_new(self, topic: str, found: Found) -> bool:
        """Whether a file changed since the last look at a topic's patterns. If nobody can know, the
        answer is yes, so that no line is lost.
        """
        return self._changed(topic, found) is not False

    def _changed(self, topic: str, found: Found) -> bool | None:
        """Whether a file changed since the last look at a topic's patterns; None if nobody can
        know, because there was no such look, or because the clock was set back since then.
        """
        since_ms = self._since.get(topic)
        if since_ms is None or since_ms > self._now_ms + SLACK_MS:
            return None
        return found.changed_ns >= (since_ms - SLACK_MS) * 1_000_000

    def is_missed(self, topic: str, found: Found) -> bool:
        """Whether a file has changed since the last look at a topic's patterns. If such a file is
        too old to be read, it is too old only because no agent looked for a long time, so the agent
        reads it. If nobody can know whether the file has changed, the answer is no, so that the
        agent does not read all old files.
        """
        return self._changed(topic, found) is True

    def end_look(self, sources: Sequence[TailedSource]) -> None:
        """Notes that the agent has looked at all patterns of these sources. A path also counts as
        looked at if its pattern excludes it now, but did not exclude it at an earlier look.
        """
        for look, pattern in self._looks(sources).items():
            before = self._seen.get(look)
            seen = pattern if before is None else _both(before, pattern)
            if seen != before:
                self._seen[look] = self._new[look] = seen
        self._since.update((source.topic, self._now_ms) for source in sources)

    def _looks(self, sources: Sequence[TailedSource]) -> dict[Look, Pattern]:
        looks: dict[Look, Pattern] = {}
        for source in sources:
            for pattern in source.patterns:
                look = source.topic, pattern.text
                looks[look] = _both(looks.get(look, pattern), pattern)
        return looks

    def take_new(self) -> list[Looked]:
        """Returns the patterns that had their first look since the last call. Also returns a
        pattern whose `exclude` has become shorter, once the agent has looked at the paths that were
        excluded before.
        """
        taken, self._new = self._new, {}
        return sorted((topic, text, each.exclude) for (topic, text), each in taken.items())


def _both(one: Pattern, other: Pattern) -> Pattern:
    """Merges two patterns that have the same text. The result excludes only the paths that both
    patterns exclude."""
    return replace(one, exclude=tuple(each for each in one.exclude if each in other.exclude))


def _means_base(pattern: Pattern, path: str) -> bool:
    """Whether the pattern matches the path that the file had before a rotation, judged by the
    file's name: for example `app.log`, if the file at `path` is `app.log.1`."""
    above, name = os.path.split(path)
    logs = (os.path.join(above, base) for base in _bases(name))
    return not pattern.excludes(path) and any(map(pattern.means, logs))


def _bases(name: str) -> tuple[str, ...]:
    said = generation(name)
    return () if said is None else said.bases


def last_record_begin(handle: Handle, size: int, framer: Framer) -> int:
    """If the file's last record may not be whole yet, returns the position at which this record
    begins; otherwise returns `size`. Looks only at the last READ_BYTES of the file. If the file is
    longer, and all of these bytes belong to one line, returns the position of the first of these
    bytes; the part of the line from there on is too long to become a record. Raises OSError.
    """
    unit = framer.lines.unit
    window = max(size - READ_BYTES, 0) // unit * unit
    data = handle.read(size - window, window)
    at = (framer.lines.end_inside(data) or 0) if window else 0
    return window + at + framer.whole_records_end(data[at:])

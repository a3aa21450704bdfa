"""Knows for each source since when the agent has had it, and whether a file has matched it since.

A source is its topic, `paths` and `exclude`: if one of them changes, it is another source. If the
state is lost, or was adopted, all sources begin anew, because nobody knows what the agent saw
before. An optional source without a file is not remembered: if it is optional no more, its file is
missed from then on, and not since the source was configured.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from skidway.agent.files.sources import TailedSource


class Match(NamedTuple):
    """Since when (ms) the agent has had a source, in which epoch of its state, and whether a file
    has matched the source since then."""

    since_ms: int
    epoch: int
    has_matched: bool


class Fileless(NamedTuple):
    """A source of which the last look found no file, although its files should be there. since_ms:
    since when no file has ever matched it; None if a file matched it before."""

    topic: str
    paths: tuple[str, ...]
    since_ms: int | None


class Matches:
    """Owns what is known about each source, and the sources of which this look found a file."""

    def __init__(self) -> None:
        self._epoch = 0
        self._known: dict[str, Match] = {}
        self._found: set[str] = set()
        self._changed: dict[str, Match | None] = {}
        self.fileless: Sequence[Fileless] = ()

    def load(self, known: Mapping[str, Match], epoch: int) -> None:
        """Takes over what an earlier process knew. epoch: the present epoch of the state."""
        self._epoch = epoch
        self._known = dict(known)

    def begin_look(self) -> None:
        """Forgets which sources had files at the last look."""
        self._found = set()

    def found(self, source: TailedSource) -> None:
        """Notes that a look has found a file of a source. (The look may have been at one path only;
        the file may be gone before the next look through all patterns.)"""
        key = key_of(source)
        self._found.add(key)
        match = self._known.get(key)
        if match is not None and match.epoch == self._epoch and not match.has_matched:
            self._known[key] = self._changed[key] = match._replace(has_matched=True)

    def end_look(
        self,
        sources: Sequence[TailedSource],
        known: Callable[[], Collection[int | None]],
        now_ms: int,
    ) -> None:
        """Finds the sources without files. known: returns the indexes of the sources of which the
        agent knows a file, so that they have matched a file even if the agent did not note it."""
        keys = [key_of(source) for source in sources]
        for gone in self._known.keys() - keys:
            self._forget(gone)
        needed = {key for source, key in zip(sources, keys, strict=True) if not source.optional}
        for index, key in enumerate(keys):
            match = self._known.get(key)
            if key not in needed and key not in self._found and not (match and match.has_matched):
                self._forget(key)
                continue
            if match is None:
                match = Match(now_ms, self._epoch, has_matched=index in known())
            if match.epoch != self._epoch:
                match = Match(now_ms, self._epoch, has_matched=False)
            if key in self._found:
                match = match._replace(has_matched=True)
            if match != self._known.get(key):
                self._known[key] = self._changed[key] = match
        without = (x for x in zip(sources, keys, strict=True) if x[1] not in self._found)
        self.fileless = tuple(self._fileless(*each) for each in without if not each[0].optional)

    def _forget(self, key: str) -> None:
        if self._known.pop(key, None) is not None:
            self._changed[key] = None

    def _fileless(self, source: TailedSource, key: str) -> Fileless:
        match = self._known[key]
        paths = tuple(each.text for each in source.patterns)
        return Fileless(source.topic, paths, None if match.has_matched else match.since_ms)

    def never_matched(self) -> dict[str, int]:
        """Returns, for each topic with a source that has never matched a file, since when (ms)."""
        found: dict[str, int] = {}
        for each in self.fileless:
            if each.since_ms is not None:
                found[each.topic] = min(found.get(each.topic, each.since_ms), each.since_ms)
        return found

    def take_changed(self) -> Iterable[tuple[str, Match | None]]:
        """Returns what has changed since the last call; None for sources that are gone."""
        taken, self._changed = self._changed, {}
        return taken.items()


def key_of(source: TailedSource) -> str:
    """Returns the name under which the state knows a source."""
    patterns = [(each.text, each.exclude) for each in source.patterns]
    text = json.dumps([source.topic, patterns]).encode()
    return f"{source.topic} {hashlib.sha256(text).hexdigest()[:16]}"

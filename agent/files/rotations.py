"""Generations that were rotated away before anybody looked, though no pattern means their names.

Two looks at a meant path, `app.log`, find two files. Between them others may have lain there, and
rotation has given them names such as `app.log.1` since. So where a look finds another file than
the last look did, or none, it goes through the names beside it. A generation that nobody knows is

    read        if its last change is no older than the last look: before that it did not exist
    left alone  if it is older (the history before the agent came), if a source excludes it, if it
                lay under the same name before, or if the path still leads to the same file: a copy
    declared    as a loss without an end if it is compressed and no known file's other shape

A rotation deletes its oldest generation first. So as long as the newest file of a path that is
known (its anchor: what the last look found there, or beside it) is still there under any name,
nothing younger is gone. Where it is gone although generations lie there, or where no anchor was
known and this look finds new generations, some may have been deleted unread: that is declared too,
because nobody can know it.

Names that change while they are read say nothing: then the look is repeated, and nothing is sealed.
After a start the last look is the last seal, or the topic's first start. What is listed: a
directory whose time of change is another than at the last look, or in which a meant path leads
elsewhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from agent.files.directories import Directories
from agent.files.host import FileKey, Found, Host
from agent.files.kin import Member, kin_of, means, topics_of
from agent.files.tracked import TailedSource

SLACK_MS: Final = 5_000
"""How much earlier than the look before it a generation's last change may seem to be."""

CLEAN_AFTER_MS: Final = 2_000
"""A directory that changed so lately may change again without another time of change."""

STILL_MS: Final = 50
"""A directory that changed so shortly before a look, or in it, may have been seen half renamed."""

RESTLESS_LOOKS: Final = 3
"""After so many looks a directory that always changes is taken as it is seen."""

EMPTY_WAIT_S: Final = 3_600.0
"""How long a rotated file without a byte is looked at for what its program may still write."""


class Unseen(NamedTuple):
    """Generations of a path that nobody read, or may not have read."""

    topic: str
    topic_id: str
    path: str
    reason: str


@dataclass(slots=True)
class Findings:
    """generations: each with its source; unreadable: (topic, directory, reason)."""

    generations: list[tuple[Found, int]] = field(default_factory=list)
    unseen: list[Unseen] = field(default_factory=list)
    unreadable: list[tuple[str, str, str]] = field(default_factory=list)


@dataclass(slots=True)
class _Place:
    """A directory as the last look left it. changed_ns None: it must be listed again.

    lay: what lay at the meant paths; anchors: of paths where nothing lay. restless: looks since,
    in which names came and went.
    """

    changed_ns: int | None = None
    looked_ms: int = -1
    lay: dict[str, Found] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    anchors: dict[str, Found] = field(default_factory=dict)
    restless: int = 0


@dataclass(frozen=True, slots=True)
class _Look:
    """This look into a directory. before: anchors, by path."""

    directory: str
    before: Mapping[str, Found]
    reborn: set[str]
    known_members: Mapping[str, Member]
    since_ms: Callable[[int], int]
    """By the index of a source."""


class Rotations:
    """Owns what the last look found at each meant path."""

    def __init__(
        self,
        host: Host,
        directories: Directories,
        is_known: Callable[[FileKey], bool],
        is_another: Callable[[Found, Sequence[str]], bool],
        changed_times: Callable[[str], set[int]],
    ) -> None:
        """changed_times: when the known files of a directory changed last, ns.

        is_another: whether what lies at a path is another file under the inode of a deleted one,
        and none of the files beside it (paths) is a copy of that one.
        """
        self._host = host
        self._directories = directories
        self._is_known = is_known
        self._is_another = is_another
        self._changed_times = changed_times
        self._places: dict[str, _Place] = {}
        self._looked_ms: int | None = None
        self._since: dict[str, int] = {}
        self._again: set[str] = set()  # reborn paths of restless directories
        self._empty: dict[FileKey, tuple[str, int, float]] = {}

    def load(
        self, lay: Iterable[Found], rotated: Iterable[tuple[str, Found]], since: Mapping[str, int]
    ) -> None:
        """What lay at the meant paths before the start, and since when, by topic (ms).

        rotated: known files that had lain at a meant path before; the newest last.
        """
        self._since = dict(since)
        for base, found in rotated:
            place = self._places.setdefault(os.path.dirname(found.path), _Place())
            place.anchors[base] = found
        for found in lay:
            place = self._places.setdefault(os.path.dirname(found.path), _Place())
            place.lay[found.path] = found

    def leads_elsewhere(self, path: str, found: Found | None) -> bool:
        """Whether a meant path leads to another file than at the last look, or to none."""
        place = self._places.get(os.path.dirname(path))
        before = None if place is None else place.lay.get(path)
        return before is not None and (found is None or found.key != before.key)

    def below(self, paths: Iterable[str]) -> dict[str, Found]:
        """What lay at or below these paths, of which nobody knows what lies there now."""
        above = tuple(path.rstrip("/") + "/" for path in paths)
        return {
            path: found
            for place in self._places.values()
            for path, found in place.lay.items()
            if (path + "/").startswith(above)
        }

    def look(
        self,
        lay: Mapping[str, Found],
        reborn: set[str],
        sources: Sequence[TailedSource],
        now: float,
        now_ms: int,
    ) -> Findings:
        """Goes through what the patterns found (by path), directory by directory.

        reborn: paths at which another file lies under the same inode.
        """
        reborn, self._again = reborn | self._again, set()
        by_directory: dict[str, dict[str, Found]] = {each: {} for each in self._places}
        for path, found in lay.items():
            by_directory.setdefault(path.rpartition("/")[0] or "/", {})[path] = found
        for pattern in (pattern for source in sources for pattern in source.patterns):
            if not pattern.is_deep:
                by_directory.setdefault(pattern.root, {})
        findings = Findings()
        for directory, here in by_directory.items():
            try:
                self._look_into(directory, here, reborn, sources, findings, now, now_ms)
            except (FileNotFoundError, NotADirectoryError):
                self._places.pop(directory, None)
            except OSError as error:
                self._name(directory, here, sources, findings, error)
        self._look_at_empty(findings, now)
        self._looked_ms = now_ms
        return findings

    def _name(
        self,
        directory: str,
        here: Mapping[str, Found],
        sources: Sequence[TailedSource],
        findings: Findings,
        error: OSError,
    ) -> None:
        """A directory that cannot be listed holds back those of whom something has changed."""
        place = self._places.setdefault(directory, _Place(lay=dict(here)))
        for path in _moved(place.lay, here):
            for source in sources:
                if means(source, path):
                    reason = f"cannot be listed for rotated files: {error.strerror or error}"
                    findings.unreadable.append((source.topic, directory, reason))

    def _look_into(
        self,
        directory: str,
        here: dict[str, Found],
        reborn: set[str],
        sources: Sequence[TailedSource],
        findings: Findings,
        now: float,
        now_ms: int,
    ) -> None:
        place = self._places.get(directory)
        lay = {} if place is None else place.lay
        elsewhere = _moved(lay, here) | reborn.intersection(here)
        changed_ns = self._host.changed(directory)
        if place is not None and place.changed_ns == changed_ns and not elsewhere:
            place.lay, place.looked_ms = here, now_ms
            return
        members = self._members(directory, here, place, sources)
        is_restless = False
        topics = topics_of(members, [path for path in elsewhere if path in lay], sources)
        if topics and self._is_restless(directory, place, changed_ns, now_ms):
            reason = "files are being renamed in it"
            findings.unreadable += [(topic, directory, reason) for topic in sorted(topics)]
            is_restless = True
        looked_ms = -1 if place is None else place.looked_ms

        def since_ms(index: int) -> int:
            if looked_ms >= 0:
                return min(looked_ms, now_ms) - SLACK_MS
            first = self._since.get(sources[index].topic, now_ms)
            return min(first if self._looked_ms is None else self._looked_ms, now_ms) - SLACK_MS

        known = {} if place is None else place.members
        before = {} if place is None else {**place.anchors, **place.lay}
        anchors = {path: found for path, found in before.items() if path not in here}
        look = _Look(directory, before, reborn, known, since_ms)
        said = Findings()
        unjudged = self._judge_all(look, members, here, elsewhere, anchors, sources, said, now)
        findings.generations += said.generations
        if is_restless:
            self._again |= reborn.intersection(here)
            return  # what was read is half of the truth
        findings.unseen += said.unseen
        inodes = {inode for _, inode in self._directories.names(directory)}
        anchors = {path: each for path, each in anchors.items() if each.key.inode in inodes}
        if place is not None and place.restless:
            members = {name: each for name, each in members.items() if name not in unjudged}
        is_clean = changed_ns < (now_ms - CLEAN_AFTER_MS) * 1_000_000
        self._places[directory] = _Place(
            changed_ns if is_clean else None, now_ms, here, members, anchors
        )

    def _judge_all(
        self,
        look: _Look,
        members: Mapping[str, Member],
        here: Mapping[str, Found],
        elsewhere: set[str],
        anchors: dict[str, Found],
        sources: Sequence[TailedSource],
        findings: Findings,
        now: float,
    ) -> set[str]:
        """Every path with generations beside it; gives the new names at which nobody looked."""
        unjudged: set[str] = set()
        for base, names in _by_base(members).items():
            if base in here and base not in elsewhere:
                unjudged |= names.keys() - look.known_members.keys()
                plain = [name for name, member in names.items() if member.plain is None]
                beside = [os.path.join(look.directory, name) for name in plain]
                if not self._is_another(here[base], beside):
                    continue
                look.reborn.add(base)
            newest = self._judge(look, base, names, sources, findings, now)
            if newest is not None and base not in here:
                anchors[base] = newest
        return unjudged

    def _is_restless(
        self,
        directory: str,
        place: _Place | None,
        changed_ns: int,
        now_ms: int,
    ) -> bool:
        """Whether names were changing while they were read: the next look will know better.

        What the patterns found and what the directory said are then of different moments. What the
        last look left stays as it is, so nothing is passed over.
        """
        if place is None:
            return False
        is_still = changed_ns < (now_ms - STILL_MS) * 1_000_000
        if is_still and changed_ns == self._host.changed(directory):
            return False
        place.restless += 1
        return place.restless <= RESTLESS_LOOKS

    def _members(
        self,
        directory: str,
        here: Mapping[str, Found],
        place: _Place | None,
        sources: Sequence[TailedSource],
    ) -> dict[str, Member]:
        known = {} if place is None else place.members
        members = {}
        for name, inode in self._directories.names(directory):
            before = known.get(name)
            if before is not None:
                members[name] = before._replace(inode=inode)
                continue
            path = os.path.join(directory, name)
            if path in here:
                continue
            kin = kin_of(path, sources)
            if kin is not None:
                members[name] = kin._replace(inode=inode)
        return members

    def _judge(
        self,
        look: _Look,
        base: str,
        names: Mapping[str, Member],
        sources: Sequence[TailedSource],
        findings: Findings,
        now: float,
    ) -> Found | None:
        """Another file lies at a meant path, or none: what became of those that lay there?

        Gives the newest of them that is read from now on.
        """
        index = next(iter(names.values())).source
        topic, topic_id = sources[index].topic, sources[index].topic_id
        since_ns = look.since_ms(index) * 1_000_000
        fresh: list[Found] = []
        for name, member in names.items():
            found = self._host.look(os.path.join(look.directory, name))
            if found is None or found.changed_ns < since_ns:
                continue
            same = look.known_members.get(name)
            if same is not None and same.inode == member.inode:
                continue
            if member.plain is None:
                if not self._is_known(found.key):
                    fresh.append(found)
                findings.generations.append((found, index))
                if not found.size:
                    self._empty[found.key] = (found.path, index, now + EMPTY_WAIT_S)
            elif not self._is_other_shape(look, member.plain, found):
                reason = "was compressed before it was read"
                findings.unseen.append(Unseen(topic, topic_id, found.path, reason))
        before = look.before.get(base)
        if before is None:
            is_broken = bool(fresh)
        else:
            is_broken = base in look.reborn or not self._is_there(look, before, names)
        if is_broken:
            reason = "rotated more often than it was looked at: some may be deleted unread"
            findings.unseen.append(Unseen(topic, topic_id, base, reason))
        return max(fresh, key=lambda found: found.changed_ns, default=None)

    def _is_there(self, look: _Look, before: Found, names: Mapping[str, Member]) -> bool:
        """Whether the file that the last look found is still in its directory, in any shape."""
        if any(inode == before.key.inode for _, inode in self._directories.names(look.directory)):
            return True
        times = {before.changed_ns, *self._changed_times(look.directory)}
        for name, member in names.items():
            if member.plain is not None:
                found = self._host.look(os.path.join(look.directory, name))
                if found is not None and _is_time_of(found.changed_ns, times):
                    return True
        return False

    def _is_other_shape(self, look: _Look, plain: str, found: Found) -> bool:
        """Whether a compressed file is what a known one becomes, or became: it keeps its time."""
        if any(name == plain for name, _ in self._directories.names(look.directory)):
            return True  # being compressed right now; the other one is read
        times = {each.changed_ns for each in look.before.values()}
        return _is_time_of(found.changed_ns, times | self._changed_times(look.directory))

    def _look_at_empty(self, findings: Findings, now: float) -> None:
        """Their programs may still have them open."""
        for key, (path, index, until) in list(self._empty.items()):
            found = self._host.look(path)
            if found is None or found.key != key:
                moved = self._directories.find(os.path.dirname(path), key)
                found = None if moved is None else self._host.look(moved)
            if found is None or found.key != key or now >= until:
                del self._empty[key]
            elif found.size:
                del self._empty[key]
                findings.generations.append((found, index))


def _moved(before: Mapping[str, Found], here: Mapping[str, Found]) -> set[str]:
    """Paths that lead to another file now, or only now, or no more."""
    paths = {path for path, found in before.items() if path not in here}
    for path, found in here.items():
        old = before.get(path)
        if old is None or old.key != found.key:
            paths.add(path)
    return paths


def _by_base(members: Mapping[str, Member]) -> dict[str, dict[str, Member]]:
    groups: dict[str, dict[str, Member]] = {}
    for name, member in members.items():
        groups.setdefault(member.base, {})[name] = member
    return groups


def _is_time_of(changed_ns: int, times: Iterable[int]) -> bool:
    """Whether it is one of the times, as exact as programs copy them: ns, us or s."""
    units = [unit for unit in (1, 1_000, 1_000_000_000) if changed_ns % unit == 0]
    return any(changed_ns == each - each % unit for each in times for unit in units)

"""Generations that were rotated away before anybody looked, though no pattern means their names.

Two looks at a meant path, `app.log`, find two files. Between them others may have lain there, and
rotation has given them names such as `app.log.1` since. So where a look finds another file than
the last look did, or none, it goes through the names in that directory; where a link leads to it,
in the directory that the link leads to. A generation that nobody knows is

    read        if it was made and changed no earlier than the last look: before that it did not
                exist, or was the file that the last look found; and before what lies there now
    left alone  if it is older (the history before the agent came), if a source excludes it, if it
                lay under the same name before, if it is a copy of what was read (tracking), or if
                the path still leads to the same file
    declared    as a loss without an end if it is compressed, no known file's other shape, and
                cannot be decompressed

A rotation deletes its oldest generation first. So as long as the newest file of a path that is
known (its anchor: what the last look found there, or beside it) is still there under any name,
nothing younger is gone. Where it is gone although generations lie there, or where no anchor was
known and this look finds new generations, some may have been deleted unread: that is declared too,
because nobody can know it.

Where a known file of the path lies under a name that rotation is not known to give, or in another
directory (strays), what was made since the last look is read if its name holds the path's, or is
like that one but for digits. Beside an anchor of such a name anything else that was made since may
be a generation too: that is declared.

Names that change while they are read say nothing (stillness). After a start the last look is the
last seal, or the topic's first start. What is listed: a directory whose time of change is another
than at the last look, or in which a meant path leads elsewhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from skidway.agent.files.decompressed import is_decompressed
from skidway.agent.files.directories import Directories
from skidway.agent.files.host import Host
from skidway.agent.files.links import Links
from skidway.agent.files.same_file import Answer, is_time_of
from skidway.agent.files.sources import (
    Member,
    TailedSource,
    Views,
    index_of,
    is_meant,
    means,
    topics_of,
)
from skidway.agent.files.stillness import STILL_MS, Restless, Seen, look_again
from skidway.agent.files.strays import is_stray, shares_name
from skidway.agent.values.found import FileKey, Found
from skidway.agent.values.set_apart import Unseen

SLACK_MS: Final = 5_000
"""How much earlier than the look before it a generation's last change may seem to be."""

CLEAN_AFTER_MS: Final = 2_000
"""A directory that changed so lately may change again without another time of change."""

EMPTY_WAIT_S: Final = 3_600.0
"""How long a rotated file without a byte is looked at for what its program may still write."""

REPEATED: Final = "rotated more often than it was looked at: some may be deleted unread"
COMPRESSED: Final = "was compressed before it was read, in a way that cannot be read"
REPOINTED: Final = "the link leads elsewhere: what it led to in between may be unread"
AGED: Final = "is younger than its time of change: it may be a generation that nobody read"
SET_BACK: Final = "the clock was set back while nobody looked: rotated files may be unread"
STRANGE: Final = "rotated to a name that is not known as one of rotation: others may be unread"


_NUMBERED: Final = re.compile(r"(?P<stem>.+)\.(?P<number>\d{1,4})", re.DOTALL)


@dataclass(slots=True)
class Findings:
    """generations: each with its source and the path it was rotated from; unreadable, passing:
    (topic, directory, reason), the latter of what will be known at a later look."""

    generations: list[tuple[Found, int, str]] = field(default_factory=list)
    unseen: list[Unseen] = field(default_factory=list)
    unreadable: list[tuple[str, str, str]] = field(default_factory=list)
    passing: list[tuple[str, str, str]] = field(default_factory=list)


class Known(Protocol):
    """What the tracker knows of files."""

    def knows(self, found: Found) -> bool:
        """Whether it is a known file that was not deleted."""
        ...

    def is_another(self, found: Found, beside: Sequence[str]) -> bool:
        """Whether what lies at a path is another file under the inode of a deleted one, and none of
        the files beside it (paths) is a copy of that one."""
        ...

    def changed_times(self, directory: str) -> set[int]:
        """When the known files of a directory changed last, ns."""
        ...

    def is_copy(self, found: Found, base: str) -> bool:
        """Whether it is a copy of a file that is read where it lies, or was read."""
        ...

    def is_rest(self, found: Found, base: str) -> bool:
        """Whether it is a copy that has more of the bytes that were truncated at a path."""
        ...

    def where(self, key: FileKey, born_ns: int | None) -> str:
        """Where a known file lies, though that may be another directory; "" if nobody knows."""
        ...

    def rotated_from(self, base: str) -> list[str]:
        """Where the newest known files lie that were written at a path, and lie there no more."""
        ...

    def first_born(self, base: str) -> int | None:
        """When the first of the known files was born that were written at a path and lie anywhere;
        None if there is none, or nobody knows."""
        ...


class Adopts(Protocol):
    """What finds out which known file a compressed one holds."""

    def __call__(self, found: Found, index: int, base: str, may_begin: bool) -> Answer:
        """SAME: a known file lies there from now on. UNKNOWN: nobody knows yet; that is found out
        at a later look. index: of the source; may_begin: as of `Sighting`."""
        ...


@dataclass(slots=True)
class Place:
    """A directory as the last look left it. changed_ns None: it must be listed again.

    lay: what lay at the meant paths; anchors: of paths where nothing lay. seen: what a
    rotation would change; restless: the looks since, in which names came and went. unknown: inodes
    of compressed files of which nobody could say yet whose they are.
    """

    changed_ns: int | None = None
    looked_ms: int = -1
    looked_s: float = 0.0
    lay: dict[str, Found] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    anchors: dict[str, Found] = field(default_factory=dict)
    seen: Seen = frozenset()
    restless: Restless | None = None
    unknown: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Moment:
    """This look, through all directories.

    reborn: paths at which another file lies under the same inode; truncated: at which the same file
    has lost its bytes, so that copies of them may lie beside it.
    """

    sources: Sequence[TailedSource]
    reborn: set[str]
    truncated: set[str]
    now: float
    now_ms: int
    findings: Findings = field(default_factory=Findings)


@dataclass(slots=True)
class _Look:
    """This look into one directory. before: what lay at each path, or its anchor; names_here: of
    what the patterns found; others: by directory, what nobody knows; unresolved: paths of which
    known files may lie in compressed ones that nobody could look into yet."""

    directory: str
    place: Place
    moment: Moment
    here: dict[str, Found]
    elsewhere: set[str]
    views: Views
    before: dict[str, Found] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    names_here: set[str] = field(default_factory=set)
    others: dict[str, list[Found]] = field(default_factory=dict)
    unresolved: set[str] = field(default_factory=set)
    unknown: set[int] = field(default_factory=set)

    def seen(self) -> Seen:
        """What a rotation would change there; the newest file may have a deleted one's inode."""
        names = ((name, member.inode) for name, member in self.members.items())
        here = ((path, (found.key, found.born_ns)) for path, found in self.here.items())
        return frozenset([*names, *here])


class Rotations:
    """Owns what the last look found at each meant path."""

    def __init__(self, host: Host, directories: Directories, known: Known, adopt: Adopts) -> None:
        self._host = host
        self._adopt = adopt
        self._directories = directories
        self._known = known
        self._places: dict[str, Place] = {}
        self._looked_ms: int | None = None
        self._looked_s = 0.0
        self._since: dict[str, int] = {}
        self._again: set[str] = set()  # reborn paths of restless directories
        self._links = Links(directories)
        self._waiting: dict[FileKey, tuple[Found, int, str, float]] = {}
        self._lay: Mapping[str, Found] = {}

    def load(
        self,
        lay: Iterable[Found],
        rotated: Iterable[tuple[str, str, Found]],
        since: Mapping[str, int],
    ) -> None:
        """What lay at the meant paths before the start, and since when, by topic (ms).

        rotated: known files that had lain at a meant path before, with that path and the directory
        where it lies; the newest last.
        """
        self._since = dict(since)
        led = {}
        for base, directory, found in rotated:
            self._place(directory).anchors[base] = found
            led[base] = found.real_path
        self._lay = {found.path: found for found in lay}
        for found in self._lay.values():
            self._place(os.path.dirname(found.real_path)).lay[found.path] = found
            led[found.path] = found.real_path
        self._links.load(led.items())

    def leads_elsewhere(self, path: str, found: Found | None) -> bool:
        """Whether a meant path leads to another file than at the last look, or to none."""
        before = self._lay.get(path)
        return before is not None and (found is None or found.key != before.key)

    def _below(self, above: tuple[str, ...]) -> dict[str, Found]:
        return {
            path: found
            for place in self._places.values()
            for path, found in place.lay.items()
            if (path + "/").startswith(above)
        }

    def wait_for(self, found: Found, index: int, base: str, now: float) -> None:
        """A generation that has no byte yet: it is looked at again."""
        self._waiting.setdefault(found.key, (found, index, base, now + EMPTY_WAIT_S))

    def look(self, lay: Mapping[str, Found], hidden: set[str], moment: Moment) -> Findings:
        """Goes through what the patterns found (by path), directory by directory.

        hidden: of what lies at or below these paths nobody knows anything now. It stays as the last
        look left it, and so does everything in the directory of a file that cannot be looked at.
        """
        moment = replace(moment, reborn=moment.reborn | self._again)
        self._again = set()
        above = tuple(path.rstrip("/") + "/" for path in hidden)
        blind = {path: found for path, found in self._below(above).items() if path not in lay}
        lay = {**blind, **lay}
        views, by_directory = self._by_directory(lay, moment.sources)
        for directory, here in by_directory.items():
            if (directory + "/").startswith(above) or not here.keys().isdisjoint(blind):
                continue
            try:
                self._look_into(directory, here, views[directory], moment)
            except (FileNotFoundError, NotADirectoryError):
                self._places.pop(directory, None)
            except OSError as error:
                self._name(directory, here, moment, error)
        self._look_at_links(lay, moment)
        self._look_at_waiting(moment)
        self._lay, self._looked_ms, self._looked_s = lay, moment.now_ms, moment.now
        return moment.findings

    def _place(self, directory: str) -> Place:
        return self._places.setdefault(directory, Place())

    def _by_directory(
        self, lay: Mapping[str, Found], sources: Sequence[TailedSource]
    ) -> tuple[dict[str, Views], dict[str, dict[str, Found]]]:
        """How patterns lead into each directory, and what they found there, by path."""
        by_directory: dict[str, dict[str, Found]] = {each: {} for each in self._places}
        views: dict[str, Views] = {each: Views() for each in self._places}
        for found in lay.values():
            directory = found.real_path.rpartition("/")[0] or "/"
            if directory not in by_directory:
                by_directory[directory], views[directory] = {}, Views()
            by_directory[directory][found.path] = found
            self._add_view(views[directory], directory, found)
        for directory, before in self._led_before(lay, sources):
            if directory in views:
                self._add_view(views[directory], directory, before)
        for path, real_path in self._links.lost(lay):
            if is_meant(path, sources):
                directory = os.path.dirname(real_path)
                by_directory.setdefault(directory, {})
                views.setdefault(directory, Views()).add_link(path, real_path)
        for root in {each.root for x in sources for each in x.patterns if not each.is_deep}:
            directory = self._directories.resolve(root)
            by_directory.setdefault(directory, {})
            views.setdefault(directory, Views()).add_directory(root)
        return views, by_directory

    def _led_before(
        self, lay: Mapping[str, Found], sources: Sequence[TailedSource]
    ) -> Iterator[tuple[str, Found]]:
        """What lay at meant paths that lead to another place now, or nowhere, by directory."""
        for path, before in self._lay.items():
            found = lay.get(path)
            if found is not None and found.real_path != before.real_path:
                yield os.path.dirname(before.real_path), before
        for directory, place in self._places.items():
            for path, before in {**place.anchors, **place.lay}.items():
                if path not in lay and is_meant(path, sources):
                    yield directory, before._replace(path=path)

    def _add_view(self, views: Views, directory: str, found: Found) -> None:
        above, _, name = found.path.rpartition("/")
        if found.path == found.real_path and above in views.directories:
            return
        above = above or "/"
        is_same_name = found.real_path.endswith("/" + name)
        if is_same_name and self._directories.resolve(above) == directory:
            views.add_directory(above)
        else:
            views.add_link(found.path, found.real_path)

    def _name(
        self, directory: str, here: Mapping[str, Found], moment: Moment, error: OSError
    ) -> None:
        """A directory that cannot be listed holds back those of whom something has changed."""
        place = self._places.get(directory)
        if place is None:
            looked_ms = -1 if self._looked_ms is None else self._looked_ms
            place = Place(looked_ms=looked_ms, looked_s=self._looked_s, lay=dict(here))
            self._places[directory] = place
        for path in _moved(place.lay, here):
            for source in moment.sources:
                if means(source, path):
                    reason = f"cannot be listed for rotated files: {error.strerror or error}"
                    moment.findings.unreadable.append((source.topic, directory, reason))

    def _look_into(
        self, directory: str, here: dict[str, Found], views: Views, moment: Moment
    ) -> None:
        known = self._places.get(directory)
        place = known or Place()
        elsewhere = _moved(place.lay, here) | (moment.reborn | moment.truncated).intersection(here)
        changed_ns = self._host.changed(directory)
        if known is not None and place.changed_ns == changed_ns and not elsewhere:
            place.lay, place.looked_ms, place.looked_s = here, moment.now_ms, moment.now
            return
        look = _Look(directory, place, moment, here, elsewhere, views)
        look.before = {**place.anchors, **place.lay}
        look.members = self._members(look)
        is_restless = known is not None and self._is_restless(look, changed_ns)
        for base, names in _by_base(look.members).items():
            self._look_at_compressed(look, base, names)
        anchors = {
            path: each
            for path, each in look.before.items()
            if path not in here and self._may_lie_somewhere(look, path, each)
        }
        said = len(moment.findings.unseen)
        unjudged = self._judge_all(look, anchors)
        if is_restless:
            self._again |= moment.reborn.intersection(here)
            del moment.findings.unseen[said:]
            return  # what was read is half of the truth
        members = look.members
        if place.restless is not None:
            members = {name: each for name, each in members.items() if name not in unjudged}
        is_clean = changed_ns < (moment.now_ms - CLEAN_AFTER_MS) * 1_000_000
        self._places[directory] = Place(
            changed_ns if is_clean else None,
            moment.now_ms,
            moment.now,
            here,
            members,
            anchors,
            look.seen(),
            unknown=frozenset(look.unknown),
        )

    def _may_lie_somewhere(self, look: _Look, path: str, before: Found) -> bool:
        """Whether what lay at a path lies under another name, or may have been compressed."""
        if path in look.unresolved or self._known.where(before.key, before.born_ns):
            return True
        return self._directories.name_of(look.directory, before.key.inode) is not None

    def _is_restless(self, look: _Look, changed_ns: int) -> bool:
        """Whether names were changing while they were read: the next look will know better.

        What the patterns found and what the directory said are then of different moments. What the
        last look left stays as it is, so nothing is passed over.
        """
        moment, place = look.moment, look.place
        left = [path for path in look.elsewhere if path in place.lay]
        topics = topics_of(look.members, left, moment.sources)
        if not topics:
            return False
        is_still = changed_ns < (moment.now_ms - STILL_MS) * 1_000_000
        if is_still and changed_ns == self._host.changed(look.directory):
            return False
        before = place.restless or Restless(moment.now, place.seen, place.looked_ms)
        again = look_again(before, look.seen(), moment.now, moment.now_ms)
        if again is None:
            return False
        place.restless = again
        reason = "files are being renamed in it"
        moment.findings.passing += [(topic, look.directory, reason) for topic in sorted(topics)]
        return True

    def _members(self, look: _Look) -> dict[str, Member]:
        known, sources = look.place.members, look.moment.sources
        look.names_here = {os.path.basename(each.real_path) for each in look.here.values()}
        members = {}
        for name, inode in self._directories.names(look.directory):
            if name in look.names_here:
                continue
            before = known.get(name)
            if before is not None:
                members[name] = before._replace(inode=inode)
            elif member := look.views.member(look.directory, name, inode, sources):
                members[name] = member
        return members

    # --- one path -----------------------------------------------------------------------------

    def _judge_all(self, look: _Look, anchors: dict[str, Found]) -> set[str]:
        """Every path with generations beside it; gives the new names at which nobody looked."""
        unjudged: set[str] = set()
        by_base = _by_base(look.members)
        for base in sorted(by_base.keys() | look.elsewhere | look.place.anchors.keys()):
            names = by_base.get(base, {})
            if not self._is_judged(look, base):
                unjudged |= names.keys() - look.place.members.keys()
                plain = [name for name, member in names.items() if member.plain is None]
                beside = [os.path.join(look.directory, name) for name in plain]
                if not self._known.is_another(look.here[base], beside):
                    continue
                look.moment.reborn.add(base)
            newest = self._judge(look, base, names)
            if newest is not None and base not in look.here:
                anchors[base] = newest
        return unjudged

    def _is_judged(self, look: _Look, base: str) -> bool:
        """Whether what lies at a path is not what lay there, or others may have waited before the
        start."""
        is_first = look.place.looked_ms < 0
        return is_first or base in look.elsewhere or base not in look.here

    def _judge(self, look: _Look, base: str, names: Mapping[str, Member]) -> Found | None:
        """Another file lies at a meant path, or none: what became of those that lay there?

        Gives the newest of them that is read from now on.
        """
        index = index_of(base, look.moment.sources)
        if index is None:
            return None
        fresh: list[Found] = []
        for name, member in names.items():
            found = self._host.look(os.path.join(look.directory, name))
            if found is None or self._lay_there(look, base, name, found):
                continue
            if self._is_left_alone(look, base, index, found):
                self._doubt_age(look, base, index, member, found)
                continue
            if not self._is_read(look, base, index, name, member.plain, found):
                continue
            if not self._known.knows(found):
                fresh.append(found)
            look.moment.findings.generations.append((found, index, base))
        if base not in look.moment.reborn | look.moment.truncated:
            fresh += self._strays(look, base, index)
        if self._is_broken(look, base, names, fresh):
            self._miss(look, index, base, REPEATED)
        return max(fresh, key=lambda found: found.changed_ns, default=None)

    def _look_at_compressed(self, look: _Look, base: str, names: Mapping[str, Member]) -> None:
        """Compressed generations that came since the last look: known files may be in them."""
        index = index_of(base, look.moment.sources)
        if index is None:
            return
        for name, member in names.items():
            if not is_decompressed(name) or not self._came_lately(look, name, member):
                continue
            found = self._host.look(os.path.join(look.directory, name))
            if found is None or self._known.knows(found):
                continue
            may_begin = self._is_judged(look, base) and not self._is_old(look, base, index, found)
            answer = self._adopt(found, index, base, may_begin)
            if answer is Answer.SAME:
                look.moment.findings.generations.append((found, index, base))
            elif answer is Answer.UNKNOWN:
                look.unresolved.add(base)
                look.unknown.add(member.inode)

    def _came_lately(self, look: _Look, name: str, member: Member) -> bool:
        """Whether it was not there at the last look, was being compressed, or nobody knew then
        whose it is."""
        if member.plain is None or self._is_being_compressed(look, member.plain):
            return False
        if member.inode in look.place.unknown:
            return True
        before = look.place.members.get(name)
        if look.place.looked_ms < 0 or before is None or before.inode != member.inode:
            return True
        return self._lay_plain(look, member.plain)

    def _is_read(
        self, look: _Look, base: str, index: int, name: str, plain: str | None, found: Found
    ) -> bool:
        """Whether it is a generation that is read."""
        if plain is None:
            return not self._is_younger(look, base, found)
        if self._is_being_compressed(look, plain) or base in look.unresolved:
            return False
        if is_decompressed(name):
            return True
        if not self._is_other_shape(look, found):
            self._miss(look, index, found.path, COMPRESSED)
        return False

    def _is_being_compressed(self, look: _Look, plain: str) -> bool:
        """Whether the plain file is still there: that one is read."""
        return any(name == plain for name, _ in self._directories.names(look.directory))

    def _is_broken(
        self, look: _Look, base: str, names: Mapping[str, Member], fresh: Sequence[Found]
    ) -> bool:
        """Whether younger files than the newest known one may be gone.

        A path at which no look has found anything may have been seen by an event.
        """
        before = look.before.get(base)
        if before is None:
            first_ns = self._known.first_born(base) if fresh else None
            births = [found.born_ns or 0 for found in fresh]
            return bool(fresh) and (first_ns is None or min(births) < first_ns)
        if base in look.moment.truncated or not names:
            return False
        if base in look.moment.reborn and before.born_ns is None:
            return True
        if base in look.unresolved:
            return False
        return not self._is_there(look, before, names) or self._has_hole(look, before, names)

    def _has_hole(self, look: _Look, before: Found, names: Mapping[str, Member]) -> bool:
        """Whether one of the younger generations has gone: they are numbered from the newest on."""
        name = self._name_of(look, before)
        said = None if name is None else _NUMBERED.fullmatch(name)
        if said is None:
            return False
        numbers = set()
        for other, member in names.items():
            found = _NUMBERED.fullmatch(other if member.plain is None else member.plain)
            if found is not None and found["stem"] == said["stem"]:
                numbers.add(int(found["number"]))
                if int(found["number"]) < int(said["number"]):
                    there = self._host.look(os.path.join(look.directory, other))
                    if there is None or not self._is_born_after(there, before):
                        return False  # by other rules
        younger = range(1, int(said["number"]))
        return bool(numbers.intersection(younger)) and not numbers.issuperset(younger)

    @staticmethod
    def _is_born_after(there: Found, before: Found) -> bool:
        births = there.born_ns, before.born_ns
        return births[0] is not None and births[1] is not None and births[0] > births[1]

    def _miss(self, look: _Look, index: int, path: str, reason: str) -> None:
        source = look.moment.sources[index]
        unseen = Unseen(source.topic, source.topic_id, path, reason)
        if unseen not in look.moment.findings.unseen:
            look.moment.findings.unseen.append(unseen)

    def _lay_there(self, look: _Look, base: str, name: str, found: Found) -> bool:
        """Whether it lay under the same name before; a truncation may be noticed later than the
        copy that was made before it."""
        if base in look.moment.truncated and self._known.is_rest(found, base):
            return False
        same = look.place.members.get(name)
        if same is None or same.inode != found.key.inode or self._is_made_since(look, found):
            return False
        return same.plain is None or not self._lay_plain(look, same.plain)

    def _lay_plain(self, look: _Look, plain: str) -> bool:
        """Whether the plain file lay there at the last look: it was being compressed."""
        lay = (os.path.basename(each.real_path) for each in look.place.lay.values())
        return plain in look.place.members or plain in lay

    def _is_made_since(self, look: _Look, found: Found) -> bool:
        """Whether the inode is younger than the last look: the kernel gives a deleted file's to the
        next one, and rotation may give that the same name."""
        place, moment = look.place, look.moment
        if found.born_ns is None or place.looked_ms < 0:
            return False
        elapsed_ms = (moment.now - place.looked_s) * 1000
        return found.born_ns > min(place.looked_ms, moment.now_ms - elapsed_ms) * 1_000_000

    def _is_left_alone(self, look: _Look, base: str, index: int, found: Found) -> bool:
        """Whether it is history, or a copy of what is read where it lies."""
        if base in look.moment.truncated and self._known.is_rest(found, base):
            return False
        return self._is_old(look, base, index, found) or self._known.is_copy(found, base)

    def _is_younger(self, look: _Look, base: str, found: Found) -> bool:
        """Whether it was made after what lies at the path: that was not rotated from there."""
        here = None if base in look.moment.truncated else look.here.get(base)
        if here is None or here.born_ns is None or found.born_ns is None:
            return False
        return found.born_ns > here.born_ns and not self._known.knows(found)

    def _is_old(self, look: _Look, base: str, index: int, found: Found) -> bool:
        """Whether it lay there before the last look, and was not at the path itself."""
        since_ns = self._since_ms(look, index) * 1_000_000
        if found.changed_ns < since_ns:
            return True
        before = look.before.get(base)
        is_before = before is not None and before.key == found.key
        return found.born_ns is not None and found.born_ns < since_ns and not is_before

    def _doubt_age(self, look: _Look, base: str, index: int, member: Member, found: Found) -> None:
        """Declares what was left alone for its age although nobody can know that: its time of
        change was set back, or the clock was while nobody looked."""
        born_ns, since_ms = found.born_ns, self._since_ms(look, index)
        is_aged = member.plain is None and born_ns is not None and born_ns >= since_ms * 1_000_000
        is_set_back = self._is_set_back(look, index)
        if not (is_aged or is_set_back) or self._known.knows(found):
            return
        if not self._known.is_copy(found, base):
            reason = SET_BACK if is_set_back else AGED
            self._miss(look, index, base if is_set_back else found.path, reason)

    def _is_set_back(self, look: _Look, index: int) -> bool:
        """Whether the clock is behind what it was before the start."""
        if look.place.looked_ms >= 0:
            return False
        first = self._since.get(look.moment.sources[index].topic, 0)
        return first > look.moment.now_ms + SLACK_MS

    def _since_ms(self, look: _Look, index: int) -> int:
        """Since when nobody has looked."""
        place, now_ms = look.place, look.moment.now_ms
        if place.looked_ms >= 0:
            elapsed_ms = int((look.moment.now - place.looked_s) * 1000)
            return min(place.looked_ms, now_ms - elapsed_ms) - SLACK_MS
        first = self._since.get(look.moment.sources[index].topic, now_ms)
        if self._looked_ms is not None and look.directory not in self._places:
            first = self._looked_ms  # nothing of it was known at the start
        return min(first, now_ms) - SLACK_MS

    def _strays(self, look: _Look, base: str, index: int) -> list[Found]:
        """What was rotated to names, or into a directory, that nobody would expect."""
        known = self._known.rotated_from(base)
        strange = [path for path in known if self._is_strange(look, path)]
        names = {os.path.basename(path) for path in strange}
        before = look.before.get(base)
        is_newest = before is not None and self._name_of(look, before) in names
        strays = []
        for directory in sorted({os.path.dirname(path) for path in strange}):
            for found in self._others(look, directory):
                if not self._is_stray(look, base, index, found):
                    continue
                if shares_name(os.path.basename(found.path), base, names):
                    strays.append(found)
                elif is_newest and directory == look.directory:
                    self._miss(look, index, base, STRANGE)
        look.moment.findings.generations += [(found, index, base) for found in strays]
        return strays

    def _is_strange(self, look: _Look, path: str) -> bool:
        """Whether rotation is not known to put a file there."""
        if is_meant(path, look.moment.sources):
            return False
        directory, name = os.path.split(path)
        return directory != look.directory or name not in look.members

    def _others(self, look: _Look, directory: str) -> list[Found]:
        """What nobody knows in a directory, and no name says whose it is, if it changed since the
        last look; looked at once a look."""
        known = look.others.get(directory)
        if known is not None:
            return known
        found = look.others[directory] = []
        try:
            names = self._directories.names(directory)
        except OSError:
            return found
        is_here = directory == look.directory
        sources = range(len(look.moment.sources))
        since_ns = min(self._since_ms(look, index) for index in sources) * 1_000_000
        for name, _ in names:
            if is_here and (name in look.members or name in look.names_here):
                continue
            path = os.path.join(directory, name)
            each = None if is_meant(path, look.moment.sources) else self._host.look(path)
            if each is None or each.changed_ns < since_ns:
                continue
            if not self._known.knows(each):
                found.append(each)
        return found

    def _is_stray(self, look: _Look, base: str, index: int, found: Found) -> bool:
        """Whether it may be a generation of the path: it was made since the last look."""
        if not is_stray(found.path, base, look.moment.sources[index]):
            return False
        is_left = self._is_left_alone(look, base, index, found)
        return not is_left and not self._is_younger(look, base, found)

    def _is_there(self, look: _Look, before: Found, names: Mapping[str, Member]) -> bool:
        """Whether the file that the last look found is still somewhere, in any shape."""
        if self._name_of(look, before) is not None or self._known.where(before.key, before.born_ns):
            return True
        path = self._host.find(look.directory, before.key)  # renamed since it was listed
        found = None if path is None else self._host.look(path)
        if found is None or found.key != before.key:
            if path is not None:
                return True  # and once more since
        elif found.born_ns == before.born_ns:
            return True
        times = {before.changed_ns, *self._known.changed_times(look.directory)}
        for name, member in names.items():
            if member.plain is not None:
                found = self._host.look(os.path.join(look.directory, name))
                if found is not None and is_time_of(found.changed_ns, times):
                    return True
        return False

    def _name_of(self, look: _Look, before: Found) -> str | None:
        """The name in the directory of what lay at a path."""
        name = self._directories.name_of(look.directory, before.key.inode)
        found = None if name is None else self._host.look(os.path.join(look.directory, name))
        births = (before.born_ns, None if found is None else found.born_ns)
        return name if None in births or births[0] == births[1] else None

    def _is_other_shape(self, look: _Look, found: Found) -> bool:
        """Whether a compressed file is what a known one became: it keeps its time."""
        times = {each.changed_ns for each in look.before.values()}
        return is_time_of(found.changed_ns, times | self._known.changed_times(look.directory))

    def _look_at_links(self, lay: Mapping[str, Found], moment: Moment) -> None:
        """What lay in other directories, while links led there that nobody looked at."""
        for found, places in self._links.moved(lay):
            index = index_of(found.path, moment.sources)
            if index is None:
                continue
            source = moment.sources[index]
            if places is None:
                unseen = Unseen(source.topic, source.topic_id, found.path, REPOINTED)
                moment.findings.unseen.append(unseen)
            first = self._since.get(source.topic, moment.now_ms)
            since_ms = first if self._looked_ms is None else self._looked_ms
            since_ns = (min(since_ms, moment.now_ms) - SLACK_MS) * 1_000_000
            for place in places or ():
                there = self._host.look(place)
                if there is not None and self._lay_between(there, found, since_ns, moment):
                    moment.findings.generations.append((there, index, found.path))

    def _lay_between(self, there: Found, now: Found, since_ns: int, moment: Moment) -> bool:
        if self._known.knows(there) or is_meant(there.path, moment.sources):
            return False
        if there.born_ns is None or now.born_ns is None:
            return there.changed_ns >= since_ns
        return since_ns <= there.born_ns <= now.born_ns

    def _look_at_waiting(self, moment: Moment) -> None:
        """Their programs may still have them open."""
        for key, (found, index, base, until) in list(self._waiting.items()):
            there = self._found_again(found, moment.sources)
            if there is None or moment.now >= until:
                del self._waiting[key]
            elif there.size:
                del self._waiting[key]
                moment.findings.generations.append((there, index, base))

    def _found_again(self, found: Found, sources: Sequence[TailedSource]) -> Found | None:
        """The file where it lies now. Its inode may be another one's by now, as of a log that a
        pattern means: that one is no generation."""
        there = self._host.look(found.real_path)
        if there is None or there.key != found.key:
            moved = self._directories.find(os.path.dirname(found.real_path), found.key)
            there = None if moved is None else self._host.look(moved)
        if there is None or (there.key, there.born_ns) != (found.key, found.born_ns):
            return None
        return None if is_meant(there.path, sources) else there


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

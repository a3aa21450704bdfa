"""Finds generations, which are rotated files, if they were renamed before the agent looked. No
pattern matches their new names. In a look, the agent goes once through the directories of all
sources, to find new, renamed and deleted log files.

A meant path is a path that a pattern matches, such as `app.log`. Two looks at a meant path may find
two different files. Between the two looks, more files may have had this path, and rotation may have
renamed them to names such as `app.log.1`. So if a look does not find the same file as the last
look, it goes through the names in the path's directory, or, if the path is a link, through the
names in the directory of the file to which the link points. The agent treats an unknown generation
in one of three ways:

    read        if it changed after the last look, and if at that look it did not exist or was the
                file at the path. It must also have been made before the file that is at the path
                now. This last condition does not apply if the file at the path is an old file
                that came from another path
    left alone  if it has not changed since the last look (or since the agent was installed), if a
                source excludes it, if it had the same name at the last look, if it is a copy of a
                file that was read (module `copies`), or if the path still leads to the same file
    declared    as a loss of unknown length if it is compressed, contains no known file, and cannot
                be decompressed

A rotation deletes the oldest generation first. The newest known file of a path is called the path's
anchor: the last look found it at the path or beside it. As long as the anchor still exists under
any name, no younger generation is gone. Generations may have been deleted unread in two cases: the
anchor is gone although generations exist, or no anchor was known and this look finds new
generations. In both cases nobody can know whether generations were deleted, so the agent declares a
possible loss.

A known file of the path may have a name that no known rotation program gives, or may be in another
directory (module `strays`). In both cases, the agent also reads each file that was made since the
last look and has a fitting name. A name fits if it contains the name of the path, or differs from
the known file's name only in digits. If the known file is the anchor, all other files in the path's
directory that were made since the last look may be generations of the path, too. In this case the
agent declares a possible loss.

If names change while the agent lists a directory, the listing proves nothing (module `stillness`).
When the agent starts, the time of the topic's last seal counts as the time of the last look. If the
topic has no seal, the time of the agent's first start with the topic counts instead. The agent
lists a directory again if its time of change has changed since the last look, or if a meant path in
it leads to another file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from skidway.agent.files.directories import Directories
from skidway.agent.files.history import SET_BACK, Adopts, History, Known, by_path
from skidway.agent.files.host import Host
from skidway.agent.files.links import Links
from skidway.agent.files.look import SLACK_MS, STEP_MS, Findings, Look, Moment, Place
from skidway.agent.files.sources import (
    Member,
    TailedSource,
    Views,
    index_of,
    is_meant,
    means,
    topics_of,
)
from skidway.agent.files.stillness import STILL_MS, Restless, look_again
from skidway.agent.values.found import FileKey, Found, UnbegunFile

CLEAN_AFTER_MS: Final = 2_000
"""If a directory changes twice within this many milliseconds, its time of change may stay the same
at the second change."""

EMPTY_WAIT_S: Final = 3_600.0
"""For this many seconds, each look checks an empty rotated file again, because its program may
still write to it.
"""

REPOINTED: Final = "the link leads elsewhere: what it led to in between may be unread"


class Rotations:
    """Owns what the last look found at each path that a pattern matches, and in its directory."""

    def __init__(self, host: Host, directories: Directories, known: Known, adopt: Adopts) -> None:
        self._host = host
        self._history = History(host, directories, known, adopt)
        self._directories = directories
        self._known = known
        self._places: dict[str, Place] = {}
        self._looked_ms: int | None = None
        self._looked_s = 0.0
        self._since: dict[str, int] = {}
        # for the next look: paths at which a new file has the inode of a known file
        self._again: set[str] = set()
        self._links = Links(directories)
        self._waiting: dict[FileKey, tuple[Found, int, str, float]] = {}
        self._waited: list[UnbegunFile] = []
        self._lay: Mapping[str, Found] = {}

    def load(
        self,
        lay: Iterable[Found],
        rotated: Iterable[tuple[str, str, Found]],
        since: Mapping[str, int],
    ) -> None:
        """Takes over what an earlier process found. lay: the files that were at paths that patterns
        match. since: by topic, the time (ms) that counts as the time of the last look.

        rotated: (path before the rotation, present directory, file) of each known file that was
        rotated. The newest file comes last.
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

    def take_sources(self, sources: Sequence[TailedSource]) -> None:
        """Replaces the sources when the agent reloads its settings. Keeps what the last look found
        at the paths that patterns of the new sources match, and lists all directories again.
        """
        for place in self._places.values():
            place.changed_ns = None
            place.lay = {path: each for path, each in place.lay.items() if is_meant(path, sources)}
            place.anchors = {
                path: each for path, each in place.anchors.items() if is_meant(path, sources)
            }
            place.members = {
                name: member._replace(source=index)
                for name, member in place.members.items()
                if (index := index_of(member.base, sources)) is not None
            }
        self._lay = {path: each for path, each in self._lay.items() if is_meant(path, sources)}
        self._waiting = {
            key: (found, index, base, until)
            for key, (found, _, base, until) in self._waiting.items()
            if (index := index_of(base, sources)) is not None
        }

    def leads_elsewhere(self, path: str, found: Found | None) -> bool:
        """Whether a path, which a pattern matches, leads to another file now than at the last look,
        or to no file."""
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
        """Remembers an empty generation. For EMPTY_WAIT_S seconds, each look checks whether the
        generation has got bytes."""
        self._waiting.setdefault(found.key, (found, index, base, now + EMPTY_WAIT_S))

    def wait_again(self, files: Iterable[UnbegunFile]) -> None:
        """Takes over the empty generations that an earlier process had remembered with
        `wait_for`."""
        self._waited = list(files)

    def places(self) -> Iterator[UnbegunFile]:
        """Yields the files that were at meant paths (paths that a pattern matches) at the last
        look, and the empty generations that each look checks again.
        """
        for place in self._places.values():
            yield from (UnbegunFile(found) for found in place.lay.values())
        for found, _, base, _ in self._waiting.values():
            yield UnbegunFile(found, base)

    def look(self, lay: Mapping[str, Found], hidden: set[str], moment: Moment) -> Findings:
        """Goes through the files that the patterns found, one directory after the other. lay: these
        files, by path.

        hidden: paths at or below which the agent cannot look now. For these paths, the agent keeps
        what the last look found. If the last look found a file at or below such a path, and this
        look does not, the agent keeps all that the last look found in the file's directory.
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
        """Returns, for each directory, how patterns lead into it, and the files that the patterns
        found in it.
        """
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
        """Looks at each path that a pattern matches. If the path now leads to another real path
        than before, or to no file, yields the directory of the file to which the path led before,
        and that file.
        """
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
        """Reports that a directory cannot be listed. The report goes to each topic that has a path
        in the directory, if this path leads to another file than at the last look.
        """
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
        before_ms = None
        if known is None and self._looked_ms is not None:
            before_ms, _ = self._last_look("", moment)
        look = Look(directory, place, moment, here, elsewhere, views, self._since, before_ms)
        look.before = {**place.anchors, **place.lay}
        look.members = self._members(look)
        is_restless = known is not None and self._is_restless(look, changed_ns)
        for base, names in by_path(look.members).items():
            self._history.look_at_compressed(look, base, names)
        anchors = {
            path: each
            for path, each in look.before.items()
            if path not in here and self._may_lie_somewhere(look, path, each)
        }
        said = len(moment.findings.unseen)
        unjudged = self._history.judge_all(look, anchors)
        if is_restless:
            self._again |= moment.reborn.intersection(here)
            del moment.findings.unseen[said:]
            return  # the directory was read while names changed
        members, again = look.members, {}
        if place.restless is not None:
            again = {name: each for name, each in members.items() if name in unjudged}
            members = {name: each for name, each in members.items() if name not in again}
        is_clean = changed_ns < (moment.now_ms - CLEAN_AFTER_MS) * 1_000_000
        self._places[directory] = Place(
            changed_ns if is_clean else None,
            moment.now_ms,
            moment.now,
            here,
            members,
            anchors,
            again,
            unknown=frozenset(look.unknown),
        )

    def _may_lie_somewhere(self, look: Look, path: str, before: Found) -> bool:
        """Whether the file that was at a path still exists under another name, or may have been
        compressed.
        """
        if path in look.unresolved or self._known.where(before.key, before.born_ns):
            return True
        return self._directories.name_of(look.directory, before.key.inode) is not None

    def _is_restless(self, look: Look, changed_ns: int) -> bool:
        """Whether names were changing while the directory was listed. If names were changing, the
        scan of the patterns and the listing show different moments. Then the agent keeps what the
        last look found, and the next look decides.
        """
        moment, place = look.moment, look.place
        left = [path for path in look.elsewhere if path in place.lay]
        topics = topics_of(look.members, left, moment.sources)
        if not topics:
            return False
        is_still = changed_ns < (moment.now_ms - STILL_MS) * 1_000_000
        if is_still and changed_ns == self._host.changed(look.directory):
            return False
        before = place.restless or Restless(moment.now, place.seen(), place.looked_ms)
        again = look_again(before, look.seen(), moment.now, moment.now_ms)
        if again is None:
            return False
        place.restless = again
        reason = "files are being renamed in it"
        moment.findings.passing += [(topic, look.directory, reason) for topic in sorted(topics)]
        return True

    def _members(self, look: Look) -> dict[str, Member]:
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

    def _look_at_links(self, lay: Mapping[str, Found], moment: Moment) -> None:
        """Handles links that point into another directory than at the last look. Between the two
        looks, such a link may have pointed to further files. Finds these files.
        """
        for found, places in self._links.moved(lay):
            index = index_of(found.path, moment.sources)
            if index is None:
                continue
            source = moment.sources[index]
            if places is None:
                moment.findings.miss(source, found.path, REPOINTED)
            since_ms, is_set_back = self._last_look(source.topic, moment)
            for place in places or ():
                there = self._host.look(place)
                if there is None or self._known.knows(there) or is_meant(place, moment.sources):
                    continue
                if _lay_between(there, found, since_ms, is_set_back=is_set_back):
                    if there.owner != found.owner:
                        moment.findings.miss(source, found.path, REPOINTED, there)
                        continue
                    moment.findings.generations.append((there, index, found.path))
                elif is_set_back and self._looked_ms is None:
                    moment.findings.miss(source, found.path, SET_BACK, there)

    def _last_look(self, topic: str, moment: Moment) -> tuple[int, bool]:
        """Returns the time of the last look (ms of the wall clock), and whether the clock was set
        back since then.
        """
        if self._looked_ms is None:
            first = self._since.get(topic, moment.now_ms)
            return min(first, moment.now_ms), first > moment.now_ms + SLACK_MS
        elapsed_ms = int((moment.now - self._looked_s) * 1000)
        said_ms = moment.now_ms - elapsed_ms
        return min(self._looked_ms, said_ms), said_ms + STEP_MS < self._looked_ms

    def _look_at_waiting(self, moment: Moment) -> None:
        """Looks again at empty generations, because their programs may still write to them."""
        waited, self._waited = self._waited, []
        for each, base in waited:
            index = None if base is None else index_of(base, moment.sources)
            if index is not None and base is not None:
                self.wait_for(each, index, base, moment.now)
        for key, (found, index, base, until) in list(self._waiting.items()):
            there = self._found_again(found, moment.sources)
            if there is None or moment.now >= until:
                del self._waiting[key]
            elif there.size:
                del self._waiting[key]
                moment.findings.generations.append((there, index, base))

    def _found_again(self, found: Found, sources: Sequence[TailedSource]) -> Found | None:
        """Returns the found file as it is at its present path. Returns None if the file is gone,
        even if a new file has its inode. Also returns None if a pattern matches the present path,
        because a file at such a path is no generation.
        """
        there = self._host.look(found.real_path)
        if there is None or there.key != found.key:
            moved = self._directories.find(os.path.dirname(found.real_path), found.key)
            there = None if moved is None else self._host.look(moved)
        if there is None or (there.key, there.born_ns) != (found.key, found.born_ns):
            return None
        return None if is_meant(there.path, sources) else there


def _lay_between(there: Found, now: Found, since_ms: int, *, is_set_back: bool) -> bool:
    """Whether the file `there` was made since the last look, and before the file `now`, which is at
    the path now. If one of the times of birth is unknown, returns whether `there` was changed since
    the last look. is_set_back: whether the clock was set back, so that the order of the two births
    is not known.
    """
    since_ns = (since_ms - SLACK_MS) * 1_000_000
    if there.born_ns is None or now.born_ns is None:
        return there.changed_ns >= since_ns
    return since_ns <= there.born_ns and (is_set_back or there.born_ns <= now.born_ns)


def _moved(before: Mapping[str, Found], here: Mapping[str, Found]) -> set[str]:
    """Returns the paths that lead to different files in `before` and `here`, or are in only one of
    them."""
    paths = {path for path, found in before.items() if path not in here}
    for path, found in here.items():
        old = before.get(path)
        if old is None or old.key != found.key:
            paths.add(path)
    return paths

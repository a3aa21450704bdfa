"""The values of one look, in which the agent goes once through the directories of all sources: the
look's time, each directory as it is now, and all that the look found. A generation is a rotated
file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Final

from skidway.agent.files.sources import Member, TailedSource, Views, is_meant
from skidway.agent.files.stillness import Restless, Seen
from skidway.agent.values.found import Found
from skidway.agent.values.set_apart import Unseen
from skidway.dataclass import dataclass

SLACK_MS: Final = 5_000
"""A generation is a rotated file. If a generation changes after a look, its time of change may
still be up to this many milliseconds earlier than the time of that look.
"""

STEP_MS: Final = 100
"""The wall clock counts as set back if, since the last look, it advanced by at least this many
milliseconds less than the monotonic clock. Smaller differences mean nothing, because the two clocks
are not read at the same moment.
"""


@dataclass(slots=True)
class Findings:
    """What a look found. generations: each generation with its source and the path from which it
    was rotated. unreadable, passing: the directories for which this look could not decide which
    files are new, as (topic, directory, reason). For the directories in `passing`, a later look can
    decide.
    """

    generations: list[tuple[Found, int, str]] = field(default_factory=list)
    unseen: list[Unseen] = field(default_factory=list)
    unreadable: list[tuple[str, str, str]] = field(default_factory=list)
    passing: list[tuple[str, str, str]] = field(default_factory=list)

    def miss(
        self, source: TailedSource, path: str, reason: str, found: Found | None = None
    ) -> None:
        """Notes that generations of a path were left unread, or may have been left unread. found:
        one of these generations; None if none of them was found.
        """
        unseen = Unseen(source.topic, source.topic_id, path, reason, _oldest_ms(found))
        for index, each in enumerate(self.unseen):
            if each._replace(oldest_ms=unseen.oldest_ms) == unseen:
                known = [time for time in (each.oldest_ms, unseen.oldest_ms) if time is not None]
                self.unseen[index] = unseen._replace(oldest_ms=min(known, default=None))
                return
        self.unseen.append(unseen)


@dataclass(slots=True)
class Place:
    """One directory, as it was at the last look during which no names in it changed. changed_ns:
    the directory's time of change; None if the directory must be listed again.

    lay: the files that were at the meant paths (the paths that a pattern matches).
    anchors: for each meant path without a file, the path's newest known file.
    unjudged: the generations about which no look has decided; the next look treats them as new.
    restless: what later looks found, while names were changing; None if there was no such look.
    unknown: the inodes of compressed files. The agent does not know yet whether these files contain
        known files.
    """

    changed_ns: int | None = None
    looked_ms: int = -1
    looked_s: float = 0.0
    lay: dict[str, Found] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    anchors: dict[str, Found] = field(default_factory=dict)
    unjudged: dict[str, Member] = field(default_factory=dict)
    restless: Restless | None = None
    unknown: frozenset[int] = frozenset()

    def seen(self) -> Seen:
        """Returns what was seen at the last look during which no names in the directory changed
        (see `Look.seen`).
        """
        return _seen({**self.members, **self.unjudged}, self.lay)


@dataclass(frozen=True, slots=True)
class Moment:
    """The facts that are the same for all directories of one look.

    reborn: paths at which a new file has the inode of a known file. truncated: paths at which a
    file was truncated; copies of the file's bytes may be beside the file.
    """

    sources: Sequence[TailedSource]
    reborn: set[str]
    truncated: set[str]
    now: float
    now_ms: int
    findings: Findings = field(default_factory=Findings)


@dataclass(slots=True)
class Look:
    """What the agent knows about one directory during one look.

    since: by topic, the time (ms) that counts as the time of the last look by an earlier process.
    before_ms: only for a directory that no earlier look has listed: the time of the last look at
    the other directories. before: the file that was at each path at the last look, or the path's
    anchor (see `Place`). names_here: the names of the files that patterns match. others: unknown
    files, by directory. unresolved: paths whose known files may be in compressed files that could
    not be read yet.
    """

    directory: str
    place: Place
    moment: Moment
    here: dict[str, Found]
    elsewhere: set[str]
    views: Views
    since: Mapping[str, int]
    before_ms: int | None
    before: dict[str, Found] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    names_here: set[str] = field(default_factory=set)
    others: dict[str, list[Found]] = field(default_factory=dict)
    unresolved: set[str] = field(default_factory=set)
    unknown: set[int] = field(default_factory=set)

    def seen(self) -> Seen:
        """Returns the names, inodes and times of birth of the logs and generations in the
        directory. A rotation changes at least one of these facts. Times of birth are included,
        because a new file may have the inode of a deleted file.
        """
        return _seen(self.members, self.here)

    def is_judged(self, base: str) -> bool:
        """Whether the look must decide what became of the files at a path. The look must do so in
        three cases: another file, or no file, is at the path now; the file at the path was
        truncated; or this is the first look into the directory, so that files from before the start
        of the agent may be unread.
        """
        is_first = self.place.looked_ms < 0
        return is_first or base in self.elsewhere or base not in self.here

    def may_be_of(self, base: str, found: Found) -> bool:
        """Whether a file may be a generation of a path, judged by their owners (see
        `Found.is_lent`). If nothing tells any more who led the path here, the answer is no."""
        if not self.is_lent(base):
            return True
        lay = self.here.get(base) or self.before.get(base)
        return lay is not None and lay.owner == found.owner

    def is_lent(self, base: str) -> bool:
        """Whether a link of a user led the path here, or may have."""
        lay = self.here.get(base) or self.before.get(base)
        return os.path.dirname(base) != self.directory if lay is None else lay.is_lent

    def lay_plain(self, plain: str) -> bool:
        """Whether a file with the name `plain` was in the directory at the last look. If so, a
        compressed file that is made from this plain file was not complete at that look, because
        compression programs delete the plain file last.
        """
        lay = (os.path.basename(each.real_path) for each in self.place.lay.values())
        return plain in self.place.members or plain in lay

    def leads_to_older(self, base: str, index: int) -> bool:
        """Whether the path now leads to another file than at the last look, and this other file
        already existed then.
        """
        before, here = self.before.get(base), self.here[base]
        if here.born_ns is None or (before is not None and before.key == here.key):
            return False
        return here.born_ns < self.looked_ms(index) * 1_000_000

    def is_made_since(self, found: Found) -> bool:
        """Whether the found file's time of birth shows that the file was made after the last look.
        The name and the inode number cannot show this: a new file may have the name and the inode
        number of a deleted file.
        """
        place, moment = self.place, self.moment
        if found.born_ns is None or place.looked_ms < 0:
            return False
        elapsed_ms = (moment.now - place.looked_s) * 1000
        return found.born_ns > min(place.looked_ms, moment.now_ms - elapsed_ms) * 1_000_000

    def is_set_back(self, index: int) -> bool:
        """Whether the wall clock shows an earlier time (by more than SLACK_MS) than at the last
        look of an earlier process. The answer is no if this process has already looked at the
        directory."""
        if self.place.looked_ms >= 0:
            return False
        first = self.since.get(self.moment.sources[index].topic, 0)
        return first > self.moment.now_ms + SLACK_MS

    @property
    def was_set_back(self) -> bool:
        """Whether the wall clock was set back since this process last looked. If so, a file may
        have an earlier time of birth than a file that was made before it.
        """
        place, moment = self.place, self.moment
        elapsed_ms = (moment.now - place.looked_s) * 1000
        return place.looked_ms >= 0 and moment.now_ms + STEP_MS < place.looked_ms + elapsed_ms

    def looked_ms(self, index: int) -> int:
        """Returns the time (ms) of the last look at the directory. An earlier process may have made
        this look."""
        place, now_ms = self.place, self.moment.now_ms
        if place.looked_ms >= 0:
            elapsed_ms = int((self.moment.now - place.looked_s) * 1000)
            return min(place.looked_ms, now_ms - elapsed_ms)
        first = self.since.get(self.moment.sources[index].topic, now_ms)
        if self.before_ms is not None:
            first = self.before_ms  # the directory was unknown when the agent started
        return min(first, now_ms)

    def since_ms(self, index: int) -> int:
        """Returns the time (ms) of the last look at the directory (see `looked_ms`), minus
        SLACK_MS. If a file changes after that look, its time of change may be too early by this
        much."""
        return self.looked_ms(index) - SLACK_MS

    def is_strange(self, path: str) -> bool:
        """Whether no known rotation program moves files to the path."""
        if is_meant(path, self.moment.sources):
            return False
        directory, name = os.path.split(path)
        return directory != self.directory or name not in self.members

    def miss(self, index: int, path: str, reason: str, found: Found | None = None) -> None:
        """Notes that generations of a path were, or may have been, left unread (see
        `Findings.miss`)."""
        self.moment.findings.miss(self.moment.sources[index], path, reason, found)


def _seen(members: Mapping[str, Member], here: Mapping[str, Found]) -> Seen:
    names = ((name, member.inode) for name, member in members.items())
    files = ((path, (found.key, found.born_ns)) for path, found in here.items())
    return frozenset([*names, *files])


def _oldest_ms(found: Found | None) -> int | None:
    """Returns the time of a file's birth or of its last change, whichever is earlier."""
    if found is None:
        return None
    times = (found.changed_ns, found.changed_ns if found.born_ns is None else found.born_ns)
    return min(times) // 1_000_000

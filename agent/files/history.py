"""Decides about the files that have been at a path since the last look: the agent reads each of
these files, leaves it unread, or declares it lost. In a look, the agent goes once through the
directories of all sources, to find new, renamed and deleted log files. A generation is a rotated
file.

The module `rotations` describes the rules, and calls `History` for each path of a directory that a
look goes through.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from skidway.agent.files.decompressed import is_decompressed
from skidway.agent.files.directories import Directories
from skidway.agent.files.host import Host
from skidway.agent.files.look import Look
from skidway.agent.files.same_file import Answer, is_time_of
from skidway.agent.files.sources import Member, index_of, is_meant
from skidway.agent.files.strays import is_stray, shares_name
from skidway.agent.values.found import FileKey, Found

REPEATED: Final = "rotated more often than it was looked at: some may be deleted unread"
COMPRESSED: Final = "was compressed before it was read, in a way that cannot be read"
AGED: Final = "is younger than its time of change: it may be a generation that nobody read"
SET_BACK: Final = "the clock was set back while nobody looked: rotated files may be unread"
OTHERS: Final = "belongs to another user than the log to which a user's link leads: not read"
STRANGE: Final = "rotated to a name that is not known as one of rotation: others may be unread"

_NUMBERED: Final = re.compile(r"(?P<stem>.+)\.(?P<number>\d{1,4})", re.DOTALL)


class Known(Protocol):
    """The methods of `KnownFiles` that `History` calls."""

    def knows(self, found: Found) -> bool:
        """Whether the found file is a known file, and not a new file with a deleted file's
        inode."""
        ...

    def is_another(self, found: Found, beside: Sequence[str]) -> bool:
        """Whether the found file is a new file with the inode of a deleted file. The answer is no
        if one of the files at the paths `beside` is a copy of the deleted file.
        """
        ...

    def changed_times(self, directory: str) -> set[int]:
        """Returns the times (ns) at which the known files of a directory changed last."""
        ...

    def is_copy(self, found: Found, base: str) -> bool:
        """Whether a found file is a copy of a file that the agent has read, or of the file that the
        agent reads at the path `base`.
        """
        ...

    def is_rest(self, found: Found, base: str) -> bool:
        """Whether a found file is a copy that contains unread bytes that a truncation removed from
        the file at the path `base`.
        """
        ...

    def where(self, key: FileKey, born_ns: int | None) -> str:
        """Returns the path at which a known file is now, in any directory; "" if unknown."""
        ...

    def rotated_from(self, base: str) -> list[str]:
        """Returns the present paths of the newest known files that were written at the path `base`
        and have been renamed since.
        """
        ...

    def was_found_elsewhere(self, found: Found) -> bool:
        """Whether the found file is a known file that was first found at another path than now."""
        ...

    def first_born(self, base: str) -> int | None:
        """Returns the time of birth of the oldest known file that programs wrote at the path
        `base`, and that still exists; None if there is no such file, or if its time of birth is
        unknown.
        """
        ...


class Adopts(Protocol):
    """A function that finds the known file whose bytes a compressed file contains."""

    def __call__(self, found: Found, index: int, base: str, may_begin: bool) -> Answer:
        """Returns SAME if the compressed file has the bytes of a file that the agent knows; from
        then on, the agent reads the rest of that file from the compressed file. Returns UNKNOWN if
        only a later look can find out whose bytes the compressed file has, and OTHER if it has the
        bytes of no known file. index: the index of the file's source. may_begin: whether the agent
        may begin a new file id for the file.
        """
        ...


class History:
    """Decides about the files that lay at a path since the previous look: which of them the agent
    reads. Owns no state: the look and the tracker own all facts about files."""

    def __init__(self, host: Host, directories: Directories, known: Known, adopt: Adopts) -> None:
        self._host = host
        self._directories = directories
        self._known = known
        self._adopt = adopt

    def judge_all(self, look: Look, anchors: dict[str, Found]) -> set[str]:
        """Decides, for each path whose file has changed, which generations (rotated files) of the
        path the agent reads. Adds to `anchors`, for each path without a file, the newest of the
        files that the agent did not know before and now reads. Does not decide about some paths
        (see `Look.is_judged`), and returns the names of the new generations of these paths.
        """
        unjudged: set[str] = set()
        by_base = by_path(look.members)
        for base in sorted(by_base.keys() | look.elsewhere | look.place.anchors.keys()):
            names = by_base.get(base, {})
            if not look.is_judged(base):
                unjudged |= names.keys() - look.place.members.keys()
                plain = [name for name, member in names.items() if member.plain is None]
                beside = [os.path.join(look.directory, name) for name in plain]
                if not self._known.is_another(look.here[base], beside):
                    continue
                look.moment.reborn.add(base)
            newest = self._judge(look, base, names)
            if newest is not None and base not in look.here:
                anchors[base] = newest._replace(is_lent=look.is_lent(base))
        return unjudged

    def _judge(self, look: Look, base: str, names: Mapping[str, Member]) -> Found | None:
        """Decides about the files that were at the path `base` (which a pattern matches): which of
        them the agent reads. Called for each path about which the look must decide (see
        `Look.is_judged`).

        Returns the newest of the files that the agent did not know before and now reads; None if
        there are none.
        """
        index = index_of(base, look.moment.sources)
        if index is None:
            return None
        fresh: list[Found] = []
        for name, member in names.items():
            found = self._host.look(os.path.join(look.directory, name))
            if found is None or self._lay_there(look, base, index, name, found):
                continue
            if self._is_left_alone(look, base, index, found):
                self._doubt_age(look, base, index, member, found)
                continue
            if not self._is_read(look, base, index, name, member.plain, found):
                continue
            if not self._known.knows(found):
                if not look.may_be_of(base, found):
                    look.miss(index, found.path, OTHERS)
                    continue
                fresh.append(found)
            look.moment.findings.generations.append((found, index, base))
        if base not in look.moment.reborn | look.moment.truncated:
            fresh += self._strays(look, base, index)
        if self._is_broken(look, base, names, fresh):
            look.miss(index, base, REPEATED)
        return max(fresh, key=lambda found: found.changed_ns, default=None)

    def look_at_compressed(self, look: Look, base: str, names: Mapping[str, Member]) -> None:
        """Examines compressed generations that have appeared since the last look, because they may
        contain known files.
        """
        index = index_of(base, look.moment.sources)
        if index is None:
            return
        for name, member in names.items():
            if not is_decompressed(name) or not self._came_lately(look, name, member):
                continue
            found = self._host.look(os.path.join(look.directory, name))
            if found is None or self._known.knows(found) or not look.may_be_of(base, found):
                continue
            may_begin = look.is_judged(base) and not self._is_old(look, base, index, found)
            answer = self._adopt(found, index, base, may_begin)
            if answer is Answer.SAME:
                look.moment.findings.generations.append((found, index, base))
            elif answer is Answer.UNKNOWN:
                look.unresolved.add(base)
                look.unknown.add(member.inode)

    def _came_lately(self, look: Look, name: str, member: Member) -> bool:
        """Whether a compressed file must be examined, because at the last look it did not exist,
        was still being written, or could not be compared with the known files yet.
        """
        if member.plain is None or self._is_being_compressed(look, member.plain):
            return False
        if member.inode in look.place.unknown:
            return True
        before = look.place.members.get(name)
        if look.place.looked_ms < 0 or before is None or before.inode != member.inode:
            return True
        return look.lay_plain(member.plain)

    def _is_read(
        self, look: Look, base: str, index: int, name: str, plain: str | None, found: Found
    ) -> bool:
        """Whether a found file is a generation that the agent reads. Declares a loss if the file is
        compressed, cannot be decompressed, and probably contains no known file."""
        if plain is None:
            return not self._is_younger(look, base, index, found)
        if self._is_being_compressed(look, plain) or base in look.unresolved:
            return False
        if is_decompressed(name):
            return True
        if not self._is_other_shape(look, found):
            look.miss(index, found.path, COMPRESSED)
        return False

    def _is_being_compressed(self, look: Look, plain: str) -> bool:
        """Whether the plain file from which a compressed file is made still exists. As long as it
        exists, the agent reads the plain file."""
        return any(name == plain for name, _ in self._directories.names(look.directory))

    def _is_broken(
        self, look: Look, base: str, names: Mapping[str, Member], fresh: Sequence[Found]
    ) -> bool:
        """Whether generations of the path that are younger than its newest known file may have been
        deleted unread.

        If no earlier look has found a file at the path, the agent may still know files that were
        there, because events named them. Then the answer is yes if one of the new generations
        (`fresh`) is older than all of these files, because more generations of that time may be
        gone. The answer is also yes if there are new generations, but no such known file, or only
        files whose age is unknown.
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

    def _has_hole(self, look: Look, before: Found, names: Mapping[str, Member]) -> bool:
        """Whether a generation that is younger than the newest known file is gone. If rotation
        gives the number 1 to the newest generation, 2 to the next and so on, a missing number shows
        that a generation is gone.
        """
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
                        return False  # the numbers do not begin with the newest generation
        younger = range(1, int(said["number"]))
        return bool(numbers.intersection(younger)) and not numbers.issuperset(younger)

    @staticmethod
    def _is_born_after(there: Found, before: Found) -> bool:
        births = there.born_ns, before.born_ns
        return births[0] is not None and births[1] is not None and births[0] > births[1]

    def _lay_there(self, look: Look, base: str, index: int, name: str, found: Found) -> bool:
        """Whether the file had the same name at the last look, so that it is not new. A copy of the
        log may have been there at the last look, when the agent did not need it, because the log
        had the same bytes. If the log was truncated since then, the copy has the removed bytes and
        counts as new. So does a file that was written since then, because the copy may have been
        written over it.
        """
        if base in look.moment.truncated and self._known.is_rest(found, base):
            return False
        if _may_be_overwritten(look, base, index, found):
            return False
        same = look.place.members.get(name)
        if same is None or same.inode != found.key.inode or look.is_made_since(found):
            return False
        return same.plain is None or not look.lay_plain(same.plain)

    def _is_left_alone(self, look: Look, base: str, index: int, found: Found) -> bool:
        """Whether the agent does not read the file, because the file is old (see `_is_old`), or
        because it is a copy of a file that the agent reads at that file's own path.
        """
        if base in look.moment.truncated and self._known.is_rest(found, base):
            return False
        return self._is_old(look, base, index, found) or self._known.is_copy(found, base)

    def _is_younger(self, look: Look, base: str, index: int, found: Found) -> bool:
        """Whether `found` was made after the file that is at the path `base` now. If so, `found`
        cannot have been rotated from that path. The order of the two is uncertain if the clock was
        set back, or if the file at the path is an old file that came from another path. If the
        order is uncertain, the answer is no.
        """
        is_told = base not in look.moment.truncated and not look.was_set_back
        here = look.here.get(base) if is_told else None
        if here is None or here.born_ns is None or found.born_ns is None:
            return False
        if look.leads_to_older(base, index) or self._known.was_found_elsewhere(here):
            return False  # the file at the path came from another path
        return found.born_ns > here.born_ns and not self._known.knows(found)

    def _is_old(self, look: Look, base: str, index: int, found: Found) -> bool:
        """Whether a file is old: it has not changed since the last look, or it existed at the last
        look but was not the file at the path `base`. Two files are not old: an empty file that was
        at the path, because its program may still write to it, and a file over which a copy of the
        log may have been written.
        """
        since_ns = look.since_ms(index) * 1_000_000
        before = look.before.get(base)
        is_before = before is not None and before.key == found.key
        if found.changed_ns < since_ns:
            return bool(found.size) or not is_before
        if _may_be_overwritten(look, base, index, found):
            return False
        return found.born_ns is not None and found.born_ns < since_ns and not is_before

    def _doubt_age(self, look: Look, base: str, index: int, member: Member, found: Found) -> None:
        """If the agent left a file unread because the file seems old, but the file's age is
        uncertain, declares the file's loss. The age is uncertain if the file's time of change or
        the clock was set back between two looks.
        """
        born_ns, since_ms = found.born_ns, look.since_ms(index)
        is_aged = member.plain is None and born_ns is not None and born_ns >= since_ms * 1_000_000
        is_set_back = look.is_set_back(index)
        if not (is_aged or is_set_back) or self._known.knows(found):
            return
        if not self._known.is_copy(found, base):
            if is_set_back:
                look.miss(index, base, SET_BACK, found)
            else:
                look.miss(index, found.path, AGED)

    def _strays(self, look: Look, base: str, index: int) -> list[Found]:
        """Returns files that may be generations of the path `base`, but are in another directory,
        or have a name that no known rotation program gives. Adds them to the generations of the
        look. Declares a loss if further files may be generations, but their names do not show it.
        """
        known = self._known.rotated_from(base)
        strange = [path for path in known if look.is_strange(path)]
        names = {os.path.basename(path) for path in strange}
        before = look.before.get(base)
        is_newest = before is not None and self._name_of(look, before) in names
        owners = {there.owner for path in strange if (there := self._host.look(path)) is not None}
        strays = []
        for directory in sorted({os.path.dirname(path) for path in strange}):
            for found in self._others(look, directory):
                if found.owner not in owners or not self._is_stray(look, base, index, found):
                    continue
                if shares_name(os.path.basename(found.path), base, names):
                    strays.append(found)
                elif is_newest and directory == look.directory:
                    look.miss(index, base, STRANGE)
        look.moment.findings.generations += [(found, index, base) for found in strays]
        return strays

    def _others(self, look: Look, directory: str) -> list[Found]:
        """Returns the unknown files of a directory that have changed since the last look and whose
        names do not show from which path they come. Each look collects these files only once for a
        directory.
        """
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
        since_ns = min(look.since_ms(index) for index in sources) * 1_000_000
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

    def _is_stray(self, look: Look, base: str, index: int, found: Found) -> bool:
        """Whether the file `found`, judged by its name and its age, may be a generation of the path
        `base` that rotation has made since the last look."""
        if not is_stray(found.path, base, look.moment.sources[index]):
            return False
        is_left = self._is_left_alone(look, base, index, found)
        return not is_left and not self._is_younger(look, base, index, found)

    def _is_there(self, look: Look, before: Found, names: Mapping[str, Member]) -> bool:
        """Whether `before`, the file that the last look found at the path, still exists, plain or
        compressed."""
        if self._name_of(look, before) is not None or self._known.where(before.key, before.born_ns):
            return True
        path = self._host.find(look.directory, before.key)  # perhaps renamed since the listing
        found = None if path is None else self._host.look(path)
        if found is None or found.key != before.key:
            if path is not None:
                return True  # the file was renamed since the directory was listed
        elif found.born_ns == before.born_ns:
            return True
        times = {before.changed_ns, *self._known.changed_times(look.directory)}
        for name, member in names.items():
            if member.plain is not None:
                found = self._host.look(os.path.join(look.directory, name))
                if found is not None and is_time_of(found.changed_ns, times):
                    return True
        return False

    def _name_of(self, look: Look, before: Found) -> str | None:
        """Returns the present name, in the directory, of the file that was at a path at the last
        look."""
        name = self._directories.name_of(look.directory, before.key.inode)
        found = None if name is None else self._host.look(os.path.join(look.directory, name))
        births = (before.born_ns, None if found is None else found.born_ns)
        return name if None in births or births[0] == births[1] else None

    def _is_other_shape(self, look: Look, found: Found) -> bool:
        """Whether the compressed file `found` has the same time of change as a known file.
        Compression programs keep this time, so `found` then probably contains the known file.
        """
        times = {each.changed_ns for each in look.before.values()}
        return is_time_of(found.changed_ns, times | self._known.changed_times(look.directory))


def _may_be_overwritten(look: Look, base: str, index: int, found: Found) -> bool:
    """Whether a copy of the log at the path `base` may have been written over the file since the
    last look, because the log was truncated and the file was written since then. `cp app.log
    app.log.1` keeps the inode and the time of birth of an older app.log.1.
    """
    since_ns = look.since_ms(index) * 1_000_000
    return base in look.moment.truncated and found.changed_ns >= since_ns


def by_path(members: Mapping[str, Member]) -> dict[str, dict[str, Member]]:
    """Returns the files of a directory by name, grouped by the path from which each was rotated."""
    groups: dict[str, dict[str, Member]] = {}
    for name, member in members.items():
        groups.setdefault(member.base, {})[name] = member
    return groups

"""Which agents may have read the same bytes, and during which time, by their announcements. Pure.

An agent that starts with a new state has a new id, and reads every file from its beginning, even
what another agent of the host has already delivered. Both announced the file; that shows which
agents these are. Two announcements on one host are of the same file

    both with a time of birth       if inode and birth are equal, whatever bytes were there: a small
                                    file grows, and its disk has another number after a restart
    one of them without             if device, inode and first bytes are equal

A birth, in nanoseconds, is enough: device and file system id are not compared as well. Either can
have changed when the state is lost, and a file that is not recognised makes a false `complete`; two
files taken for one only make buckets `unknown` for a minute. The host's name is always compared.
Machines that are made from one image have its logs, perhaps emptied, with the same inode, birth and
file system, and their agents run at once: without the name none of their buckets would ever be
complete. So a state that is lost together with the host's name, or whose disk moves to another
host, is not recognised.

When one of these agents delivered a line that the other one had delivered already, all of this is
true:

    it had announced the file: the announcement comes before the file's first record
    the other one had begun: if that began later, this is after its first message
    the line lay in the file when the other one read it, so not after that one was last heard

So an agent can deliver lines a second time from the other's beginning (`since_ms`) until it has
gone through all that lay there when the other one was last heard (`until_ms`). Its seals say when
that was (see doublings). The times are clocks of one host.

An agent may have several ids for one file, for instance one after each truncation. It vouches for
what the other one had read only once it has announced all of them, except those of content that
came later. For if it announced an inode after the other one was last heard, it has seen what that
one can have read there. Its next id there, if it does not continue that content, is of newer lines,
or of lines that it knows to have delivered itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from skidway.audit.topic.messages import Announcement


class FileNote(NamedTuple):
    """A file id, the agent that announced it, and when it first did.

    born_ns: when its inode was made, ns since 1970; None if nobody said. replaced_ms: when the
    agent first announced the id whose content, in the same inode, this one's content replaced; None
    if there is none.
    """

    time_ms: int
    agent: int
    file: int
    path: str
    born_ns: int | None = None
    replaced_ms: int | None = None


FileIdentity = tuple[str, int, int, int, bytes]
"""Host, device, inode, fingerprint length and fingerprint: of a file without a time of birth."""


@dataclass(frozen=True, slots=True)
class Rereading:
    """When an agent may have delivered again what others had delivered; reason: which file shows.

    since_ms: lines that it had sealed before then are none of these; None: from its first line on.
    until_ms: a seal noted later than this vouches that it has gone through all such lines.
    """

    since_ms: int | None
    until_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class Rereadings:
    """What one agent read again: of agents before it, and of later ones (its state was brought
    back, or both ran at once). group: the agents that share files, directly or through others;
    named by the least of their ids."""

    of_earlier: Rereading | None
    of_later: Rereading | None
    group: int

    def __iter__(self) -> Iterator[Rereading]:
        return (x for x in (self.of_earlier, self.of_later) if x is not None)


def identity_of(message: Announcement) -> FileIdentity | None:
    """What identifies a file under two ids if births do not; None for no content yet.

    A predecessor makes no difference. It is an id of the same agent, so it says nothing about what
    other agents read; and most files have one: content after a truncation, and a file in the inode
    of a deleted one.
    """
    if message.fingerprint_length == 0:
        return None
    return (
        message.host,
        message.device,
        message.inode,
        message.fingerprint_length,
        message.fingerprint,
    )


def replaced_by(message: Announcement) -> int | None:
    """The id whose content was there before; None if there is none, or this one continues it.

    It counts only with the same inode and birth: a file that was copied or moved has another inode.
    """
    end = message.predecessor_position
    if message.predecessor is None or end is None or message.begin >= end:
        return None
    return message.predecessor


def is_untold(notes: Iterable[FileNote]) -> bool:
    """Whether births leave open which of these, with the same first bytes, are the same file."""
    return any(note.born_ns is None for note in notes)


def rereadings(
    files: Iterable[Iterable[FileNote]],
    began: Callable[[int], int | None],
    last_heard: Callable[[int], int],
) -> dict[int, Rereadings]:
    """The rereadings of one topic, by agent. files: the notes of each file, see the module.

    began: when an agent was first heard (None: its first message is gone); last_heard: when it was
    last heard; ms.
    """
    found: dict[int, Rereadings] = {}
    groups = _Groups()
    for notes in files:
        for agent, part in _of_file(_by_age(notes, began), last_heard):
            found[agent] = part if agent not in found else _both(found[agent], part)
            groups.join(agent, part.group)
    return {agent: replace(part, group=groups.of(agent)) for agent, part in found.items()}


class _Reader(NamedTuple):
    """An agent that announced a file; notes: its ids for it, oldest first. Sorts by when the agent
    began; an agent whose beginning nobody knows comes first."""

    is_known: bool
    began_ms: int
    agent: int
    notes: tuple[FileNote, ...]

    @property
    def since_ms(self) -> int | None:
        return self.began_ms if self.is_known else None

    @property
    def path(self) -> str:
        return self.notes[-1].path

    def announced_ms(self, heard_ms: int) -> int:
        """When it had announced the last id that can be of what others had read by `heard_ms`."""
        first, *others = self.notes
        counting = [x for x in others if x.replaced_ms is None or x.replaced_ms <= heard_ms]
        return max(x.time_ms for x in (first, *counting))


def _by_age(notes: Iterable[FileNote], began: Callable[[int], int | None]) -> list[_Reader]:
    by_agent: dict[int, list[FileNote]] = {}
    for note in notes:
        by_agent.setdefault(note.agent, []).append(note)
    if len(by_agent) < 2:  # one agent knows its own files
        return []
    readers = []
    for agent, own in by_agent.items():
        own.sort(key=lambda x: (x.time_ms, x.file))
        since = began(agent)
        if since is not None:  # an older version's ledger does not know it from announcements
            since = min(since, own[0].time_ms)
        readers.append(_Reader(since is not None, since or 0, agent, tuple(own)))
    return sorted(readers)


def _of_file(
    readers: list[_Reader], last_heard: Callable[[int], int]
) -> Iterator[tuple[int, Rereadings]]:
    ends = [max(last_heard(x.agent), x.notes[-1].time_ms) for x in readers]
    until_then = list(accumulate(ends, max))
    from_then = list(accumulate(reversed(ends), max))[::-1]
    for index, reader in enumerate(readers):
        earlier = later = None
        if index > 0:
            heard = until_then[index - 1]
            until = max(heard, reader.announced_ms(heard))
            earlier = Rereading(None, until, _reason(reader.path, readers[0], reader))
        if index + 1 < len(readers):
            heard = from_then[index + 1]
            until = max(heard, reader.announced_ms(heard))
            then = readers[index + 1]
            later = Rereading(then.since_ms, until, _reason(reader.path, reader, then))
        yield reader.agent, Rereadings(earlier, later, readers[0].agent)


def _reason(path: str, first: _Reader, second: _Reader) -> str:
    return (
        f"{path} was announced by agent {first.agent} and then by agent {second.agent}, whose state"
        " seems to be a new one: its lines may count twice"
    )


def _both(one: Rereadings, other: Rereadings) -> Rereadings:
    return Rereadings(
        _wider(one.of_earlier, other.of_earlier), _wider(one.of_later, other.of_later), one.group
    )


def _wider(one: Rereading | None, other: Rereading | None) -> Rereading | None:
    if one is None or other is None:
        return one or other
    since = (
        None
        if one.since_ms is None or other.since_ms is None
        else min(one.since_ms, other.since_ms)
    )
    return Rereading(since, max(one.until_ms, other.until_ms), min(one.reason, other.reason))


class _Groups:
    """Agents that share files, directly or through others; the least agent's id names a group."""

    def __init__(self) -> None:
        self._parents: dict[int, int] = {}

    def of(self, agent: int) -> int:
        while (parent := self._parents.get(agent, agent)) != agent:
            agent = parent
        return agent

    def join(self, one: int, other: int) -> None:
        low, high = sorted((self.of(one), self.of(other)))
        self._parents[high] = low

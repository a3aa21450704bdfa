"""Finds out from announcements, without I/O, which agents may have read the same bytes, and when.

If an agent starts with a new state, it has a new id, and reads every file from its beginning. So it
also reads bytes that another agent of the host has already delivered. If both agents announced the
file, both may have read it. Two announcements on one host belong to the same file in these cases:

    both have a time of birth       inode and birth are equal, whatever bytes were announced: a
                                    small file grows, and its disk may have another number after a
                                    restart
    at least one has no time        device, inode and first bytes are equal
    of birth

A time of birth in nanoseconds identifies a file well enough, so the audit does not compare device
and file system id as well. Besides, device and file system id can both change when the agent's
state is lost. The audit may by mistake treat two files as one file. This does little harm: some
buckets are `unknown` for a minute. The opposite mistake is worse: if the audit treated one file as
two files, a bucket could be falsely `complete`. The audit always compares the host's name. Without
this comparison, it could not distinguish machines that are made from one image. All these machines
have the image's log files (perhaps emptied), with the same inode, birth and file system, and their
agents run at the same time. If the audit did not compare names, no bucket of these machines would
ever be complete. But because of this comparison the audit does not recognise every rereading: it
misses a rereading if the host's name is lost together with the state, or if the disk moves to
another host.

Let O and R be two agents of a host that announced the same file. If R delivered a line that O had
delivered already, all three of these statements are true:

    R had announced the file: the announcement comes before the file's first record
    O had begun: if O began later than R, R delivered the line after O's first message
    the line was in the file before O's last message, because O had read the line

So R can deliver lines a second time from O's beginning (`since_ms`) until R has read all lines that
the file had at the time of O's last message (`until_ms`). R's seals say when R had read these lines
(see doublings). All of these times come from the clock of one host.

An agent may have several ids for one file, for instance one after each truncation. Until R has
announced all of its ids for the file, there may be bytes that O has read and R has not. So
`until_ms` is not earlier than these announcements. The audit ignores ids of R whose content came
into the file after O's last message. It is safe to ignore these ids. Suppose that R announced an
inode after O's last message. Then R has seen all content that O can have read in this inode. If R
later gives the inode a new id, for content that does not continue the earlier content, this content
consists of newer lines, or of lines that R itself has delivered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from skidway.audit.topic.messages import Announcement


class FileNote(NamedTuple):
    """A file id, the agent that announced it, and the time of the agent's first announcement.

    born_ns: the time at which the file's inode was made, in ns since 1970; None if no announcement
        gives this time.
    replaced_ms: this id's content may have replaced the content of another id of the agent in the
        same inode. If so, `replaced_ms` is the time at which the agent first announced that other
        id; otherwise None.
    """

    time_ms: int
    agent: int
    file: int
    path: str
    born_ns: int | None = None
    replaced_ms: int | None = None


FileIdentity = tuple[str, int, int, int, bytes]
"""The values that identify a file if an announcement does not say when the file's inode was made:
host, device, inode, fingerprint length and fingerprint."""


@dataclass(frozen=True, slots=True)
class Rereading:
    """The time during which an agent may have delivered doubled lines: lines that other agents had
    delivered already. reason: why the audit suspects doubled lines; names the file and the two
    agents. path: the file's path.

    since_ms: lines that the agent had sealed before this time are not doubled; None if any of the
    agent's lines may be doubled. until_ms: a seal whose `sealed_until` is after this time shows
    that the agent has read all doubled lines.
    """

    since_ms: int | None
    until_ms: int
    reason: str
    path: str


@dataclass(frozen=True, slots=True)
class Rereadings:
    """The rereadings of one agent. of_earlier: when the agent may have read lines that older agents
    had delivered (agents that began before it). of_later: when the agent may have read lines that
    younger agents had delivered; this happens if the state of the agent was restored, or if both
    agents ran at once. group: the name of the agent's group. Agents that share files, directly or
    through other agents, are one group, and the least of their ids is its name.
    """

    of_earlier: Rereading | None
    of_later: Rereading | None
    group: int

    def __iter__(self) -> Iterator[Rereading]:
        return (x for x in (self.of_earlier, self.of_later) if x is not None)


def identity_of(message: Announcement) -> FileIdentity | None:
    """Returns the values by which the audit recognises that two ids belong to the same file.
    Returns None if the file has no content yet.

    The announcement's `predecessor` is not one of these values. A predecessor is an id of the same
    agent, so it says nothing about what other agents read. Besides, predecessors are common: an id
    for content after a truncation has a predecessor, and an id for a file in the inode of a deleted
    file has one too.
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
    """Returns the file id whose content was replaced by the announced content. Returns None if the
    announcement names no earlier id of the file, or if the announced content continues the content
    of the earlier id.

    The caller must compare inode and time of birth of both ids. If they differ, the file was copied
    and not rewritten, so no content was replaced (see ledger_evidence).
    """
    end = message.predecessor_position
    if message.predecessor is None or end is None or message.begin >= end:
        return None
    return message.predecessor


def is_untold(notes: Iterable[FileNote]) -> bool:
    """Returns whether one of the notes lacks the time of birth, so that times of birth do not show
    which of these notes belong to the same file. notes: the notes of files that have the same first
    bytes.
    """
    return any(note.born_ns is None for note in notes)


def rereadings(
    files: Iterable[Iterable[FileNote]],
    began: Callable[[int], int | None],
    last_heard: Callable[[int], int],
) -> dict[int, Rereadings]:
    """Returns the rereadings of each agent in one topic. A rereading is a time in which the agent
    may have delivered lines that another agent had delivered already. files: for each file, the ids
    under which agents announced it (FileNote).

    began: a function that returns the time (ms) of an agent's first message, or None if this
    message is gone. last_heard: a function that returns the time (ms) of an agent's last message.
    """
    found: dict[int, Rereadings] = {}
    groups = _Groups()
    for notes in files:
        for agent, part in _of_file(_by_age(notes, began), last_heard):
            found[agent] = part if agent not in found else _both(found[agent], part)
            groups.join(agent, part.group)
    return {agent: replace(part, group=groups.of(agent)) for agent, part in found.items()}


class _Reader(NamedTuple):
    """An agent that announced a file. notes: the agent's ids for the file, oldest first. Readers
    are sorted by the time at which their agents began. An agent whose beginning is unknown comes
    first."""

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
        """The agent may have several ids for the file. Returns the time at which it announced the
        last of them. Leaves out an id if its content may have come into the inode after `heard_ms`.
        """
        first, *others = self.notes
        counting = [x for x in others if x.replaced_ms is None or x.replaced_ms <= heard_ms]
        return max(x.time_ms for x in (first, *counting))


def _by_age(notes: Iterable[FileNote], began: Callable[[int], int | None]) -> list[_Reader]:
    by_agent: dict[int, list[FileNote]] = {}
    for note in notes:
        by_agent.setdefault(note.agent, []).append(note)
    if len(by_agent) < 2:  # only one agent announced the file
        return []
    readers = []
    for agent, own in by_agent.items():
        own.sort(key=lambda x: (x.time_ms, x.file))
        since = began(agent)
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
            earlier = Rereading(None, until, _reason(reader.path, readers[0], reader), reader.path)
        if index + 1 < len(readers):
            heard = from_then[index + 1]
            until = max(heard, reader.announced_ms(heard))
            then = readers[index + 1]
            later = Rereading(then.since_ms, until, _reason(reader.path, reader, then), reader.path)
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
    reason, path = min((one.reason, one.path), (other.reason, other.path))
    return Rereading(since, max(one.until_ms, other.until_ms), reason, path)


class _Groups:
    """Groups of agents that share files, directly or through other agents. The name of a group is
    the least id in it."""

    def __init__(self) -> None:
        self._parents: dict[int, int] = {}

    def of(self, agent: int) -> int:
        while (parent := self._parents.get(agent, agent)) != agent:
            agent = parent
        return agent

    def join(self, one: int, other: int) -> None:
        low, high = sorted((self.of(one), self.of(other)))
        self._parents[high] = low

"""Which agents may have read the same bytes, and while they could: from announcements. Pure.

An agent that begins with a new state has a new id, and reads every file from its beginning, also
what another agent of the host has delivered before. Both announced the file (same host, device,
inode and first bytes), so it is known which agents these are. When one of them delivered a line
that the other one had delivered already, all of this is true:

    it had announced the file: the announcement comes before the file's first record
    the other one had begun; if it began later, then since its first message
    the line lay in the file when the other one read it, so not after that one was heard last

So one can deliver for a second time from the other's beginning (`since_ms`), until it has gone
through all that lay there when the other one was heard last (`until_ms`). Its seals say when that
was (see doublings). The times are clocks of one host, since a file's identity names the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from audit.messages import Announcement


class FileNote(NamedTuple):
    """A file id, and who announced it first when."""

    time_ms: int
    agent: int
    file: int
    path: str


FileIdentity = tuple[str, int, int, int, bytes]
"""Host, device, inode, fingerprint length and fingerprint."""


@dataclass(frozen=True, slots=True)
class Rereading:
    """When an agent may have delivered again what others had delivered; reason: which file shows.

    since_ms: what it had sealed before is no such line; None: from its first line on. until_ms: a
    seal noted later than this vouches that it has gone through all such lines.
    """

    since_ms: int | None
    until_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class Rereadings:
    """Of one agent: what it read again of agents before it, and of later ones (its state was
    brought back, or both ran at once). kin: the same for all agents that share files."""

    of_earlier: Rereading | None
    of_later: Rereading | None
    kin: int

    def __iter__(self) -> Iterator[Rereading]:
        return (x for x in (self.of_earlier, self.of_later) if x is not None)


def identity_of(message: Announcement) -> FileIdentity | None:
    """What would show a file under two ids; None where it shows nothing: no content yet.

    A predecessor makes no difference. It is an id of the same agent, so it says nothing of what
    other agents read; and most have one: content behind a truncation, and a file whose inode was
    that of a deleted one.
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


def rereadings(
    files: Iterable[Iterable[FileNote]],
    began: Callable[[int], int | None],
    last_heard: Callable[[int], int],
) -> dict[int, Rereadings]:
    """By agent, of one topic. files: the notes of each identity.

    began: when an agent was heard first (None: its first message is not there any more), and
    last_heard: when last; ms.
    """
    found: dict[int, Rereadings] = {}
    kin = _Kin()
    for notes in files:
        for agent, part in _of_file(_by_age(notes, began), last_heard):
            found[agent] = part if agent not in found else _both(found[agent], part)
            kin.join(agent, part.kin)
    return {agent: replace(part, kin=kin.of(agent)) for agent, part in found.items()}


class _Reader(NamedTuple):
    """An agent that announced a file; announced_ms: the last of its ids for it, for the first
    time. Sorts by when the agent began; who knows, where nobody does, comes first."""

    is_known: bool
    began_ms: int
    agent: int
    announced_ms: int
    path: str

    @property
    def since_ms(self) -> int | None:
        return self.began_ms if self.is_known else None


def _by_age(notes: Iterable[FileNote], began: Callable[[int], int | None]) -> list[_Reader]:
    oldest: dict[int, FileNote] = {}
    newest: dict[int, FileNote] = {}
    for note in notes:
        oldest[note.agent] = min(note, oldest.get(note.agent, note))
        newest[note.agent] = max(note, newest.get(note.agent, note))
    if len(newest) < 2:  # one agent knows its own files
        return []
    readers = []
    for agent, note in newest.items():
        since = began(agent)
        if since is not None:  # a ledger of the version before does not know it from announcements
            since = min(since, oldest[agent].time_ms)
        readers.append(_Reader(since is not None, since or 0, agent, note.time_ms, note.path))
    return sorted(readers)


def _of_file(
    readers: list[_Reader], last_heard: Callable[[int], int]
) -> Iterator[tuple[int, Rereadings]]:
    ends = [max(last_heard(x.agent), x.announced_ms) for x in readers]
    until_then = list(accumulate(ends, max))
    from_then = list(accumulate(reversed(ends), max))[::-1]
    for index, reader in enumerate(readers):
        earlier = later = None
        if index > 0:
            until = max(until_then[index - 1], reader.announced_ms)
            earlier = Rereading(None, until, _reason(reader.path, readers[0], reader))
        if index + 1 < len(readers):
            until = max(from_then[index + 1], reader.announced_ms)
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
        _wider(one.of_earlier, other.of_earlier), _wider(one.of_later, other.of_later), one.kin
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


class _Kin:
    """Agents that share files, also by way of others; each such group has its least agent's id."""

    def __init__(self) -> None:
        self._parents: dict[int, int] = {}

    def of(self, agent: int) -> int:
        while (parent := self._parents.get(agent, agent)) != agent:
            agent = parent
        return agent

    def join(self, one: int, other: int) -> None:
        low, high = sorted((self.of(one), self.of(other)))
        self._parents[high] = low

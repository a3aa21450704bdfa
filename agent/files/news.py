"""Collects new file ids and losses until the agent's loop writes them to the state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import field, replace

from skidway.agent.values.set_apart import SetApart, Unseen
from skidway.agent.values.tracked import TrackedFile
from skidway.audit.topic.messages import Certainty
from skidway.dataclass import dataclass


@dataclass(slots=True)
class News:
    """New file ids, losses, and forgotten file ids since the last call of `take`. gone: the closed
    file ids whose files are gone from the host; the agent may still remember them for some time.
    doubts: for each topic, how often the agent, since it started, has found that bytes may be
    unread, or that a file no longer has the bytes that were read. `take` does not reset `doubts`.
    """

    born: list[TrackedFile] = field(default_factory=list)
    set_apart: list[SetApart] = field(default_factory=list)
    unseen: list[Unseen] = field(default_factory=list)
    gone: list[TrackedFile] = field(default_factory=list)
    forgotten: list[TrackedFile] = field(default_factory=list)
    doubts: Counter[str] = field(default_factory=Counter)

    def take(self) -> News:
        """Returns the news since the last call, and empties all lists of this object."""
        apart = _together(self.set_apart)
        taken = News(self.born, apart, self.unseen, self.gone, self.forgotten)
        self.born, self.set_apart, self.unseen, self.gone, self.forgotten = [], [], [], [], []
        return taken

    def lose(self, tracked: TrackedFile, reason: str) -> None:
        """Notes that an unknown number of bytes of a file was not read."""
        self.doubts[tracked.birth.topic] += 1
        apart = SetApart(tracked, tracked.promised, None, Certainty.LOST, reason)
        self.set_apart.append(apart)

    def may_double(self, new: TrackedFile, first: int, end: int, old: TrackedFile) -> None:
        """Notes that the bytes of `new` from `first` to `end` may have been delivered already, as
        bytes of `old`."""
        reason = f"these bytes may have been delivered as those of file {old.file} too"
        self.set_apart.append(SetApart(new, first, end, Certainty.UNCERTAIN, reason))

    def miss(self, unseen: Unseen) -> None:
        """Notes that files at a path, or bytes that were truncated there, were left unread or may
        have been left unread."""
        self.doubts[unseen.topic] += 1
        self.unseen.append(unseen)


def _together(ranges: Sequence[SetApart]) -> list[SetApart]:
    """Merges the losses of unknown length that have the same topic and reason."""
    alike: dict[tuple[str, str, str], list[SetApart]] = {}
    found = []
    for each in ranges:
        if each.end is not None or each.certainty is not Certainty.LOST:
            found.append(each)
            continue
        birth = each.tracked.birth
        alike.setdefault((birth.topic, birth.topic_id, each.reason), []).append(each)
    for first, *others in alike.values():
        if others:
            files = "file" if len(others) == 1 else "files"
            reason = f"{first.reason}; {len(others):,} more {files} likewise"
            first = replace(first, reason=reason)
        found.append(first)
    return found

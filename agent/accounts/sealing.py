"""A seal says that deltas contain the counts of all lines that were in a topic's files at a wall
time W.

    begin     put what was counted so far into deltas; note the wall time W and `at`, the number
              of the last delta or seal; then look through every pattern and note each file's length
    complete  when the checkpoint has passed all bytes up to these lengths and
              deltas contain their counts: the seal (W, at) may be sent

The agent notes the wall time W before it looks at the files. So every line that was in a file at W
is among the noted bytes. As long as a file or directory cannot be read, the agent begins no seal of
its topic, and names the file or directory in its log and in /health. If a seal waits for long, the
agent also names the files for which it waits. Filtered, rejected and lost bytes do not delay a
seal.

If a source has never matched a file since it was configured, nobody knows whether its lines are
missing. Its topic's seals then say so, and vouch only for the time before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from skidway.agent.files.host import shown
from skidway.agent.values.tracked import FileState, TrackedFile
from skidway.dataclass import dataclass

HELD_S: Final = 600.0
"""If a seal waits for longer than this many seconds after the agent began it, the agent names the
files for which the seal waits.
"""

NAMED_MAX: Final = 5
"""If the seal of a topic waits, the agent names at most this many of the files for which it
waits."""


@dataclass(frozen=True, slots=True)
class Noted:
    """What the agent noted about one topic's files when it scanned the patterns for a seal.

    doubts: the value of `Tracker.doubts` for the topic at that scan. targets: by file id, the
    position up to which the file's bytes must be accounted for. final: whether the seal is the last
    word of an agent that leaves for good (see module leaving). since: when the agent began this
    seal or, if it dropped the topic's seals before this one, the first of those (s, on the
    monotonic clock). fileless_since: since when (ms) a source of the topic has never matched a
    file; None if there is no such source.
    """

    topic: str
    wall_ms: int
    at: int
    doubts: int
    targets: Mapping[int, int]
    final: bool = False
    since: float = 0.0
    fileless_since: int | None = None

    @property
    def vouches_until(self) -> int:
        """The time up to which the seal vouches, as the message says it (see `SealedTopic`)."""
        return self.wall_ms if self.fileless_since is None else -self.fileless_since


def note(topic: str, wall_ms: int, at: int, doubts: int, files: Iterable[TrackedFile]) -> Noted:
    """Notes up to which position each file of a topic must be accounted for (acknowledged, left out
    by rules, or declared lost or uncertain) before the topic's seal is sent.

    files: the topic's files. doubts: the present value of `Tracker.doubts` for the topic.
    """
    targets = {}
    for tracked in files:
        if tracked.state is FileState.CLOSED:
            continue
        if tracked.length is not None:
            targets[tracked.file] = tracked.length
        else:
            targets[tracked.file] = max(tracked.size, tracked.promised)
    return Noted(topic, wall_ms, at, doubts, targets)


def is_complete(noted: Noted, files: Mapping[int, TrackedFile]) -> bool:
    """Whether all noted bytes are accounted for: acknowledged, left out by rules, or declared lost
    or uncertain. The caller has to check whether deltas contain the counts of these bytes.

    If the agent still has to check that a file has the bytes that were read from it (`verified` is
    false), the file's bytes do not count as accounted for.
    """
    return not any(_waiting(noted, files))


def waits_for(noted: Noted, files: Mapping[int, TrackedFile]) -> dict[str, str]:
    """Returns at most NAMED_MAX of the files whose noted bytes are not accounted for yet: by path,
    what is missing, in words for people.
    """
    found: dict[str, str] = {}
    for tracked in _waiting(noted, files):
        if len(found) == NAMED_MAX:
            break
        count = noted.targets[tracked.file] - tracked.position
        what = f"{count} bytes are not delivered" if count > 0 else "it may be another file"
        found[shown(tracked.location) or tracked.birth.path] = what
    return found


def _waiting(noted: Noted, files: Mapping[int, TrackedFile]) -> Iterator[TrackedFile]:
    for file, target in noted.targets.items():
        tracked = files.get(file)
        if tracked is None:
            continue  # the file id was closed, so all its bytes are accounted for
        is_in_doubt = tracked.state is FileState.OPEN and not tracked.verified
        if is_in_doubt or tracked.position < target:
            yield tracked


def is_void(noted: Noted, files: Mapping[int, TrackedFile], doubts: int) -> bool:
    """Whether the noted sizes no longer apply: some of the noted bytes may belong to other file ids
    by now, because a file was truncated or changed, or files of the topic may be unread. If the
    sizes no longer apply, the agent must note them again. doubts: the present value of
    `Tracker.doubts` for the topic.
    """
    if doubts != noted.doubts:
        return True
    for file, target in noted.targets.items():
        tracked = files.get(file)
        if tracked is not None and tracked.length is not None and tracked.length < target:
            return True
    return False


def held_back_by(
    topic: str, unreadable: Mapping[str, Mapping[str, str]], limit: int = NAMED_MAX
) -> Sequence[str]:
    """While the agent cannot read a file or directory of a topic, it begins no seal of the topic.
    Returns at most `limit` of these files and directories, each with the reason why it cannot be
    read. Returns an empty list if there are none.
    """
    reasons = unreadable.get(topic, {})
    return [f"{path}: {reason}" for path, reason in sorted(reasons.items())[:limit]]

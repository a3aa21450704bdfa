"""Reports to the audit which bytes of the files are not safe yet, since when these bytes have been
in the files, and how long the agent expects the files to exist.

Bytes are safe when a broker has acknowledged their records, when rules have left their records out,
or when they are declared lost or uncertain. At each report, the agent notes the size of each file
with unsafe bytes. So it knows, to within TELL_EVERY_S (the time between two reports), since when
the first unsafe byte has been in the file. If a file already has unsafe bytes at the file's first
report, the agent knows only that these bytes were written no later than the last write to the file.

The life of a file ends when the agent sees that the file has no name any more. For a file whose
final length is announced to the audit, the agent checks only once an hour whether the file still
exists. If such a file is gone, its life counts as having ended one hour before this check, but not
before the last write to the file. The setting `deleted.after.ms` says how long files live. Without
this setting, the agent looks at the files that were deleted last from the same directory, and
expects that a file lives as long as the shortest-lived of them. If a file is already older than
this expected life, the report says that no time is left. The report says the same about a file that
has no name any more: only the agent still has it open, so the file is lost when the agent ends.
"""

from __future__ import annotations

import os
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from typing import Final

from skidway.agent.accounts.mail import Mail
from skidway.agent.files.handles import Handles
from skidway.agent.files.host import shown
from skidway.agent.files.tracking import FORGET_AFTER_S, Tracker
from skidway.agent.values.found import UnopenedFile
from skidway.agent.values.tracked import FileState, TrackedFile
from skidway.audit.topic.backlog import (
    FILES_MAX,
    KIND,
    Backlog,
    FileBacklog,
    TopicBacklog,
    body_of,
    bounded,
    urgency,
)
from skidway.audit.topic.messages import Sender
from skidway.audit.topic.notes import Note

TELL_EVERY_S: Final = 30.0
LIVES_MAX: Final = 8
DIRECTORIES_MAX: Final = 1_000
REACHES_MAX: Final = 16


class Backlogs:
    """Owns the noted sizes of files, and how long deleted files lived. Reports to the audit when a
    report is due."""

    def __init__(self, sender: Sender, mail: Mail, tracker: Tracker, handles: Handles) -> None:
        self._sender = sender
        self._mail = mail
        self._tracker = tracker
        self._handles = handles
        self._lives = Lives()
        self._ended: set[int] = set()
        self._reaches: dict[int, list[tuple[int, int]]] = {}
        self._tell_at = 0.0
        self._told: Backlog | None = None
        self._last_id = 0

    def gone(self, files: Iterable[TrackedFile], now_ms: int) -> None:
        """Notes how long these deleted files lived. The agent had announced their final lengths to
        the audit, and its hourly search for such files has now noticed for the first time that they
        are gone. Notes nothing about a file that has a later id, because the file may still exist.
        """
        for tracked in files:
            if not tracked.is_deleted and not self._tracker.has_later_id(tracked):
                written_ms = (tracked.changed_ns or 0) // 1_000_000
                self._end(tracked, max(written_ms, now_ms - round(FORGET_AFTER_S * 1000)))

    def forget(self, files: Iterable[TrackedFile]) -> None:
        """Drops what is noted about files that the agent forgets."""
        self._ended.difference_update(tracked.file for tracked in files)

    def tell(self, number: int, now: float, now_ms: int) -> None:
        """Puts a note (an audit message) about the unsafe bytes into the outbox, if a report is
        due. Makes no note while an earlier note waits to be published, or if nothing has changed
        since the last note. number: the last number that was used for deltas and seals.
        """
        if now < self._tell_at or self._mail.has(self._last_id):
            return
        self._tell_at = now + TELL_EVERY_S
        found = self._look(now_ms)
        if found == self._told:
            return
        self._told, sender = found, self._sender
        self._last_id = self._mail.stage(
            Note(
                KIND,
                sender.producer,
                sender.host,
                sender.cluster,
                sender.epoch,
                number,
                now_ms,
                body_of(found),
            )
        )

    def _end(self, tracked: TrackedFile, end_ms: int) -> None:
        begin_ms = _begin_ms(tracked)
        if begin_ms is not None and tracked.file not in self._ended:
            self._ended.add(tracked.file)
            self._lives.end(_directory(tracked.birth.path), end_ms - begin_ms)

    def _look(self, now_ms: int) -> Backlog:
        before, self._reaches = self._reaches, {}
        unread: dict[str, int] = {}
        unacknowledged: dict[str, int] = {}
        files: dict[str, list[FileBacklog]] = {}
        for tracked in self._tracker.files.values():
            if tracked.is_deleted:
                self._end(tracked, now_ms)
            read, end = _ends(tracked)
            if end <= tracked.position:
                continue
            topic = tracked.birth.topic
            unread[topic] = unread.get(topic, 0) + end - read
            unacknowledged[topic] = unacknowledged.get(topic, 0) + read - tracked.position
            reaches = then(before.get(tracked.file), tracked, end, now_ms)
            self._reaches[tracked.file] = reaches
            path = shown(tracked.location) or tracked.birth.path
            size, loss_ms = end - tracked.position, self._loss_ms(tracked, now_ms)
            found = FileBacklog(path, size, reaches[0][1], loss_ms)
            files.setdefault(topic, []).append(found)
        for file in self._tracker.unopened:
            if file.may_begin and file.found.size > 0:
                unread[file.topic] = unread.get(file.topic, 0) + file.found.size
                files.setdefault(file.topic, []).append(self._unopened(file, now_ms))
        return bounded(
            _topic(topic, unread.get(topic, 0), unacknowledged.get(topic, 0), each)
            for topic, each in files.items()
        )

    def _unopened(self, file: UnopenedFile, now_ms: int) -> FileBacklog:
        path, born_ns = shown(file.found.path), file.found.born_ns
        begin_ms = None if born_ns is None else born_ns // 1_000_000
        loss_ms = self._deleted_ms(file.topic, path, begin_ms, now_ms)
        return FileBacklog(path, file.found.size, begin_ms, loss_ms)

    def _loss_ms(self, tracked: TrackedFile, now_ms: int) -> int | None:
        if self._is_nameless(tracked):
            return now_ms
        birth = tracked.birth
        return self._deleted_ms(birth.topic, birth.path, _begin_ms(tracked), now_ms)

    def _deleted_ms(self, topic: str, path: str, begin_ms: int | None, now_ms: int) -> int | None:
        kept_ms = self._kept_ms(topic, path)
        if begin_ms is None or kept_ms is None:
            return None
        return max(begin_ms + kept_ms, now_ms)

    def _kept_ms(self, topic: str, path: str) -> int | None:
        """Returns how long (ms) the agent expects a file at this path to exist after its birth;
        None if `deleted.after.ms` is not set, and the agent saw no file of the directory vanish.
        """
        said = [
            each.deleted_after_ms
            for each in self._tracker.sources
            if each.topic == topic and each.deleted_after_ms is not None
        ]
        return min(said) if said else self._lives.shortest(_directory(path))

    def _is_nameless(self, tracked: TrackedFile) -> bool:
        handle = self._handles.held(tracked.file) if tracked.rotated else None
        try:
            return tracked.is_deleted or (handle is not None and not handle.status().links)
        except OSError:
            return False


class Lives:
    """For each directory, owns the lives (ms) of those of its files that were deleted last."""

    def __init__(self) -> None:
        self._found: OrderedDict[str, deque[int]] = OrderedDict()

    def end(self, directory: str, life_ms: int) -> None:
        """Notes how long a deleted file lived. Ignores a negative `life_ms`, which shows that the
        clock was set back during the file's life.
        """
        if life_ms < 0:
            return
        self._found.setdefault(directory, deque(maxlen=LIVES_MAX)).append(life_ms)
        self._found.move_to_end(directory)
        if len(self._found) > DIRECTORIES_MAX:
            self._found.popitem(last=False)

    def shortest(self, directory: str) -> int | None:
        """Returns the shortest life (ms) among the files that were deleted last in this directory;
        None if the agent saw none of its files vanish."""
        found: Sequence[int] = self._found.get(directory, ())
        return min(found, default=None)


def then(
    before: list[tuple[int, int]] | None, tracked: TrackedFile, end: int, now_ms: int
) -> list[tuple[int, int]]:
    """Returns the sizes that a file with unsafe bytes had, each with the time (ms) at which the
    agent first saw this size, the oldest first. All sizes are above the file's durable position
    (the position up to which all bytes are safe). before: the result at the previous report; None
    at the file's first report. end: the size now.
    """
    if before is None:
        changed_ns = tracked.changed_ns
        written_ms = now_ms if changed_ns is None else min(now_ms, changed_ns // 1_000_000)
        return [(end, written_ms)]
    found = [each for each in before if each[0] > tracked.position]
    if not found or end > found[-1][0]:
        found.append((end, now_ms))
    if len(found) > REACHES_MAX:  # two entries become one: the larger size, the earlier time
        pairs = zip(found[:-1:2], found[1::2], strict=False)
        found = [(later[0], earlier[1]) for earlier, later in pairs] + found[len(found) // 2 * 2 :]
    return found


def _topic(
    topic: str, unread: int, unacknowledged: int, files: Sequence[FileBacklog]
) -> TopicBacklog:
    oldest = [x.oldest_ms for x in files if x.oldest_ms is not None]
    losses = [x.loss_ms for x in files if x.loss_ms is not None]
    worst = tuple(sorted(files, key=urgency)[:FILES_MAX])
    oldest_ms, loss_ms = min(oldest, default=None), min(losses, default=None)
    return TopicBacklog(topic, unread, unacknowledged, oldest_ms, loss_ms, worst)


def _ends(tracked: TrackedFile) -> tuple[int, int]:
    """Returns two positions in a file: up to where the agent has read it, and up to where the agent
    has to read it.
    """
    read = max(tracked.read_position, tracked.promised, tracked.position)
    if tracked.state is FileState.CLOSED:
        return tracked.position, tracked.position
    if tracked.length is not None:
        return tracked.length, tracked.length
    return read, max(tracked.size, read)


def _begin_ms(tracked: TrackedFile) -> int | None:
    """Returns when the file was created (ms); None if this is not known, or if the file had another
    file id before, for example because it was truncated.
    """
    birth = tracked.birth
    if birth.born_ns is None or birth.predecessor is not None:
        return None
    return birth.born_ns // 1_000_000


def _directory(path: str) -> str:
    return os.path.dirname(path)

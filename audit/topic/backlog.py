"""The report of an agent about its unsafe bytes: the bytes of log files that the agent has not read
yet, and the bytes that it has read, but that no broker has acknowledged. The report is the body of
a note (see module notes).

    {"topics": [{"topic": NAME, "unread": BYTES, "unacknowledged": BYTES, "oldest": MS,
                 "loss": MS, "files": [{"path": PATH, "bytes": BYTES, "oldest": MS, "loss": MS}]}],
     "more": {"topics": N, "bytes": BYTES}}

For a file, `oldest` is a time at which the file's oldest unsafe byte was already in the file, and
`loss` is the time at which the file will be deleted. For a topic, `oldest` and `loss` are the
earliest of these times of the topic's files. A value that is not known is null. The note names only
the topics that will lose bytes first, and for each topic only the files that will lose bytes first.
`more` has the number of the other topics, and the sum of their unsafe bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from skidway.audit.topic.notes import Note, is_count

KIND: Final = "backlog"
TOPICS_MAX: Final = 32
FILES_MAX: Final = 3
PATH_LENGTH_MAX: Final = 256


@dataclass(frozen=True, slots=True)
class FileBacklog:
    """The unsafe bytes of one file. oldest_ms, loss_ms: `oldest` and `loss` in the module's
    docstring; None if not known.
    """

    path: str
    bytes: int
    oldest_ms: int | None = None
    loss_ms: int | None = None


@dataclass(frozen=True, slots=True)
class TopicBacklog:
    """The unsafe bytes of one topic. files: the files that will lose bytes first."""

    topic: str
    unread: int = 0
    unacknowledged: int = 0
    oldest_ms: int | None = None
    loss_ms: int | None = None
    files: tuple[FileBacklog, ...] = ()

    @property
    def bytes(self) -> int:
        """All unsafe bytes of the topic."""
        return self.unread + self.unacknowledged


@dataclass(frozen=True, slots=True)
class Backlog:
    """The unsafe bytes of one agent. more_topics, more_bytes: the number of topics that `topics`
    leaves out, and the sum of their unsafe bytes.
    """

    topics: tuple[TopicBacklog, ...] = ()
    more_topics: int = 0
    more_bytes: int = 0

    @property
    def bytes(self) -> int:
        """All unsafe bytes of the agent."""
        return sum(x.bytes for x in self.topics) + self.more_bytes


def urgency(found: FileBacklog | TopicBacklog) -> tuple[bool, int, bool, int, int]:
    """Returns a sort key that puts the most urgent files or topics first. Files or topics with a
    known `loss_ms` come before all others, the earliest first. If `loss_ms` is equal or unknown,
    older unsafe bytes come first. If the bytes are equally old, more unsafe bytes come first.
    """
    return (
        found.loss_ms is None,
        found.loss_ms or 0,
        found.oldest_ms is None,
        found.oldest_ms or 0,
        -found.bytes,
    )


def bounded(topics: Iterable[TopicBacklog]) -> Backlog:
    """Returns a backlog with the TOPICS_MAX most urgent of these topics, and the number and the
    bytes of all others."""
    found = sorted(topics, key=urgency)
    rest = found[TOPICS_MAX:]
    return Backlog(tuple(found[:TOPICS_MAX]), len(rest), sum(x.bytes for x in rest))


def body_of(backlog: Backlog) -> dict[str, Any]:
    """The backlog as the body of a note."""
    return {
        "topics": [
            {
                "topic": x.topic,
                "unread": x.unread,
                "unacknowledged": x.unacknowledged,
                "oldest": x.oldest_ms,
                "loss": x.loss_ms,
                "files": [
                    {
                        "path": y.path[-PATH_LENGTH_MAX:],
                        "bytes": y.bytes,
                        "oldest": y.oldest_ms,
                        "loss": y.loss_ms,
                    }
                    for y in x.files[:FILES_MAX]
                ],
            }
            for x in backlog.topics
        ],
        "more": {"topics": backlog.more_topics, "bytes": backlog.more_bytes},
    }


def backlog_of(note: Note) -> Backlog:
    """Returns the backlog in a note. Leaves out values that do not have the form that the module's
    docstring shows.
    """
    more = note.body.get("more")
    more = more if isinstance(more, dict) else {}
    topics = (_topic(x) for x in _records(note.body.get("topics"), TOPICS_MAX))
    return Backlog(
        tuple(x for x in topics if x is not None), _count(more, "topics"), _count(more, "bytes")
    )


def _topic(record: Mapping[str, Any]) -> TopicBacklog | None:
    if not isinstance(record.get("topic"), str):
        return None
    files = (
        FileBacklog(x["path"], _count(x, "bytes"), _moment(x, "oldest"), _moment(x, "loss"))
        for x in _records(record.get("files"), FILES_MAX)
        if isinstance(x.get("path"), str)
    )
    return TopicBacklog(
        record["topic"],
        _count(record, "unread"),
        _count(record, "unacknowledged"),
        _moment(record, "oldest"),
        _moment(record, "loss"),
        tuple(files),
    )


def _records(found: object, count: int) -> list[dict[str, Any]]:
    return [x for x in found[:count] if isinstance(x, dict)] if isinstance(found, list) else []


def _count(record: Mapping[str, Any], key: str) -> int:
    value: Any = record.get(key)
    return int(value) if is_count(value) else 0


def _moment(record: Mapping[str, Any], key: str) -> int | None:
    return _count(record, key) if is_count(record.get(key)) else None

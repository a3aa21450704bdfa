"""Decides which labels the records of a file get, and from which position on.

The labels of a pod are in a file that another program writes (`pod_metadata`). If that file is
missing or cannot be read, the content that the agent last read counts. If this content does not
name the pod of a log, the log's next records get the same labels as the log's earlier records. If
there are no earlier records, the next records get no labels. So the agent reads a log without
waiting for its labels, and the last lines of a deleted pod have the same labels as the lines before
them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field
from typing import Final

from skidway.agent.files import pod_metadata
from skidway.agent.files.host import Host
from skidway.agent.files.pod_metadata import METADATA_BYTES_MAX, Metadata, MetadataRefused
from skidway.agent.values.found import Found
from skidway.agent.values.labels import (
    Labels,
    LabelSource,
    Unlabelled,
    Unreadable,
    extended,
    labels_at,
)
from skidway.agent.values.tracked import TrackedFile
from skidway.dataclass import dataclass

LOOK_EVERY_S: Final = 1.0
"""After this many seconds, the agent checks again whether a file with labels has changed."""

NAMED_MAX: Final = 100_000
"""The agent remembers at most this many logs without labels, to report each log only once."""

MISSING: Final = "it is missing, or is no regular file"
CHANGING: Final = "it changes while it is read"


@dataclass(slots=True)
class _File:
    """A file with labels. metadata: the file's content when the agent last could read it. seen: the
    file as the agent found it at its last attempt to read it; None if the agent must try again,
    even if the file does not change. fault: why the file cannot be read now.
    """

    metadata: Metadata = field(default_factory=dict)
    seen: Found | None = None
    fault: str | None = None
    look_at: float = float("-inf")


class PodLabels:
    """Owns the contents of the files with labels, and the news that `take_news` has not returned
    yet: logs without labels, and files that cannot be read or can be read again."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._files: dict[str, _File] = {}
        self._named: set[int] = set()
        self._news: list[Unlabelled | Unreadable] = []

    @property
    def unreadable(self) -> int:
        """How many files with labels cannot be read now."""
        return sum(each.fault is not None for each in self._files.values())

    def take_locations(self, locations: Collection[str]) -> None:
        """Forgets the files with labels that no present source names. locations: the files that the
        present sources name."""
        for location in self._files.keys() - set(locations):
            del self._files[location]

    def take_news(self) -> list[Unlabelled | Unreadable]:
        """Returns and then forgets the news since the last call: which logs have no labels, and
        which files with labels cannot be read, or can be read again."""
        news, self._news = self._news, []
        return news

    def note(self, tracked: TrackedFile, source: LabelSource, now: float) -> None:
        """Called before an intent is made. If the log's labels have changed, the new labels apply
        from the read position on.
        """
        position = tracked.read_position
        before = labels_at(tracked.labels, position)
        found = pod_metadata.labels_of(self._metadata(source.location, now), tracked.birth.path)
        labels = _chosen(dict(before) if found is None else found, source)
        if found is None and not labels and tracked.file not in self._named:
            if len(self._named) >= NAMED_MAX:
                self._named.clear()
            self._named.add(tracked.file)
            birth = tracked.birth
            self._news.append(Unlabelled(birth.topic, birth.path, source.location))
        if labels != before:
            tracked.labels = extended(tracked.labels, position, labels, tracked.position)

    def _metadata(self, location: str, now: float) -> Metadata:
        file = self._files.setdefault(location, _File())
        if now < file.look_at:
            return file.metadata
        file.look_at = now + LOOK_EVERY_S
        fault = file.fault
        try:
            read = _read(self._host, location, file.seen)
            if read is not None:
                (file.seen, file.metadata), file.fault = read, None
        except _Unread as unread:
            file.fault, file.seen = str(unread), unread.seen
        if file.fault != fault:
            self._news.append(Unreadable(location, file.fault))
        return file.metadata


def present_labels(host: Host, source: LabelSource, path: str) -> tuple[Labels, str | None]:
    """Returns the labels that a log at `path` would get now. If the labels are unknown, also
    returns a sentence that says why; otherwise None."""
    try:
        read = _read(host, source.location, None)
    except _Unread as unread:
        return (), f"{source.location} cannot be read: {unread}"
    assert read is not None
    found = pod_metadata.labels_of(read[1], path)
    if found is None:
        return (), f"{source.location} does not name the pod or container of {path}"
    return _chosen(found, source), None


class _Unread(Exception):
    """Raised if a file with labels cannot be read. seen: the file as it was found, if the agent
    reads it again only when it has changed; None if the agent tries again in any case.
    """

    def __init__(self, reason: str, seen: Found | None = None) -> None:
        super().__init__(reason)
        self.seen = seen


def _read(host: Host, location: str, seen: Found | None) -> tuple[Found, Metadata] | None:
    """Returns the file at `location` and its content; None if it has not changed since `seen`.
    Raises _Unread."""
    try:
        found = host.look(location)
    except ValueError as error:  # for example, a path with a character NUL
        raise _Unread(str(error)) from error
    if found is None:
        raise _Unread(MISSING)
    if found == seen:
        return None
    if found.size > METADATA_BYTES_MAX:
        raise _Unread(f"it has more than {METADATA_BYTES_MAX:,} bytes", found)
    try:
        handle = host.open(location)
        try:
            data = handle.read(found.size + 1, 0)
            status = handle.status()
        finally:
            handle.close()
    except OSError as error:
        raise _Unread(error.strerror or str(error)) from error
    if (status.key, status.size, status.changed_ns) != (found.key, len(data), found.changed_ns):
        raise _Unread(CHANGING)
    try:
        return found, pod_metadata.read(data)
    except MetadataRefused as error:
        raise _Unread(str(error), found) from error


def _chosen(labels: Mapping[str, str], source: LabelSource) -> Labels:
    names = sorted(set(source.names))
    return tuple((name, labels[name]) for name in names if labels.get(name))

"""The files that the next turns try to read.

Topics take turns, and so do the files of a topic. So many files of one topic, such as those that a
program makes in a loop, do not delay the files of others.
"""

from __future__ import annotations

from collections import OrderedDict

from skidway.agent.values.tracked import TrackedFile


class Ready:
    """Owns the files to read, each once, by topic, in the order in which they are read."""

    def __init__(self) -> None:
        self._topics: dict[str, OrderedDict[int, TrackedFile]] = {}

    def __bool__(self) -> bool:
        return bool(self._topics)

    def add(self, tracked: TrackedFile) -> None:
        """Adds a file behind those of its topic, unless it is there already."""
        self._topics.setdefault(tracked.birth.topic, OrderedDict())[tracked.file] = tracked

    def pop(self) -> TrackedFile:
        """Takes out the next file. Another topic, if there is one, comes next."""
        topic = next(iter(self._topics))
        files = self._topics.pop(topic)
        _, tracked = files.popitem(last=False)
        if files:
            self._topics[topic] = files
        return tracked

    def discard(self, tracked: TrackedFile) -> bool:
        """Takes out a file. Returns whether it was there."""
        files = self._topics.get(tracked.birth.topic)
        if files is None or files.pop(tracked.file, None) is None:
            return False
        if not files:
            del self._topics[tracked.birth.topic]
        return True

"""Leaving for good: the last word on each topic, and what stands in its way.

    look       as for every seal: W and `at` noted, then the patterns, then how long each file is
    at rest    if all of it is settled at that very look, nothing of the topic is under way: this
               seal is the last word, and nothing of the topic is read any more
    otherwise  the seal follows when it is settled, as an ordinary one; the next look decides anew

A last word vouches for no more than any seal does: all bytes that lay there when W was noted. But
nobody has to wait for another one. It is durable which topics have one, and it is taken back by an
ordinary seal of the same W before anything more is read: by an agent that runs again at once, by
one that is asked to leave again where it finds something new.

No file id is closed for this: a closure cannot be taken back, and the agent of a host that did stay
must be able to tell that a file which it knew has vanished unread.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from agent.accounts import sealing
from agent.accounts.sealing import Noted
from agent.files.tracked import FileState, TrackedFile
from agent.files.tracking import shown


class Leaving:
    """Owns which topics' newest seal is a last word.

    left: those whose is, durably. done: those of which it was said since the start.
    """

    def __init__(self, left: Iterable[str]) -> None:
        self.left = set(left)
        self.done: set[str] = set()
        self.is_asked = False
        self._at_rest: set[str] = set()

    def judge(self, noted: Noted, files: Mapping[int, TrackedFile]) -> bool:
        """Whether a note that was made just now is a last word."""
        at_rest = self.is_asked and sealing.is_complete(noted, files)
        if at_rest:
            self._at_rest.add(noted.topic)
        return at_rest

    def said(self, topic: str, *, final: bool) -> bool:
        """Its newest seal is, or is not, a last word; whether that is new."""
        was_left = topic in self.left
        self._at_rest.discard(topic)
        if final:
            self.left.add(topic)
            self.done.add(topic)
        else:
            self.left.discard(topic)
        return was_left != final

    def voided(self, topic: str) -> None:
        """The note counts no more: the next look decides anew."""
        self._at_rest.discard(topic)

    def is_done_with(self, topic: str) -> bool:
        """Whether nothing of the topic is read: its last word is said, or on its way."""
        return self.is_asked and (topic in self.done or topic in self._at_rest)

    def spoken_again(self, topics: Collection[str]) -> set[str]:
        """The topics whose last word has to be taken back. topics: those that are read on."""
        return self.left.intersection(topics) if self.is_asked else set(self.left)


def obstacles(
    topics: Iterable[str],
    files: Iterable[TrackedFile],
    unreadable: Mapping[str, Mapping[str, str]],
) -> Iterator[str]:
    """Why these topics have no last word yet, a sentence for each file, or for the topic."""
    of_topic: dict[str, list[TrackedFile]] = {topic: [] for topic in topics}
    for tracked in files:
        if tracked.state is not FileState.CLOSED and tracked.birth.topic in of_topic:
            of_topic[tracked.birth.topic].append(tracked)
    for topic, own in sorted(of_topic.items()):
        unread = [tracked for tracked in own if tracked.pending]
        for path, reason in sorted(unreadable.get(topic, {}).items()):
            yield f"topic {topic}: {shown(path)} cannot be read: {reason}"
        for tracked in unread:
            if tracked.location not in unreadable.get(topic, {}):
                path = shown(tracked.location) or tracked.birth.path
                yield f"topic {topic}: {tracked.pending} bytes of {path} are not delivered"
        if not unread and not unreadable.get(topic):
            yield f"topic {topic}: it was not looked through in time, or its files are written to"

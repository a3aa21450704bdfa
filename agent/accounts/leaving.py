"""Lets an agent leave for good: for each topic, the agent sends a final seal, which is called the
last word. Also says what prevents a last word.

    look       as for every seal, the agent notes the wall time W and `at`, the number of the last
               delta or seal, scans the patterns, and notes the length of each file
    at rest    if the checkpoint has already passed all bytes that the files have at the look, no
               line of the topic is under way: this seal is the last word, and the agent stops
               reading the topic
    otherwise  this seal is an ordinary seal, sent when the checkpoint has passed the bytes; the
               next look decides anew
    disturbed  if the files have more bytes than at that look, are unreadable, or may differ from
               what was read, the agent takes the last word back and goes on reading the topic's
               files
    end        the agent has left when one look finds all topics at rest, and all last words
               are published

A last word is a seal. Like any seal, it names a wall time W, and confirms that all bytes that were
in the files at W are accounted for. But after a last word the audit waits for no further seal of
the topic. So if the agent later sees more bytes in the files, it must take the last word back. The
state stores the last words. To take a last word back, the agent sends an ordinary seal with the
same W and `at`. If an agent opens the state again, to run or to drain, it takes all last words back
in its first transaction. If a look finds more bytes, the agent sends the ordinary seal in the
transaction of that look.

A last word closes no file id, because the message that closes a file id cannot be taken back. If
the host stays in use, its agent must still notice when a known file vanishes unread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from skidway.agent.accounts import sealing
from skidway.agent.accounts.sealing import Noted
from skidway.agent.files.host import shown
from skidway.agent.state.changes import LastWord
from skidway.agent.values.tracked import FileState, TrackedFile


class Leaving:
    """Owns the last words of the topics. A last word is a seal after which the audit waits for no
    further seal of the topic.

    left: by topic, each last word that no later seal of the topic has replaced. Such a last word is
    durable, or becomes durable with the transaction of the present turn of the agent's loop. done:
    the topics whose last word was sent after the agent started, and whose files have had no new
    bytes since then.
    """

    def __init__(self, left: Mapping[str, LastWord]) -> None:
        self.left = dict(left)
        self.done: set[str] = set()
        self.is_asked = False
        # Each key is a topic whose files are not read any more. The value is that of `Noted.doubts`
        # at the time when the agent made the topic's last word.
        self._at_rest: dict[str, int] = {}
        self._kept: set[str] = set()

    @property
    def at_rest(self) -> list[str]:
        """The topics that the agent has stopped reading, because their last word is sent or will be
        sent soon.
        """
        return list(self._at_rest)

    @property
    def kept(self) -> set[str]:
        """The topics whose last word is durable and was sent after the agent started, and whose
        files have had no new bytes since the last word."""
        return self._kept & self.done

    def committed(self) -> None:
        """Notes that the transaction of this turn of the agent's loop is durable."""
        self._kept = set(self.done)

    def judge(self, noted: Noted, files: Mapping[int, TrackedFile]) -> bool:
        """Returns whether a topic's next seal will be its last word. If so, the topic is at rest:
        from now on the agent does not read its files. noted: the file lengths that were just noted
        for this seal."""
        at_rest = self.is_asked and sealing.is_complete(noted, files)
        if at_rest:
            self._at_rest[noted.topic] = noted.doubts
        return at_rest

    def review(self, noted: Noted, files: Mapping[int, TrackedFile]) -> None:
        """If the newly noted file lengths show that a topic's files have more bytes, or other
        bytes, than at its last word, notes that the topic is not at rest: the agent reads the
        topic's files again."""
        in_doubt = noted.doubts != self._at_rest.get(noted.topic)
        if in_doubt or not sealing.is_complete(noted, files):
            self.disturbed(noted.topic)

    def disturbed(self, topic: str) -> None:
        """Notes that a topic is not at rest: the agent continues to read the topic's files. If the
        topic's last word was sent, the agent takes the last word back.
        """
        self._at_rest.pop(topic, None)
        self.done.discard(topic)

    def said(self, noted: Noted) -> bool:
        """Notes that a topic's newest seal is sent. Returns whether the last words in the state
        have to change."""
        was_left = self.left.pop(noted.topic, None)
        if noted.final:
            self.left[noted.topic] = LastWord(noted.wall_ms, noted.at)
            self.done.add(noted.topic)
        return was_left != self.left.get(noted.topic)

    def is_done_with(self, topic: str) -> bool:
        """Whether the agent has stopped reading the topic, because the topic's last word (final
        seal) is sent or will be sent soon.
        """
        return self.is_asked and topic in self._at_rest

    def take_back(self) -> dict[str, LastWord]:
        """Removes the last words that are no longer true, and returns them."""
        again = {topic: word for topic, word in self.left.items() if topic not in self.done}
        for topic in again:
            del self.left[topic]
        return again


def obstacles(
    topics: Iterable[str],
    files: Iterable[TrackedFile],
    unreadable: Mapping[str, Mapping[str, str]],
) -> Iterator[str]:
    """Yields sentences that say why these topics have no last word yet: one sentence for each
    unreadable path, and one for each file with bytes that are not delivered. For a topic that has
    neither, yields one sentence about the topic."""
    of_topic: dict[str, list[TrackedFile]] = {topic: [] for topic in topics}
    for tracked in files:
        if tracked.state is not FileState.CLOSED and tracked.birth.topic in of_topic:
            of_topic[tracked.birth.topic].append(tracked)
    for topic, own in sorted(of_topic.items()):
        unread = [tracked for tracked in own if tracked.pending]
        for path, reason in sorted(unreadable.get(topic, {}).items()):
            yield f"topic {topic}: {shown(path)} cannot be read: {reason}"
        for tracked in unread:
            if (tracked.meant or tracked.location) not in unreadable.get(topic, {}):
                path = shown(tracked.location) or tracked.birth.path
                yield f"topic {topic}: {tracked.pending} bytes of {path} are not delivered"
        if not unread and not unreadable.get(topic):
            yield f"topic {topic}: it was not looked through in time, or its files are written to"

"""Announces each file id before its first record, and closes each file id at its end."""

from __future__ import annotations

from skidway.agent import events
from skidway.agent.accounts import announcements
from skidway.agent.accounts.mail import Mail
from skidway.agent.cluster.topics import Topics
from skidway.agent.files.handles import Handles
from skidway.agent.files.reading import FileReader
from skidway.agent.files.tracking import Tracker
from skidway.agent.values.identity import FINGERPRINT_BYTES, fingerprint_of
from skidway.agent.values.tracked import FileState, TrackedFile

REPEAT_S = 600.0
"""The least number of seconds between two searches for announcements that are a day old."""


class Register:
    """Adds announcements (audit messages that say which file a file id names) to the outbox. An
    announcement opens a file id, repeats an earlier announcement (perhaps with a new hash of the
    file's first bytes), or closes a file id.
    """

    def __init__(
        self,
        agent: int,
        topics: Topics,
        mail: Mail,
        tracker: Tracker,
        reader: FileReader,
        handles: Handles,
    ) -> None:
        self._agent = agent
        self._topics = topics
        self._mail = mail
        self._tracker = tracker
        self._reader = reader
        self._handles = handles
        self._repeat_at = 0.0

    def announce(self, tracked: TrackedFile, now_ms: int) -> None:
        """Announces which file the file id of `tracked` names."""
        tracked.announced_ms = now_ms
        source = self._topics.source_of(tracked)
        self._mail.stage(announcements.announcement(tracked, self._agent, source, now_ms))

    def announce_grown(self, tracked: TrackedFile, now_ms: int) -> None:
        """Announces again a file that was shorter than FINGERPRINT_BYTES when its file id was made,
        and is longer now, if the agent has the file open. The new announcement has the fingerprint
        (a hash) of the first FINGERPRINT_BYTES.
        """
        handle = self._handles.held(tracked.file)
        if handle is None or tracked.birth.fingerprint.length == FINGERPRINT_BYTES:
            return
        try:
            fingerprint = fingerprint_of(handle.read, FINGERPRINT_BYTES)
        except OSError as error:
            self._tracker.cannot_read(tracked, error)
            return
        source = self._topics.source_of(tracked)
        self._mail.stage(
            announcements.announcement(
                tracked, self._agent, source, now_ms, fingerprint=fingerprint
            )
        )

    def repeat(self, now: float, now_ms: int) -> None:
        """Announces again each open file id whose last announcement is a day old."""
        if now < self._repeat_at:
            return
        self._repeat_at = now + REPEAT_S
        for tracked in self._tracker.files.values():
            if tracked.state is FileState.OPEN and announcements.is_due(tracked, now_ms):
                self.announce(tracked, now_ms)
                self._tracker.note(tracked)

    def mind_published(self) -> None:
        """Notes which announcements have reached the cluster. Only now may the agent read the files
        that these announcements name.
        """
        for message in self._mail.take_published():
            tracked = self._tracker.files.get(message.file) if message.file else None
            if tracked is not None and not tracked.announced:
                tracked.announced = True
                self._tracker.note(tracked)
                self._reader.wake(tracked)

    def close_ended(self, now_ms: int) -> None:
        """Announces the final length of each file whose file id has ended and whose bytes are all
        accounted for. The transaction that stores the announcement, or an earlier one, moves the
        file's position to this length."""
        for tracked in list(self._tracker.ended.values()):
            if not tracked.announced_ms:
                continue  # a skipped compressed file, which this turn announces later
            if tracked.flights or tracked.position != tracked.length:
                continue
            tracked.state = FileState.CLOSED
            del self._tracker.ended[tracked.file]
            self._tracker.note(tracked)
            source = self._topics.source_of(tracked)
            self._mail.stage(
                announcements.announcement(tracked, self._agent, source, now_ms, closing=True)
            )
            events.file_closed(tracked.birth.path, tracked.file, tracked.length)

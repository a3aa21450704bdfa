"""Makes the notes in which a program reports how it was started, and what it waits for (see
program_status). They are made when something has changed, and from time to time."""

from __future__ import annotations

from typing import Final

from skidway.audit.topic import notes, program_status
from skidway.audit.topic.messages import Sender
from skidway.audit.topic.notes import Note
from skidway.audit.topic.program_status import ProgramStatus
from skidway.clock import Clock

ASK_EVERY_S: Final = 5.0
TELL_EVERY_S: Final = 300.0
"""An unchanged status is told again after this time, because messages expire."""


class StatusNotes:
    """Makes the notes of one sender."""

    def __init__(self, sender: Sender, clock: Clock) -> None:
        self._sender = sender
        self._clock = clock
        self._ask_at = self._tell_at = clock.monotonic()
        self._told: ProgramStatus | None = None

    @property
    def is_due(self) -> bool:
        """Whether to look at the sender's status."""
        return self._clock.monotonic() >= self._ask_at

    def told(self, found: ProgramStatus | None, number: int) -> bytes | None:
        """Returns the bytes of a note if one is due. found: the sender's present status; None if it
        is not known now. number: the number of the sender's last numbered message."""
        now = self._clock.monotonic()
        self._ask_at = now + ASK_EVERY_S
        if found is None or (found == self._told and now < self._tell_at):
            return None
        self._told, self._tell_at = found, now + TELL_EVERY_S
        who, now_ms, body = self._sender, self._clock.time_ms(), program_status.body_of(found)
        kind = program_status.KIND
        return notes.encode(
            Note(kind, who.producer, who.host, who.cluster, who.epoch, number, now_ms, body)
        )

"""Reports to the audit which members of lines were left out, because the schemas have no field for
them."""

from __future__ import annotations

from typing import Final

from skidway.agent.accounts.mail import Mail
from skidway.agent.batches.fieldless import Fieldless
from skidway.audit.topic.fieldless_note import KIND, FieldlessMembers, body_of
from skidway.audit.topic.messages import Sender
from skidway.audit.topic.notes import Note

TELL_EVERY_S: Final = 60.0


class FieldlessNotes:
    """Reports the counts of `fieldless` when a report is due. An agent that has left out nothing
    says so once, because the newest note of an earlier process may say otherwise."""

    def __init__(self, sender: Sender, mail: Mail, fieldless: Fieldless) -> None:
        self._sender, self._mail, self._fieldless = sender, mail, fieldless
        self._tell_at = 0.0
        self._told: dict[str, dict[str, int]] | None = None
        self._last_id = 0
        self._since_ms: int | None = None

    def tell(self, number: int, now: float, now_ms: int) -> None:
        """Puts a note into the outbox if a report is due. Makes no note while an earlier note waits
        to be published, or if nothing has changed since the last note. number: the last number that
        was used for deltas and seals.
        """
        if now < self._tell_at or self._mail.has(self._last_id):
            return
        self._tell_at = now + TELL_EVERY_S
        found = self._fieldless.copy()
        if found == self._told:
            return
        if self._since_ms is None or not found:
            self._since_ms = now_ms
        self._told, x = found, self._sender
        body = body_of(FieldlessMembers(self._since_ms, found))
        note = Note(KIND, x.producer, x.host, x.cluster, x.epoch, number, now_ms, body)
        self._last_id = self._mail.stage(note)

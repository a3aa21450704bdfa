"""Tells people which paths and sources the agent cannot read: in the state, in /health, and by a
note on the audit topic (see `audit.topic.source_report`). Logs each source without files once, and
again every day.
"""

from __future__ import annotations

from typing import Final

from skidway.agent import events
from skidway.agent.accounts.mail import Mail
from skidway.agent.files.host import shown
from skidway.agent.files.matches import Fileless
from skidway.agent.files.tracking import Tracker
from skidway.agent.state.changes import Changes
from skidway.audit.topic.messages import Sender
from skidway.audit.topic.notes import Note
from skidway.audit.topic.source_report import (
    KIND,
    NOTHING,
    FilelessSource,
    SourceReport,
    UnreadPath,
    body_of,
    bounded,
)

TELL_EVERY_S: Final = 10.0
TELL_AGAIN_S: Final = 3_600.0
LOG_AGAIN_S: Final = 86_400.0


class SourceReports:
    """Owns the newest report, and when each source without files was logged last."""

    def __init__(self, sender: Sender, mail: Mail, tracker: Tracker) -> None:
        self._sender = sender
        self._mail = mail
        self._tracker = tracker
        self._logged: dict[Fileless, float] = {}
        self._topics: set[str] = set()  # those that a reload removed have no source without files
        self._written: SourceReport | None = None
        self._told: SourceReport | None = None
        self._tell_at = self._tell_again_at = 0.0
        self._last_id = 0
        self.report = NOTHING

    def look(self, now: float, changes: Changes) -> None:
        """Notes what the last look could not read, logs it, and writes it into the state."""
        self.report = report_of(self._tracker)
        if self.report != self._written:
            self._written = self.report
            changes.put_sources(body_of(self.report))
        fileless = self._tracker.matches.fileless
        for each in fileless:
            if now >= self._logged.get(each, now) + LOG_AGAIN_S or each not in self._logged:
                self._logged[each] = now
                events.source_without_files(each.topic, each.paths, each.since_ms)
        self._logged = {each: self._logged[each] for each in fileless}
        self._topics.update(source.topic for source in self._tracker.sources)
        events.sources_without_files(self._topics, (each.topic for each in fileless))

    def tell(self, number: int, now: float, now_ms: int) -> None:
        """Puts a note into the outbox if the report has changed, and no earlier note waits to be
        published; also once after the start, because an earlier process may have told something
        else, and every hour while there is something to tell, because messages expire. number: the
        last number that was used for deltas and seals."""
        is_due_again = self.report != NOTHING and now >= self._tell_again_at
        is_due = self.report != self._told or is_due_again
        is_known = self._written is not None  # there was a look
        if not is_known or not is_due or now < self._tell_at or self._mail.has(self._last_id):
            return
        self._tell_at, self._told = now + TELL_EVERY_S, self.report
        self._tell_again_at = now + TELL_AGAIN_S
        who, body = self._sender, body_of(self.report)
        note = Note(KIND, who.producer, who.host, who.cluster, who.epoch, number, now_ms, body)
        self._last_id = self._mail.stage(note)


def report_of(tracker: Tracker) -> SourceReport:
    """Returns what the last look could not read. Leaves out paths of which a later look will
    probably know more."""
    unread = [
        UnreadPath(topic, shown(path), reason, holds)
        for found, holds in ((tracker.unreadable, True), (tracker.beside, False))
        for topic, reasons in found.items()
        for path, reason in reasons.items()
        if (topic, path) not in tracker.passing
    ]
    fileless = (FilelessSource(*each) for each in tracker.matches.fileless)
    return bounded(unread, fileless)

"""What a file id stands for: said before its first record, daily, and at its end."""

from __future__ import annotations

from agent.files.tracked import TrackedFile
from audit.messages import Announcement
from skidway.kafka.source import Source

REPEAT_AFTER_MS = 86_400_000


def announcement(
    tracked: TrackedFile, agent: int, source: Source, now_ms: int, *, closing: bool = False
) -> Announcement:
    """The opening announcement of a file id, or with `closing` the one with its final length."""
    birth = tracked.birth
    return Announcement(
        time_ms=now_ms,
        agent=agent,
        file=birth.file,
        host=birth.host,
        path=birth.path,
        device=birth.key.device,
        inode=birth.key.inode,
        fingerprint=birth.fingerprint.digest,
        fingerprint_length=birth.fingerprint.length,
        source=source,
        begin=birth.begin,
        predecessor=birth.predecessor,
        predecessor_position=birth.predecessor_position,
        length=tracked.length if closing else None,
    )


def is_due(tracked: TrackedFile, now_ms: int) -> bool:
    """Whether an open file id should be announced again."""
    return tracked.announced and not 0 <= now_ms - tracked.announced_ms < REPEAT_AFTER_MS

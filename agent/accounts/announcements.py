"""What a file id stands for: said before its first record, daily, and at its end.

If this agent's state is deleted, a new agent reads the same files again. The time of birth of the
inode shows that a file is the same. If the file system does not tell it, the fingerprint shows it:
so a file that began with fewer bytes is announced again once it has FINGERPRINT_BYTES.
"""

from __future__ import annotations

from skidway.agent.values.identity import Fingerprint
from skidway.agent.values.tracked import TrackedFile
from skidway.audit.topic.messages import Announcement
from skidway.kafka.source import Source

REPEAT_AFTER_MS = 86_400_000


def announcement(
    tracked: TrackedFile,
    agent: int,
    source: Source,
    now_ms: int,
    *,
    closing: bool = False,
    fingerprint: Fingerprint | None = None,
) -> Announcement:
    """The opening announcement of a file id, or with `closing` the one with its final length.

    fingerprint: one of more bytes than the file had at its birth, if it has them now.
    """
    birth = tracked.birth
    fingerprint = fingerprint or birth.fingerprint
    return Announcement(
        time_ms=now_ms,
        agent=agent,
        file=birth.file,
        host=birth.host,
        path=birth.path,
        device=birth.key.device,
        inode=birth.key.inode,
        fingerprint=fingerprint.digest,
        fingerprint_length=fingerprint.length,
        source=source,
        begin=birth.begin,
        predecessor=birth.predecessor,
        predecessor_position=birth.predecessor_position,
        length=tracked.length if closing else None,
        born_ns=birth.born_ns,
    )


def is_due(tracked: TrackedFile, now_ms: int) -> bool:
    """Whether an open file id should be announced again."""
    return tracked.announced and not 0 <= now_ms - tracked.announced_ms < REPEAT_AFTER_MS
